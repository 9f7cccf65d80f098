#include "tests/unit/unit.h"
#include "daemon/target/gathering.h"

static void receivers_gather_also_for_few_jvms(void **state)
{
	(void)state;
	for (unsigned busy = 0; busy < 40; busy++)
		assert_int_equal(gathering_choose(0, busy), gathering_choose(0, 0));
	assert_true(gathering_choose(0, 0) > 0);
}

static void receivers_of_many_busy_jvms_gather_longer(void **state)
{
	uint32_t ms = gathering_choose(0, 10), longer = gathering_choose(ms, 40);

	(void)state;
	assert_true(longer > ms);
	assert_int_equal(gathering_choose(ms, 39), ms);
	assert_int_equal(gathering_choose(0, 119), longer);
	assert_true(gathering_choose(longer, 120) > longer);
	assert_int_equal(gathering_choose(0, 1000), gathering_choose(longer, 120));
}

static void one_jvm_more_or_less_does_not_change_it_each_second(void **state)
{
	uint32_t ms = gathering_choose(0, 10), longer = gathering_choose(ms, 40), most;

	(void)state;
	assert_int_equal(gathering_choose(longer, 39), longer);
	assert_int_equal(gathering_choose(longer, 32), longer);
	assert_int_equal(gathering_choose(longer, 31), ms);
	most = gathering_choose(longer, 120);
	assert_int_equal(gathering_choose(most, 96), most);
	assert_int_equal(gathering_choose(most, 95), longer);
	assert_int_equal(gathering_choose(most, 31), ms);
	assert_int_equal(gathering_choose(longer, 119), longer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(receivers_gather_also_for_few_jvms),
		cmocka_unit_test(one_jvm_more_or_less_does_not_change_it_each_second),
		cmocka_unit_test(receivers_of_many_busy_jvms_gather_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
