/* See thread_states.h. The table keeps what was last sent of each thread. */
#include "agent/output/thread_states.h"

#include <jvmti.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include "agent/base/agent.h"
#include "agent/base/tasks.h"
#include "agent/events/idle_waits.h"
#include "agent/events/virtual_states.h"
#include "agent/hotspot/jni_names.h"
#include "agent/hotspot/thread_status.h"
#include "agent/output/threads.h"
#include "agent/output/writer.h"

#define TABLE_MAX 16384u /* threads; power of two */
#define PROBE_MAX 64u
#define GONE	  UINT32_MAX /* a slot that may be reused, but does not end a search */
#define PERIOD_NS (5 * NS_PER_S)
/* time between the first and the second pass: the reader needs two of them to compute CPU usage */
#define FIRST_NS NS_PER_S
/* Without a reader, sums of short waits cover half of this time and more, and never all of it. */
#define SHORT_NS_MAX (120 * NS_PER_S)

struct reported {
	uint32_t tid; /* 0 = empty */
	/* what was sent; what this pass found */
	uint8_t state, status, java_state, java_status;
	uint8_t is_reported;
	/* the last pass that found the thread; the last one that found java_state */
	uint8_t pass, java_pass;
	uint64_t cpu_ns;
	uint64_t java_thread; /* that this pass found */
};

static struct {
	struct reported *table;
	uint64_t next_ns; /* 0 = off */
	uint64_t short_ns; /* sums of short waits began then; 0 = not yet */
	uint32_t passes; /* since START */
	uint8_t pass;
} states;

static struct reported *thread_states_slot_of(uint32_t tid)
{
	struct reported *free_slot = NULL;

	for (uint32_t i = 0; i < PROBE_MAX; i++) {
		struct reported *t = &states.table[(tid + i) & (TABLE_MAX - 1)];

		if (t->tid == tid)
			return t;
		if (!free_slot && (t->tid == 0 || t->tid == GONE))
			free_slot = t;
		if (t->tid == 0)
			break;
	}
	if (free_slot)
		*free_slot = (struct reported){ .tid = tid };
	return free_slot; /* NULL: the table is too full, this thread is left out */
}

static uint8_t thread_states_state_of(int32_t status)
{
	if (status & JVMTI_THREAD_STATE_BLOCKED_ON_MONITOR_ENTER)
		return WIRE_STATE_BLOCKED;
	if (status & JVMTI_THREAD_STATE_WAITING_INDEFINITELY)
		return WIRE_STATE_WAITING;
	if (status & JVMTI_THREAD_STATE_WAITING_WITH_TIMEOUT)
		return WIRE_STATE_TIMED_WAITING;
	return WIRE_STATE_RUNNABLE;
}

void thread_states_java(uint32_t tid, uint64_t java_thread, int32_t status)
{
	struct reported *t = states.table ? thread_states_slot_of(tid) : NULL;

	if (!t)
		return;
	t->java_state = thread_states_state_of(status);
	t->java_status = thread_status_of_sig((uint32_t)status);
	t->java_pass = states.pass;
	t->java_thread = java_thread;
}

static bool thread_states_add_short(const struct reported *t, struct wire_state *record)
{
	uint64_t span_ns = record->mono_ns - states.short_ns;

	/* a longer span contains time in which nothing was counted, between two sessions */
	if (!idle_waits_take_short(t->java_thread, record->short_us) || span_ns < 1000 ||
	    span_ns > SHORT_NS_MAX + SHORT_NS_MAX / 2)
		return false;
	record->span_us = (uint32_t)(span_ns / 1000);
	return true;
}

static void thread_states_check(uint32_t tid, uint64_t now_ns)
{
	struct wire_state record = { .mono_ns = now_ns, .tid = tid };
	struct reported *t = thread_states_slot_of(tid);
	bool waited = false;

	if (!t)
		return;
	t->pass = states.pass;
	record.cpu_ns = thread_cpu_ns(tid);
	if (record.cpu_ns == UINT64_MAX)
		return;
	if (t->java_pass == states.pass) {
		record.state = t->java_state;
		record.status = t->java_status;
		waited = thread_states_add_short(t, &record);
	}
	if (t->is_reported && !waited && t->cpu_ns == record.cpu_ns && t->state == record.state &&
	    t->status == record.status)
		return;
	threads_seen(tid, "");
	writer_state(&record);
	if (!states.table)
		return; /* dropped: the next pass sends all */
	t->is_reported = 1;
	t->state = record.state;
	t->status = record.status;
	t->cpu_ns = record.cpu_ns;
}

static void thread_states_on_task(uint32_t tid, void *now_ns)
{
	if (states.table)
		thread_states_check(tid, *(const uint64_t *)now_ns);
}

static void thread_states_remove_ended(void)
{
	for (uint32_t i = 0; states.table && i < TABLE_MAX; i++)
		if (states.table[i].tid && states.table[i].pass != states.pass)
			states.table[i] = (struct reported){ .tid = GONE };
}

static bool thread_states_make_table(void)
{
	void *p;

	if (states.table)
		return true;
	p = mmap(NULL, TABLE_MAX * sizeof(*states.table), PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return false;
	states.table = p;
	return true;
}

void thread_states_begin(bool wanted)
{
	thread_states_end();
	states.passes = 0;
	states.next_ns = wanted ? 1 : 0;
}

/* Whoever asks wants to know of the last minute. Half of a sum stands for the last half of its
 * time, as if the waits were spread evenly over it. */
static void thread_states_limit_short(uint64_t now_ns)
{
	if (!states.short_ns || now_ns > states.short_ns + 2 * SHORT_NS_MAX) /* no session since */
		states.short_ns = now_ns;
	if (now_ns < states.short_ns + SHORT_NS_MAX)
		return;
	idle_waits_halve_short();
	states.short_ns = now_ns - SHORT_NS_MAX / 2;
}

void thread_states_tick(uint64_t now_ns)
{
	if (!states.next_ns)
		thread_states_limit_short(now_ns);
	if (!states.next_ns || now_ns < states.next_ns)
		return;
	states.next_ns = now_ns + (states.passes++ ? PERIOD_NS : FIRST_NS);
	if (!thread_states_make_table())
		return;
	states.pass = states.pass % 255 + 1; /* never 0, the value in new slots */
	jni_names_pass(threads_java_name, thread_states_java);
	tasks_each(thread_states_on_task, &now_ns);
	states.short_ns = now_ns;
	thread_states_remove_ended();
	virtual_states_each_group(now_ns, writer_virtual);
}

uint64_t thread_states_next_ns(void)
{
	return states.next_ns ? states.next_ns : UINT64_MAX;
}

void thread_states_forget(void)
{
	if (states.table)
		munmap(states.table, TABLE_MAX * sizeof(*states.table));
	states.table = NULL;
}

void thread_states_end(void)
{
	thread_states_forget();
	virtual_states_end();
	states.next_ns = 0;
}

uint64_t thread_states_bytes(void)
{
	return states.table ? TABLE_MAX * sizeof(*states.table) : 0;
}
