#include <stdio.h>
#include "tests/unit/unit.h"
#include "daemon/discovery/filter.h"

static const char *call;

static enum filter_effect of_bundle(const char *seccomp)
{
	char text[2048];

	call = "";
	snprintf(text, sizeof(text), "{\"linux\":{\"seccomp\":%s}}", seccomp);
	return filter_of_bundle(text, strlen(text), &call);
}

static void a_profile_that_allows_or_fails_calls_is_harmless(void **state)
{
	(void)state;
	assert_int_equal(of_bundle("{\"defaultAction\":\"SCMP_ACT_ERRNO\"}"), FILTER_HARMLESS);
	assert_int_equal(
		of_bundle("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":["
			  "\"reboot\"],\"action\":\"SCMP_ACT_KILL\"}]}"),
		FILTER_HARMLESS);
}

static void the_call_that_ends_the_process_is_named(void **state)
{
	(void)state;
	assert_int_equal(
		of_bundle("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":["
			  "\"reboot\",\"timer_create\"],\"action\":\"SCMP_ACT_TRAP\"}]}"),
		FILTER_DEADLY);
	assert_string_equal(call, "timer_create");
	assert_int_equal(of_bundle("{\"defaultAction\":\"SCMP_ACT_KILL_PROCESS\"}"), FILTER_DEADLY);
}

static void rules_for_arguments_hold_for_those_alone(void **state)
{
	static const char rule[] =
		"{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":[{\"names\":["
		"\"prctl\"],\"action\":\"SCMP_ACT_KILL\",\"args\":[%s]}]}";
	char text[400];

	(void)state;
	snprintf(text, sizeof(text), rule, "{\"index\":0,\"value\":38,\"op\":\"SCMP_CMP_EQ\"}");
	assert_int_equal(of_bundle(text), FILTER_HARMLESS); /* PR_SET_NO_NEW_PRIVS */
	snprintf(text, sizeof(text), rule, "{\"index\":0,\"value\":15,\"op\":\"SCMP_CMP_EQ\"}");
	assert_int_equal(of_bundle(text), FILTER_DEADLY); /* PR_SET_NAME */
	snprintf(text, sizeof(text), rule,
		 "{\"index\":0,\"value\":38,\"op\":\"SCMP_CMP_EQ\"},"
		 "{\"index\":0,\"value\":16,\"op\":\"SCMP_CMP_EQ\"}");
	assert_int_equal(of_bundle(text), FILTER_DEADLY); /* of one argument any */
	snprintf(text, sizeof(text), rule,
		 "{\"index\":0,\"value\":15,\"op\":\"SCMP_CMP_EQ\"},"
		 "{\"index\":1,\"value\":1,\"op\":\"SCMP_CMP_EQ\"}");
	assert_int_equal(of_bundle(text), FILTER_HARMLESS); /* of several all */
	snprintf(text, sizeof(text), rule,
		 "{\"index\":0,\"value\":4294967280,\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"}");
	assert_int_equal(of_bundle(text), FILTER_DEADLY);
}

static void filters_that_are_not_certain_are_unknown(void **state)
{
	(void)state;
	assert_int_equal(of_bundle("null"), FILTER_UNKNOWN);
	assert_int_equal(of_bundle("{}"), FILTER_UNKNOWN);
	assert_int_equal(of_bundle("7"), FILTER_UNKNOWN);
	assert_int_equal(of_bundle("{\"defaultAction\":\"SCMP_ACT_NEW\"}"), FILTER_UNKNOWN);
	assert_int_equal(filter_of_bundle("{", 1, &call), FILTER_UNKNOWN);
	/* rules that disagree */
	assert_int_equal(of_bundle("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"syscalls\":["
				   "{\"names\":[\"tgkill\"],\"action\":\"SCMP_ACT_KILL\"},"
				   "{\"names\":[\"tgkill\"],\"action\":\"SCMP_ACT_ALLOW\"}]}"),
			 FILTER_UNKNOWN);
	/* but one deadly filter is enough */
	assert_int_equal(of_bundle("{\"defaultAction\":\"SCMP_ACT_NEW\",\"syscalls\":["
				   "{\"names\":[\"pipe2\"],\"action\":\"SCMP_ACT_KILL\"}]}"),
			 FILTER_DEADLY);
}

static enum filter_effect of_unit(const char *text)
{
	call = "";
	return filter_of_unit(text, &call);
}

#define ALL                                                                                       \
	"eventfd2 getdents64 pipe2 prctl process_vm_readv read tgkill timer_create timer_delete " \
	"timer_settime write"

static void a_unit_that_lists_all_calls_is_harmless(void **state)
{
	(void)state;
	assert_int_equal(of_unit("SystemCallErrorNumber=2147483646\nSystemCallFilter=" ALL "\n"),
			 FILTER_HARMLESS);
	assert_int_equal(of_unit("SystemCallFilter=read write\nSystemCallErrorNumber=1\n"),
			 FILTER_HARMLESS);
	assert_int_equal(of_unit("SystemCallFilter=~reboot timer_create:EPERM timer_created\n"),
			 FILTER_HARMLESS);
}

static void a_unit_that_ends_one_is_deadly(void **state)
{
	(void)state;
	assert_int_equal(of_unit("SystemCallFilter=read write\nSystemCallErrorNumber=2147483646\n"),
			 FILTER_DEADLY);
	assert_string_equal(call, "timer_create");
	assert_int_equal(of_unit("SystemCallFilter=~reboot tgkill\n"), FILTER_DEADLY);
	assert_string_equal(call, "tgkill");
	assert_int_equal(of_unit("SystemCallFilter=~tgkill:kill\nSystemCallErrorNumber=1\n"),
			 FILTER_DEADLY);
}

static void a_unit_without_a_filter_says_nothing(void **state)
{
	(void)state;
	assert_int_equal(of_unit(""), FILTER_UNKNOWN);
	assert_int_equal(of_unit("SystemCallFilter=\nSystemCallErrorNumber=0\n"), FILTER_UNKNOWN);
}

static void a_service_is_named_by_its_cgroup(void **state)
{
	char unit[64];

	(void)state;
	assert_true(filter_unit_name("12:pids:/system.slice/shop.service\n0::/x\n", unit, 64));
	assert_string_equal(unit, "shop.service");
	assert_true(filter_unit_name("0::/system.slice/a@b\\x2dc.service", unit, 64));
	assert_string_equal(unit, "a@b\\x2dc.service");
	assert_false(filter_unit_name("0::/user.slice/session-1.scope\n", unit, 64));
	assert_false(filter_unit_name("0::/system.slice/.service\n", unit, 64));
	assert_false(filter_unit_name("0::/system.slice/-x.service\n", unit, 64));
	assert_false(filter_unit_name("0::/system.slice/a b.service\n", unit, 64));
	assert_false(
		filter_unit_name("0::/s/0123456789012345678901234567890123456789012345678901234"
				 "56789.service\n",
				 unit, 64));
	assert_false(filter_unit_name("", unit, 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_profile_that_allows_or_fails_calls_is_harmless),
		cmocka_unit_test(the_call_that_ends_the_process_is_named),
		cmocka_unit_test(rules_for_arguments_hold_for_those_alone),
		cmocka_unit_test(filters_that_are_not_certain_are_unknown),
		cmocka_unit_test(a_unit_that_lists_all_calls_is_harmless),
		cmocka_unit_test(a_unit_that_ends_one_is_deadly),
		cmocka_unit_test(a_unit_without_a_filter_says_nothing),
		cmocka_unit_test(a_service_is_named_by_its_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
