/* Keeps the agent's CPU time below START's max_cpu by two means: a longer interval, whose samples
 * weigh more; and a higher threshold of waits, below which waits are counted but not recorded. */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

uint64_t budget_interval(const struct wire_start *start); /* the interval that START asks for,
							   * within bounds */
void budget_begin(const struct wire_start *start); /* the engine starts */
/* A wait was recorded. */
void budget_wait(uint64_t duration_ns);
/* A few times a second: raises the threshold at once if waits cost far too much. Returns as
 * budget_keep(). */
bool budget_hurry(const struct wire_start *start);
/* Once a second, or less often. true = the interval or the threshold was changed. */
bool budget_keep(const struct wire_start *start);
