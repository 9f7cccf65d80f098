/*
 * Waits for an owner who sleeps, or waits for I/O, while holding the lock. No sample and no wait of
 * the owner's own says where that is, and when the wait ends it is too late to look. So such waits
 * are reported as OPEN, with the owner's stack, as soon as they are no longer short. When the
 * agent's thread looks for them: at once where a wait begins and none was on, then as often as it
 * finds any, within a budget of its own. Agent's thread, but for the first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/events/waits.h"

/* The waiting thread: a wait for an owner began. true = the agent's thread must look. */
bool open_early_begins(void);

/* A look begins at @now_ns through so many slots. */
void open_early_look(uint64_t now_ns, uint32_t n_slots);
/* Is this wait, which began at @begin_ns and was not reported, to be reported now, if its owner
 * sleeps? */
bool open_early_is_ripe(const struct wait *w, uint64_t begin_ns);
/* The table is empty again. */
void open_early_forget(void);
/* Is there CPU time left for those? */
bool open_early_may_report(void);
void open_early_reported(void);
/* The look is over: the next one, or UINT64_MAX. */
uint64_t open_early_next(void);

/* Does the thread of that number sleep? Its clock stands still for as long as it takes to say so.
 */
bool open_early_sleeps(uint32_t number);
