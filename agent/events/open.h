/*
 * Reports waits that have lasted long and still go on, and waits whose owner sleeps (open_early.h).
 * Each is reported once, as an OPEN record, which no counter counts. The end of such a wait is an
 * ordinary record; where that record is lost, CLOSED is sent. Only the agent's thread calls these,
 * except where another is named.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"

/* Looks through the table of waits. Returns when to look again, CLOCK_MONOTONIC in ns. */
uint64_t open_waits_look(uint64_t now_ns);
bool open_waits_are_due(void); /* a look is wanted before that */
/* The waiting thread: a wait began. @owned: the lock's owner is known. Wakes the agent's thread if
 * its next look would come too late. */
void open_wait_begins(uint64_t now_ns, bool owned);
/* The table of waits was emptied. */
void open_waits_forget(void);
/* The writer: the end of a wait is in the pending frame; that frame was written; it was dropped. */
void open_wait_ended(const struct ring_sample *s);
void open_waits_sent(void);
void open_waits_lost(void);
