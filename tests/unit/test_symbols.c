#include "tests/unit/symbols_asked.h"
#include "tests/unit/elf_tables.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/warden.h"
#include "daemon/symbols/tables_dir.h"

/* Resident bytes of the mappings of files below @dir. */
static size_t resident_below(const char *dir)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[1024], path[1001];
	bool below = false;
	unsigned long begin, end, kib;
	size_t bytes = 0;
	int n;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		n = sscanf(line, "%lx-%lx %*s %*s %*s %*s %1000s", &begin, &end, path);
		if (n >= 2) /* the line of a mapping */
			below = n == 3 && strncmp(path, dir, strlen(dir)) == 0;
		else if (below && sscanf(line, "Rss: %lu", &kib) == 1)
			bytes += kib << 10;
	}
	fclose(f);
	return bytes;
}

/* How many mappings of files below @dir there are, removed ones too. */
static unsigned mappings_below(const char *dir)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, dir) != NULL;
	fclose(f);
	return n;
}

static void a_mapped_file_gets_names_by_a_child(void **state)
{
	const struct symbols_process self = { getpid(), 7, "uid-1" };
	uint64_t begin = 0, end = 0, offset = 0, deadline = clock_mono_ns() + 60 * NS_PER_S;
	char path[1024], dir[] = "/tmp/kindling-symbols-XXXXXX", command[64];
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &begin, &end,
			       &offset, path));
	assert_int_equal(loop_new(&loop), 0);
	for (int round = 0; round < 2; round++) { /* the second process finds the table on disk */
		start(loop, dir, &s);
		symbols_want(s, &self, begin, end, path, NULL, 0);
		while (!name && clock_mono_ns() < deadline) {
			go_round(loop, s);
			name = symbols_lookup(s, getpid(), 7, path, offset);
		}
		assert_non_null(name);
		assert_string_equal(name, "a_function_to_be_found");
		assert_null(symbols_lookup(s, getpid(), 7, "/no/such/file", offset));
		assert_null(symbols_lookup(s, getpid(), 8, path, offset)); /* the number's next */
		assert_in_range(resident_below(dir), 1, SIZE_MAX);
		symbols_give_back(s);
		assert_int_equal(resident_below(dir), 0);
		assert_string_equal(name, "a_function_to_be_found");
		name = NULL;
		symbols_free(s);
	}
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void the_vdso_has_names(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S, begin, end, offset;
	uint64_t address = getauxval(AT_SYSINFO_EHDR);
	char dir[] = "/tmp/kindling-symbols-XXXXXX", command[64], path[1024];
	const struct symbols_process self = { getpid(), 7, "uid-1" }, other = { 1, 7, "uid-2" };
	static const uint8_t wrong_id[20];
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;
	bool seen = false;

	(void)state;
	if (!address || !mapping_of((const void *)(uintptr_t)address, &begin, &end, &offset, path))
		skip();
	assert_string_equal(path, "[vdso]");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(loop_new(&loop), 0);
	start(loop, dir, &s);
	symbols_want(s, &other, begin, end, path, wrong_id, sizeof(wrong_id));
	symbols_want(s, &self, begin, end, path, NULL, 0);
	while (!seen && clock_mono_ns() < deadline) {
		go_round(loop, s);
		for (uint64_t at = 0; at < end - begin && !seen; at += 16) {
			name = symbols_lookup(s, getpid(), 7, path, at);
			seen = name && strcmp(name, "__vdso_clock_gettime") == 0;
			assert_null(symbols_lookup(s, 1, 7, path, at));
		}
	}
	assert_true(seen);
	symbols_free(s);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static void one_target_s_mappings_are_its_own_trouble(void **state)
{
	const struct symbols_process hostile = { getpid(), 1, "uid-1" },
				     honest = { getpid(), 2, "uid-2" };
	char dir[] = "/tmp/kindling-symbols-XXXXXX", command[64], path[1024], other[64];
	uint64_t begin, end, offset, deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct symbols_counts counts;
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &begin, &end,
			       &offset, path));
	assert_int_equal(loop_new(&loop), 0);
	start(loop, dir, &s);
	for (int i = 0; i < 4200; i++) {
		snprintf(other, sizeof(other), "/lib/%d.so", i);
		symbols_want(s, &hostile, begin, end, other, NULL, 0);
	}
	symbols_counts(s, &counts);
	assert_in_range(counts.refused, 3000, 4200);
	symbols_want(s, &honest, begin, end, path, NULL, 0);
	while (!name && clock_mono_ns() < deadline) {
		go_round(loop, s);
		name = symbols_lookup(s, getpid(), 2, path, offset);
	}
	assert_non_null(name);
	symbols_end(s, getpid(), 2); /* the frames of its last window have no names yet */
	assert_non_null(symbols_lookup(s, getpid(), 2, path, offset));
	symbols_free(s);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Maps @name of the two libraries that have one build-id and are both @bytes long. */
static uint64_t map_library(const char *dir, const char *name, size_t bytes, char *path,
			    size_t size)
{
	char command[900];
	void *p;
	int fd;

	snprintf(path, size, "%s/%s", dir, name);
	snprintf(command, sizeof(command), "cp %s/%s %s", STRIPPED, name, path);
	assert_int_equal(system(command), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
	p = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	close(fd);
	return (uintptr_t)p;
}

/* The offset at which @function is in the library at @path. */
static uint64_t offset_of(const char *path, const char *function)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct symbol_table t;
	size_t len;

	assert_int_equal(read_elf(fd, NULL, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_non_null(entry_of(&t, function));
	return entry_of(&t, function)->offset;
}

#define LIBRARY_BYTES (64u << 10)

/* A tenant's file that claims the build-id, size and path of another tenant's gives names only
 * to its own frames, also after a restart; equal tables of two tenants are one file. */
static void a_build_id_is_not_believed(void **state)
{
	static const uint8_t id[] = { 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89 };
	const struct symbols_process hostile = { getpid(), 1, "uid-1" },
				     honest = { getpid(), 2, "uid-2" },
				     third = { getpid(), 3, "uid-3" };
	char dir[] = "/tmp/kindling-symbols-XXXXXX", tables[64], command[128], poison[600],
	     whole[600];
	uint64_t bad, good, offset, deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(tables, sizeof(tables), "%s/tables", dir);
	bad = map_library(dir, "poison.so", LIBRARY_BYTES, poison, sizeof(poison));
	good = map_library(dir, "whole.so", LIBRARY_BYTES, whole, sizeof(whole));
	offset = offset_of(whole, "public_function");
	assert_int_equal(offset_of(poison, "POISON_by_tenant_A"), offset);
	assert_int_equal(loop_new(&loop), 0);
	for (int round = 0; round < 2; round++) {
		const char *a = NULL, *b = NULL, *c = NULL;
		struct symbols_counts counts;
		struct symbols *s;

		start(loop, tables, &s);
		symbols_want(s, &hostile, bad, bad + LIBRARY_BYTES, "/lib/c.so", id, sizeof(id));
		while (!a && clock_mono_ns() < deadline) {
			go_round(loop, s);
			a = symbols_lookup(s, getpid(), 1, "/lib/c.so", offset);
		}
		symbols_want(s, &honest, good, good + LIBRARY_BYTES, "/lib/c.so", id, sizeof(id));
		symbols_want(s, &third, good, good + LIBRARY_BYTES, "/lib/c.so", id, sizeof(id));
		while (!(b && c) && clock_mono_ns() < deadline) {
			go_round(loop, s);
			b = symbols_lookup(s, getpid(), 2, "/lib/c.so", offset);
			c = symbols_lookup(s, getpid(), 3, "/lib/c.so", offset);
		}
		assert_string_equal(a, "POISON_by_tenant_A");
		assert_string_equal(b, "public_function");
		assert_ptr_equal(b, c); /* the very same bytes in memory */
		symbols_counts(s, &counts);
		assert_int_equal(counts.reading + counts.waiting, 0);
		symbols_free(s);
	}
	snprintf(command, sizeof(command), "test $(find %s -type f -links 2 | wc -l) = 2", tables);
	assert_int_equal(system(command), 0);
	munmap((void *)(uintptr_t)bad, LIBRARY_BYTES);
	munmap((void *)(uintptr_t)good, LIBRARY_BYTES);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Tables take no more memory than the directory may have: a table that is removed to make room
 * for others is unmapped. */
static void a_table_that_is_pruned_is_unmapped(void **state)
{
	static const uint8_t id[] = { 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89 };
	const struct symbols_process self = { getpid(), 1, "uid-1" };
	char dir[] = "/tmp/kindling-symbols-XXXXXX", tables[64], command[128], path[600];
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S, begin, offset;
	static const char *const libraries[] = { "poison.so", "whole.so" };
	struct symbols_counts counts;
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(tables, sizeof(tables), "%s/tables", dir);
	assert_int_equal(loop_new(&loop), 0);
	n_asked = n_cancelled = 0;
	assert_int_equal(
		symbols_new(loop, tables, 2 * TABLES_DIR_BYTES_MIN - 1, &opener, asked, &s), 0);
	for (int i = 0; i < 2; i++) {
		const char *name = NULL;

		begin = map_library(dir, libraries[i], LIBRARY_BYTES, path, sizeof(path));
		offset = offset_of(path, i ? "public_function" : "POISON_by_tenant_A");
		symbols_want(s, &self, begin, begin + LIBRARY_BYTES, path, id, sizeof(id));
		while (!name && clock_mono_ns() < deadline) {
			go_round(loop, s);
			name = symbols_lookup(s, getpid(), 1, path, offset);
		}
		assert_non_null(name);
		assert_int_equal(mappings_below(tables), 1);
		/* so that the first is the older one by any clock */
		snprintf(command, sizeof(command), "touch -d @1000 %s/*.sym", tables);
		assert_int_equal(system(command), 0);
		munmap((void *)(uintptr_t)begin, LIBRARY_BYTES);
	}
	symbols_counts(s, &counts);
	assert_int_equal(counts.reading + counts.waiting, 0);
	assert_true(counts.table_bytes < 2 * TABLES_DIR_BYTES_MIN);
	symbols_free(s);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* ---- a child that cannot be killed ---- */

/* What reading a file costs is taken from its tenant, who reads no more without CPU time. */
static void a_child_s_cpu_time_is_its_tenant_s(void **state)
{
	const struct symbols_process self = { getpid(), 1, "uid-1" };
	char dir[] = "/tmp/kindling-symbols-XXXXXX", command[64], path[2][600];
	static const char *const libraries[] = { "poison.so", "whole.so" };
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S, begin, offset;
	struct tenant full = { 0 };
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(loop_new(&loop), 0);
	start(loop, dir, &s);
	begin = map_library(dir, libraries[0], LIBRARY_BYTES, path[0], sizeof(path[0]));
	offset = offset_of(path[0], "POISON_by_tenant_A");
	symbols_want(s, &self, begin, begin + LIBRARY_BYTES, path[0], NULL, 0);
	while (!name && clock_mono_ns() < deadline) {
		go_round(loop, s);
		name = symbols_lookup(s, getpid(), 1, path[0], offset);
	}
	assert_non_null(name);
	tenant_refill(&full, NS_PER_S);
	assert_string_equal(s->tenants->name, "uid-1");
	assert_true(s->tenants->cpu_ns < full.cpu_ns);
	s->tenants->cpu_ns = -(int64_t)NS_PER_S;
	begin = map_library(dir, libraries[1], LIBRARY_BYTES, path[1], sizeof(path[1]));
	symbols_want(s, &self, begin, begin + LIBRARY_BYTES, path[1], NULL, 0);
	for (int i = 0; i < 20; i++)
		go_round(loop, s);
	assert_true(s->tenants->waiting > 0);
	assert_false(s->tenants->reading);
	symbols_free(s);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

static struct {
	/* a kill has no effect, as on a process that waits for a device, and the deadline of
	 * children is shorter */
	bool on;
	pid_t pid; /* of the last one */
} stuck;
void __real_warden_kill(pid_t pid);
void __wrap_warden_kill(pid_t pid);
int __real_loop_timer_add(struct loop *l, uint64_t first_ns, uint64_t interval_ns, loop_timer_fn fn,
			  void *userdata, struct loop_timer **ret);
int __wrap_loop_timer_add(struct loop *l, uint64_t first_ns, uint64_t interval_ns, loop_timer_fn fn,
			  void *userdata, struct loop_timer **ret);

void __wrap_warden_kill(pid_t pid)
{
	if (stuck.on)
		stuck.pid = pid;
	else
		__real_warden_kill(pid);
}

int __wrap_loop_timer_add(struct loop *l, uint64_t first_ns, uint64_t interval_ns, loop_timer_fn fn,
			  void *userdata, struct loop_timer **ret)
{
	return __real_loop_timer_add(l, stuck.on ? NS_PER_S / 10 : first_ns, interval_ns, fn,
				     userdata, ret);
}

static void a_child_that_cannot_be_killed_is_not_waited_for(void **state)
{
	const struct symbols_process hostile = { getpid(), 1, "uid-1" },
				     honest = { getpid(), 2, "uid-2" };
	char dir[] = "/tmp/kindling-symbols-XXXXXX", program[64], command[128], path[1024];
	uint64_t begin, end, offset, deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct symbols_counts counts = { 0 };
	const char *name = NULL;
	struct symbols *s;
	struct loop *loop;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(program, sizeof(program), "%s/program", dir);
	f = fopen(program, "w");
	assert_non_null(f);
	fputs("#!/bin/sh\nexec sleep 90\n", f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(program, 0755), 0);
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &begin, &end,
			       &offset, path));
	assert_int_equal(loop_new(&loop), 0);
	symbols_program = program;
	start(loop, dir, &s);
	symbols_program = KINDLING_SYMBOLS;
	stuck.on = true;
	symbols_want(s, &hostile, begin, end, path, NULL, 0);
	while (!counts.failed && clock_mono_ns() < deadline) {
		go_round(loop, s);
		symbols_counts(s, &counts);
	}
	stuck.on = false;
	assert_int_equal(counts.failed, 1);
	assert_int_equal(counts.reading, 0);
	assert_int_equal(kill(stuck.pid, 0), 0); /* it is still there */
	snprintf(s->program, sizeof(s->program), "%s", symbols_program);
	symbols_want(s, &honest, begin, end, path, NULL, 0);
	while (!name && clock_mono_ns() < deadline) {
		go_round(loop, s);
		name = symbols_lookup(s, getpid(), 2, path, offset);
	}
	assert_non_null(name);
	stuck.on = true;
	symbols_free(s); /* nor at the end */
	stuck.on = false;
	assert_int_equal(waitpid(stuck.pid, NULL, WNOHANG), 0);
	assert_int_equal(kill(stuck.pid, SIGKILL), 0);
	assert_int_equal(waitpid(stuck.pid, NULL, 0), stuck.pid);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Root runs the program, and the environment may be that of the user who started the daemon. */
static void the_environment_names_no_program(void **state)
{
	char dir[] = "/tmp/kindling-symbols-XXXXXX", command[64];
	struct symbols *s;
	struct loop *loop;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(setenv("KINDLING_SYMBOLS", "/bin/true", 1), 0);
	symbols_program = NULL;
	start(loop, dir, &s);
	symbols_program = KINDLING_SYMBOLS;
	assert_string_not_equal(s->program, "/bin/true");
	assert_int_equal(unsetenv("KINDLING_SYMBOLS"), 0);
	symbols_free(s);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapped_file_gets_names_by_a_child),
		cmocka_unit_test(the_vdso_has_names),
		cmocka_unit_test(one_target_s_mappings_are_its_own_trouble),
		cmocka_unit_test(a_build_id_is_not_believed),
		cmocka_unit_test(a_table_that_is_pruned_is_unmapped),
		cmocka_unit_test(a_child_s_cpu_time_is_its_tenant_s),
		cmocka_unit_test(a_child_that_cannot_be_killed_is_not_waited_for),
		cmocka_unit_test(the_environment_names_no_program),
	};

	symbols_program = KINDLING_SYMBOLS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
