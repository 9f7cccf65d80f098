#include "tests/unit/unit.h"
#include <errno.h>
#include "injector/inject.h"

static int check(const char *reply, struct fault *f)
{
	memset(f, 0, sizeof(*f));
	return reply_check_load(reply, f);
}

static void success_of_every_version_is_known(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(check("0\n0\n", &f), 0); /* JDK 8 */
	assert_int_equal(check("0\nreturn code: 0\n", &f), 0);
}

static void a_failure_that_begins_with_0_is_a_failure(void **state)
{
	struct fault f;

	(void)state;
	assert_true(
		check("0\n/tmp/a.so was not loaded.\n/tmp/a.so: failed to map segment from shared object\n",
		      &f) < 0);
	assert_string_equal(f.what, "/tmp in the JVM's container is mounted noexec");
	assert_true(check("0\nreturn code: 7\n", &f) < 0);
	assert_true(check("", &f) < 0);
	assert_true(check("-1\n", &f) < 0);
}

static void temporary_and_lasting_failures_differ(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(
		check("0\nDynamic agent loading is only permitted in the live phase\n", &f),
		-EAGAIN);
	assert_int_equal(f.flags, FAULT_RETRY_SOON);
	assert_int_equal(check("0\nDynamic agent loading is not enabled. Use -XX...\n", &f),
			 -EPERM);
	assert_int_equal(f.flags, FAULT_PERMANENT);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
	struct fault f;

	(void)state;
	assert_true(check("-1\n\x1b[31mred\n", &f) < 0);
	assert_null(strchr(f.what, 0x1b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(success_of_every_version_is_known),
		cmocka_unit_test(a_failure_that_begins_with_0_is_a_failure),
		cmocka_unit_test(temporary_and_lasting_failures_differ),
		cmocka_unit_test(control_characters_do_not_reach_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
