/* Safepoints of a target: how long a thread was stopped and why, and safepoints that were
 * missed. */
#include "tests/unit/unit.h"
#include "daemon/timeline/pauses.h"

#define US 1000ull
#define MS 1000000ull
#define T0 (5000 * MS)

static struct pauses pauses;

static bool add(uint64_t number, uint64_t begin_ns, uint64_t length_ns, enum wire_pause_kind kind)
{
	const struct wire_pause w = {
		.begin_ns = begin_ns,
		.length_ns = length_ns,
		.number = number,
		.kind = (uint8_t)kind,
	};

	return pauses_add(&pauses, &w);
}

static int begin(void **state)
{
	(void)state;
	pauses_forget(&pauses);
	assert_false(add(40, T0, 0, WIRE_PAUSE_NONE));
	return 0;
}

static int end(void **state)
{
	(void)state;
	pauses_forget(&pauses);
	return 0;
}

static void a_thread_that_stood_still_with_all_is_told_why(void **state)
{
	(void)state;
	assert_true(add(41, T0 + 10 * MS, 5 * MS, WIRE_PAUSE_SAFEPOINT));
	assert_true(add(42, T0 + 20 * MS, 30 * MS, WIRE_PAUSE_GC));
	assert_int_equal(pauses_during(&pauses, T0 + 10 * MS + 100, T0 + 15 * MS + 50000),
			 PAUSES_SAFEPOINT);
	assert_int_equal(pauses_during(&pauses, T0 + 20 * MS + 100, T0 + 51 * MS), PAUSES_GC);
	/* stopped by both, of which the collection was longer */
	assert_int_equal(pauses_during(&pauses, T0 + 10 * MS, T0 + 50 * MS), PAUSES_GC);
	/* waiting for a lock of the JVM's own, outside of the safepoints or around a short one */
	assert_int_equal(pauses_during(&pauses, T0 + 2 * MS, T0 + 9 * MS), PAUSES_NONE);
	assert_int_equal(pauses_during(&pauses, T0 + 1 * MS, T0 + 16 * MS), PAUSES_NONE);
}

static void what_lies_within_a_safepoint_is_that(void **state)
{
	(void)state;
	assert_true(add(41, T0 + 10 * MS, 5 * MS, WIRE_PAUSE_SAFEPOINT));
	assert_true(add(42, T0 + 20 * MS, 30 * MS, WIRE_PAUSE_GC));
	assert_int_equal(pauses_around(&pauses, T0 + 11 * MS, T0 + 15 * MS), PAUSES_SAFEPOINT);
	assert_int_equal(pauses_around(&pauses, T0 + 20 * MS, T0 + 49 * MS), PAUSES_GC);
	/* threads are let go one after the other */
	assert_int_equal(pauses_around(&pauses, T0 + 11 * MS, T0 + 15 * MS + 400 * US),
			 PAUSES_SAFEPOINT);
	assert_int_equal(pauses_around(&pauses, T0 + 11 * MS, T0 + 15 * MS + 600 * US),
			 PAUSES_NONE);
	assert_int_equal(pauses_around(&pauses, T0 + 14 * MS, T0 + 15 * MS + 400 * US),
			 PAUSES_NONE);
	/* a wait that began before it, and one that went on after it */
	assert_int_equal(pauses_around(&pauses, T0 + 9 * MS, T0 + 15 * MS), PAUSES_NONE);
	assert_int_equal(pauses_around(&pauses, T0 + 20 * MS, T0 + 51 * MS), PAUSES_NONE);
	assert_int_equal(pauses_around(&pauses, T0 + 60 * MS, T0 + 61 * MS), PAUSES_NONE);
}

static void unseen_pauses_leave_the_reason_open(void **state)
{
	(void)state;
	assert_int_equal(pauses_during(&pauses, T0 - MS, T0 + MS), PAUSES_UNKNOWN);
	assert_true(add(41, T0 + 10 * MS, 5 * MS, WIRE_PAUSE_SAFEPOINT));
	assert_true(add(44, T0 + 40 * MS, 5 * MS, WIRE_PAUSE_SAFEPOINT));
	assert_int_equal(pauses_during(&pauses, T0 + 20 * MS, T0 + 30 * MS), PAUSES_UNKNOWN);
	assert_int_equal(pauses_during(&pauses, T0 + 40 * MS, T0 + 45 * MS), PAUSES_SAFEPOINT);
	/* missed ones, however long, and seen ones together are less than half of it */
	assert_int_equal(pauses_during(&pauses, T0 + 38 * MS, T0 + 70 * MS), PAUSES_NONE);
	assert_int_equal(pauses_during(&pauses, T0 + 16 * MS, T0 + 70 * MS), PAUSES_UNKNOWN);
	assert_int_equal(pauses_during(&pauses, T0 + 46 * MS, T0 + 47 * MS), PAUSES_NONE);
	assert_int_equal(pauses_unseen(&pauses, T0, T0 + 100 * MS), 2);
	assert_int_equal(pauses_unseen(&pauses, T0, T0 + 12 * MS), 0);
	assert_int_equal(pauses_unseen(&pauses, T0 + 20 * MS, T0 + 21 * MS), 2);
	assert_int_equal(pauses_unseen(&pauses, T0 + 41 * MS, T0 + 100 * MS), 0);
	pauses_forget(&pauses);
	assert_false(add(45, T0 + 60 * MS, MS, WIRE_PAUSE_GC)); /* from where, nobody said */
	assert_int_equal(pauses_during(&pauses, T0 + 60 * MS, T0 + 61 * MS), PAUSES_UNKNOWN);
}

static void nonsense_is_left_out(void **state)
{
	(void)state;
	assert_true(add(41, T0 + 10 * MS, 5 * MS, WIRE_PAUSE_GC));
	assert_false(add(41, T0 + 20 * MS, 5 * MS, WIRE_PAUSE_GC)); /* reported before */
	assert_false(add(7, T0 + 20 * MS, 5 * MS, WIRE_PAUSE_GC));
	assert_false(add(42, T0 + 12 * MS, 5 * MS, WIRE_PAUSE_GC)); /* inside another */
	assert_false(add(42, T0 + 20 * MS, UINT64_MAX, WIRE_PAUSE_GC));
	assert_true(add(42, T0 + 20 * MS, 0, WIRE_PAUSE_GC));
	assert_int_equal(pauses.seen, 2);
}

static void the_oldest_go(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 5 * PAUSES_MAX; i++) {
		assert_true(add(41 + i, T0 + 10 * i * MS, MS, WIRE_PAUSE_SAFEPOINT));
		assert_int_equal(pauses_during(&pauses, T0 + 10 * i * MS, T0 + 10 * i * MS + MS),
				 PAUSES_SAFEPOINT);
	}
	assert_int_equal(pauses_during(&pauses, T0 + 10 * MS, T0 + 11 * MS), PAUSES_UNKNOWN);
	assert_int_equal(pauses.unseen, 0);
	assert_int_equal(pauses.seen, 5 * PAUSES_MAX);
}

static void few_pauses_take_little_memory(void **state)
{
	(void)state;
	assert_null(pauses.list);
	assert_true(add(41, T0 + 10 * MS, 5 * MS, WIRE_PAUSE_GC));
	assert_in_range(pauses.cap, 1, PAUSES_MAX / 8);
	for (uint64_t i = 0; i < 3 * PAUSES_MAX; i++)
		assert_true(add(42 + i, T0 + 20 * (i + 1) * MS, MS, WIRE_PAUSE_GC));
	assert_int_equal(pauses.cap, PAUSES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_thread_that_stood_still_with_all_is_told_why,
						begin, end),
		cmocka_unit_test_setup_teardown(what_lies_within_a_safepoint_is_that, begin, end),
		cmocka_unit_test_setup_teardown(unseen_pauses_leave_the_reason_open, begin, end),
		cmocka_unit_test_setup_teardown(nonsense_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(the_oldest_go, begin, end),
		cmocka_unit_test_setup_teardown(few_pauses_take_little_memory, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
