#include "tests/unit/unit.h"
#include "daemon/discovery/name.h"

#define NAME(exe, args) name_of(exe, args, sizeof(args) - 1)

static const char *name_of(const char *exe, const char *cmdline, size_t len)
{
	static char name[256];

	jvm_name(cmdline, len, exe, "comm", name, sizeof(name));
	return name;
}

static void a_main_class_stands_after_the_options(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", "java\0com.example.Main\0a\0b\0"), "com.example.Main");
	assert_string_equal(NAME("java", "/usr/bin/java\0-Xmx1g\0-Dx=y z\0-server\0Main\0"),
			    "Main");
	assert_string_equal(NAME("java", "java\0com/example/Main\0"), "com.example.Main");
	assert_string_equal(NAME("java", "java\0Main"), "Main"); /* no NUL at the end */
}

static void options_that_take_a_value_do_not_hide_it(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", "java\0-cp\0/a.jar:/b\0Main\0"), "Main");
	assert_string_equal(NAME("java", "java\0-classpath\0x\0--class-path\0y\0Main\0"), "Main");
	assert_string_equal(NAME("java", "java\0--class-path=x\0Main\0"), "Main");
	assert_string_equal(NAME("java", "java\0-p\0m\0--add-modules\0ALL\0-cp\0x\0Main\0"),
			    "Main");
	assert_string_equal(NAME("java", "java\0--add-opens\0java.base/java.lang=ALL\0Main\0"),
			    "Main");
	assert_string_equal(NAME("java", "java\0--add-opens=a/b=ALL\0--enable-native-access\0m\0"
					 "--upgrade-module-path\0u\0--limit-modules\0l\0"
					 "--patch-module\0p=q\0--source\0"
					 "21\0Main\0"),
			    "Main");
}

static void a_jar_is_called_by_its_file(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", "java\0-Xmx1g\0-jar\0/opt/app/app-1.2.jar\0--port\0"
					 "1\0"),
			    "app-1.2.jar");
	assert_string_equal(NAME("java", "java\0-cp\0-jar\0Main\0"), "Main");
}

static void a_module_is_called_by_its_class(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", "java\0-p\0mods\0-m\0com.m/com.m.Main\0x\0"),
			    "com.m.Main");
	assert_string_equal(NAME("java", "java\0--module\0com.m\0"), "com.m");
	assert_string_equal(NAME("java", "java\0--module=com.m/com.m.Main\0"), "com.m.Main");
}

static void a_source_file_is_called_by_its_name(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", "java\0--source\0"
					 "21\0/src/Hello.java\0"),
			    "Hello.java");
}

static void files_of_arguments_are_passed_over(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", "java\0@/etc/opts\0-ea\0Main\0"), "Main");
	assert_string_equal(NAME("java", "java\0@/etc/all\0"), "comm");
}

static void a_program_with_its_own_jvm_is_called_by_its_file(void **state)
{
	(void)state;
	assert_string_equal(NAME("jsvc", "jsvc.exec\0-cp\0x\0Main\0"), "jsvc");
	assert_string_equal(NAME("javac", "javac\0A.java\0"), "javac");
	/* with `exec -a` argv[0] is not "java" although the program is, or the other way round */
	assert_string_equal(NAME("java", "my-service\0-jar\0x.jar\0"), "x.jar");
	assert_string_equal(NAME("java17", "/opt/java\0Main\0"), "Main");
}

static void nothing_to_read_gives_the_name_of_the_process(void **state)
{
	(void)state;
	assert_string_equal(NAME("java", ""), "comm");
	assert_string_equal(NAME("", ""), "comm");
	assert_string_equal(NAME("java", "java\0-jar\0"), "comm");
	assert_string_equal(NAME("java", "java\0-cp\0"), "comm");
	assert_string_equal(NAME("java", "\0\0\0"), "comm");
	assert_string_equal(NAME("java", "java\0-m\0/\0"), "/");
}

static void a_hostile_name_is_made_printable(void **state)
{
	char args[600] = "java";

	(void)state;
	assert_string_equal(NAME("java", "java\0\x1b[2Jevil\xff\0"), "?[2Jevil?");
	memset(args + 5, 'x', 500);
	assert_int_equal(strlen(name_of("java", args, sizeof(args))), 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_main_class_stands_after_the_options),
		cmocka_unit_test(options_that_take_a_value_do_not_hide_it),
		cmocka_unit_test(a_jar_is_called_by_its_file),
		cmocka_unit_test(a_module_is_called_by_its_class),
		cmocka_unit_test(a_source_file_is_called_by_its_name),
		cmocka_unit_test(files_of_arguments_are_passed_over),
		cmocka_unit_test(a_program_with_its_own_jvm_is_called_by_its_file),
		cmocka_unit_test(nothing_to_read_gives_the_name_of_the_process),
		cmocka_unit_test(a_hostile_name_is_made_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
