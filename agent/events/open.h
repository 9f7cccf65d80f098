/*
 * Reports waits that have lasted long and still go on, and waits whose owner sleeps (open_early.h).
 * Each is reported once, and again after a RESET, as an OPEN record, which no counter counts. The
 * end of such a wait is an ordinary record; where that record is lost, CLOSED is sent. Only the
 * agent's thread calls these, except where another is named.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"

/* Scans the table of waits. Returns the time of the next scan, CLOCK_MONOTONIC in ns. */
uint64_t open_waits_scan(uint64_t now_ns);
bool open_waits_are_due(void); /* a scan is needed before that time */
/* In the waiting thread: a wait began. @owned: the lock's owner is known. Wakes the agent's thread
 * if the next scan would be too late for this wait. */
void open_wait_begins(uint64_t now_ns, bool owned);
/* The table of waits was emptied. */
void open_waits_forget(void);
/* Called by the writer: the end of a wait is in the pending frame; that frame was written; that
 * frame was dropped. */
void open_wait_ended(const struct ring_sample *s);
void open_waits_sent(void);
void open_waits_lost(void);
/* Called by the writer: the reader has forgotten all stacks. */
void open_waits_again(void);
