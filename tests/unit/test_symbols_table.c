#include "tests/unit/unit.h"
#include "daemon/symbols/table.h"
#include <errno.h>

static void a_table_is_checked_before_it_is_used(void **state)
{
	struct {
		struct table_header h;
		struct table_entry e[2];
		char names[8];
	} bytes = { { TABLE_MAGIC, 2, 8, 0, 0 }, { { 10, 5, 0 }, { 20, 9, 4 } }, "abc\0def" };
	struct symbol_table t;

	(void)state;
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), 0);
	assert_null(table_find(&t, 9));
	assert_string_equal(table_find(&t, 14), "abc");
	/* the code after a call that never returns */
	assert_string_equal(table_find(&t, 15), "abc");
	assert_null(table_find(&t, 16));
	assert_string_equal(table_find(&t, 28), "def");
	assert_null(table_find(&t, 30));
	assert_int_equal(table_check(&bytes, sizeof(bytes) - 1, &t), -EBADMSG);
	bytes.e[1].name = 8;
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), -EBADMSG);
	bytes.e[1].name = 4;
	bytes.e[1].offset = 3;
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), -EBADMSG);
	bytes.e[1].offset = 20;
	bytes.names[7] = 'x';
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_checked_before_it_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
