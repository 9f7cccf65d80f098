#include "tests/unit/unit.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/clock.h"

#define NOW 1700000000ull /* 2023-11-14 22:13:20 UTC */

static void lengths_have_units_and_seconds_need_none(void **state)
{
	uint64_t ns = 0;

	(void)state;
	assert_true(parse_length("30", &ns));
	assert_int_equal(ns, 30 * NS_PER_S);
	assert_true(parse_length("10ms", &ns));
	assert_int_equal(ns, 10 * NS_PER_MS);
	assert_true(parse_length("1.5h", &ns));
	assert_int_equal(ns, 5400 * NS_PER_S);
	assert_true(parse_length("2m", &ns));
	assert_int_equal(ns, 120 * NS_PER_S);
}

static void no_length_is_refused(void **state)
{
	static const char *const wrong[] = { "", "0", "0s", "-1s", "1x", "s", "ten", "99999999999999999999",
					     "11111111111111111111111111111111111", "1s 2s" };
	uint64_t ns = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(parse_length(wrong[i], &ns));
	assert_int_equal(ns, 7);
}

static void an_interval_needs_its_unit(void **state)
{
	uint64_t ns = 7;
	char why[64];

	(void)state;
	assert_int_equal(parse_interval("1", &ns, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "1 has no unit: 1ms?");
	assert_int_equal(parse_interval("1x", &ns, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "");
	assert_int_equal(ns, 7);
	assert_int_equal(parse_interval("1.5ms", &ns, why, sizeof(why)), 0);
	assert_int_equal(ns, 1500000);
}

static uint64_t moment(const char *s)
{
	uint64_t ns = 0;

	assert_true(parse_moment(s, NOW * NS_PER_S, &ns));
	assert_int_equal(ns % NS_PER_S, 0);
	return ns / NS_PER_S;
}

static void moments_are_seconds_or_dates(void **state)
{
	(void)state;
	assert_int_equal(moment("@1700000000"), NOW);
	assert_int_equal(moment("2023-11-14 22:13:20"), NOW);
	assert_int_equal(moment("2023-11-14T22:13:20"), NOW);
	assert_int_equal(moment("2023-11-14 22:13"), NOW - 20);
}

static void seconds_may_have_a_fraction(void **state)
{
	static const char *const same[] = { "@1700000000.25", "22:13:20.25", "2023-11-14 22:13:20.250000000" };
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		assert_true(parse_moment(same[i], (NOW + 1) * NS_PER_S, &ns));
		assert_int_equal(ns, NOW * NS_PER_S + NS_PER_S / 4);
	}
}

static void a_time_of_day_is_the_last_such(void **state)
{
	(void)state;
	assert_int_equal(moment("22:13:20"), NOW);
	assert_int_equal(moment("22:13"), NOW - 20);
	assert_int_equal(moment("22:14"), NOW + 40 - 24 * 3600);
	assert_int_equal(moment("00:00"), NOW - (22 * 3600 + 13 * 60 + 20));
}

static void moments_are_local_time_also_when_clocks_change(void **state)
{
	uint64_t ns;

	(void)state;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_int_equal(moment("2023-07-01 02:00"), 1688169600);
	/* noon of the day on which summer ended */
	assert_true(parse_moment("09:00", 1698577200 * NS_PER_S, &ns));
	assert_int_equal(ns / NS_PER_S, 1698577200 - 3 * 3600);
	/* an hour more has passed since noon of the day before */
	assert_true(parse_moment("12:01", 1698577200 * NS_PER_S, &ns));
	assert_int_equal(ns / NS_PER_S, 1698577200 - 25 * 3600 + 60);
	setenv("TZ", "UTC", 1);
	tzset();
}

static void no_moment_is_refused(void **state)
{
	static const char *const wrong[] = { "", "@", "@x", "@1.", "@1.x", "@.5", "14:05.5", "@1.0000000001", "@-1", "now", "25:00", "14:05x", "2023-13-01 10:00",
					     "2023-11-14", "1969-12-31 10:00",
					     "9999-01-01 00:00" };
	uint64_t ns = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (parse_moment(wrong[i], NOW * NS_PER_S, &ns))
			fail_msg("%s", wrong[i]);
	assert_int_equal(ns, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_have_units_and_seconds_need_none),
		cmocka_unit_test(no_length_is_refused),
		cmocka_unit_test(an_interval_needs_its_unit),
		cmocka_unit_test(moments_are_seconds_or_dates),
		cmocka_unit_test(seconds_may_have_a_fraction),
		cmocka_unit_test(a_time_of_day_is_the_last_such),
		cmocka_unit_test(moments_are_local_time_also_when_clocks_change),
		cmocka_unit_test(no_moment_is_refused),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
