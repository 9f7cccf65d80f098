/* See budget.h. */
#include "agent/budget.h"

#include "agent/engine/cpu_timer.h"

#define INTERVAL_NS_MIN (NS_PER_MS / 10)
#define INTERVAL_NS_MAX NS_PER_S
#define MAX_CPU_DEFAULT 10 /* permille of the process's own CPU time */
#define CPU_FLOOR_NS	NS_PER_MS /* per second: less than this is always allowed */
#define LOOK_BACK_S	4 /* one second alone is noise: a pass over all threads falls into it */

static struct {
	uint64_t agent_ns[LOOK_BACK_S], process_ns[LOOK_BACK_S]; /* clocks, a ring of seconds */
	uint64_t at_ns[LOOK_BACK_S];
	uint32_t seconds; /* seen since the start or the last change */
} budget;

static uint64_t clamp(uint64_t ns)
{
	if (ns < INTERVAL_NS_MIN)
		return INTERVAL_NS_MIN;
	return ns > INTERVAL_NS_MAX ? INTERVAL_NS_MAX : ns;
}

uint64_t budget_interval(const struct wire_start *start)
{
	return clamp(start->interval_ns);
}

static void note_clocks(void)
{
	uint32_t i = budget.seconds++ % LOOK_BACK_S;

	budget.agent_ns[i] = agent.books.handler_ns + thread_cpu_ns(0);
	budget.process_ns[i] = process_cpu_ns();
	budget.at_ns[i] = mono_ns();
}

void budget_begin(void)
{
	budget.seconds = 0;
	note_clocks();
}

bool budget_keep(const struct wire_start *start)
{
	uint64_t permille = start->max_cpu_permille ? start->max_cpu_permille : MAX_CPU_DEFAULT;
	uint64_t wanted = clamp(start->interval_ns), next = engine.interval_ns;
	uint32_t oldest = budget.seconds % LOOK_BACK_S;
	uint64_t ours, allowed, floor_ns;

	if (start->flags & WIRE_START_NO_BUDGET)
		return false;
	if (budget.seconds < LOOK_BACK_S) {
		note_clocks();
		return false;
	}
	ours = agent.books.handler_ns + thread_cpu_ns(0) - budget.agent_ns[oldest];
	allowed = (process_cpu_ns() - budget.process_ns[oldest]) * permille / 1000;
	floor_ns = (mono_ns() - budget.at_ns[oldest]) / (NS_PER_S / CPU_FLOOR_NS);
	note_clocks();
	if (allowed < floor_ns)
		allowed = floor_ns;
	if (ours > allowed)
		next = clamp(next + next / 2);
	else if (ours < allowed / 2 && next > wanted)
		next = next * 2 / 3 > wanted ? next * 2 / 3 : wanted;
	if (next == engine.interval_ns)
		return false;
	engine_set_interval(next);
	budget_begin();
	return true;
}
