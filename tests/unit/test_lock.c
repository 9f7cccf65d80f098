#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/lock.h"

static char path[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_lock.%d", (int)getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

/* In a child process: the pid that holds the lock, 0 = the child got the lock itself. */
static int holder_in_child(void)
{
	pid_t holder = -1, child = fork();
	int status;

	if (child == 0) {
		int fd = lock_take(path, &holder);

		_exit(fd >= 0 ? 0 : fd != -EWOULDBLOCK ? 2 : holder == getppid() ? 1 : 3);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_second_process_is_told_who_holds_the_lock(void **state)
{
	pid_t holder = 0;
	int fd = lock_take(path, &holder);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(holder_in_child(), 1);
	close(fd);
}

static void a_lock_goes_with_its_process(void **state)
{
	pid_t holder = 0;
	int fd;

	(void)state;
	assert_int_equal(holder_in_child(), 0);
	fd = lock_take(path, &holder);
	assert_true(fd >= 0);
	close(fd);
}

static void a_link_is_not_followed(void **state)
{
	char link_path[80];
	pid_t holder = 0;

	(void)state;
	snprintf(link_path, sizeof(link_path), "%s.link", path);
	assert_int_equal(symlink(path, link_path), 0);
	assert_int_equal(lock_take(link_path, &holder), -ELOOP);
	unlink(link_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_process_is_told_who_holds_the_lock),
		cmocka_unit_test(a_lock_goes_with_its_process),
		cmocka_unit_test(a_link_is_not_followed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
