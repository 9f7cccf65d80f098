#include "tests/unit/unit.h"
#include "injector/inject.h"

static int flag(const char *list, const char *name)
{
	return preflight_flag(list, strlen(list), name);
}

static void the_last_flag_wins_and_longer_names_do_not_count(void **state)
{
	static const char line[] = "java\0-XX:+DisableAttachMechanism\0-XX:-DisableAttachMechanism\0Main";

	(void)state;
	assert_int_equal(flag("-XX:+DisableAttachMechanism", "DisableAttachMechanism"), 1);
	assert_int_equal(flag("-XX:+DisableAttachMechanismX", "DisableAttachMechanism"), -1);
	assert_int_equal(flag("'-XX:-EnableDynamicAgentLoading' -Xmx1g", "EnableDynamicAgentLoading"), 0);
	assert_int_equal(flag("-XX:", "DisableAttachMechanism"), -1);
	assert_int_equal(preflight_flag(line, sizeof(line) - 1, "DisableAttachMechanism"), 0);
}

static void stat_is_read_behind_the_last_bracket(void **state)
{
	static const char stat[] = "42 (a) S (b) R 1 42 42 0 -1 4194304 1 0 0 0 1 2 0 0 20 0 9 0 987654 1 2";

	(void)state;
	assert_int_equal(proc_state(stat), 'R');
	assert_int_equal(proc_start_time(stat), 987654);
	assert_int_equal(proc_start_time("42 (x"), 0);
	assert_int_equal(proc_start_time("42 (x) S 1"), 0);
}

static void signal_masks_are_hexadecimal(void **state)
{
	static const char status[] = "Name:\tjava\nSigCgt:\t0000000181005ccf\nShdPnd:\t0000000000000004\n";
	char text[16];

	(void)state;
	assert_true(proc_signal_mask(status, "SigCgt:") & 1ull << 2); /* SIGQUIT is 3 */
	assert_int_equal(proc_signal_mask(status, "ShdPnd:"), 4);
	assert_int_equal(proc_signal_mask(status, "SigPnd:"), 0);
	assert_true(proc_status_field(status, "Name:", text, sizeof(text)));
	assert_string_equal(text, "java");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_flag_wins_and_longer_names_do_not_count),
		cmocka_unit_test(stat_is_read_behind_the_last_bracket),
		cmocka_unit_test(signal_masks_are_hexadecimal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
