/*
 * Waits that have lasted long and go on, or whose owner sleeps (open_early.h): each is reported
 * once, as OPEN, uncounted; its end comes as a record of its own, or, when that one is lost, as
 * CLOSED. Only the agent's thread, where nothing else is said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/ring.h"

/* Looks through the table of waits; when to look again. */
uint64_t open_waits_look(uint64_t now_ns);
bool open_waits_are_due(void); /* before that */
/* The waiting thread: a wait began, @owned for a lock whose owner is known. Wakes the agent's
 * thread where its next look is far off. */
void open_wait_begins(uint64_t now_ns, bool owned);
/* The table is empty again. */
void open_waits_forget(void);
/* writer.c: the end of a wait is in the pending frame; that frame is in the pipe; it is lost. */
void open_wait_ended(const struct ring_sample *s);
void open_waits_sent(void);
void open_waits_lost(void);
