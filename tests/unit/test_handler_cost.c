#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "agent/base/agent.h"
#include "agent/engine/handler_cost.h"

struct agent agent;
struct handler_cost handler_cost;

/* As the handler does. */
static void took(uint32_t ns)
{
	handler_cost.took_ns[handler_cost.n++ & (HANDLER_RECENT - 1)] = ns;
}

static int begin(void **state)
{
	(void)state;
	memset(&handler_cost, 0, sizeof(handler_cost));
	return 0;
}

static void nothing_is_known_before_a_sample_was_timed(void **state)
{
	(void)state;
	assert_int_equal(handler_sample_ns(), 0);
}

static void few_long_ones_do_not_count(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++)
		took(i % 20 == 7 ? 9000000 : 5000);
	assert_int_equal(handler_sample_ns(), 5000);
}

static void long_ones_count_where_they_are_many(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++)
		took(i % 4 ? 4000 : 24000);
	assert_in_range(handler_sample_ns(), 8500, 9000);
}

static void the_first_ones_count_for_their_median_at_most(void **state)
{
	(void)state;
	took(4000);
	took(800000); /* the first page faults */
	took(6000);
	assert_in_range(handler_sample_ns(), 4000, 6000);
}

static void only_recent_ones_count(void **state)
{
	(void)state;
	for (int i = 0; i < 64; i++)
		took(50000);
	for (int i = 0; i < 64; i++)
		took(5000);
	assert_int_equal(handler_sample_ns(), 5000);
}

static void samples_are_booked_at_what_the_timed_ones_took(void **state)
{
	uint64_t before_ns = agent.counters.handler_ns;

	(void)state;
	for (int i = 0; i < 20; i++)
		took(5000);
	agent.counters.handled += 1000;
	handler_cost_account();
	handler_cost_account();
	assert_int_equal(agent.counters.handler_ns - before_ns, 1000 * 5000);
}

static void one_in_some_is_timed_and_all_where_details_are_asked_for(void **state)
{
	int timed = 0;

	(void)state;
	assert_true(handler_is_timed_sig(0));
	for (uint64_t n = HANDLER_FIRST; n < HANDLER_FIRST + 6400; n++)
		timed += handler_is_timed_sig(n);
	assert_int_equal(timed, 100);
	handler_cost.each = true;
	assert_true(handler_is_timed_sig(HANDLER_FIRST + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_known_before_a_sample_was_timed, begin),
		cmocka_unit_test_setup(few_long_ones_do_not_count, begin),
		cmocka_unit_test_setup(long_ones_count_where_they_are_many, begin),
		cmocka_unit_test_setup(the_first_ones_count_for_their_median_at_most, begin),
		cmocka_unit_test_setup(only_recent_ones_count, begin),
		cmocka_unit_test_setup(samples_are_booked_at_what_the_timed_ones_took, begin),
		cmocka_unit_test_setup(one_in_some_is_timed_and_all_where_details_are_asked_for,
				       begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
