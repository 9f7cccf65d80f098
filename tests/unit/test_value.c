#include "tests/unit/unit.h"
#include <errno.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/value.h"

/* ns, or -errno of the parser */
static int64_t duration(const char *text)
{
	uint64_t ns = 0;
	int r = value_duration_ns(text, &ns);

	return r < 0 ? r : (int64_t)ns;
}

static void durations_have_fractions_and_several_units(void **state)
{
	static const char *const wrong[] = { "",	"1",	 "1.5",	   ".5s",  "1.s",   "1. s",    "s",
					     "1.5.5s", "30s2m", "1s 2s",   "2m30", "1h-5m", "1e3s",    "1S",
					     "1 h x",  "0x1s",	"1,5h",	   "1sm",  "1h30",  "infinity", "+1s" };

	(void)state;
	assert_int_equal(duration("10ms"), 10 * NS_PER_MS);
	assert_int_equal(duration("1.5h"), 5400 * NS_PER_S);
	assert_int_equal(duration("2m30s"), 150 * NS_PER_S);
	assert_int_equal(duration("1d 2h 3.5m"), (86400 + 7200 + 210) * NS_PER_S);
	assert_int_equal(duration("10 ms"), 10 * NS_PER_MS);
	assert_int_equal(duration("0.000000001s"), 1);
	assert_int_equal(duration("0.3333333333333333333333333333s"), 333333333);
	assert_int_equal(duration("0.9ns"), 0);
	assert_int_equal(duration("0s"), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (duration(wrong[i]) != -EINVAL)
			fail_msg("\"%s\" is not refused", wrong[i]);
	assert_int_equal(duration("213504d"), -ERANGE);
	assert_int_equal(duration("213503d 24h"), -ERANGE);
	assert_int_equal(duration("99999999999999999999s"), -ERANGE);
}

static void a_number_alone_is_seconds_where_that_is_allowed(void **state)
{
	uint64_t ns = 0;

	(void)state;
	assert_int_equal(value_length_ns("90", &ns), 0);
	assert_int_equal(ns, 90 * NS_PER_S);
	assert_int_equal(value_length_ns("1.5", &ns), 0);
	assert_int_equal(ns, 3 * NS_PER_S / 2);
	assert_int_equal(value_length_ns("2m30s", &ns), 0);
	assert_int_equal(ns, 150 * NS_PER_S);
	assert_int_equal(value_length_ns("2m30", &ns), -EINVAL);
	assert_true(value_is_bare("1.5") && value_is_bare("1"));
	assert_false(value_is_bare("1ms") || value_is_bare("") || value_is_bare("1."));
}

static void values_are_written_in_their_largest_unit(void **state)
{
	char buf[32];

	(void)state;
	assert_string_equal(value_duration_text(90 * NS_PER_S, buf), "90s");
	assert_string_equal(value_duration_text(48 * 3600 * NS_PER_S, buf), "2d");
	assert_string_equal(value_duration_text(0, buf), "0ns");
	assert_string_equal(value_bytes_text(3ull << 30, buf), "3GiB");
	assert_string_equal(value_bytes_text(1025, buf), "1025B");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_fractions_and_several_units),
		cmocka_unit_test(a_number_alone_is_seconds_where_that_is_allowed),
		cmocka_unit_test(values_are_written_in_their_largest_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
