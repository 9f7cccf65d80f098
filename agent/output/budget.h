/* Keeps the agent's CPU time below START's max_cpu in two ways: by a longer interval, whose samples
 * have more weight; and by a higher threshold of waits, below which waits are counted but not
 * recorded. */
#pragma once

#include <stdbool.h>
#include "agent/base/agent.h"

/* the interval that START asks for, in ns, within bounds */
uint64_t budget_interval(const struct wire_start *start);
void budget_begin(const struct wire_start *start); /* called when the engine starts */
/* A wait was recorded. */
void budget_wait(uint64_t duration_ns);
/* Called a few times a second: raises the threshold at once if waits cost far too much. Returns as
 * budget_keep(). */
bool budget_check_waits(const struct wire_start *start);
/* Called once a second, or less often. true = the interval or the threshold was changed. */
bool budget_keep(const struct wire_start *start);
