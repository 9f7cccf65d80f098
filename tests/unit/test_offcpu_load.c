/* Who may load the off-CPU engine's programs, and who may add targets. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000

static void targets_come_without_rights(void **state)
{
	pid_t pid = offcpu_child(SLEEPING), holder;
	int status;

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	holder = fork();
	if (holder == 0) {
		struct host_engine_target t = { shared->handler, 10 * NS_PER_MS, SIGPROF, 0 };
		unsigned before = seen.n;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		/* the clocks need rights that the warden has in a daemon; if they are refused
		 * here, the test goes on without them */
		(void)host_engine_set(seen.host, pid, &t);
		if (offcpu_engine_set(seen.engine, pid, 0, OFFCPU_MIN_NS_LEAST) < 0)
			_exit(3);
		for (int i = 0; i < 200 && seen.n == before; i++) {
			usleep(20000);
			offcpu_engine_drain(seen.engine);
		}
		_exit(seen.n > before ? 0 : 4);
	}
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void without_rights_there_is_a_sentence(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	pid = fork();
	if (pid == 0) {
		char why[OFFCPU_ENGINE_WHY_MAX] = "";
		struct offcpu_engine *e = NULL;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		_exit(offcpu_engine_new(seen.host, 100, false, &e, why) < 0 &&
				      strstr(why, "permission denied")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	offcpu_engines_free();
}

static void a_minimum_that_would_be_a_flood_is_refused(void **state)
{
	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	assert_int_equal(offcpu_engine_set(seen.engine, getpid(), 0, OFFCPU_MIN_NS_LEAST - 1),
			 -EINVAL);
	assert_int_equal(offcpu_engine_set(seen.engine, 0, 0, NS_PER_MS), -EINVAL);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_come_without_rights),
		cmocka_unit_test(without_rights_there_is_a_sentence),
		cmocka_unit_test(a_minimum_that_would_be_a_flood_is_refused),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
