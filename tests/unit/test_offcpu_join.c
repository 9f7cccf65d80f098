/* Intervals off the CPU from three sources, joined: each is passed on once, in whatever order
 * the sources report it. */
#include <stdio.h>
#include <string.h>
#include "daemon/host/offcpu_join.h"
#include "proto/host_cookie.h"
#include "tests/unit/unit.h"

#define MS	1000000ull
#define S	1000000000ull
#define CARRIER 9u
#define VIRTUAL (WIRE_VIRTUAL_TID | 77u)

static struct offcpu_join *join;
static struct offcpu_event last;
static char last_class[40], last_trace[40];
static bool safepoint_is_known = true;
static bool parks_to_sleep; /* as the stack of a virtual thread shows it */
static unsigned events;
static enum offcpu_usual usual; /* what the last offcpu_join_lock() returned */
static uint64_t total_ns, spared_ns; /* spared_ns: for offcpu_join_lock() */

/* The reason from the status alone; test_offcpu_event.c tests stacks. */
static void explain(void *userdata, struct offcpu_event *e)
{
	static const enum offcpu_reason reasons[WIRE_OFFCPU_STATUS_COUNT] = {
		[WIRE_OFFCPU_NONE] = OFFCPU_REASON_OTHER,
		[WIRE_OFFCPU_RUNNABLE] = OFFCPU_REASON_OTHER,
		[WIRE_OFFCPU_SLEEP] = OFFCPU_REASON_SLEEP,
		[WIRE_OFFCPU_WAIT] = OFFCPU_REASON_WAIT,
		[WIRE_OFFCPU_PARK] = OFFCPU_REASON_PARK,
		[WIRE_OFFCPU_LOCK] = OFFCPU_REASON_LOCK,
		[WIRE_OFFCPU_BLOCKED_IN_VM] = OFFCPU_REASON_SAFEPOINT,
		[WIRE_OFFCPU_GC] = OFFCPU_REASON_GC,
		[WIRE_OFFCPU_UNMOUNTED] = OFFCPU_REASON_PARK,
	};

	(void)userdata;
	e->reason = reasons[e->status];
	e->unsettled = e->reason == OFFCPU_REASON_SAFEPOINT && !safepoint_is_known;
	if (e->unsettled)
		e->reason = OFFCPU_REASON_OTHER;
	if (parks_to_sleep && (e->status == WIRE_OFFCPU_PARK || e->status == WIRE_OFFCPU_UNMOUNTED))
		e->reason = OFFCPU_REASON_SLEEP;
}

static void on_event(void *userdata, const struct offcpu_event *e)
{
	(void)userdata;
	events++;
	total_ns += e->duration_ns;
	last = *e;
	snprintf(last_class, sizeof(last_class), "%s", e->lock ? e->lock->class_name : "");
	snprintf(last_trace, sizeof(last_trace), "%s", e->trace ? e->trace->trace_id : "");
}

static int setup(void **state)
{
	(void)state;
	events = 0;
	total_ns = spared_ns = 0;
	return offcpu_join_new(explain, on_event, NULL, &join);
}

static int teardown(void **state)
{
	(void)state;
	join = offcpu_join_free(join);
	return 0;
}

static void kernel(uint32_t tid, uint64_t end_ns, uint64_t duration_ns, uint64_t stay_ns,
		   bool signalled, unsigned kernel_class)
{
	const uint64_t ips[] = { 0xffffffff81000000, 0xffffffff81000001 };
	const struct offcpu_kernel k = {
		.end_ns = end_ns,
		.duration_ns = duration_ns,
		.runqueue_ns = 5,
		.stay_ns = stay_ns,
		.tid = tid,
		.syscall_nr = 202,
		.kernel_class = kernel_class,
		.signalled = signalled,
	};

	offcpu_join_kernel(join, &k, ips, 2, end_ns);
}

static void agent(uint32_t tid, uint64_t at_ns, uint64_t duration_ns, uint8_t status)
{
	char trace[] = "4bf92f", span[] = "00f067";
	const struct stream_context context = { trace, span };
	const struct stream_offcpu o = {
		.mono_ns = at_ns,
		.duration_ns = duration_ns,
		.tid = tid,
		.virtual_tid = tid == CARRIER ? VIRTUAL : 0,
		.node = 3,
		.status = status,
		.trace = &context,
	};

	offcpu_join_agent(join, &o, at_ns);
	memset(trace, 'x', sizeof(trace) - 1); /* the stream gives the same id another meaning */
}

static struct stream_lock made_wait(uint32_t tid, uint64_t end_ns, uint64_t duration_ns)
{
	return (struct stream_lock){
		.begin_ns = end_ns - duration_ns,
		.duration_ns = duration_ns,
		.tid = tid,
		.owner_tid = 8,
		.wait = WIRE_WAIT_PARK,
		.class_name = "org.shop.Cache",
		.node = 4,
		.thread = "",
		.owner = "",
	};
}

static void lock_wait_for(uint32_t tid, uint64_t end_ns, uint64_t duration_ns, uint8_t flags,
			  bool idle)
{
	struct stream_lock w = made_wait(tid, end_ns, duration_ns);

	w.flags = flags;
	w.waits = flags & WIRE_LOCK_SUM ? 3 : 1;
	usual = offcpu_join_lock(join, &w, idle, spared_ns, false);
}

static void lock_wait_of(uint8_t kind, uint32_t tid, uint64_t end_ns, uint64_t duration_ns,
			 uint8_t flags)
{
	struct stream_lock w = made_wait(tid, end_ns, duration_ns);

	w.wait = kind;
	w.flags = flags;
	(void)offcpu_join_lock(join, &w, false, 0, false);
}

/* A thread that enters a monitor wakes up by itself. */
static void step(uint32_t tid, uint64_t end_ns, uint64_t duration_ns)
{
	kernel(tid, end_ns, duration_ns, 0, true, OFFCPU_FUTEX);
	agent(tid, end_ns, duration_ns, WIRE_OFFCPU_LOCK);
}

static void lock_wait(uint32_t tid, uint64_t end_ns, uint64_t duration_ns, uint8_t flags)
{
	lock_wait_for(tid, end_ns, duration_ns, flags, false);
}

static struct offcpu_join_counts counts(void)
{
	struct offcpu_join_counts c;

	offcpu_join_counts(join, &c);
	return c;
}

/* Threads run again before the agent knows when the safepoint ended. */
static void a_safepoint_may_become_known_later(void **state)
{
	(void)state;
	safepoint_is_known = false;
	kernel(7, 10 * S, 30 * MS, 10 * S, true, OFFCPU_FUTEX);
	agent(7, 10 * S + 100, 30 * MS, WIRE_OFFCPU_BLOCKED_IN_VM);
	offcpu_join_expire(join, 10 * S + 10 * MS);
	assert_int_equal(events, 0);
	safepoint_is_known = true;
	offcpu_join_expire(join, 10 * S + OFFCPU_JOIN_LOCK_NS + MS);
	assert_int_equal(events, 1);
	assert_int_equal(last.reason, OFFCPU_REASON_SAFEPOINT);
	assert_false(last.unsettled);
	assert_int_equal(counts().joined, 1);
}

static void kernel_and_agent_become_one_event(void **state)
{
	(void)state;
	kernel(7, 10 * S, 3 * MS, 10 * S, true, OFFCPU_FUTEX);
	assert_int_equal(events, 0);
	agent(7, 10 * S + 100, 3 * MS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 1);
	assert_int_equal(last.reason, OFFCPU_REASON_SLEEP);
	assert_int_equal(last.end_ns, 10 * S);
	assert_int_equal(last.duration_ns, 3 * MS);
	assert_int_equal(last.runqueue_ns, 5);
	assert_int_equal(last.node, 3);
	assert_int_equal(last.n_ips, 2);
	assert_string_equal(last_trace, "4bf92f");
	offcpu_join_expire(join, 100 * S);
	assert_int_equal(events, 1);
	assert_int_equal(counts().joined, 1);
	assert_int_equal(offcpu_join_bytes(join), offcpu_join_bytes(join));
}

static void the_newest_of_equal_durations_is_the_agents(void **state)
{
	(void)state;
	kernel(7, 10 * S, 3 * MS, 1, true, OFFCPU_FUTEX);
	kernel(8, 10 * S, 3 * MS, 2, true, OFFCPU_FUTEX);
	kernel(7, 11 * S, 3 * MS, 3, true, OFFCPU_FUTEX);
	agent(7, 11 * S, 3 * MS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 1);
	assert_int_equal(last.end_ns, 11 * S);
	offcpu_join_flush(join);
	assert_int_equal(events, 3);
	assert_int_equal(counts().no_java_stack, 2);
}

static void one_signal_tells_of_all_in_one_stay_in_the_kernel(void **state)
{
	(void)state;
	kernel(7, 10 * S, 3 * MS, 10 * S, true, OFFCPU_FILE);
	kernel(7, 11 * S, 4 * MS, 10 * S, true, OFFCPU_FILE);
	kernel(7, 12 * S, 5 * MS, 10 * S, true, OFFCPU_FILE);
	agent(7, 12 * S, 5 * MS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 3);
	assert_int_equal(total_ns, 12 * MS);
	assert_int_equal(counts().joined, 3);
}

static void a_signal_that_was_pending_tells_of_what_came_after_it_was_sent(void **state)
{
	(void)state;
	kernel(7, 10 * S, 3 * MS, 10 * S, true, OFFCPU_RUNQUEUE);
	kernel(7, 11 * S, 80 * MS, 10 * S, true, OFFCPU_THROTTLED);
	kernel(7, 12 * S, 4 * MS, 12 * S, true, OFFCPU_RUNQUEUE); /* of another stay */
	agent(7, 11 * S, 3 * MS, WIRE_OFFCPU_RUNNABLE);
	assert_int_equal(events, 2);
	assert_int_equal(total_ns, 83 * MS);
	assert_int_equal(counts().joined, 2);
}

static void a_silent_agent_is_waited_for_and_a_late_one_not_counted_twice(void **state)
{
	(void)state;
	kernel(7, 10 * S, 3 * MS, 1, true, OFFCPU_FILE);
	offcpu_join_expire(join, 11 * S);
	assert_int_equal(events, 0);
	offcpu_join_expire(join, 12 * S);
	assert_int_equal(events, 1);
	assert_false(last.has_stack);
	assert_int_equal(last.n_ips, 2);
	agent(7, 13 * S, 3 * MS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 1);
	assert_int_equal(counts().late, 1);
	kernel(7, 20 * S, 4 * MS, 1, true, OFFCPU_FILE);
	offcpu_join_expire(join, 23 * S);
	offcpu_join_expire(join, 27 * S);
	offcpu_join_flush(join);
	assert_int_equal(events, 2);
}

static void a_record_without_a_signal_waits_for_no_sample(void **state)
{
	(void)state;
	kernel(7, 10 * S, 3 * MS, 0, false, OFFCPU_RUNQUEUE);
	assert_int_equal(events, 1);
	assert_int_equal(counts().no_java_stack, 1);
	/* but a record of a lock may explain the futex */
	kernel(7, 11 * S, 3 * MS, 0, false, OFFCPU_FUTEX);
	assert_int_equal(events, 1);
	lock_wait(7, 11 * S + 50000, 3 * MS + 60000, 0);
	assert_int_equal(events, 2);
	assert_int_equal(last.reason, OFFCPU_REASON_PARK);
	assert_true(last.has_stack);
	assert_int_equal(last.node, 4);
}

static void an_agent_without_the_kernel_has_its_own_words(void **state)
{
	(void)state;
	agent(7, 10 * S, 3 * MS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 1);
	assert_int_equal(last.kernel_class, OFFCPU_NO_CLASS);
	assert_int_equal(last.syscall_nr, -1);
	assert_int_equal(counts().no_kernel, 1);
}

static void a_wait_for_a_lock_is_one_event_with_both_parts(void **state)
{
	(void)state;
	kernel(7, 10 * S, 30 * MS, 1, true, OFFCPU_FUTEX);
	agent(7, 10 * S, 30 * MS, WIRE_OFFCPU_PARK);
	assert_int_equal(events, 0);
	lock_wait(8, 10 * S + 1000, 30 * MS + 2000, 0); /* another's */
	lock_wait(7, 9 * S, 30 * MS, 0); /* of another time */
	lock_wait(8, 10 * S + 1000, 30 * MS + 2000, WIRE_LOCK_OPEN);
	assert_int_equal(events, 0);
	lock_wait(7, 10 * S + 1000, 30 * MS + 2000, 0);
	assert_int_equal(events, 1);
	assert_string_equal(last_class, "org.shop.Cache");
	assert_string_equal(last_trace, "4bf92f");
	assert_int_equal(last.node, 3);
	offcpu_join_flush(join);
	assert_int_equal(events, 1);
	/* without such a record the interval is passed on as it is */
	kernel(7, 20 * S, 30 * MS, 1, true, OFFCPU_FUTEX);
	agent(7, 20 * S, 30 * MS, WIRE_OFFCPU_WAIT);
	offcpu_join_expire(join, 20 * S + 299 * MS);
	assert_int_equal(events, 1);
	offcpu_join_expire(join, 20 * S + 300 * MS);
	assert_int_equal(events, 2);
	assert_string_equal(last_trace, "4bf92f");
	assert_null(last.lock);
}

/* The thread sleeps 1, 8, 64, 512 and more ms, in turns, until it gets the monitor. */
static void the_steps_of_a_long_entry_have_its_lock(void **state)
{
	(void)state;
	lock_wait_of(WIRE_WAIT_ENTER, 7, 20 * S, 15 * S, WIRE_LOCK_OPEN); /* another one's */
	lock_wait_of(WIRE_WAIT_ENTER, 7, 20 * S, 15 * S, 0);
	step(7, 101 * S + 8 * MS, 8 * MS);
	offcpu_join_expire(join, 101 * S + 900 * MS);
	assert_int_equal(events, 0);
	lock_wait_of(WIRE_WAIT_ENTER, 7, 102 * S, S, WIRE_LOCK_OPEN);
	assert_int_equal(events, 1);
	assert_string_equal(last_class, "org.shop.Cache");
	assert_int_equal(last.lock->owner_tid, 8);
	/* steps after that; the last one is the end's */
	step(7, 103 * S, S - 1 * MS);
	step(8, 103 * S, S - 1 * MS); /* of this thread nothing is known */
	offcpu_join_expire(join, 103 * S + OFFCPU_JOIN_ENTRY_NS);
	assert_int_equal(events, 3);
	assert_string_equal(last_class, "");
	step(7, 104 * S, S - 1 * MS);
	lock_wait_of(WIRE_WAIT_ENTER, 7, 104 * S, 3 * S, 0);
	assert_int_equal(events, 4);
	assert_string_equal(last_class, "org.shop.Cache");
	/* the wait is over */
	step(7, 106 * S, 100 * MS);
	offcpu_join_expire(join, 106 * S + OFFCPU_JOIN_ENTRY_NS);
	assert_string_equal(last_class, "");
	assert_int_equal(counts().locks, 3);
}

static void a_wait_that_goes_on_tells_of_steps_without_a_signal(void **state)
{
	(void)state;
	lock_wait_of(WIRE_WAIT_ENTER, 7, 102 * S, S, WIRE_LOCK_OPEN);
	kernel(7, 103 * S, S - 1 * MS, 0, false, OFFCPU_FUTEX);
	offcpu_join_expire(join, 103 * S + OFFCPU_JOIN_LOCK_NS);
	assert_int_equal(events, 1);
	assert_int_equal(last.reason, OFFCPU_REASON_LOCK);
	assert_true(last.has_stack);
	assert_int_equal(last.node, 4);
	lock_wait_of(WIRE_WAIT_ENTER, 7, 103 * S, 2 * S, WIRE_LOCK_CLOSED);
	kernel(7, 105 * S, S - 1 * MS, 0, false, OFFCPU_FUTEX);
	offcpu_join_expire(join, 105 * S + OFFCPU_JOIN_LOCK_NS);
	assert_int_equal(last.reason, OFFCPU_REASON_OTHER);
}

static void a_virtual_threads_park_is_its_carriers_or_an_event_by_itself(void **state)
{
	(void)state;
	kernel(CARRIER, 10 * S, 30 * MS, 1, true, OFFCPU_FUTEX);
	agent(CARRIER, 10 * S, 30 * MS, WIRE_OFFCPU_PARK);
	lock_wait(VIRTUAL, 10 * S, 30 * MS, 0);
	assert_int_equal(events, 1);
	assert_int_equal(last.tid, CARRIER);
	assert_int_equal(last.virtual_tid, VIRTUAL);
	lock_wait(VIRTUAL, 11 * S, 40 * MS, 0);
	assert_int_equal(events, 2);
	assert_int_equal(last.tid, VIRTUAL);
	assert_int_equal(last.duration_ns, 40 * MS);
	lock_wait(VIRTUAL, 12 * S, 40 * MS, WIRE_LOCK_SUM);
	assert_int_equal(events, 2);
}

static void a_park_to_sleep_is_a_sleep_and_one_event(void **state)
{
	(void)state;
	parks_to_sleep = true;
	kernel(CARRIER, 10 * S, 30 * MS, 1, true, OFFCPU_FUTEX);
	agent(CARRIER, 10 * S, 30 * MS, WIRE_OFFCPU_PARK);
	lock_wait(VIRTUAL, 10 * S, 30 * MS, 0);
	assert_int_equal(events, 1);
	assert_int_equal(last.virtual_tid, VIRTUAL);
	assert_int_equal(last.reason, OFFCPU_REASON_SLEEP);
	assert_non_null(last.lock);
	lock_wait(VIRTUAL, 11 * S, 30 * MS, 0); /* there was no signal for its carrier */
	parks_to_sleep = false;
	assert_int_equal(events, 2);
	assert_int_equal(last.reason, OFFCPU_REASON_SLEEP);
}

static void unmounted(const char *class_name)
{
	const struct stream_offcpu o = {
		.mono_ns = 10 * S,
		.duration_ns = 3 * MS,
		.tid = VIRTUAL,
		.virtual_tid = VIRTUAL,
		.thread = "",
		.virtual_thread = "",
		.node = 3,
		.status = WIRE_OFFCPU_UNMOUNTED,
		.class_name = class_name,
		.identity = 5,
	};

	offcpu_join_agent(join, &o, 10 * S);
}

static void a_virtual_thread_without_a_carrier_is_an_event_at_once(void **state)
{
	(void)state;
	kernel(CARRIER, 10 * S, 3 * MS, 1, true, OFFCPU_FUTEX);
	unmounted("");
	assert_int_equal(events, 1);
	assert_int_equal(last.tid, VIRTUAL);
	assert_int_equal(last.virtual_tid, VIRTUAL);
	assert_int_equal(last.end_ns, 10 * S);
	assert_int_equal(last.duration_ns, 3 * MS);
	assert_int_equal(last.kernel_class, OFFCPU_NO_CLASS);
	assert_null(last.lock);
	unmounted("org.shop.Cache");
	assert_int_equal(events, 2);
	assert_string_equal(last_class, "org.shop.Cache");
	parks_to_sleep = true; /* what it parked for is then nobody's lock */
	unmounted("org.shop.Cache");
	parks_to_sleep = false;
	assert_null(last.lock);
	assert_int_equal(counts().unmounted, 3);
	assert_int_equal(counts().no_kernel, 0);
}

/* A wait over the budget of signals, of which no lock event tells. */
static enum offcpu_reason reason_of_unsignalled(uint32_t tid, uint64_t end_ns)
{
	kernel(tid, end_ns, 20 * MS, 0, false, OFFCPU_FUTEX);
	offcpu_join_expire(join, end_ns + OFFCPU_JOIN_LOCK_NS + MS);
	return last.reason;
}

static void waits_that_nothing_tells_of_are_as_the_threads_last_one(void **state)
{
	(void)state;
	assert_int_equal(reason_of_unsignalled(7, 10 * S), OFFCPU_REASON_OTHER);
	/* a thread that waits for work, by the agent's sums */
	lock_wait_for(7, 11 * S, 900 * MS, WIRE_LOCK_SUM, true);
	assert_int_equal(reason_of_unsignalled(7, 12 * S), OFFCPU_REASON_PARK);
	assert_true(last.idle);
	assert_true(last.by_habit);
	assert_false(last.has_stack);
	assert_int_equal(reason_of_unsignalled(7 + 4096, 12 * S), OFFCPU_REASON_OTHER);
	/* long ago */
	assert_int_equal(reason_of_unsignalled(7, 40 * S), OFFCPU_REASON_OTHER);
	/* what the kernel knows stays */
	lock_wait_for(7, 41 * S, 900 * MS, WIRE_LOCK_SUM, true);
	kernel(7, 42 * S, 20 * MS, 0, false, OFFCPU_POLL);
	assert_int_equal(last.reason, OFFCPU_REASON_OTHER); /* of explain() above */
	assert_int_equal(counts().by_habit, 1);
}

/* A wait with a stack, of which the agent says what it is. */
static void known_wait(uint32_t tid, uint64_t end_ns, enum wire_offcpu_status status)
{
	kernel(tid, end_ns, 3 * MS, end_ns, true, OFFCPU_FUTEX);
	agent(tid, end_ns + 100, 3 * MS, status);
	offcpu_join_expire(join, end_ns + OFFCPU_JOIN_LOCK_NS + MS);
	assert_true(last.has_stack);
	assert_false(last.by_habit);
}

static void a_habit_that_was_wrong_is_not_relied_on(void **state)
{
	uint64_t now_ns = 10 * S;

	(void)state;
	known_wait(7, now_ns, WIRE_OFFCPU_SLEEP);
	/* once is no habit: a program may sleep before it begins with something else */
	assert_int_equal(reason_of_unsignalled(7, now_ns += S), OFFCPU_REASON_OTHER);
	known_wait(7, now_ns += S, WIRE_OFFCPU_SLEEP);
	assert_int_equal(reason_of_unsignalled(7, now_ns += S), OFFCPU_REASON_SLEEP);
	assert_true(last.by_habit);
	known_wait(7, now_ns += S, WIRE_OFFCPU_SLEEP);
	assert_int_equal(counts().habit_right, 1);
	/* it does something else once, and a sleep is no habit any more */
	known_wait(7, now_ns += S, WIRE_OFFCPU_PARK);
	assert_int_equal(counts().habit_wrong, 1);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(reason_of_unsignalled(7, now_ns += S), OFFCPU_REASON_OTHER);
		assert_false(last.by_habit);
		known_wait(7, now_ns += S, WIRE_OFFCPU_SLEEP);
	}
	assert_int_equal(reason_of_unsignalled(7, now_ns += S), OFFCPU_REASON_SLEEP);
	/* only what would have been relied on counts as right or wrong */
	assert_int_equal(counts().habit_right, 1);
	assert_int_equal(counts().habit_wrong, 1);
	/* a thread that takes its place begins without its errors */
	known_wait(7, now_ns += S, WIRE_OFFCPU_PARK);
	known_wait(7 + 4096, now_ns += S, WIRE_OFFCPU_SLEEP);
	known_wait(7 + 4096, now_ns += S, WIRE_OFFCPU_SLEEP);
	assert_int_equal(reason_of_unsignalled(7 + 4096, now_ns += S), OFFCPU_REASON_SLEEP);
	assert_int_equal(reason_of_unsignalled(7, now_ns), OFFCPU_REASON_OTHER);
	/* a park for a lock is not a park for want of work */
	lock_wait_for(8, now_ns += S, 900 * MS, WIRE_LOCK_SUM, true);
	known_wait(8, now_ns += S, WIRE_OFFCPU_PARK);
	assert_int_equal(counts().habit_wrong, 3);
}

static void many_threads_have_their_own_habits(void **state)
{
	uint64_t now_ns = 10 * S;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (uint32_t tid = 1000; tid < 2000; tid++)
			known_wait(tid, now_ns += MS, WIRE_OFFCPU_SLEEP);
	for (uint32_t tid = 1000; tid < 2000; tid++)
		assert_int_equal(reason_of_unsignalled(tid, now_ns), OFFCPU_REASON_SLEEP);
}

static void a_safepoint_does_not_spoil_a_habit(void **state)
{
	(void)state;
	known_wait(7, 9 * S, WIRE_OFFCPU_SLEEP);
	known_wait(7, 10 * S, WIRE_OFFCPU_SLEEP);
	known_wait(7, 11 * S, WIRE_OFFCPU_BLOCKED_IN_VM);
	known_wait(7, 12 * S, WIRE_OFFCPU_GC);
	assert_int_equal(counts().habit_wrong, 0);
	assert_int_equal(reason_of_unsignalled(7, 13 * S), OFFCPU_REASON_SLEEP);
	assert_true(last.by_habit);
}

static void whatever_comes_memory_is_bounded_and_nothing_is_lost(void **state)
{
	uint64_t sum_ns = 0;
	size_t most = 0;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++) {
		uint32_t tid = (uint32_t)(i * 7919 % 5000);

		kernel(tid, i, 1000 + i, i % 3, i % 4 != 0, (unsigned)(i % OFFCPU_CLASS_COUNT));
		sum_ns += 1000 + i;
		if (i % 5 == 0) {
			agent(tid ^ 1, i, 1000 + i, (uint8_t)(i % WIRE_OFFCPU_STATUS_COUNT));
			sum_ns += 1000 + i;
		}
		if (offcpu_join_bytes(join) > most)
			most = offcpu_join_bytes(join);
		lock_wait(tid, UINT64_MAX - i, UINT64_MAX, 0);
	}
	offcpu_join_flush(join);
	assert_int_equal(total_ns, sum_ns);
	assert_int_equal(events, 24000);
	assert_true(most < 2u << 20);
}

/* Before Linux 6.13 the agent does not know the duration. */
static void a_signal_without_a_value_is_for_the_last_interval(void **state)
{
	struct offcpu_join_counts counts;

	(void)state;
	kernel(7, 10 * MS, 3 * MS, 100, true, OFFCPU_FUTEX);
	kernel(7, 20 * MS, 4 * MS, 200, true, OFFCPU_FUTEX);
	kernel(7, 30 * MS, 5 * MS, 300, true, OFFCPU_FUTEX);
	kernel(8, 20 * MS, 6 * MS, 400, true, OFFCPU_FUTEX);
	agent(7, 20 * MS + 1, HOST_COOKIE_OFFCPU_UNKNOWN_NS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 1);
	assert_int_equal(last.duration_ns, 4 * MS);
	assert_int_equal(last.reason, OFFCPU_REASON_SLEEP);
	assert_true(last.has_stack);
	agent(7, 10 * MS + 1, HOST_COOKIE_OFFCPU_UNKNOWN_NS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 2);
	assert_int_equal(last.duration_ns, 3 * MS);
	agent(7, 5 * MS, HOST_COOKIE_OFFCPU_UNKNOWN_NS, WIRE_OFFCPU_SLEEP); /* before all of them */
	agent(9, 40 * MS, HOST_COOKIE_OFFCPU_UNKNOWN_NS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 2);
	offcpu_join_counts(join, &counts);
	assert_int_equal(counts.no_kernel, 2); /* of no interval's duration */
}

/* Where no signal was sent, the lock's record is the only one that tells what the wait was for. */
static void a_wait_for_work_is_idle_though_only_its_lock_tells(void **state)
{
	(void)state;
	kernel(7, 10 * S, 30 * MS, 0, false, OFFCPU_FUTEX);
	lock_wait_for(7, 10 * S + 1000, 30 * MS + 2000, 0, true);
	assert_int_equal(events, 1);
	assert_non_null(last.lock);
	assert_true(last.idle);
	/* also while the wait goes on */
	lock_wait_for(7, 20 * S, 10 * MS, WIRE_LOCK_OPEN, true);
	kernel(7, 21 * S, 900 * MS, 0, false, OFFCPU_FUTEX);
	offcpu_join_expire(join, 22 * S);
	assert_int_equal(events, 2);
	assert_true(last.idle);
	kernel(7, 30 * S, 30 * MS, 0, false, OFFCPU_FUTEX);
	lock_wait(7, 30 * S + 1000, 30 * MS + 2000, 0);
	assert_int_equal(events, 3);
	assert_false(last.idle);
}

/* The agent's dictionary is full now and then: only what has ids of it may not wait longer. */
static void a_wait_whose_record_was_spared_is_an_event_by_itself(void **state)
{
	(void)state;
	spared_ns = MS;
	/* nothing says that its thread waits for work: its record may have been passed on */
	lock_wait(1, S, 9 * MS, 0);
	assert_int_equal(events, 0);
	lock_wait_for(1, 2 * S, S / 2, WIRE_LOCK_SUM, true);
	lock_wait_for(2, 2 * S, S / 2, WIRE_LOCK_SUM, true);
	assert_int_equal(usual, OFFCPU_USUAL_WORK);
	lock_wait(1, 3 * S, 9 * MS, 0);
	assert_int_equal(usual, OFFCPU_USUAL_NONE);
	assert_int_equal(events, 1);
	assert_true(last.reason == OFFCPU_REASON_PARK && last.has_stack && !last.idle);
	assert_int_equal(last.duration_ns, 9 * MS);
	assert_int_equal(last.end_ns, 3 * S);
	assert_int_equal(last.tid, 1);
	assert_int_equal(last.virtual_tid, 0);
	assert_string_equal(last_class, "org.shop.Cache");
	assert_int_equal(counts().lock_only, 1);
	/* too short for a record, or a wait for work */
	lock_wait(1, 4 * S, MS - 1, 0);
	lock_wait_for(1, 4 * S, 9 * MS, 0, true);
	spared_ns = 0;
	lock_wait(1, 5 * S, 9 * MS, 0);
	assert_int_equal(events, 1);
	/* a part of it has a record, which waits for the lock's or was passed on; another thread's
	 * wait has none */
	spared_ns = MS;
	for (int i = 0; i < 2; i++) {
		kernel(1, (6 + i) * S - 10 * MS, 2 * MS, 0, false, OFFCPU_FUTEX);
		if (i)
			offcpu_join_expire(join, (7 + i) * S);
		lock_wait(1, (6 + i) * S, 20 * MS, 0);
		assert_int_equal(counts().lock_only, 1);
	}
	lock_wait(2, 7 * S, 20 * MS, 0);
	assert_int_equal(counts().lock_only, 2);
	lock_wait(1, 8 * S, 20 * MS, 0);
	assert_int_equal(counts().lock_only, 3);
	assert_int_equal(counts().locks, 4);
	assert_int_equal(events, 5);
	/* this one had a record before it was known to wait for work */
	kernel(3, 9 * S, 20 * MS, 0, false, OFFCPU_FUTEX);
	lock_wait_for(3, 9 * S, S / 2, WIRE_LOCK_SUM, true);
	lock_wait(3, 9 * S, 20 * MS, 0);
	assert_int_equal(events, 6);
	/* a thread that sleeps again and again is spared nothing */
	known_wait(4, 9 * S, WIRE_OFFCPU_SLEEP);
	known_wait(4, 10 * S, WIRE_OFFCPU_SLEEP);
	lock_wait(4, 11 * S, 20 * MS, 0);
	assert_int_equal(counts().lock_only, 3);
}

static void so_is_one_of_a_thread_whose_waits_are_all_for_locks(void **state)
{
	struct stream_lock w;

	(void)state;
	spared_ns = MS;
	for (uint64_t i = 1; i <= 32; i++) {
		assert_true(i == 1 || usual == OFFCPU_USUAL_NONE);
		kernel(1, i * S, 20 * MS, 0, false, OFFCPU_FUTEX);
		lock_wait(1, i * S + 1000, 20 * MS + 2000, 0);
	}
	assert_int_equal(usual, OFFCPU_USUAL_TOLD);
	assert_int_equal(events, 32);
	/* also while others lose their records */
	w = made_wait(1, 40 * S, 20 * MS);
	assert_int_equal(offcpu_join_lock(join, &w, false, spared_ns, true), OFFCPU_USUAL_TOLD);
	assert_int_equal(counts().lock_only, 1);
	/* that of a thread that waits for work may be among these, which count as dropped */
	lock_wait_for(2, 40 * S, S / 2, WIRE_LOCK_SUM, true);
	w = made_wait(2, 41 * S, 20 * MS);
	assert_int_equal(offcpu_join_lock(join, &w, false, spared_ns, true), OFFCPU_USUAL_NONE);
	assert_int_equal(counts().lock_only, 1);
	/* its records were not spared, or it is too short for one, or one for work */
	w = made_wait(1, 41 * S, 20 * MS);
	assert_int_equal(offcpu_join_lock(join, &w, false, 0, false), OFFCPU_USUAL_NONE);
	lock_wait(1, 42 * S, MS - 1, 0);
	lock_wait_for(1, 43 * S, 20 * MS, 0, true);
	assert_int_equal(usual, OFFCPU_USUAL_NONE);
	assert_int_equal(events, 33);
	/* one of which no lock event tells */
	kernel(1, 44 * S, 20 * MS, 0, false, OFFCPU_FUTEX);
	offcpu_join_expire(join, 50 * S);
	assert_true(last.ends_told);
	lock_wait(1, 51 * S, 20 * MS, 0);
	assert_int_equal(usual, OFFCPU_USUAL_NONE);
	assert_int_equal(counts().lock_only, 1);
}

static void new_meanings_of_ids_leave_what_has_none(void **state)
{
	(void)state;
	kernel(7, 10 * S, 30 * MS, 1, true, OFFCPU_FUTEX);
	kernel(8, 10 * S, 30 * MS, 2, true, OFFCPU_FUTEX);
	agent(8, 10 * S, 30 * MS, WIRE_OFFCPU_PARK);
	assert_int_equal(events, 0);
	offcpu_join_reset(join);
	assert_int_equal(events, 1);
	assert_int_equal(last.tid, 8);
	agent(7, 10 * S, 30 * MS, WIRE_OFFCPU_SLEEP);
	assert_int_equal(events, 2);
	assert_int_equal(last.tid, 7);
	assert_int_equal(counts().joined, 2);
	assert_int_equal(counts().no_kernel, 0);
	/* nor is what a thread usually waits for forgotten */
	lock_wait_for(9, 10 * S, 30 * MS, WIRE_LOCK_SUM, true);
	offcpu_join_reset(join);
	kernel(9, 11 * S, 30 * MS, 0, false, OFFCPU_FUTEX);
	offcpu_join_expire(join, 12 * S);
	assert_int_equal(events, 3);
	assert_true(last.by_habit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_safepoint_may_become_known_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_signal_without_a_value_is_for_the_last_interval,
						setup, teardown),
		cmocka_unit_test_setup_teardown(kernel_and_agent_become_one_event, setup, teardown),
		cmocka_unit_test_setup_teardown(the_newest_of_equal_durations_is_the_agents, setup,
						teardown),
		cmocka_unit_test_setup_teardown(one_signal_tells_of_all_in_one_stay_in_the_kernel,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_signal_that_was_pending_tells_of_what_came_after_it_was_sent, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_silent_agent_is_waited_for_and_a_late_one_not_counted_twice, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_record_without_a_signal_waits_for_no_sample,
						setup, teardown),
		cmocka_unit_test_setup_teardown(an_agent_without_the_kernel_has_its_own_words,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_for_a_lock_is_one_event_with_both_parts,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_wait_whose_record_was_spared_is_an_event_by_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(so_is_one_of_a_thread_whose_waits_are_all_for_locks,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_for_work_is_idle_though_only_its_lock_tells,
						setup, teardown),
		cmocka_unit_test_setup_teardown(new_meanings_of_ids_leave_what_has_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_steps_of_a_long_entry_have_its_lock, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_wait_that_goes_on_tells_of_steps_without_a_signal,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_virtual_threads_park_is_its_carriers_or_an_event_by_itself, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			waits_that_nothing_tells_of_are_as_the_threads_last_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_habit_that_was_wrong_is_not_relied_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_threads_have_their_own_habits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_safepoint_does_not_spoil_a_habit, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_park_to_sleep_is_a_sleep_and_one_event, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_virtual_thread_without_a_carrier_is_an_event_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			whatever_comes_memory_is_bounded_and_nothing_is_lost, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
