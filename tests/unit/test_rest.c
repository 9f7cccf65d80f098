#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "agent/base/agent.h"
#include "agent/session/rest.h"

static uint64_t now;

static int begin(void **state)
{
	(void)state;
	now = 1000 * NS_PER_S;
	rest_begin(now);
	return 0;
}

static void batch_after(uint64_t ms, bool some)
{
	now += ms * NS_PER_MS;
	rest_batch(now, some);
}

static void lonely_sample_is_taken_at_once_and_the_next_wakes_too(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_false(rest_gathers(now + NS_PER_S));
		batch_after(1000, true);
		assert_int_equal(rest_until_ns(), 0);
	}
}

static void steady_samples_wait_for_each_other(void **state)
{
	(void)state;
	batch_after(0, true);
	for (int i = 0; i < 5; i++) {
		assert_true(rest_gathers(now + 100 * NS_PER_MS));
		batch_after(100, true);
		assert_int_equal(rest_until_ns(), now + 100 * NS_PER_MS);
	}
	/* woken by another cause meanwhile */
	batch_after(30, false);
	assert_int_equal(rest_until_ns(), now + 70 * NS_PER_MS);
	/* no event came: the next one wakes the thread */
	batch_after(70, false);
	assert_int_equal(rest_until_ns(), 0);
}

static void looks_come_once_a_second_while_there_is_something_to_find(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(rest_check_ns(), now + NS_PER_S);
		now += NS_PER_S;
		rest_checked(now, i % 2);
		rest_batch(now, true);
	}
}

static void looks_that_find_nothing_come_ever_more_rarely(void **state)
{
	static const uint64_t pause_s[] = { 1, 2, 4, 8, 8, 8 };

	(void)state;
	for (int i = 0; i < 6; i++) {
		assert_int_equal(rest_check_ns(), now + pause_s[i] * NS_PER_S);
		now = rest_check_ns();
		rest_checked(now, true);
	}
}

static void sample_after_a_long_while_is_followed_by_a_look_at_once(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		now = rest_check_ns();
		rest_checked(now, true);
	}
	batch_after(3000, true);
	assert_true(rest_check_ns() <= now);
	rest_checked(now, false);
	batch_after(500, true);
	assert_int_equal(rest_check_ns(), now + 500 * NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lonely_sample_is_taken_at_once_and_the_next_wakes_too,
				       begin),
		cmocka_unit_test_setup(steady_samples_wait_for_each_other, begin),
		cmocka_unit_test_setup(looks_come_once_a_second_while_there_is_something_to_find,
				       begin),
		cmocka_unit_test_setup(looks_that_find_nothing_come_ever_more_rarely, begin),
		cmocka_unit_test_setup(sample_after_a_long_while_is_followed_by_a_look_at_once,
				       begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
