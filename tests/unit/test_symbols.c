#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include "daemon/core/clock.h"
#include "daemon/symbols/symbols.h"
#include "daemon/symbols/table.h"

int a_function_to_be_found(int x);
__attribute__((noinline)) int a_function_to_be_found(int x)
{
	return x * 3 + 1;
}

/* Where in the file of this program the function lies, by its mapping. */
static bool mapping_of(const void *address, uint64_t *begin, uint64_t *end, uint64_t *offset, char *path)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];

	while (f && fgets(line, sizeof(line), f)) {
		unsigned long long b, e, o;

		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %1000s", &b, &e, &o, path) == 4 &&
		    (uintptr_t)address >= b && (uintptr_t)address < e) {
			fclose(f);
			*begin = b;
			*end = e;
			*offset = (uintptr_t)address - b + o;
			return true;
		}
	}
	if (f)
		fclose(f);
	return false;
}

static void a_mapped_file_gets_names_by_a_child(void **state)
{
	uint64_t begin, end, offset, deadline = clock_mono_ns() + 60 * NS_PER_S;
	char path[1024], dir[] = "/tmp/kindling-symbols-XXXXXX", command[64];
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("KINDLING_SYMBOLS", KINDLING_SYMBOLS, 1);
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &begin, &end, &offset, path));
	assert_int_equal(loop_new(&loop), 0);
	for (int round = 0; round < 2; round++) { /* the second finds the table on disk */
		assert_int_equal(symbols_new(loop, dir, &s), 0);
		symbols_want(s, getpid(), begin, end, path, NULL, 0);
		while (!name && clock_mono_ns() < deadline) {
			assert_int_equal(loop_round(loop, 10 * NS_PER_MS), 0);
			name = symbols_lookup(s, getpid(), path, offset);
		}
		assert_non_null(name);
		assert_string_equal(name, "a_function_to_be_found");
		assert_null(symbols_lookup(s, getpid(), "/no/such/file", offset));
		name = NULL;
		symbols_free(s);
	}
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void a_table_is_checked_before_it_is_used(void **state)
{
	struct {
		struct table_header h;
		struct table_entry e[2];
		char names[8];
	} bytes = { { TABLE_MAGIC, 2, 8 }, { { 10, 5, 0 }, { 20, 0, 4 } }, "abc\0def" };
	struct table t;

	(void)state;
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), 0);
	assert_null(table_find(&t, 9));
	assert_string_equal(table_find(&t, 14), "abc");
	assert_null(table_find(&t, 15));
	assert_string_equal(table_find(&t, 1000), "def"); /* size 0 reaches on */
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
		cmocka_unit_test(a_mapped_file_gets_names_by_a_child),
		cmocka_unit_test(a_table_is_checked_before_it_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
