/*
 * Waits for a lock whose owner sleeps or waits for I/O. The owner uses no CPU time and waits for no
 * lock, so no event has its stack; and when the wait ends it is too late to walk it. Such waits are
 * therefore reported as OPEN, with the owner's stack, once they have lasted 10 ms and the
 * threshold. The agent's thread looks for them as soon as a first wait for an owner begins, and
 * then repeatedly while it finds any, within a budget of its own. All functions are for the agent's
 * thread, except open_early_begins().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/events/waits.h"

/* The waiting thread: a wait for a lock with a known owner began. true = the agent's thread must be
 * woken for a look. */
bool open_early_begins(void);

/* A look through @n_slots slots begins at @now_ns. */
void open_early_look(uint64_t now_ns, uint32_t n_slots);
/* Is this wait, which began at @begin_ns and was not reported, to be reported now, if its owner
 * sleeps? */
bool open_early_is_ripe(const struct wait *w, uint64_t begin_ns);
/* The table of waits was emptied. */
void open_early_forget(void);
/* Is there CPU time left to report some? */
bool open_early_may_report(void);
void open_early_reported(void); /* one was reported */
/* The look is over. Returns when the next one is due, UINT64_MAX = when a wait begins. */
uint64_t open_early_next(void);

/* Does the thread of that number sleep? Its clock stands still for as long as it takes to say so.
 */
bool open_early_sleeps(uint32_t number);
