/*
 * Children that look at processes, and do not answer. The child is this program again, which says
 * of each pid what the test made up: 7 does not answer and cannot be killed (it reads a pipe that
 * is held), 8 dies, of all others the result is the pid.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/core/clock.h"
#include "daemon/core/mem.h"
#include "daemon/discovery/look.h"
#include "tests/unit/held_pipe.h"

#define SILENT	 7
#define DEADLY	 8
#define VARIABLE "KINDLING_TEST_LOOK"

static int child(const char *fifo)
{
	static struct look_answer a;
	struct look_question q;
	char byte;

	while (recv(3, &q, sizeof(q), 0) == (ssize_t)sizeof(q)) {
		if (q.pid == SILENT)
			(void)!read(open(fifo, O_RDONLY), &byte, 1);
		if (q.pid == DEADLY)
			return 1;
		a.number = q.number;
		a.result = q.pid;
		(void)send(3, &a, sizeof(a), MSG_NOSIGNAL);
	}
	return 0;
}

static struct loop *loop;
static struct look *look;
static struct held_pipe held;
static char fifo[64];
static int reader_fd = -1, writer_fd = -1;
static int results[16]; /* by pid; INT32_MAX = no answer yet */

static void on_look(void *userdata, pid_t pid, int result, const struct jvm *jvm)
{
	(void)userdata;
	assert_true((jvm != NULL) == (result >= 0));
	results[pid] = result;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(fifo, sizeof(fifo), "/tmp/kindling-test-look-%d", (int)getpid());
	for (size_t i = 0; i < ARRAY_SIZE(results); i++)
		results[i] = INT32_MAX;
	if (mkfifo(fifo, 0600) < 0)
		return -1;
	setenv(VARIABLE, fifo, 1);
	if (loop_new(&loop) < 0)
		return -1;
	return look_new(loop, "/proc/self/exe", on_look, NULL, &look);
}

static int tear_down(void **state)
{
	(void)state;
	held_pipe_end(&held);
	look = look_free(look);
	loop = loop_free(loop);
	fd_close(reader_fd);
	fd_close(writer_fd);
	return unlink(fifo);
}

#define RUN_UNTIL(condition)                                         \
	do {                                                         \
		uint64_t until_ns = clock_mono_ns() + 60 * NS_PER_S; \
		while (!(condition) && clock_mono_ns() < until_ns)   \
			(void)loop_round(loop, 20 * NS_PER_MS);      \
		assert_true(condition);                              \
	} while (0)

static void as_many_are_asked_as_there_are_lanes(void **state)
{
	(void)state;
	for (int i = 1; i <= LOOK_LANES; i++)
		assert_int_equal(look_ask(look, i), 0);
	assert_int_equal(look_ask(look, 5), -EAGAIN);
	RUN_UNTIL(results[1] == 1 && results[2] == 2);
	assert_int_equal(look_ask(look, 5), 0);
	RUN_UNTIL(results[5] == 5);
}

static void one_that_dies_is_replaced(void **state)
{
	(void)state;
	assert_int_equal(look_ask(look, DEADLY), 0);
	RUN_UNTIL(results[DEADLY] == -EIO);
	assert_int_equal(look_ask(look, 5), 0);
	RUN_UNTIL(results[5] == 5);
	RUN_UNTIL(look_stuck(look) == 0); /* it was waited for */
}

static void one_that_does_not_answer_is_given_up(void **state)
{
	(void)state;
	reader_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	writer_fd = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (!held_pipe_begin(&held, writer_fd))
		skip();
	for (unsigned i = 1; i <= LOOK_STUCK_MAX; i++) {
		uint64_t begin = clock_mono_ns();

		results[SILENT] = results[5] = INT32_MAX;
		assert_int_equal(look_ask(look, SILENT), 0);
		assert_int_equal(look_ask(look, 5), 0);
		RUN_UNTIL(results[5] == 5); /* who asks about another does not wait */
		assert_int_equal(results[SILENT], INT32_MAX);
		RUN_UNTIL(results[SILENT] == -ETIMEDOUT);
		assert_true(clock_mono_ns() - begin >= LOOK_ANSWER_NS);
		assert_int_equal(look_stuck(look), i);
	}
	/* nobody has more of them; 5 is of another tenant, or gone */
	assert_int_equal(look_ask(look, SILENT), -EBUSY);
	held_pipe_end(&held);
	RUN_UNTIL(look_stuck(look) == 0);
	assert_int_equal(look_ask(look, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_many_are_asked_as_there_are_lanes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_that_dies_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_does_not_answer_is_given_up, set_up,
						tear_down),
	};

	if (getenv(VARIABLE))
		return child(getenv(VARIABLE));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
