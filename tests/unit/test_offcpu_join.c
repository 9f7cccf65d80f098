/* Intervals off the CPU from three sources, joined: each is passed on once, in whatever order
 * the sources report it. */
#include "tests/unit/joins.h"

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

/* The agent's dictionary is full now and then: only what has ids of it may not wait longer. */
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
		cmocka_unit_test_setup_teardown(new_meanings_of_ids_leave_what_has_none, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_steps_of_a_long_entry_have_its_lock, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_wait_that_goes_on_tells_of_steps_without_a_signal,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_virtual_threads_park_is_its_carriers_or_an_event_by_itself, setup,
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
