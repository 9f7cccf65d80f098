/* Waits of virtual threads without a carrier: their table, and what they may cost. */
#include <pthread.h>
#include "agent/base/clock.h"
#include "agent/events/unmounted_price.h"
#include "agent/events/unmounted_table.h"
#include "tests/unit/unit.h"

#define ROOM	100000u /* threads that wait at once, which the table must hold */
#define THREADS 8

static int begin(void **state)
{
	(void)state;
	return unmounted_table_begin();
}

static uint64_t unseen(void)
{
	struct unmounted_counts counts;

	unmounted_table_counts(&counts);
	return counts.unseen;
}

static void a_wait_is_known_from_its_begin_to_its_end(void **state)
{
	uint64_t now_ns = mono_ns();

	(void)state;
	assert_int_equal(unmounted_remove(31), 0); /* its first mount */
	unmounted_add(31, now_ns);
	assert_int_equal(unmounted_remove(32), 0);
	assert_int_equal(unmounted_remove(31), now_ns);
	assert_int_equal(unmounted_remove(31), 0);
}

static void short_and_long_waits_are_counted(void **state)
{
	struct unmounted_counts before, after;

	(void)state;
	unmounted_table_counts(&before);
	unmounted_count_short(0x7f0000001000, 300);
	unmounted_count_short(0x7f0000002000, 400);
	unmounted_count_long(0x7f0000002000);
	unmounted_table_counts(&after);
	assert_int_equal(after.short_waits - before.short_waits, 2);
	assert_int_equal(after.short_ns - before.short_ns, 700);
	assert_int_equal(after.long_waits - before.long_waits, 1);
}

static void a_hundred_thousand_wait_at_once_and_beyond_the_room_they_are_counted(void **state)
{
	uint64_t now_ns = mono_ns(), before = unseen(), found = 0;

	(void)state;
	for (uint64_t id = 1; id <= ROOM; id++)
		unmounted_add(id, now_ns + id);
	/* few of so many find their lines full */
	assert_in_range(unseen() - before, 0, ROOM / 100);
	for (uint64_t id = 1; id <= ROOM; id++) {
		uint64_t begin_ns = unmounted_remove(id);

		assert_true(begin_ns == 0 || begin_ns == now_ns + id);
		found += begin_ns != 0;
	}
	assert_int_equal(found, ROOM - (unseen() - before));
	/* all places are free again */
	before = unseen();
	for (uint64_t id = 1; id <= 20 * ROOM; id++)
		unmounted_add(id, now_ns);
	assert_true(unseen() - before > ROOM);
	assert_true(unmounted_table_bytes() > 1 << 20);
}

static void waits_of_an_earlier_session_are_unknown(void **state)
{
	(void)state;
	unmounted_add(31, mono_ns());
	unmounted_table_end();
	assert_int_equal(unmounted_table_bytes(), 0);
	assert_int_equal(unmounted_remove(31), 0);
	/* a thread that came late */
	unmounted_add(32, mono_ns());
	unmounted_table_renew();
	unmounted_add(33, 1);
	assert_int_equal(unmounted_remove(32), 0);
	assert_int_equal(unmounted_remove(33), 0);
}

static void *play(void *first)
{
	for (uint64_t round = 1; round <= 200; round++)
		for (uint64_t id = (uint64_t)(uintptr_t)first;
		     id < (uint64_t)(uintptr_t)first + 500; id++) {
			uint64_t now_ns = mono_ns();

			unmounted_add(id, now_ns);
			if (unmounted_remove(id) != now_ns)
				return first;
		}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	pthread_t threads[THREADS];

	(void)state;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, play, (void *)(1 + i * 500)), 0);
	for (int i = 0; i < THREADS; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
}

/* ---- the price ---- */

/* One second in which the process used a whole CPU, of which a hundredth is allowed: 10 ms. */
static uint64_t chosen(uint64_t waits, uint64_t recorded_ns, uint64_t asked_ns, uint64_t is_ns)
{
	const struct unmounted_use then = { 5 * NS_PER_S, 7 * NS_PER_S, 1000, 2000 };
	const struct unmounted_use now = { 6 * NS_PER_S, 8 * NS_PER_S, 1000 + waits,
					   2000 + recorded_ns };

	return unmounted_price_min_ns(&then, &now, 10, asked_ns, is_ns);
}

static void the_threshold_follows_what_records_cost(void **state)
{
	(void)state;
	assert_int_equal(chosen(1000, NS_PER_MS, NS_PER_MS, NS_PER_MS), NS_PER_MS);
	assert_int_equal(chosen(1000, 6 * NS_PER_MS, NS_PER_MS, NS_PER_MS), 2 * NS_PER_MS);
	assert_int_equal(chosen(1000, 4 * NS_PER_MS, NS_PER_MS, 8 * NS_PER_MS), 8 * NS_PER_MS);
	assert_int_equal(chosen(1000, NS_PER_MS, NS_PER_MS, 8 * NS_PER_MS), 4 * NS_PER_MS);
	assert_int_equal(chosen(1000, 0, 3 * NS_PER_MS, 4 * NS_PER_MS), 3 * NS_PER_MS);
	assert_int_equal(chosen(1000, NS_PER_S, NS_PER_MS, 9 * NS_PER_S), UNMOUNTED_MIN_NS_MAX);
}

static void too_many_waits_cannot_be_collected_at_all(void **state)
{
	(void)state;
	assert_int_equal(chosen(50000, 0, NS_PER_MS, NS_PER_MS), NS_PER_MS);
	assert_int_equal(chosen(1000000, 0, NS_PER_MS, NS_PER_MS), 0);
}

static void a_process_that_uses_little_has_the_floor(void **state)
{
	const struct unmounted_use then = { 5 * NS_PER_S, 7 * NS_PER_S, 0, 0 };
	const struct unmounted_use now = { 6 * NS_PER_S, 7 * NS_PER_S + NS_PER_MS, 1000,
					   NS_PER_MS };

	(void)state;
	assert_int_equal(unmounted_price_min_ns(&then, &now, 10, NS_PER_MS, NS_PER_MS), NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_wait_is_known_from_its_begin_to_its_end, begin),
		cmocka_unit_test_setup(short_and_long_waits_are_counted, begin),
		cmocka_unit_test_setup(
			a_hundred_thousand_wait_at_once_and_beyond_the_room_they_are_counted,
			begin),
		cmocka_unit_test_setup(waits_of_an_earlier_session_are_unknown, begin),
		cmocka_unit_test_setup(threads_do_not_disturb_each_other, begin),
		cmocka_unit_test(the_threshold_follows_what_records_cost),
		cmocka_unit_test(too_many_waits_cannot_be_collected_at_all),
		cmocka_unit_test(a_process_that_uses_little_has_the_floor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
