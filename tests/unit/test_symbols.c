#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "daemon/symbols/read_elf.h"
#include "daemon/symbols/symbols_priv.h"
#include "daemon/symbols/table.h"
#include "daemon/symbols/tables_dir.h"

#define TABLES_BYTES (64u << 20)

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

/* ---- who opens files ------------------------------------------------------------------------- */

/* What the room has asked for and has no answer yet. */
static struct asked {
	uint64_t ticket;
	int pid;
	uint64_t begin, end;
	char path[1100], tenant[TENANT_SIZE];
} asked[16];
static unsigned n_asked, n_cancelled;
static int refusal; /* of the next questions */

static int ask(void *userdata, uint64_t ticket, const struct symbols_process *p, uint64_t begin,
	       uint64_t end, const char *path)
{
	struct asked *a = &asked[n_asked];

	assert_ptr_equal(userdata, asked);
	if (refusal)
		return refusal;
	assert_true(n_asked < sizeof(asked) / sizeof(asked[0]));
	*a = (struct asked){ .ticket = ticket, .pid = p->pid, .begin = begin, .end = end };
	snprintf(a->path, sizeof(a->path), "%s", path);
	snprintf(a->tenant, sizeof(a->tenant), "%s", p->tenant);
	n_asked++;
	return 0;
}

static void forget(unsigned i)
{
	memmove(&asked[i], &asked[i + 1], (n_asked - i - 1) * sizeof(asked[0]));
	n_asked--;
}

static void cancel(void *userdata, uint64_t ticket)
{
	(void)userdata;
	for (unsigned i = 0; i < n_asked; i++)
		if (asked[i].ticket == ticket) {
			forget(i);
			n_cancelled++;
			return;
		}
	fail_msg("what was not asked is cancelled");
}

static const struct symbols_opener opener = { ask, cancel };

/* The answer to the question @i, as kindling-look finds it. */
static void answer(struct symbols *s, unsigned i)
{
	struct asked a = asked[i];
	int file_fd, root_fd;
	struct stat st;
	char name[80];

	forget(i);
	snprintf(name, sizeof(name), "/proc/%d/map_files/%llx-%llx", a.pid,
		 (unsigned long long)a.begin, (unsigned long long)a.end);
	file_fd = open(name, O_PATH | O_CLOEXEC);
	if (file_fd < 0)
		file_fd = open(a.path, O_PATH | O_CLOEXEC);
	if (file_fd < 0 || fstat(file_fd, &st) < 0) {
		symbols_opened(s, a.ticket, -ENOENT, file_fd, -1, NULL, 0);
		return;
	}
	snprintf(name, sizeof(name), "/proc/%d/root", a.pid);
	root_fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	symbols_opened(s, a.ticket, 0, file_fd, root_fd, &st, 0);
}

static void start(struct loop *loop, const char *dir, struct symbols **ret)
{
	n_asked = n_cancelled = 0;
	refusal = 0;
	assert_int_equal(symbols_new(loop, dir, TABLES_BYTES, &opener, asked, ret), 0);
}

static void go_round(struct loop *loop, struct symbols *s)
{
	assert_int_equal(loop_round(loop, 10 * NS_PER_MS), 0);
	while (n_asked)
		answer(s, 0);
}

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
	for (int round = 0; round < 2; round++) { /* the second finds the table on disk */
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

static void a_table_is_checked_before_it_is_used(void **state)
{
	struct {
		struct table_header h;
		struct table_entry e[2];
		char names[8];
	} bytes = { { TABLE_MAGIC, 2, 8, 0, 0 }, { { 10, 5, 0 }, { 20, 9, 4 } }, "abc\0def" };
	struct table t;

	(void)state;
	assert_int_equal(table_check(&bytes, sizeof(bytes), &t), 0);
	assert_null(table_find(&t, 9));
	assert_string_equal(table_find(&t, 14), "abc");
	assert_string_equal(table_find(&t, 15), "abc"); /* behind a call that never returns */
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
	assert_int_equal(read_elf(fd, NULL, &bytes, &len), 0);
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

/* ---- symbols that are kept elsewhere --------------------------------------------------------- */

#define BUILD_ID_FILE "usr/lib/debug/.build-id/ab/cdef0123456789.debug"

/* Runs in a root of its own: @command, with ROOT and STRIPPED for the directories. */
static int in_root(const char *command, char *root)
{
	char line[512];

	snprintf(line, sizeof(line), "STRIPPED=%s; ROOT=%s; %s", STRIPPED, root, command);
	return system(line);
}

/* The flags of the table of @library, and whether the private function has its name in it. */
static bool names_the_private(const char *library, const struct debug_places *places,
			      uint32_t *ret_flags)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	CLEANUP(fd_closep) int fd = -1;
	char path[300];
	struct table t;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", STRIPPED, library);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read_elf(fd, places, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_non_null(entry_of(&t, "public_function"));
	*ret_flags = t.flags;
	return entry_of(&t, "private_function");
}

/* Is it found after @command has put files into an empty root? */
static bool found_after(const char *command, const char *library, bool host, const char *path)
{
	char root[] = "/tmp/kindling-root-XXXXXX";
	struct debug_places places = { -1, -1, path };
	uint32_t flags;
	int fd;
	bool found;

	assert_non_null(mkdtemp(root));
	assert_int_equal(in_root(command, root), 0);
	fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	*(host ? &places.host_fd : &places.target_fd) = fd;
	found = names_the_private(library, &places, &flags);
	assert_int_equal(flags, found ? 0 : TABLE_EXPORTED_ONLY);
	fd_close(fd);
	assert_int_equal(in_root("rm -r $ROOT", root), 0);
	return found;
}

#define ADD(where) ADD_FILE("library.debug", where)
#define ADD_FILE(it, where) \
	"mkdir -p $(dirname $ROOT/" where ") && cp $STRIPPED/" it " $ROOT/" where

static void a_debug_file_is_found_by_build_id(void **state)
{
	(void)state;
	assert_true(found_after(ADD(BUILD_ID_FILE), "library.so", false, NULL));
	assert_true(found_after(ADD(BUILD_ID_FILE), "library.so", true, NULL));
	assert_false(found_after("true", "library.so", false, NULL));
}

static void a_debug_file_is_found_by_its_link(void **state)
{
	(void)state;
	assert_true(found_after(ADD("opt/library.debug"), "library.so", false, "/opt/library.so"));
	assert_true(found_after(ADD("opt/.debug/library.debug"), "without-id.so", false,
				"/opt/library.so"));
	assert_true(found_after(ADD("usr/lib/debug/opt/library.debug"), "without-id.so", false,
				"/opt/library.so"));
	assert_false(found_after(ADD("library.debug"), "library.so", false, "/opt/library.so"));
	/* links are of the container */
	assert_false(found_after(ADD("library.debug"), "library.so", true, "/library.so"));
}

static void a_debug_file_that_is_another_s_is_not_believed(void **state)
{
	(void)state;
	/* with an id that differs, without one, and of other bytes than the sum is of */
	assert_false(found_after(
		ADD(BUILD_ID_FILE) " && printf x | dd conv=notrunc of=$ROOT/" BUILD_ID_FILE
				   " status=none",
		"library.so", false, NULL));
	assert_false(
		found_after(ADD_FILE("without-id.so", BUILD_ID_FILE), "library.so", false, NULL));
	assert_false(found_after(ADD("library.debug") " && printf x >> $ROOT/library.debug",
				 "without-id.so", false, "/library.so"));
}

static void only_a_regular_file_below_the_root_is_opened(void **state)
{
	(void)state;
	assert_false(
		found_after("mkfifo $ROOT/library.debug", "without-id.so", false, "/library.so"));
	assert_false(found_after("ln -s ../../$STRIPPED/library.debug $ROOT/library.debug",
				 "without-id.so", false, "/library.so"));
}

static void symbols_in_gnu_debugdata_are_read(void **state)
{
	uint32_t flags;

	(void)state;
	assert_true(names_the_private("mini.so", NULL, &flags));
	assert_int_equal(flags, 0);
}

/* ---- what no table names ------------------------------------------------------------------------
 */

/* The C library of this machine: the place that a new thread's root frame returns to. */
static void clone3_is_known_by_its_code(void **state)
{
	static const uint8_t call[] = { 0xff, 0xd2, 0x48, 0x89, 0xc7, 0xb8, 0x3c, 0 };
	char path[1024];
	CLEANUP(freep) uint8_t *bytes = NULL, *file = NULL;
	uint64_t begin, end, offset;
	struct table t;
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
		skip(); /* an older one, without it */
	assert_int_equal(read_elf(fd, NULL, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_string_equal(table_find(&t, (uint64_t)(at - file) + 2), "clone3");
	assert_non_null(entry_of(&t, "pthread_create"));
	fd_close(fd);
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

static bool is_there(int dfd, const char *name)
{
	return faccessat(dfd, name, F_OK, 0) == 0;
}

static void the_longest_unused_table_goes_first(void **state)
{
	char dir[] = "/tmp/kindling-tables-XXXXXX";
	const struct tables_use use = { 0 };
	uint64_t bytes;
	unsigned n;
	int dfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(dfd, "a_new.sym", 65536, 3000);
	make_file(dfd, "a_old.sym", 65536, 1000);
	make_file(dfd, "0123abcd-77.sym", 65536, 4000); /* by its build-id: believed no longer */
	make_file(dfd, "other", 65536, 10); /* not ours */
	make_file(dfd, ".half.sym.tmp", 10, 10);
	tables_dir_prune(dfd, 1 << 20, &use, &bytes, &n);
	assert_false(is_there(dfd, "0123abcd-77.sym"));
	assert_true(is_there(dfd, "a_old.sym"));
	assert_int_equal(bytes, 2 * 65536);
	tables_dir_prune(dfd, 100000, &use, &bytes, &n);
	assert_false(is_there(dfd, "a_old.sym"));
	assert_true(is_there(dfd, "a_new.sym"));
	assert_int_equal(n, 1);
	assert_true(is_there(dfd, ".half.sym.tmp"));
	tables_dir_sweep(dfd);
	assert_false(is_there(dfd, ".half.sym.tmp"));
	assert_int_equal(unlinkat(dfd, "a_new.sym", 0) + unlinkat(dfd, "other", 0), 0);
	close(dfd);
	assert_int_equal(rmdir(dir), 0);
}

/* ---- tenants that would be others' ------------------------------------------------------------
 */

static bool is_mapped(void *userdata, const char *name)
{
	return strcmp(name, userdata) == 0;
}

static void who_has_the_most_tables_loses_them(void **state)
{
	char dir[] = "/tmp/kindling-tables-XXXXXX", name[32], command[64];
	const struct tables_use use = { is_mapped, NULL, (void *)(uintptr_t) "many_1.sym" };
	uint64_t bytes;
	unsigned n;
	int dfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(dfd, "one_1.sym", 65536, 10); /* older than all others */
	make_file(dfd, "few_1.sym", 65536, 20);
	for (int i = 1; i <= 40; i++) {
		snprintf(name, sizeof(name), "many_%d.sym", i);
		make_file(dfd, name, 10, 1000 + i); /* counted as more than they are */
	}
	tables_dir_prune(dfd, 400 << 10, &use, &bytes, &n);
	assert_true(bytes <= 400 << 10);
	assert_true(is_there(dfd, "one_1.sym") && is_there(dfd, "few_1.sym"));
	assert_true(is_there(dfd, "many_40.sym") && is_there(dfd, "many_1.sym"));
	assert_false(is_there(dfd, "many_2.sym"));
	close(dfd);
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
	symbols_end(s, getpid(), 2); /* its last window is still to be named */
	assert_non_null(symbols_lookup(s, getpid(), 2, path, offset));
	symbols_free(s);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
}

/* Maps @name of the two libraries with one build-id, both @bytes long. */
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
	struct table t;
	size_t len;

	assert_int_equal(read_elf(fd, NULL, &bytes, &len), 0);
	assert_int_equal(table_check(bytes, len, &t), 0);
	assert_non_null(entry_of(&t, function));
	return entry_of(&t, function)->offset;
}

#define LIBRARY_BYTES (64u << 10)

/* A tenant's file that claims another one's build-id, size and path names nothing but itself, also
 * after a restart; equal tables of two tenants are one file. */
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

/* ---- files that are slow to open ------------------------------------------------------------- */

struct room {
	char dir[40];
	uint64_t begin, end, offset;
	char path[1024];
	struct loop *loop;
	struct symbols *s;
};

static void open_room(struct room *r)
{
	strcpy(r->dir, "/tmp/kindling-symbols-XXXXXX");
	assert_non_null(mkdtemp(r->dir));
	assert_true(mapping_of((const void *)(uintptr_t)a_function_to_be_found, &r->begin, &r->end,
			       &r->offset, r->path));
	assert_int_equal(loop_new(&r->loop), 0);
	start(r->loop, r->dir, &r->s);
}

static void close_room(struct room *r)
{
	char command[64];

	symbols_free(r->s);
	loop_free(r->loop);
	snprintf(command, sizeof(command), "rm -r %s", r->dir);
	assert_int_equal(system(command), 0);
}

/* Rounds without an answer, until so many are asked for or it has been tried for @ms. */
static void wait_asked(struct room *r, unsigned n, unsigned ms)
{
	uint64_t deadline = clock_mono_ns() + ms * NS_PER_MS;

	while (n_asked < n && clock_mono_ns() < deadline)
		assert_int_equal(loop_round(r->loop, 5 * NS_PER_MS), 0);
}

static void want(struct room *r, const struct symbols_process *p, const char *path)
{
	symbols_want(r->s, p, r->begin, r->end, path, NULL, 0);
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* One question a tenant: who has a thousand that are not answered keeps nobody else's. */
static void who_does_not_answer_is_waited_for_alone(void **state)
{
	const struct symbols_process hostile = { getpid(), 1, "uid-1" },
				     honest = { getpid(), 2, "uid-2" };
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct symbols_counts counts;
	const char *name = NULL;
	struct room r;
	char path[32];

	(void)state;
	open_room(&r);
	for (int i = 0; i < 500; i++) {
		snprintf(path, sizeof(path), "/lib/%d.so", i);
		want(&r, &hostile, path);
	}
	assert_int_equal(n_asked, 0); /* one frame of them: the loop goes on first */
	wait_asked(&r, 2, 100);
	assert_int_equal(n_asked, 1);
	assert_string_equal(asked[0].tenant, "uid-1");
	want(&r, &honest, r.path);
	while (!name && clock_mono_ns() < deadline) {
		wait_asked(&r, 2, 10);
		if (n_asked == 2)
			answer(r.s, 1);
		name = symbols_lookup(r.s, getpid(), 2, r.path, r.offset);
	}
	assert_non_null(name);
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.opening, 1);
	assert_int_equal(counts.refused, 0);
	close_room(&r);
	assert_int_equal(n_cancelled, 1);
}

/* As many tenants as there are places do not answer: others' turn comes when they were given up. */
static void places_that_are_taken_are_free_after_an_answer(void **state)
{
	struct symbols_counts counts;
	char tenant[16];
	struct room r;

	(void)state;
	open_room(&r);
	for (int i = 0; i < OPENINGS_MAX + 1; i++) {
		struct symbols_process p = { getpid(), (uint64_t)i + 1, tenant };

		snprintf(tenant, sizeof(tenant), "uid-%d", i);
		want(&r, &p, "/slow");
		want(&r, &p, "/slower");
	}
	wait_asked(&r, OPENINGS_MAX + 1, 100);
	assert_int_equal(n_asked, OPENINGS_MAX);
	symbols_opened(r.s, asked[0].ticket, -ETIMEDOUT, -1, -1, NULL, 0);
	forget(0);
	wait_asked(&r, OPENINGS_MAX, 60000);
	assert_int_equal(n_asked, OPENINGS_MAX);
	for (unsigned i = 0; i < n_asked; i++) /* the one that had not had a turn */
		assert_string_equal(asked[i].path, "/slow");
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.failed, 1);
	close_room(&r);
}

/* A path that takes long costs its tenant twenty times as long; how long its question waited in
 * the queue of others does not count. */
static void after_a_slow_answer_a_tenant_rests(void **state)
{
	const struct symbols_process slow = { getpid(), 1, "uid-1" };
	uint64_t answered;
	struct room r;

	(void)state;
	open_room(&r);
	want(&r, &slow, "/a");
	want(&r, &slow, "/b");
	want(&r, &slow, "/c");
	wait_asked(&r, 1, 60000);
	usleep(200000);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 20 * NS_PER_MS);
	answered = clock_mono_ns();
	forget(0);
	wait_asked(&r, 1, 60000);
	assert_string_equal(asked[0].path, "/b");
	assert_in_range(clock_mono_ns() - answered, 380 * NS_PER_MS, 3000 * NS_PER_MS);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 10000);
	answered = clock_mono_ns();
	forget(0);
	wait_asked(&r, 1, 60000);
	assert_string_equal(asked[0].path, "/c");
	assert_in_range(clock_mono_ns() - answered, 0, 300 * NS_PER_MS);
	close_room(&r);
}

static void an_end_cancels_what_was_asked(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	struct symbols_counts counts;
	struct stat st = { .st_mode = S_IFREG };
	struct room r;
	uint64_t ticket;
	int fds;

	(void)state;
	open_room(&r);
	want(&r, &p, "/a");
	want(&r, &p, "/b");
	wait_asked(&r, 1, 60000);
	ticket = asked[0].ticket;
	symbols_end(r.s, getpid(), 1);
	assert_int_equal(n_cancelled, 1);
	wait_asked(&r, 1, 200);
	assert_int_equal(n_asked, 0);
	fds = open_fds();
	symbols_opened(r.s, ticket, 0, open("/", O_PATH), open("/", O_PATH), &st, 0); /* too late */
	assert_int_equal(open_fds(), fds);
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.opening, 0);
	close_room(&r);
}

static void what_was_not_opened_is_wanted_again(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	struct symbols_counts counts;
	struct stat st = { .st_mode = S_IFCHR };
	struct room r;
	int fds;

	(void)state;
	open_room(&r);
	refusal = -EBUSY;
	want(&r, &p, "/a");
	wait_asked(&r, 1, 50);
	symbols_counts(r.s, &counts);
	assert_int_equal(counts.refused, 1);
	refusal = -EAGAIN; /* asked again by itself */
	want(&r, &p, "/a");
	wait_asked(&r, 1, 50);
	assert_int_equal(n_asked, 0);
	refusal = 0;
	wait_asked(&r, 1, 60000);
	assert_int_equal(n_asked, 1);
	want(&r, &p, "/a"); /* once is enough */
	fds = open_fds();
	symbols_opened(r.s, asked[0].ticket, 0, open("/dev/null", O_PATH), -1, &st,
		       0); /* no file */
	assert_int_equal(open_fds(), fds);
	forget(0);
	want(&r, &p, "/a");
	wait_asked(&r, 1, 60000);
	assert_int_equal(n_asked, 1);
	close_room(&r);
}

/* What is mapped elsewhere by the time of the answer is asked for as it is mapped now. */
static void a_new_mapping_is_asked_for_anew(void **state)
{
	const struct symbols_process p = { getpid(), 1, "uid-1" };
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	const char *name = NULL;
	struct room r;

	(void)state;
	open_room(&r);
	symbols_want(r.s, &p, r.end, r.end + 4096, r.path, NULL, 0);
	wait_asked(&r, 1, 60000);
	want(&r, &p, r.path);
	symbols_opened(r.s, asked[0].ticket, -ENOENT, -1, -1, NULL, 0);
	forget(0);
	wait_asked(&r, 1, 60000);
	assert_int_equal(asked[0].begin, r.begin);
	while (!name && clock_mono_ns() < deadline) {
		go_round(r.loop, r.s);
		name = symbols_lookup(r.s, getpid(), 1, r.path, r.offset);
	}
	assert_non_null(name);
	close_room(&r);
}

static void a_tenant_s_cpu_time_is_given_back_slowly(void **state)
{
	struct tenant t = { 0 };

	(void)state;
	tenant_refill(&t, NS_PER_S);
	assert_true(tenant_is_full(&t) && t.cpu_ns > 0);
	t.cpu_ns = -5 * (int64_t)NS_PER_S;
	tenant_refill(&t, 101 * NS_PER_S);
	assert_int_equal(t.cpu_ns, -4 * (int64_t)NS_PER_S);
	tenant_refill(&t, 100000 * NS_PER_S);
	assert_true(tenant_is_full(&t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapped_file_gets_names_by_a_child),
		cmocka_unit_test(a_table_is_checked_before_it_is_used),
		cmocka_unit_test(names_are_demangled_only_when_they_are_mangled),
		cmocka_unit_test(a_debug_file_is_found_by_build_id),
		cmocka_unit_test(a_debug_file_is_found_by_its_link),
		cmocka_unit_test(a_debug_file_that_is_another_s_is_not_believed),
		cmocka_unit_test(only_a_regular_file_below_the_root_is_opened),
		cmocka_unit_test(symbols_in_gnu_debugdata_are_read),
		cmocka_unit_test(clone3_is_known_by_its_code),
		cmocka_unit_test(the_vdso_has_names),
		cmocka_unit_test(the_longest_unused_table_goes_first),
		cmocka_unit_test(who_has_the_most_tables_loses_them),
		cmocka_unit_test(one_target_s_mappings_are_its_own_trouble),
		cmocka_unit_test(a_build_id_is_not_believed),
		cmocka_unit_test(who_does_not_answer_is_waited_for_alone),
		cmocka_unit_test(places_that_are_taken_are_free_after_an_answer),
		cmocka_unit_test(after_a_slow_answer_a_tenant_rests),
		cmocka_unit_test(an_end_cancels_what_was_asked),
		cmocka_unit_test(what_was_not_opened_is_wanted_again),
		cmocka_unit_test(a_new_mapping_is_asked_for_anew),
		cmocka_unit_test(a_tenant_s_cpu_time_is_given_back_slowly),
	};

	symbols_program = KINDLING_SYMBOLS;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
