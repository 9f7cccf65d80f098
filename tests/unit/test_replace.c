#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/replace.h"

static char dir[] = "/tmp/kindling-test-replace-XXXXXX";
static int dfd = -1;

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dfd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlinkat(dfd, "file", 0);
	(void)unlinkat(dfd, "temp", 0);
	(void)unlinkat(dfd, "directory", AT_REMOVEDIR);
	dfd = fd_close(dfd);
	return rmdir(dir);
}

static const struct replace file = { .name = "file", .temp = "temp", .mode = 0600, .sync = true };

static struct replace in_dir(void)
{
	struct replace r = file;

	r.dfd = dfd;
	return r;
}

static void assert_content(const char *name, const char *text)
{
	CLEANUP(fd_closep) int fd = openat(dfd, name, O_RDONLY | O_CLOEXEC);
	char buf[64];
	ssize_t n = read(fd, buf, sizeof(buf) - 1);

	assert_true(n >= 0);
	buf[n] = '\0';
	assert_string_equal(buf, text);
}

static bool is_there(const char *name)
{
	return faccessat(dfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void parts_become_one_file(void **state)
{
	const struct iovec parts[] = { { "one ", 4 }, { "", 0 }, { "two", 3 } };
	struct replace r = in_dir();
	struct stat st;

	(void)state;
	assert_int_equal(replace_file(&r, parts, 3), 0);
	assert_content("file", "one two");
	assert_false(is_there("temp"));
	assert_int_equal(fstatat(dfd, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* nothing remains of the longer text before */
	assert_int_equal(replace_with(&r, "3", 1), 0);
	assert_content("file", "3");
}

static void the_file_of_a_killed_process_is_replaced_unless_exclusive(void **state)
{
	struct replace r = in_dir();

	(void)state;
	close(openat(dfd, "temp", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	r.exclusive = true;
	assert_int_equal(replace_with(&r, "new", 3), -EEXIST);
	assert_true(is_there("temp")); /* it is another process's */
	r.exclusive = false;
	assert_int_equal(replace_with(&r, "new", 3), 0);
	assert_content("file", "new");
	assert_false(is_there("temp"));
}

static void a_failure_leaves_the_old_file_and_no_temporary_one(void **state)
{
	struct replace r = in_dir();

	(void)state;
	r.name = "directory";
	assert_int_equal(mkdirat(dfd, "directory", 0700), 0);
	assert_int_equal(replace_with(&r, "new", 3), -EISDIR);
	assert_false(is_there("temp"));
	assert_true(is_there("directory"));
}

static void a_link_under_the_temporary_name_is_not_followed(void **state)
{
	struct replace r = in_dir();

	(void)state;
	assert_int_equal(replace_with(&r, "old", 3), 0);
	assert_int_equal(symlinkat("file", dfd, "temp"), 0);
	assert_int_equal(replace_with(&r, "new", 3), -ELOOP);
	assert_content("file", "old");
	assert_int_equal(unlinkat(dfd, "temp", 0), 0);
}

static void a_disk_that_is_full_is_reported(void **state)
{
	CLEANUP(fd_closep) int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	const struct iovec part = { "new", 3 };
	struct replace r = in_dir();

	(void)state;
	assert_int_equal(replace_with(&r, "old", 3), 0);
	assert_int_equal(replace_by(&r, full, &part, 1), -ENOSPC);
	assert_content("file", "old");
}

static void a_path_is_replaced_by_way_of_its_neighbour(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/file", dir);
	assert_int_equal(replace_path(path, 0600, false, "path", 4), 0);
	assert_content("file", "path");
	assert_false(is_there("file.tmp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_become_one_file),
		cmocka_unit_test(the_file_of_a_killed_process_is_replaced_unless_exclusive),
		cmocka_unit_test(a_failure_leaves_the_old_file_and_no_temporary_one),
		cmocka_unit_test(a_link_under_the_temporary_name_is_not_followed),
		cmocka_unit_test(a_disk_that_is_full_is_reported),
		cmocka_unit_test(a_path_is_replaced_by_way_of_its_neighbour),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
