/* See ledger.h. */
#include "agent/ledger.h"

#include <string.h>
#include <time.h>
#include "agent/engine/cpu_timer.h"
#include "agent/threads.h"
#include "agent/writer.h"

struct ledger ledger;

bool ledger_snapshot(struct books *ret, uint64_t *ret_head)
{
	for (int i = 0; i < 2000; i++) {
		uint64_t finished = 0, taken;

		finished += __atomic_load_n(&agent.books.pushed, __ATOMIC_SEQ_CST);
		for (int c = 0; c < WIRE_DROP_COUNT; c++)
			finished += __atomic_load_n(&agent.books.drop[c], __ATOMIC_SEQ_CST);
		*ret = agent.books;
		*ret_head = ring_head_sig(&agent.ring);
		/* taken is counted first and finished last: equal now means that nobody was between
		 * the two all the while */
		taken = __atomic_load_n(&agent.books.taken, __ATOMIC_SEQ_CST);
		if (taken == finished && ret->taken == taken)
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
	ledger.written = ledger.written_ns = 0;
	memset(ledger.drop, 0, sizeof(ledger.drop));
	memset(ledger.drop_ns, 0, sizeof(ledger.drop_ns));
	ledger.drop[WIRE_DROP_NO_READER] = ledger.gap;
	ledger.drop_ns[WIRE_DROP_NO_READER] = ledger.gap_ns;
	ledger.base.taken -= ledger.gap;
	ledger.base.taken_ns -= ledger.gap_ns;
	ledger.gap = ledger.gap_ns = 0;
	ledger.pipe_bytes = 0;
	ledger.process_cpu_base_ns = process_cpu_ns();
}

void ledger_drop(enum wire_drop cause, uint64_t samples, uint64_t ns)
{
	ledger.drop[cause] += samples;
	ledger.drop_ns[cause] += ns;
	if (cause == WIRE_DROP_NO_READER) {
		ledger.gap += samples;
		ledger.gap_ns += ns;
	}
}

extern const char __bss_start[], _end[]; /* the linker's */

static void fill_details(const struct books *now, struct wire_ledger *ret)
{
	uint64_t *part = ret->part;

	part[WIRE_PART_STATIC] = (uint64_t)(_end - __bss_start);
	walker_parts(part); /* what of STATIC is a part of its own it takes away there */
	part[WIRE_PART_RING] = agent.ring.size;
	part[WIRE_PART_DICTIONARY] = writer_dictionary_bytes();
	part[WIRE_PART_THREADS] = engine_bytes() + threads_bytes();
	for (int i = 0; i < WIRE_TIME_COUNT; i++)
		ret->time[i] = now->handler_time[i] - ledger.base.handler_time[i];
}

void ledger_fill(const struct books *now, struct wire_ledger *ret)
{
	const struct books *base = &ledger.base;
	uint64_t *c = ret->counter;

	memset(ret, 0, sizeof(*ret));
	c[WIRE_COUNTER_TAKEN] = now->taken - base->taken;
	c[WIRE_COUNTER_TAKEN_NS] = now->taken_ns - base->taken_ns;
	c[WIRE_COUNTER_WRITTEN] = ledger.written;
	c[WIRE_COUNTER_WRITTEN_NS] = ledger.written_ns;
	c[WIRE_COUNTER_BROKEN] = now->broken - base->broken;
	c[WIRE_COUNTER_EXITED] = now->exited - base->exited;
	c[WIRE_COUNTER_HANDLER_NS] = now->handler_ns - base->handler_ns;
	c[WIRE_COUNTER_AGENT_CPU_NS] =
		c[WIRE_COUNTER_HANDLER_NS] + thread_cpu_ns(0) - ledger.thread_cpu_base_ns;
	c[WIRE_COUNTER_AGENT_BYTES] = writer_bytes();
	c[WIRE_COUNTER_PIPE_BYTES] = ledger.pipe_bytes;
	c[WIRE_COUNTER_THREADS] = engine_threads();
	c[WIRE_COUNTER_NO_TIMER] = (uint64_t)engine.untimed;
	c[WIRE_COUNTER_INTERVAL_NS] = engine.interval_ns;
	if (engine.host && engine.running) {
		c[WIRE_COUNTER_HOST_SIGNAL] = (uint64_t)engine.signo;
		c[WIRE_COUNTER_HOST_HANDLER] = engine.handler;
	}
	c[WIRE_COUNTER_PROCESS_CPU_NS] = process_cpu_ns() - ledger.process_cpu_base_ns;
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		ret->drop[i] = ledger.drop[i] + now->drop[i] - base->drop[i];
		ret->drop_ns[i] = ledger.drop_ns[i] + now->drop_ns[i] - base->drop_ns[i];
	}
	if (ledger.details)
		fill_details(now, ret);
}
