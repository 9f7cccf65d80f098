/* Shared by budget.c, which reads the clocks and sets the interval, and budget_waits.c. */
#pragma once

#include "agent/output/budget.h"

#define CPU_FLOOR_NS NS_PER_MS /* CPU time per second that is always allowed */

/* Totals since the agent was loaded, in ns. */
struct clocks {
	/* CPU time of handlers for CPU samples, and of the agent's thread for these and waits. What
	 * both spend on times off the CPU, whose number the daemon limits, is in neither. */
	uint64_t handler_ns, writer_ns;
	/* CPU time of the agent's thread for work that neither the interval nor the threshold
	 * changes */
	uint64_t fixed_ns;
	uint64_t waits_ns; /* CPU time of application threads, for recorded waits */
	uint64_t process_ns, at_ns;
	uint64_t samples, waits; /* taken */
};

struct clocks budget_clocks(void);
/* The CPU time, in ns, that the agent may use between @then and @now: max_cpu of the process's CPU
 * time, but at least CPU_FLOOR_NS a second. */
uint64_t budget_allowed(const struct wire_start *start, const struct clocks *then,
			const struct clocks *now);

/* true = the threshold was changed. */
bool budget_waits_keep(const struct wire_start *start, const struct clocks *now);
void budget_waits_begin(const struct clocks *now);
