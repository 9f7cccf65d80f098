/* Reads of sockets and accept calls without a stack, and waits in futexes that are lock events. Of
 * other waits in futexes test_offcpu_join_habits asks, with the agent's sums. */
#include "tests/unit/unit.h"
#include "daemon/ground/clock.h"
#include "daemon/host/offcpu_habits.h"

static struct offcpu_habits habits;
static uint64_t now_ns = NS_PER_S;

static struct offcpu_event read_of(uint32_t tid, unsigned kernel_class, bool has_stack, bool idle)
{
	struct offcpu_event e = { .end_ns = now_ns += NS_PER_MS,
				  .tid = tid,
				  .reason = OFFCPU_REASON_SOCKET,
				  .kernel_class = kernel_class,
				  .has_stack = has_stack,
				  .idle = idle };

	if (kernel_class == OFFCPU_POLL && !has_stack)
		e.reason = OFFCPU_REASON_POLL;
	offcpu_habits_apply(&habits, &e);
	return e;
}

static void what_is_idle_by_its_stack_as_usual_is_told(void **state)
{
	(void)state;
	assert_false(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	assert_false(read_of(7, OFFCPU_SOCKET, false, true).as_usual); /* without a stack */
	assert_false(read_of(7, OFFCPU_SOCKET, true, false).as_usual);
	for (int i = 0; i < 7; i++)
		assert_false(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	for (int i = 0; i < 3; i++)
		assert_false(read_of(8, OFFCPU_SOCKET, true, false).as_usual);
	/* one thread may accept connections and read from them */
	assert_false(read_of(8, OFFCPU_ACCEPT, true, true).as_usual);
	assert_false(read_of(8, OFFCPU_SOCKET, true, false).as_usual);
	assert_true(read_of(8, OFFCPU_ACCEPT, true, true).as_usual);
	offcpu_habits_clear(&habits);
}

static void lock_events_tell_of_a_habit_unless_it_was_wrong(void **state)
{
	struct offcpu_event sleeps = { .tid = 9,
				       .reason = OFFCPU_REASON_SLEEP,
				       .kernel_class = OFFCPU_FUTEX,
				       .has_stack = true };

	(void)state;
	assert_false(offcpu_habits_work(&habits, 9, now_ns, OFFCPU_REASON_PARK, 1));
	assert_true(offcpu_habits_work(&habits, 10, now_ns, OFFCPU_REASON_PARK, 2));
	sleeps.end_ns = now_ns;
	offcpu_habits_apply(&habits, &sleeps);
	assert_false(offcpu_habits_work(&habits, 9, now_ns, OFFCPU_REASON_PARK, 2));
	offcpu_habits_clear(&habits);
}

/* Threads that ask less often are known for longer; without a stack only the last seconds count. */
static void a_stack_confirms_what_was_known_20_seconds_ago(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		(void)read_of(7, OFFCPU_SOCKET, true, true);
	now_ns += 15 * NS_PER_S;
	assert_false(read_of(7, OFFCPU_SOCKET, false, false).by_habit);
	assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	assert_true(read_of(7, OFFCPU_SOCKET, false, false).by_habit);
	now_ns += 22 * NS_PER_S;
	assert_false(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	offcpu_habits_clear(&habits);
}

static void it_takes_more_waits_until_one_is_as_always(void **state)
{
	(void)state;
	for (int i = 0; i < 25; i++)
		assert_false(read_of(7, OFFCPU_SOCKET, true, true).as_always);
	for (int i = 0; i < 3; i++)
		assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_always);
	assert_false(read_of(7, OFFCPU_SOCKET, true, false).as_always);
	for (int i = 0; i < 31; i++)
		assert_false(read_of(7, OFFCPU_SOCKET, true, true).as_always);
	/* one that differed in the meantime is not forgotten before */
	assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_usual);
	assert_true(read_of(7, OFFCPU_SOCKET, true, true).as_always);
	offcpu_habits_clear(&habits);
}

static void known(uint32_t tid, bool idle, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_false(read_of(tid, OFFCPU_SOCKET, true, idle).by_habit);
}

static void who_only_waits_for_requests_does_so_without_a_stack_too(void **state)
{
	struct offcpu_event e;

	(void)state;
	assert_false(read_of(7, OFFCPU_SOCKET, false, false).idle);
	known(7, true, 1);
	/* once is no habit */
	assert_false(read_of(7, OFFCPU_SOCKET, false, false).idle);
	known(7, true, 1);
	e = read_of(7, OFFCPU_SOCKET, false, false);
	assert_true(e.idle && e.by_habit);
	/* a read with a timeout */
	e = read_of(7, OFFCPU_POLL, false, false);
	assert_int_equal(e.reason, OFFCPU_REASON_SOCKET);
	assert_true(e.idle && e.by_habit);
	assert_int_equal(habits.told, 2);
	/* neither another thread, nor another kind of wait, nor one long afterwards */
	assert_false(read_of(8, OFFCPU_SOCKET, false, false).by_habit);
	assert_false(read_of(7, OFFCPU_FILE, false, false).by_habit);
	e = (struct offcpu_event){ .end_ns = now_ns,
				   .tid = 7,
				   .kernel_class = OFFCPU_FUTEX,
				   .reason = OFFCPU_REASON_OTHER };
	offcpu_habits_apply(&habits, &e);
	assert_false(e.by_habit);
	now_ns += 20 * NS_PER_S;
	assert_false(read_of(7, OFFCPU_SOCKET, false, false).by_habit);
	offcpu_habits_clear(&habits);
}

static void who_also_reads_answers_is_not_idle(void **state)
{
	(void)state;
	known(7, true, 3);
	known(7, false, 1);
	assert_int_equal(habits.wrong, 1);
	for (int i = 0; i < 7; i++) {
		assert_false(read_of(7, OFFCPU_SOCKET, false, false).idle);
		known(7, true, 1);
	}
	assert_false(read_of(7, OFFCPU_SOCKET, false, false).idle);
	known(7, true, 1);
	assert_true(read_of(7, OFFCPU_SOCKET, false, false).idle);
	/* a thread that reads answers alone has no habit */
	known(9, false, 20);
	assert_false(read_of(9, OFFCPU_SOCKET, false, false).by_habit);
	offcpu_habits_clear(&habits);
}

static void who_reads_answers_with_a_timeout_does_so_without_a_stack_too(void **state)
{
	struct offcpu_event e;

	(void)state;
	for (int i = 0; i < 2; i++) {
		e = read_of(7, OFFCPU_POLL, false, false);
		assert_int_equal(e.reason, OFFCPU_REASON_POLL);
		read_of(7, OFFCPU_POLL, true, false);
	}
	e = read_of(7, OFFCPU_POLL, false, false);
	assert_int_equal(e.reason, OFFCPU_REASON_SOCKET);
	assert_true(e.by_habit && !e.idle);
	/* of whatever kind its reads are */
	read_of(7, OFFCPU_POLL, true, true);
	e = read_of(7, OFFCPU_POLL, false, false);
	assert_int_equal(e.reason, OFFCPU_REASON_SOCKET);
	assert_true(e.by_habit && !e.idle);
	assert_int_equal(habits.right, 1);
	/* but not if it polls for something else, too */
	e = (struct offcpu_event){ .end_ns = now_ns,
				   .tid = 7,
				   .kernel_class = OFFCPU_POLL,
				   .reason = OFFCPU_REASON_CONNECT,
				   .has_stack = true };
	offcpu_habits_apply(&habits, &e);
	assert_int_equal(habits.wrong, 1);
	for (int i = 0; i < 8; i++) {
		assert_false(read_of(7, OFFCPU_POLL, false, false).by_habit);
		read_of(7, OFFCPU_POLL, true, false);
	}
	assert_true(read_of(7, OFFCPU_POLL, false, false).by_habit);
	now_ns += 20 * NS_PER_S;
	assert_false(read_of(7, OFFCPU_POLL, false, false).by_habit);
	offcpu_habits_clear(&habits);
}

/* A worker of a pool that reads the requests itself. */
static void a_thread_has_a_habit_of_each_kind(void **state)
{
	struct offcpu_event e;

	(void)state;
	offcpu_habits_work(&habits, 7, now_ns, OFFCPU_REASON_PARK, 2);
	known(7, true, 2);
	e = (struct offcpu_event){ .end_ns = now_ns,
				   .tid = 7,
				   .kernel_class = OFFCPU_FUTEX,
				   .reason = OFFCPU_REASON_OTHER };
	offcpu_habits_apply(&habits, &e);
	assert_int_equal(e.reason, OFFCPU_REASON_PARK);
	assert_true(e.idle && e.by_habit);
	e = read_of(7, OFFCPU_SOCKET, false, false);
	assert_int_equal(e.reason, OFFCPU_REASON_SOCKET);
	assert_true(e.idle && e.by_habit);
	assert_int_equal(habits.wrong, 0);
	offcpu_habits_clear(&habits);
}

static bool is_told(unsigned n)
{
	bool told = false;

	for (unsigned i = 0; i < n; i++)
		told = offcpu_habits_told(&habits, 7, now_ns += 10 * NS_PER_MS);
	return told;
}

/* A wait of thread 7 in a futex of which no lock event tells. */
static struct offcpu_event futex_of(enum offcpu_reason reason, bool idle)
{
	struct offcpu_event e = { .end_ns = now_ns += NS_PER_MS,
				  .tid = 7,
				  .reason = reason,
				  .kernel_class = OFFCPU_FUTEX,
				  .has_stack = true,
				  .idle = idle };

	offcpu_habits_apply(&habits, &e);
	return e;
}

static void one_that_no_lock_event_tells_of_ends_a_habit(void **state)
{
	(void)state;
	assert_false(is_told(31));
	assert_true(is_told(1));
	assert_true(is_told(1000));
	/* it may be a part of any wait */
	assert_false(futex_of(OFFCPU_REASON_GC, false).ends_told);
	assert_false(read_of(7, OFFCPU_SOCKET, true, false).ends_told);
	assert_true(is_told(1));
	assert_true(futex_of(OFFCPU_REASON_SLEEP, false).ends_told);
	assert_false(is_told(31));
	assert_false(futex_of(OFFCPU_REASON_SLEEP, false).ends_told);
	assert_false(is_told(31));
	assert_true(is_told(1));
	assert_true(futex_of(OFFCPU_REASON_PARK, true).ends_told);
	/* another thread may have the number of one that ended */
	assert_true(is_told(32));
	now_ns += 22 * NS_PER_S;
	assert_false(is_told(31));
	assert_true(is_told(1));
	offcpu_habits_clear(&habits);
}

/* Was a wait of thread 7 of 10 ms that ended at @end_ns spared its record? */
static bool is_spared(uint64_t end_ns, bool work)
{
	return offcpu_habits_spare(&habits, 7, end_ns - 10 * NS_PER_MS, end_ns, work);
}

static void records_of_later_waits_are_no_records_of_this_one(void **state)
{
	uint64_t at;

	(void)state;
	assert_false(is_spared(now_ns, true));
	is_told(31);
	assert_false(is_spared(now_ns, true));
	is_told(1);
	at = now_ns;
	assert_true(is_spared(at, false));
	for (unsigned i = 0; i < 4; i++) {
		assert_true(is_spared(at, false));
		offcpu_habits_recorded(&habits, 7, OFFCPU_FUTEX, at + (i + 1) * NS_PER_S);
		offcpu_habits_recorded(&habits, 7, OFFCPU_SOCKET, at - NS_PER_MS);
		offcpu_habits_recorded(&habits, 8, OFFCPU_FUTEX, at - NS_PER_MS);
		assert_false(is_spared(at + (i + 1) * NS_PER_S, false));
		assert_false(is_spared(at + (i + 1) * NS_PER_S + NS_PER_MS, false));
		assert_true(is_spared(at + (i + 1) * NS_PER_S + 11 * NS_PER_MS, false));
	}
	/* nobody knows any more */
	assert_false(is_spared(at, false));
	/* of waits for work likewise, unless records are lost */
	futex_of(OFFCPU_REASON_SLEEP, false);
	at = now_ns += 5 * NS_PER_S;
	assert_false(is_spared(at, true));
	offcpu_habits_work(&habits, 7, at, OFFCPU_REASON_PARK, 2);
	assert_true(is_spared(at, true));
	assert_false(is_spared(at, false));
	offcpu_habits_clear(&habits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_idle_by_its_stack_as_usual_is_told),
		cmocka_unit_test(it_takes_more_waits_until_one_is_as_always),
		cmocka_unit_test(lock_events_tell_of_a_habit_unless_it_was_wrong),
		cmocka_unit_test(a_stack_confirms_what_was_known_20_seconds_ago),
		cmocka_unit_test(who_only_waits_for_requests_does_so_without_a_stack_too),
		cmocka_unit_test(who_also_reads_answers_is_not_idle),
		cmocka_unit_test(who_reads_answers_with_a_timeout_does_so_without_a_stack_too),
		cmocka_unit_test(a_thread_has_a_habit_of_each_kind),
		cmocka_unit_test(one_that_no_lock_event_tells_of_ends_a_habit),
		cmocka_unit_test(records_of_later_waits_are_no_records_of_this_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
