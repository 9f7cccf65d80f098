/*
 * What the agent costs now, computed from its CPU time at a few moments of the last minutes. An
 * average since the attach would at first show mostly the cost of the attach itself, and later
 * hardly change any more.
 */
#include "daemon/ground/clock.h"
#include "daemon/target/target_priv.h"

#define SPACING_NS (10 * NS_PER_S)
#define MINUTE_NS  (60 * NS_PER_S)

void recent_add(struct target_recent *r, uint64_t mono_ns, uint64_t cpu_ns)
{
	unsigned last = (r->next + RECENT_MAX - 1) % RECENT_MAX;

	if (r->n && mono_ns - r->mono_ns[last] < SPACING_NS)
		return;
	r->mono_ns[r->next] = mono_ns;
	r->cpu_ns[r->next] = cpu_ns;
	r->next = (r->next + 1) % RECENT_MAX;
	if (r->n < RECENT_MAX)
		r->n++;
}

double recent_cpus(const struct target_recent *r, uint64_t mono_ns, uint64_t cpu_ns)
{
	unsigned at = (r->next + RECENT_MAX - r->n) % RECENT_MAX; /* the oldest */

	if (!r->n)
		return -1;
	for (unsigned i = 1; i < r->n; i++) {
		unsigned next = (at + 1) % RECENT_MAX;

		if (mono_ns - r->mono_ns[next] < MINUTE_NS)
			break;
		at = next;
	}
	if (mono_ns - r->mono_ns[at] < NS_PER_S || cpu_ns < r->cpu_ns[at])
		return -1;
	return (double)(cpu_ns - r->cpu_ns[at]) / (double)(mono_ns - r->mono_ns[at]);
}

double target_recent_cpus(const struct target *t)
{
	struct stream_counts c;
	const uint64_t *counter = c.ledger.counter;
	double cpus;

	target_counts(t, &c);
	cpus = recent_cpus(&t->recent, clock_mono_ns(), counter[WIRE_COUNTER_AGENT_CPU_NS]);
	if (cpus >= 0)
		return cpus;
	return counter[WIRE_COUNTER_SESSION_NS] ? (double)counter[WIRE_COUNTER_AGENT_CPU_NS] /
							  (double)counter[WIRE_COUNTER_SESSION_NS]
						: 0;
}
