#include "tests/unit/unit.h"
#include "daemon/host/memory.h"

#define LIMIT 1000

static void a_small_target_is_never_evicted(void **state)
{
	const struct memory_use uses[] = { { 1, 250 }, { 2, 100 }, { 1, 100 } };

	(void)state;
	assert_int_equal(memory_over(uses, 0, 10000, LIMIT), -1);
	assert_int_equal(memory_over(uses, 3, 0, LIMIT), -1);
	/* shared bytes count by half at most */
	assert_int_equal(memory_over(uses, 3, 10000, LIMIT), -1);
}

static void one_takes_a_quarter_at_most(void **state)
{
	const struct memory_use uses[] = { { 1, 10 }, { 2, 251 } };

	(void)state;
	assert_int_equal(memory_over(uses, 2, 0, LIMIT), 1);
	assert_int_equal(memory_over(uses + 1, 1, 0, LIMIT), 0);
}

static void a_tenant_takes_half_at_most_beside_others(void **state)
{
	const struct memory_use uses[] = { { 1, 240 }, { 1, 200 }, { 1, 61 }, { 2, 1 } };

	(void)state;
	assert_int_equal(memory_over(uses, 3, 0, LIMIT), -1);
	assert_int_equal(memory_over(uses, 4, 0, LIMIT), 0);
}

static void of_all_the_tenant_that_takes_most_gives_up(void **state)
{
	const struct memory_use uses[] = {
		{ 1, 249 }, { 2, 240 }, { 2, 241 }, { 3, 200 }, { 1, 71 }
	};

	(void)state;
	assert_int_equal(memory_over(uses, 5, 0, LIMIT), 2); /* not the largest of all */
	assert_int_equal(memory_over(uses, 4, 0, LIMIT), -1);
	assert_int_equal(memory_over(uses, 4, 71, LIMIT), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_target_is_never_evicted),
		cmocka_unit_test(one_takes_a_quarter_at_most),
		cmocka_unit_test(a_tenant_takes_half_at_most_beside_others),
		cmocka_unit_test(of_all_the_tenant_that_takes_most_gives_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
