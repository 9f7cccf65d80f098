#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/core/log.h"
#include "daemon/core/log_limit.h"

/* What a line looks like in a pipe that is stderr. */
static const char *line_in_pipe(int pipe_fd[2])
{
	static char line[200];
	int old = dup(STDERR_FILENO);
	ssize_t n;

	assert_int_equal(dup2(pipe_fd[1], STDERR_FILENO), STDERR_FILENO);
	log_info("x.y", "k=%d", 1);
	assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
	close(old);
	n = read(pipe_fd[0], line, sizeof(line) - 1);
	assert_true(n > 0);
	line[n] = '\0';
	return line;
}

static void only_journald_gets_priorities(void **state)
{
	char stream[64];
	struct stat st;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	unsetenv("JOURNAL_STREAM");
	assert_string_equal(line_in_pipe(fds), "x.y k=1\n");
	assert_int_equal(fstat(fds[1], &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_string_equal(line_in_pipe(fds), "<6>x.y k=1\n");
	/* of a service whose stderr went elsewhere */
	setenv("JOURNAL_STREAM", "1:2", 1);
	assert_string_equal(line_in_pipe(fds), "x.y k=1\n");
	setenv("JOURNAL_STREAM", "", 1);
	assert_string_equal(line_in_pipe(fds), "x.y k=1\n");
	close(fds[0]);
	close(fds[1]);
}

/* Lines in what was written to a pipe that is stderr. */
static unsigned lines_of(int fd)
{
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text));
	unsigned lines = 0;

	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static void who_has_said_much_is_held_back_and_that_is_said(void **state)
{
	struct log_limit limit = { .burst = 10, .per_s = 1 };
	int old = dup(STDERR_FILENO), fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	for (int i = 0; i < 3121; i++)
		if (log_allowed(&limit, "pid=7"))
			log_info("x.y", NULL);
	log_limit_end(&limit, "pid=7");
	log_limit_end(&limit, "pid=7"); /* it was said */
	assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
	close(old);
	/* a machine that stands still for seconds allows for some more */
	assert_in_range(lines_of(fds[0]), 11, 40);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_journald_gets_priorities),
		cmocka_unit_test(who_has_said_much_is_held_back_and_that_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
