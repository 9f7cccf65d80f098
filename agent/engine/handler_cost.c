/* See handler_cost.h. */
#include "agent/engine/handler_cost.h"

#include "agent/base/agent.h"

#define LONGEST 16u /* the longest 1/16 of the times is capped */

/* Sorts the recent times into @sorted by insertion: they are few, and this runs at most once a
 * second. */
static uint32_t handler_cost_recent(uint32_t *sorted)
{
	uint32_t n = __atomic_load_n(&handler_cost.n, __ATOMIC_ACQUIRE);

	n = n < HANDLER_RECENT ? n : HANDLER_RECENT;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t ns = __atomic_load_n(&handler_cost.took_ns[i], __ATOMIC_RELAXED);
		uint32_t k = i;

		for (; k > 0 && sorted[k - 1] > ns; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = ns;
	}
	return n;
}

uint64_t handler_sample_ns(void)
{
	uint32_t sorted[HANDLER_RECENT], n = handler_cost_recent(sorted), longest;
	uint64_t sum = 0;

	if (!n)
		return 0;
	longest = n - 1 - (n + LONGEST - 1) / LONGEST;
	if (n < LONGEST)
		longest = n / 2; /* too few to know which are outliers: at most their median */
	for (uint32_t i = 0; i < n; i++)
		sum += sorted[i < longest ? i : longest];
	return sum / n;
}

void handler_cost_account(void)
{
	static uint64_t accounted;
	uint64_t samples = __atomic_load_n(&agent.counters.handled, __ATOMIC_RELAXED);

	if (samples == accounted)
		return;
	agent.counters.handler_ns += (samples - accounted) * handler_sample_ns();
	accounted = samples;
}
