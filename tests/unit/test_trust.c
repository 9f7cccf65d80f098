#include "tests/unit/unit.h"
#include "daemon/ground/trust.h"

static void test_the_first_that_is_there(void **state)
{
	const char *const files[] = { "/nowhere/a.crt", "/proc/self/status", "/dev/null", NULL };
	const char *const none[] = { "/nowhere/a.crt", NULL };

	(void)state;
	assert_string_equal(trust_first(files), "/proc/self/status");
	assert_null(trust_first(none));
	assert_null(trust_first(none + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_first_that_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
