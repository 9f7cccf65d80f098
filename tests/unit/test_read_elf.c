#include "tests/unit/elf_tables.h"
#include "tests/unit/own_mapping.h"
#include <fcntl.h>
#include <sys/stat.h>

/* tests/fuzz/corpus/fuzz_symbols/shared.so: the C functions f and i, a C++ function, and one
 * without a size. */
static void names_are_demangled_only_when_they_are_mangled(void **state)
{
	CLEANUP(fd_closep) int fd = open(ELF_FILE, O_RDONLY | O_CLOEXEC);
	CLEANUP(freep) uint8_t *bytes = NULL;
	const struct table_entry *bare;
	struct symbol_table t;
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(read_elf(fd, NULL, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_non_null(entry_of(&t, "f"));
	assert_non_null(entry_of(&t, "i"));
	assert_null(entry_of(&t, "int"));
	assert_non_null(entry_of(&t, "shop::Cart::total(int, char const*)"));
	bare = entry_of(&t, "bare"); /* it ends with its section and does not cover what follows */
	assert_non_null(bare);
	assert_string_equal(table_find(&t, bare->offset), "bare");
	assert_true(bare->size > 0 && bare->size < 4096);
}

static void symbols_in_gnu_debugdata_are_read(void **state)
{
	uint32_t flags;

	(void)state;
	assert_true(names_the_private("mini.so", NULL, &flags));
	assert_int_equal(flags, 0);
}

/* The C library of this machine: the address to which the root frame of a new thread returns. */
static void clone3_is_known_by_its_code(void **state)
{
	static const uint8_t call[] = { 0xff, 0xd2, 0x48, 0x89, 0xc7, 0xb8, 0x3c, 0 };
	char path[1024];
	CLEANUP(freep) uint8_t *bytes = NULL, *file = NULL;
	uint64_t begin, end, offset;
	struct symbol_table t;
	struct stat st;
	size_t len;
	uint8_t *at;
	int fd;

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	if (!mapping_of((const void *)(uintptr_t)getppid, &begin, &end, &offset, path) ||
	    !strstr(path, "libc.so.6"))
		skip();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	file = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, file, (size_t)st.st_size), st.st_size);
	at = memmem(file, (size_t)st.st_size, call, sizeof(call));
	if (!at)
		skip(); /* an older library, which does not have it */
	assert_int_equal(read_elf(fd, NULL, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_string_equal(table_find(&t, (uint64_t)(at - file) + 2), "clone3");
	assert_non_null(entry_of(&t, "pthread_create"));
	fd_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_demangled_only_when_they_are_mangled),
		cmocka_unit_test(symbols_in_gnu_debugdata_are_read),
		cmocka_unit_test(clone3_is_known_by_its_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
