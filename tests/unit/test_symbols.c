#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include "daemon/core/clock.h"
#include "daemon/symbols/read_elf.h"
#include "daemon/symbols/symbols.h"
#include "daemon/symbols/table.h"
#include "daemon/symbols/tables_dir.h"

int a_function_to_be_found(int x);
__attribute__((noinline)) int a_function_to_be_found(int x)
{
	return x * 3 + 1;
}

/* Where in the file of this program the function lies, by its mapping. */
static bool mapping_of(const void *address, uint64_t *begin, uint64_t *end, uint64_t *offset,
		       char *path)
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
	uint64_t begin = 0, end = 0, offset = 0, deadline = clock_mono_ns() + 60 * NS_PER_S;
	char path[1024], dir[] = "/tmp/kindling-symbols-XXXXXX", command[64];
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	setenv("KINDLING_SYMBOLS", KINDLING_SYMBOLS, 1);
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &begin, &end,
			       &offset, path));
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
	} bytes = { { TABLE_MAGIC, 2, 8 }, { { 10, 5, 0 }, { 20, 9, 4 } }, "abc\0def" };
	struct table t;

	(void)state;
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), 0);
	assert_null(table_find(&t, 9));
	assert_string_equal(table_find(&t, 14), "abc");
	assert_null(table_find(&t, 15));
	assert_string_equal(table_find(&t, 28), "def");
	assert_null(table_find(&t, 29));
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

static const struct table_entry *entry_of(const struct table *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_entries; i++)
		if (strcmp(t->names + t->entries[i].name, name) == 0)
			return &t->entries[i];
	return NULL;
}

/* tests/fuzz/corpus/fuzz_symbols/shared.so: C functions f and i, a C++ one, one without a size. */
static void names_are_demangled_only_when_they_are_mangled(void **state)
{
	CLEANUP(fd_closep) int fd = open(ELF_FILE, O_RDONLY | O_CLOEXEC);
	CLEANUP(freep) uint8_t *bytes = NULL;
	const struct table_entry *bare;
	struct table t;
	size_t len;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(read_elf(fd, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_non_null(entry_of(&t, "f"));
	assert_non_null(entry_of(&t, "i"));
	assert_null(entry_of(&t, "int"));
	assert_non_null(entry_of(&t, "shop::Cart::total(int, char const*)"));
	bare = entry_of(&t, "bare"); /* ends with its section, does not name what follows */
	assert_non_null(bare);
	assert_string_equal(table_find(&t, bare->offset), "bare");
	assert_true(bare->size > 0 && bare->size < 4096);
}

static void make_file(int dfd, const char *name, size_t bytes, time_t used)
{
	const struct timespec times[2] = { { .tv_sec = used }, { .tv_sec = used } };
	CLEANUP(fd_closep) int fd = openat(dfd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CLEANUP(freep) char *text = calloc(1, bytes);

	assert_true(fd >= 0);
	memset(text, 'x', bytes);
	assert_int_equal(write(fd, text, bytes), bytes);
	assert_int_equal(futimens(fd, times), 0);
}

static void the_longest_unused_table_goes_first(void **state)
{
	char dir[] = "/tmp/kindling-tables-XXXXXX";
	int dfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(dfd, "new.sym", 65536, 3000);
	make_file(dfd, "old.sym", 65536, 1000);
	make_file(dfd, "other", 65536, 10); /* not ours */
	make_file(dfd, ".half.sym.tmp", 10, 10);
	tables_dir_prune(dfd, 1 << 20);
	assert_int_equal(faccessat(dfd, "old.sym", F_OK, 0), 0);
	tables_dir_prune(dfd, 100000);
	assert_int_equal(faccessat(dfd, "old.sym", F_OK, 0), -1);
	assert_int_equal(faccessat(dfd, "new.sym", F_OK, 0), 0);
	assert_int_equal(faccessat(dfd, ".half.sym.tmp", F_OK, 0), 0);
	tables_dir_sweep(dfd);
	assert_int_equal(faccessat(dfd, ".half.sym.tmp", F_OK, 0), -1);
	assert_int_equal(unlinkat(dfd, "new.sym", 0) + unlinkat(dfd, "other", 0), 0);
	close(dfd);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapped_file_gets_names_by_a_child),
		cmocka_unit_test(a_table_is_checked_before_it_is_used),
		cmocka_unit_test(names_are_demangled_only_when_they_are_mangled),
		cmocka_unit_test(the_longest_unused_table_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
