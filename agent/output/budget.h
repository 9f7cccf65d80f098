/* The agent's own CPU time is kept under START's max_cpu by a longer interval, whose samples weigh
 * more, and by a higher threshold of waits, below which they are counted and not told. */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

uint64_t budget_interval(const struct wire_start *start); /* what is asked for, within bounds */
void budget_begin(const struct wire_start *start); /* the engine starts */
/* A wait was told. */
void budget_wait(uint64_t duration_ns);
/* A few times a second: waits that cost far too much are made fewer at once. As budget_keep(). */
bool budget_hurry(const struct wire_start *start);
/* Once a second, or less often. true = the interval or the threshold is another one now. */
bool budget_keep(const struct wire_start *start);
