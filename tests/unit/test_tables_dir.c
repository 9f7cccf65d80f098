#include "tests/unit/unit.h"
#include "daemon/ground/mem.h"
#include "daemon/symbols/tables_dir.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

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
	/* a table under a build-id alone, which is not trusted any more */
	make_file(dfd, "0123abcd-77.sym", 65536, 4000);
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

static bool is_mapped(void *userdata, const char *name)
{
	return strcmp(name, userdata) == 0;
}

static void the_tenant_with_most_tables_loses_some(void **state)
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
		make_file(dfd, name, 10, 1000 + i); /* counted with more bytes than they have */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_unused_table_goes_first),
		cmocka_unit_test(the_tenant_with_most_tables_loses_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
