/*
 * Waits for a lock whose owner sleeps or waits for I/O. The owner uses no CPU time and waits for no
 * lock, so no event has its stack; and when the wait ends it is too late to walk it. Such waits are
 * therefore reported as OPEN, with the owner's stack, once they have lasted 10 ms and the
 * threshold. The agent's thread scans for them as soon as a first wait for an owner begins, and
 * then repeatedly while it finds any, within a budget of its own. All functions are for the agent's
 * thread, except open_early_begins().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/events/waits.h"

/* In the waiting thread: a wait for a lock with a known owner began. true = the caller must wake
 * the agent's thread for a scan. */
bool open_early_begins(void);

/* A scan of @n_slots slots begins at @now_ns. */
void open_early_scan_begins(uint64_t now_ns, uint32_t n_slots);
/* Is this wait, which began at @begin_ns and was not reported, to be reported now, if its owner
 * sleeps? */
bool open_early_is_due(const struct wait *w, uint64_t begin_ns);
/* The table of waits was emptied. */
void open_early_forget(void);
/* Is there CPU time left to report some? */
bool open_early_may_report(void);
void open_early_reported(void); /* one was reported */
/* The scan is over; it took @cpu_ns of CPU time. Returns the time of the next one; UINT64_MAX =
 * when a wait begins. */
uint64_t open_early_next(uint64_t cpu_ns);

/* Does the thread with this number sleep? true if its CPU clock stands still between two
 * readings. */
bool open_early_sleeps(uint32_t number);
