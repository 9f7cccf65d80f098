/* See fake_waits.h. */
#include "tests/unit/fake_waits.h"

#include <string.h>
#include "agent/base/outlet.h"
#include "agent/events/open.h"
#include "agent/events/park.h"
#include "agent/events/push.h"
#include "agent/events/unknown_owner.h"
#include "agent/hotspot/java_thread.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/virtual_name.h"
#include "agent/trace/trace.h"
#include "tests/unit/unit.h"

struct agent agent = { .wake_fd = -1 };
struct fake_waits fake = { .frame_kind = WIRE_KIND_C2 };

/* ---- stand-ins ---------------------------------------------------------------------------- */

uint64_t mono_ns(void)
{
	return __atomic_add_fetch(&fake.clock_ns, 1, __ATOMIC_RELAXED);
}

/* The CPU clock of a thread: that of the agent's own stands still; that of an owner which runs
 * grows with each reading. */
static uint64_t cpu_ns;

uint64_t thread_cpu_ns(uint32_t tid)
{
	cpu_ns += tid == 0 ? fake.tell_cost_ns : !fake.owner_sleeps;
	return cpu_ns;
}

uint32_t thread_id(void)
{
	return 77;
}

void trace_into_sig(uint64_t java_thread, struct ring_sample *head, char *text)
{
	(void)java_thread;
	(void)head;
	(void)text;
}

uint32_t java_thread_tid_sig(uint64_t java_thread)
{
	(void)java_thread;
	return 77;
}

void walk_anchor_sig(struct walk *w, uint64_t java_thread)
{
	w->frames[0] = (struct walk_frame){ .where = java_thread, .kind = WIRE_KIND_C2 };
	w->n = 1;
	w->broken = NULL;
	w->virtual_id = 0;
	w->virtual_name[0] = '\0';
}

/* The stack to which the thread's anchor leads: a frame of no interest, then the frame that the
 * test has set. */
void walk_anchor_until_sig(struct walk *w, uint64_t java_thread, walk_enough_fn *enough)
{
	walk_anchor_sig(w, java_thread);
	w->frames[0].where = IDLE_UNDECIDED;
	w->frames[0].kind = fake.frame_kind;
	fake.looks++;
	if (enough(w, fake.anchor_sp + 64))
		return;
	w->frames[w->n++] = (struct walk_frame){ .where = fake.sight, .kind = WIRE_KIND_C2 };
	(void)enough(w, fake.anchor_sp + 96);
}

enum idle_sight walker_method_idle(uint64_t where)
{
	return (enum idle_sight)where;
}

uint64_t walk_anchor_sp_sig(uint64_t java_thread)
{
	(void)java_thread;
	return fake.anchor_sp;
}

uint64_t walk_mark_hash_sig(const struct walk_mark *mark, uint64_t java_thread)
{
	(void)java_thread;
	assert_int_equal(mark->slots[0], 7); /* right below the caller's frame */
	assert_int_equal(mark->slots[1], 0);
	return fake.return_address;
}

void virtual_identity(struct ring_sample *head)
{
	head->virtual_id = 0;
	head->name[0] = '\0';
}

void thread_name_self(uint64_t java_thread, uint32_t number)
{
	(void)java_thread;
	fake.named = number;
}

void virtual_heal(void)
{
}

uint32_t virtual_number(uint64_t java_thread)
{
	(void)java_thread;
	return fake.carrier_number;
}

void owner_blocked_on(uint64_t java_thread, struct owner_monitor *ret)
{
	(void)java_thread;
	*ret = fake.blocked_on;
}

/* Owners that the JVM does not know: marks from 1 << 30 on, which the test resolves. */
uint32_t unknown_owner_answer(uint32_t owner)
{
	return owner >> 30 == 1 ? fake.found_owner : owner;
}

uint32_t unknown_owner_end(uint32_t owner)
{
	fake.ended_marks += owner >> 30 == 1;
	return unknown_owner_answer(owner);
}

uint32_t owner_number(uint64_t java_thread)
{
	return (uint32_t)java_thread;
}

uint64_t owner_thread(uint32_t number)
{
	return number;
}

void park_read_blockers(struct park_query *queries, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		queries[i].lock = (struct wait_lock){ .class_handle = CLASS, .identity = 5 };
}

void agent_wake(void)
{
	fake.n_wakes++;
}

static bool fake_uncounted(const struct ring_sample *s)
{
	if (fake.writer_answers == WRITER_OK &&
	    fake.n_reported < sizeof(fake.reported) / sizeof(fake.reported[0]))
		fake.reported[fake.n_reported++] = *s;
	return fake.writer_answers == WRITER_OK;
}

static const struct outlet fake_outlet = { .uncounted = fake_uncounted };

/* ---- the writer's part ---- */

void fake_drain(void)
{
	const struct ring_sample *s;

	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		fake.read.n++;
		fake.read.ns += s->weight;
		fake.read.last = *s;
		open_wait_ended(s);
		ring_pop(&agent.ring);
	}
}

void fake_round_trip(void)
{
	fake_drain();
	(void)open_waits_scan(fake.clock_ns);
	open_waits_sent();
	fake.clock_ns += 250 * NS_PER_MS;
}

const struct event_counters *fake_counters(void)
{
	return &agent.counters.of[WIRE_EVENT_LOCK];
}

void fake_counters_are_exact(void)
{
	uint64_t n = fake_counters()->pushed, ns = fake_counters()->pushed_weight;

	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		n += fake_counters()->drop[i].n;
		ns += fake_counters()->drop[i].weight;
	}
	assert_int_equal(fake_counters()->taken, n);
	assert_int_equal(fake_counters()->taken_weight, ns);
}

void fake_counts_are(uint64_t too_short, uint64_t unpaired)
{
	uint64_t n, ns, ends;

	waits_counts(&n, &ns, &ends);
	assert_int_equal(n, too_short);
	assert_int_equal(ends, unpaired);
}

static uint64_t idle_before, idle_ns_before;

void fake_idle_are(uint64_t waits, uint64_t ns)
{
	uint64_t n, sum;

	idle_waits_counts(&n, &sum);
	assert_int_equal(n - idle_before, waits);
	assert_int_equal(sum - idle_ns_before, ns);
}

void fake_begin(uint64_t thread, uint64_t key, enum wire_wait how)
{
	static const struct wait_lock lock = { .identity = 9, .owner_tid = 3 };

	wait_begin(thread, key, how, 0, &lock);
}

void fake_look(void *context, struct wait_lock *lock)
{
	(void)context;
	lock->class_handle = CLASS;
}

void fake_end(uint64_t thread, uint64_t key, enum wire_wait how)
{
	wait_end(thread, key, how, fake_look, NULL);
}

int fake_setup(void **state)
{
	struct wire_start start = { .events = 1u << WIRE_EVENT_LOCK };
	const char *note = "";
	uint64_t ns;

	(void)state;
	memset(&agent.counters, 0, sizeof(agent.counters));
	memset(&fake.read, 0, sizeof(fake.read));
	memset(&fake.blocked_on, 0, sizeof(fake.blocked_on));
	fake.carrier_number = fake.n_reported = 0;
	fake.owner_sleeps = false;
	fake.tell_cost_ns = 0;
	fake.writer_answers = WRITER_OK;
	fake.clock_ns = 10 * NS_PER_S;
	events = (struct events){ .on = 1u << WIRE_EVENT_LOCK,
				  .lock_min_ns = MIN,
				  .idle_apart = true };
	fake.sight = IDLE_NO;
	fake.frame_kind = WIRE_KIND_C2;
	fake.anchor_sp = 4096;
	fake.return_address = 5;
	fake.looks = 0;
	outlet = &fake_outlet;
	idle_waits_counts(&idle_before, &idle_ns_before);
	waits_counts(&fake.short_before, &ns, &fake.unpaired_before);
	if (ring_init(&agent.ring, 64 << 10) < 0 || push_init() < 0)
		return -1;
	return waits_source.begin(&start, &note);
}

int fake_teardown(void **state)
{
	(void)state;
	waits_source.end();
	push_free();
	ring_deinit(&agent.ring);
	return 0;
}
