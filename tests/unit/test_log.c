#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "daemon/core/log_limit.h"
#include "daemon/ground/journal.h"
#include "daemon/ground/log.h"

/* The form of a line when stderr is a pipe. */
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
	/* a service whose stderr was redirected elsewhere */
	setenv("JOURNAL_STREAM", "1:2", 1);
	assert_string_equal(line_in_pipe(fds), "x.y k=1\n");
	setenv("JOURNAL_STREAM", "", 1);
	assert_string_equal(line_in_pipe(fds), "x.y k=1\n");
	close(fds[0]);
	close(fds[1]);
}

static void facts_about_a_jvm_become_fields(void **state)
{
	static const char line[] =
		"target.state pid=7 from=found to=failed name=\"a \\\"b\\\"=c\" container=\"\" odd=\"x=1\" reason=\"no pid=8\"";
	char buf[1024];
	size_t len = journal_fields(4, line, buf, sizeof(buf));

	(void)state;
	assert_in_range(len, 1, sizeof(buf) - 1);
	buf[len] = '\0';
	assert_string_equal(
		buf,
		"PRIORITY=4\nSYSLOG_IDENTIFIER=kindlingd\nKINDLING_EVENT=target.state\n"
		"MESSAGE=target.state pid=7 from=found to=failed name=\"a \\\"b\\\"=c\" container=\"\" odd=\"x=1\" reason=\"no pid=8\"\n"
		"KINDLING_PID=7\nKINDLING_FROM=found\nKINDLING_TO=failed\n"
		"KINDLING_NAME=a \"b\"=c\nKINDLING_REASON=no pid=8\n");
	assert_int_equal(journal_fields(4, line, buf, 100), 0);
	/* the text of a line cannot add a field */
	len = journal_fields(6, "x\nPRIORITY=0 pid=\"", buf, sizeof(buf));
	buf[len] = '\0';
	assert_string_equal(buf, "PRIORITY=6\nSYSLOG_IDENTIFIER=kindlingd\nKINDLING_EVENT=x\n"
				 "MESSAGE=x PRIORITY=0 pid=\"\n");
}

static void journald_gets_fields_and_stderr_nothing(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fds[2], server = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
		    old = dup(STDERR_FILENO);
	char stream[64], text[1024];
	struct stat st;
	ssize_t n;

	(void)state;
	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/kindling-test-journal-%d", (int)getpid());
	assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(journal_open("/nowhere/socket"), -ENOENT);
	assert_int_equal(journal_open(at.sun_path), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(fstat(fds[1], &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	log_warn("x.y", "pid=%d", 7);
	n = recv(server, text, sizeof(text) - 1, MSG_DONTWAIT);
	assert_int_equal(read(fds[0], text + 512, 1), -1);
	close(server); /* journald restarts: the line is not lost */
	log_warn("x.y", "pid=%d", 8);
	assert_int_equal(read(fds[0], text + 512, 256), strlen("<4>x.y pid=8\n"));
	assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
	assert_true(n > 0);
	text[n] = '\0';
	assert_non_null(strstr(text, "PRIORITY=4\n"));
	assert_non_null(strstr(text, "\nMESSAGE=x.y pid=7\n"));
	assert_non_null(strstr(text, "\nKINDLING_PID=7\n"));
	journal_close();
	unsetenv("JOURNAL_STREAM");
	unlink(at.sun_path);
	close(old);
	close(fds[0]);
	close(fds[1]);
}

/* The number of lines in the pipe that is stderr. */
static unsigned lines_of(int fd)
{
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text));
	unsigned lines = 0;

	for (ssize_t i = 0; i < n; i++)
		lines += text[i] == '\n';
	return lines;
}

static void a_noisy_source_is_limited_and_its_lost_lines_are_counted(void **state)
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
	/* a machine that stopped for seconds may allow a few more */
	assert_in_range(lines_of(fds[0]), 11, 40);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_journald_gets_priorities),
		cmocka_unit_test(facts_about_a_jvm_become_fields),
		cmocka_unit_test(journald_gets_fields_and_stderr_nothing),
		cmocka_unit_test(a_noisy_source_is_limited_and_its_lost_lines_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
