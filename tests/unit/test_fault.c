#include "tests/unit/unit.h"
#include <errno.h>
#include "daemon/ground/fault.h"

static void the_first_fault_wins(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(fault_set(&f, EACCES, FAULT_NAMESPACE, "open ns/mnt of pid %d: ", 7), -EACCES);
	assert_int_equal(fault_set(&f, EIO, FAULT_SOCKET, "later"), -EIO);
	assert_int_equal(f.code, EACCES);
	assert_int_equal(f.step, FAULT_NAMESPACE);
	assert_string_equal(f.what, "open ns/mnt of pid 7: Permission denied");
	assert_string_equal(fault_step_name(f.step), "namespace");
}

static void a_long_sentence_is_cut_not_overrun(void **state)
{
	struct fault f = { 0 };
	char word[400];

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	fault_set(&f, EIO, FAULT_NONE, "%s: ", word);
	assert_int_equal(strlen(f.what), sizeof(f.what) - 1);
	assert_string_equal(fault_step_name(9999), "unknown");
}

static void a_sentence_is_not_cut_inside_a_character(void **state)
{
	struct fault f = { 0 };
	char word[400] = "x";

	(void)state;
	for (size_t i = 1; i + 2 < sizeof(word); i += 2)
		memcpy(word + i, "\xc3\xa4", 3);
	fault_set(&f, EIO, FAULT_NONE, "%s", word);
	assert_int_equal(strlen(f.what), sizeof(f.what) - 1);
	f.code = 0;
	fault_set(&f, EIO, FAULT_NONE, "a%s", word);
	assert_int_equal(strlen(f.what), sizeof(f.what) - 2);
	f.code = 0;
	fault_set(&f, EIO, FAULT_NONE, "command \"%.4s\"", word);
	assert_string_equal(f.what, "command \"x\xc3\xa4\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_fault_wins),
		cmocka_unit_test(a_long_sentence_is_cut_not_overrun),
		cmocka_unit_test(a_sentence_is_not_cut_inside_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
