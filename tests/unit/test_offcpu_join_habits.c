/* What a thread usually does, for intervals off the CPU that lack a record: of the agent's, so that
 * nothing tells the reason, or of the kernel's, so that a lock's tells of them alone. */
#include "tests/unit/joins.h"

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
	assert_int_equal(last.reason, OFFCPU_REASON_OTHER); /* of explain() */
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
		assert_int_equal(usual, OFFCPU_USUAL_NONE);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_wait_whose_record_was_spared_is_an_event_by_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(so_is_one_of_a_thread_whose_waits_are_all_for_locks,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_wait_for_work_is_idle_though_only_its_lock_tells,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			waits_that_nothing_tells_of_are_as_the_threads_last_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_habit_that_was_wrong_is_not_relied_on, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_threads_have_their_own_habits, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_safepoint_does_not_spoil_a_habit, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
