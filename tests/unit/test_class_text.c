#include "tests/unit/unit.h"
#include "daemon/profile/class_text.h"

static char buf[CLASS_TEXT_MAX];

static void arrays_are_written_as_in_a_program(void **state)
{
	(void)state;
	assert_string_equal(class_text("[B", buf), "byte[]");
	assert_string_equal(class_text("[[J", buf), "long[][]");
	assert_string_equal(class_text("[Ljava.lang.String;", buf), "java.lang.String[]");
	assert_string_equal(class_text("[[Ljava/util/Map$Entry;", buf), "java.util.Map$Entry[][]");
}

static void other_names_stay(void **state)
{
	(void)state;
	assert_string_equal(class_text("java.lang.String", buf), "java.lang.String");
	assert_string_equal(class_text("java/lang/String", buf), "java.lang.String");
	assert_string_equal(class_text("Lambda;", buf), "Lambda;");
	assert_string_equal(class_text("I", buf), "I"); /* a class may have this name */
	assert_string_equal(class_text("", buf), "");
}

static void names_that_are_no_descriptors_stay(void **state)
{
	char longer[3000];

	(void)state;
	assert_string_equal(class_text("[", buf), "[");
	assert_string_equal(class_text("[Q", buf), "[Q");
	assert_string_equal(class_text("[L;", buf), "[L;");
	assert_string_equal(class_text("[Lorg.Half", buf), "[Lorg.Half");
	memset(longer, '[', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(strlen(class_text(longer, buf)), CLASS_TEXT_MAX - 1);
	memset(longer + 1, 'x', sizeof(longer) - 4);
	memcpy(longer + sizeof(longer) - 3, "y;", 3);
	longer[1] = 'L';
	assert_int_equal(strlen(class_text(longer, buf)), CLASS_TEXT_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_are_written_as_in_a_program),
		cmocka_unit_test(other_names_stay),
		cmocka_unit_test(names_that_are_no_descriptors_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
