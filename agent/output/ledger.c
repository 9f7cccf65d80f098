/* See ledger.h. */
#include "agent/output/ledger.h"

#include <string.h>
#include <time.h>
#include "agent/engine/cpu_timer.h"
#include "agent/engine/handler_cost.h"
#include "agent/events/idle_waits.h"
#include "agent/events/sources.h"
#include "agent/events/unmounted.h"
#include "agent/events/waits.h"
#include "agent/output/thread_states.h"
#include "agent/output/threads.h"
#include "agent/output/writer.h"

struct ledger ledger;

/* All events taken before the copy have been pushed or dropped since: `taken` is counted first and
 * `finished` last, so if they are equal, no handler was between the two during the copy. */
static bool ledger_settled(enum wire_event event, uint64_t finished, const struct counters *copy)
{
	uint64_t taken = __atomic_load_n(&agent.counters.of[event].taken, __ATOMIC_SEQ_CST);

	return taken == finished && copy->of[event].taken == taken;
}

static uint64_t ledger_finished(enum wire_event event)
{
	const struct event_counters *b = &agent.counters.of[event];
	uint64_t sum = __atomic_load_n(&b->pushed, __ATOMIC_SEQ_CST);

	for (int c = 0; c < WIRE_DROP_COUNT; c++)
		sum += __atomic_load_n(&b->drop[c].n, __ATOMIC_SEQ_CST);
	return sum;
}

static void ledger_unmounted(struct counters *ret)
{
	struct unmounted_counts counts;

	unmounted_table_counts(&counts);
	ret->short_unmounted = counts.short_waits;
	ret->short_unmounted_ns = counts.short_ns;
	ret->unseen_unmounted = counts.unseen;
}

bool ledger_snapshot(struct counters *ret, uint64_t *ret_head)
{
	handler_cost_account();
	for (int i = 0; i < 2000; i++) {
		uint64_t done[WIRE_EVENT_COUNT];
		bool all = true;

		for (int e = 0; e < WIRE_EVENT_COUNT; e++)
			done[e] = ledger_finished(e);
		*ret = agent.counters;
		waits_counts(&ret->short_waits, &ret->short_waits_ns, &ret->unpaired_waits);
		idle_waits_counts(&ret->idle_waits, &ret->idle_waits_ns);
		ledger_unmounted(ret);
		*ret_head = ring_head_sig(&agent.ring);
		for (int e = 0; e < WIRE_EVENT_COUNT; e++)
			all &= ledger_settled(e, done[e], ret);
		if (all)
			return true;
		if (i > 100) {
			struct timespec pause = { 0, 20000 };

			nanosleep(&pause, NULL);
		}
	}
	return false;
}

void ledger_begin(void)
{
	uint64_t head;

	/* the engine is stopped and the ring empty: this succeeds at once */
	(void)ledger_snapshot(&ledger.base, &head);
	ledger.thread_cpu_base_ns = thread_cpu_ns(0);
	memset(ledger.own, 0, sizeof(ledger.own));
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		ledger.own[e].drop[WIRE_DROP_NO_READER].n = ledger.gap[e].n;
		ledger.own[e].drop[WIRE_DROP_NO_READER].weight = ledger.gap[e].weight;
		ledger.base.of[e].taken -= ledger.gap[e].n;
		ledger.base.of[e].taken_weight -= ledger.gap[e].weight;
	}
	memset(ledger.gap, 0, sizeof(ledger.gap));
	ledger.pipe_bytes = 0;
	ledger.process_cpu_base_ns = process_cpu_ns();
	ledger.begin_ns = mono_ns();
}

void ledger_written(enum wire_event event, uint64_t n, uint64_t weight)
{
	ledger.own[event].written += n;
	ledger.own[event].written_weight += weight;
}

void ledger_drop(enum wire_event event, enum wire_drop cause, uint64_t n, uint64_t weight)
{
	ledger.own[event].drop[cause].n += n;
	ledger.own[event].drop[cause].weight += weight;
	if (cause == WIRE_DROP_NO_READER) {
		ledger.gap[event].n += n;
		ledger.gap[event].weight += weight;
	}
}

extern const char __bss_start[], _end[]; /* defined by the linker */

static void fill_details(const struct counters *now, struct wire_ledger *ret)
{
	uint64_t *part = ret->part;

	part[WIRE_PART_STATIC] = (uint64_t)(_end - __bss_start);
	walker_parts(part); /* walker_parts() subtracts from STATIC what it counts as separate
			     * parts */
	part[WIRE_PART_RING] = agent.ring.size;
	part[WIRE_PART_DICTIONARY] = writer_dictionary_bytes();
	part[WIRE_PART_THREADS] =
		engine_bytes() + threads_bytes() + thread_states_bytes() + sources_bytes();
	for (int i = 0; i < WIRE_TIME_COUNT; i++)
		ret->time[i] = now->handler_time[i] - ledger.base.handler_time[i];
}

static void fill_accounts(const struct counters *now, enum wire_event event,
			  struct wire_accounts *ret)
{
	const struct event_counters *n = &now->of[event], *base = &ledger.base.of[event];

	*ret = ledger.own[event];
	ret->taken = n->taken - base->taken;
	ret->taken_weight = n->taken_weight - base->taken_weight;
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		ret->drop[i].n += n->drop[i].n - base->drop[i].n;
		ret->drop[i].weight += n->drop[i].weight - base->drop[i].weight;
	}
}

void ledger_fill(const struct counters *now, struct wire_ledger *ret)
{
	const struct counters *base = &ledger.base;
	uint64_t *c = ret->counter;

	memset(ret, 0, sizeof(*ret));
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		fill_accounts(now, e, &ret->accounts[e]);
	c[WIRE_COUNTER_BROKEN] = now->broken - base->broken;
	if (strcmp(walker_name(), "asgct") == 0)
		c[WIRE_COUNTER_FALLBACK] = ret->accounts[WIRE_EVENT_CPU].taken;
	c[WIRE_COUNTER_EXITED] = now->exited - base->exited;
	c[WIRE_COUNTER_HANDLER_NS] = now->handler_ns - base->handler_ns;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		c[WIRE_COUNTER_EVENTS_NS] += now->of[e].cost_ns - base->of[e].cost_ns;
	c[WIRE_COUNTER_AGENT_CPU_NS] = c[WIRE_COUNTER_HANDLER_NS] + c[WIRE_COUNTER_EVENTS_NS] +
				       thread_cpu_ns(0) - ledger.thread_cpu_base_ns;
	c[WIRE_COUNTER_LOCK_MIN_NS] = events.lock_min_ns;
	c[WIRE_COUNTER_AGENT_BYTES] = writer_bytes();
	c[WIRE_COUNTER_PIPE_BYTES] = ledger.pipe_bytes;
	c[WIRE_COUNTER_THREADS] = engine_threads();
	c[WIRE_COUNTER_NO_TIMER] = (uint64_t)engine.untimed;
	c[WIRE_COUNTER_INTERVAL_NS] = engine.interval_ns;
	if (engine.host && engine.running) {
		c[WIRE_COUNTER_HOST_SIGNAL] = (uint64_t)(engine.signo | engine.off_signo << 8);
		c[WIRE_COUNTER_HOST_HANDLER] = engine.handler;
	}
	c[WIRE_COUNTER_PROCESS_CPU_NS] = process_cpu_ns() - ledger.process_cpu_base_ns;
	c[WIRE_COUNTER_SESSION_NS] = mono_ns() - ledger.begin_ns;
	c[WIRE_COUNTER_EVENTS] =
		events.on | (engine.running ? 1u << WIRE_EVENT_CPU : 0) |
		(engine.running && engine.host && engine.offcpu ? 1u << WIRE_EVENT_OFFCPU : 0);
	c[WIRE_COUNTER_SHORT_WAITS] = now->short_waits - base->short_waits;
	c[WIRE_COUNTER_SHORT_WAITS_NS] = now->short_waits_ns - base->short_waits_ns;
	c[WIRE_COUNTER_UNPAIRED_WAITS] = now->unpaired_waits - base->unpaired_waits;
	c[WIRE_COUNTER_IDLE_WAITS] = now->idle_waits - base->idle_waits;
	c[WIRE_COUNTER_IDLE_WAITS_NS] = now->idle_waits_ns - base->idle_waits_ns;
	c[WIRE_COUNTER_SHORT_UNMOUNTED] = now->short_unmounted - base->short_unmounted;
	c[WIRE_COUNTER_SHORT_UNMOUNTED_NS] = now->short_unmounted_ns - base->short_unmounted_ns;
	c[WIRE_COUNTER_UNSEEN_UNMOUNTED] = now->unseen_unmounted - base->unseen_unmounted;
	c[WIRE_COUNTER_UNMOUNTED_MIN_NS] = unmounted_min_ns();
	if (ledger.details)
		fill_details(now, ret);
}
