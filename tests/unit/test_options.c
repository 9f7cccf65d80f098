#include "tests/unit/unit.h"
#include "injector/inject.h"

#define LIST(text) text, sizeof(text) - 1

static struct options read_both(const char *cmdline, size_t len, const char *environ, size_t n)
{
	struct options o = OPTIONS_NULL;

	options_read(&o, cmdline, len, environ, n);
	return o;
}

static void the_last_flag_wins_and_longer_names_do_not_count(void **state)
{
	(void)state;
	assert_int_equal(
		options_flag(LIST("-XX:+DisableAttachMechanism"), "DisableAttachMechanism"), 1);
	assert_int_equal(
		options_flag(LIST("-XX:+DisableAttachMechanismX"), "DisableAttachMechanism"), -1);
	assert_int_equal(options_flag(LIST("'-XX:-EnableDynamicAgentLoading' -Xmx1g"),
				      "EnableDynamicAgentLoading"),
			 0);
	assert_int_equal(options_flag(LIST("-XX:"), "DisableAttachMechanism"), -1);
	assert_int_equal(options_flag(LIST("java\0-XX:+DisableAttachMechanism\0"
					   "-XX:-DisableAttachMechanism\0Main"),
				      "DisableAttachMechanism"),
			 0);
}

static void variables_are_read_in_the_order_of_the_jvm(void **state)
{
	struct options o;

	(void)state;
	o = read_both(LIST("java\0-XX:-DisableAttachMechanism\0Main"),
		      LIST("A=b\0JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism\0"));
	assert_int_equal(o.disable_attach, 0);
	o = read_both(LIST("java\0-XX:-DisableAttachMechanism\0Main"),
		      LIST("_JAVA_OPTIONS=-Xmx1g -XX:+DisableAttachMechanism\0"));
	assert_int_equal(o.disable_attach, 1);
	o = read_both(LIST("java\0Main"),
		      LIST("JDK_JAVA_OPTIONS=-XX:-EnableDynamicAgentLoading -Xrs\0"));
	assert_int_equal(o.dynamic_loading, 0);
	assert_true(o.xrs);
	assert_int_equal(o.disable_attach, -1);
	o = read_both(LIST("java\0Main"), LIST("NOT_JAVA_TOOL_OPTIONS=-Xrs\0"));
	assert_false(o.xrs);
}

static void arguments_of_the_application_do_not_count(void **state)
{
	struct options o;

	(void)state;
	o = read_both(LIST("/usr/bin/java\0-cp\0-Xrs.jar\0Main\0-XX:+DisableAttachMechanism\0-Xrs"),
		      "", 0);
	assert_int_equal(o.disable_attach, -1);
	assert_false(o.xrs);
	o = read_both(LIST("java\0-jar\0app.jar\0-XX:-EnableDynamicAgentLoading"), "", 0);
	assert_int_equal(o.dynamic_loading, -1);
	/* with another launcher it is unknown where the launcher's own words end */
	o = read_both(LIST("jsvc\0-user\0tomcat\0-XX:+DisableAttachMechanism"), "", 0);
	assert_int_equal(o.disable_attach, 1);
	/* a command line that was cut, or is empty, is read up to its end and no further */
	o = read_both(LIST("java\0-cp"), "", 0);
	assert_int_equal(o.disable_attach, -1);
	o = read_both("", 0, "", 0);
	assert_false(o.xrs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_flag_wins_and_longer_names_do_not_count),
		cmocka_unit_test(variables_are_read_in_the_order_of_the_jvm),
		cmocka_unit_test(arguments_of_the_application_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
