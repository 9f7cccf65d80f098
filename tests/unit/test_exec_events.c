/* Exec events of BPF. Skipped where the kernel refuses BPF, with the sentence that a user would
 * see. */
#include "tests/unit/unit.h"
#include <stdbool.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/bpf/exec_events.h"
#include "daemon/ground/clock.h"

struct seen {
	struct loop *loop;
	pid_t pid; /* 0 = anybody's */
	int execs, exits, status;
	char comm[16];
	uint64_t exec_mono_ns;
};

static void on_exec(void *userdata, pid_t pid, const char *comm, uint64_t mono_ns)
{
	struct seen *s = userdata;

	if (pid != s->pid)
		return;
	s->execs++;
	memcpy(s->comm, comm, sizeof(s->comm));
	s->exec_mono_ns = mono_ns;
}

static void on_exit_event(void *userdata, pid_t pid, int status, uint64_t mono_ns)
{
	struct seen *s = userdata;

	(void)mono_ns;
	if (pid == s->pid) {
		s->exits++;
		s->status = status;
	}
}

static const struct exec_events_ops ops = { on_exec, on_exit_event };

static void listen(struct seen *s, struct exec_events **ret)
{
	char why[EXEC_EVENTS_WHY_MAX];

	*s = (struct seen){ 0 };
	assert_int_equal(loop_new(&s->loop), 0);
	if (exec_events_new(s->loop, &ops, s, ret, why) < 0) {
		loop_free(s->loop);
		print_message("no BPF here: %s\n", why);
		exit(77);
	}
}

static void wait_for_end(struct seen *s)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;

	while (!s->exits && clock_mono_ns() < deadline)
		assert_int_equal(loop_round(s->loop, 10 * NS_PER_MS), 0);
}

static void a_program_that_starts_and_ends_is_told_twice(void **state)
{
	struct exec_events *e;
	uint64_t before;
	struct seen s;

	(void)state;
	listen(&s, &e);
	before = clock_mono_ns();
	s.pid = fork();
	if (s.pid == 0) {
		execl("/bin/true", "some other name", (char *)NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
	wait_for_end(&s);
	assert_int_equal(s.execs, 1);
	assert_int_equal(s.exits, 1);
	assert_string_equal(s.comm, "true");
	assert_true(s.exec_mono_ns > before && s.exec_mono_ns < clock_mono_ns());
	exec_events_free(e);
	loop_free(s.loop);
}

/* Most records wake nobody; none may be forgotten. */
static void each_of_many_processes_is_told(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct exec_events *e;
	struct seen s;

	(void)state;
	listen(&s, &e);
	for (int i = 0; i < 100; i++) {
		s.exits = 0;
		s.pid = fork();
		if (s.pid == 0) {
			usleep(2000); /* the loop waits by then */
			_exit(0);
		}
		while (!s.exits && clock_mono_ns() < deadline)
			assert_int_equal(loop_round(s.loop, 60 * NS_PER_S), 0);
		assert_int_equal(s.exits, 1);
		assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
	}
	exec_events_free(e);
	loop_free(s.loop);
}

static int status_of(void (*end)(void))
{
	struct exec_events *e;
	struct seen s;

	listen(&s, &e);
	s.pid = fork();
	if (s.pid == 0) {
		end();
		pause();
	}
	assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
	wait_for_end(&s);
	exec_events_free(e);
	loop_free(s.loop);
	return s.status;
}

static void end_well(void)
{
	_exit(3);
}

static void end_badly(void)
{
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static void an_end_comes_with_its_status(void **state)
{
	int status;

	(void)state;
	status = status_of(end_well);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	status = status_of(end_badly);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void *nothing(void *userdata)
{
	return userdata;
}

static void a_thread_that_ends_is_no_exit(void **state)
{
	struct exec_events *e;
	struct seen s;

	(void)state;
	listen(&s, &e);
	s.pid = fork();
	if (s.pid == 0) {
		pthread_t t;

		for (int i = 0; i < 5; i++) {
			pthread_create(&t, NULL, nothing, NULL);
			pthread_join(t, NULL);
		}
		_exit(0);
	}
	assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
	wait_for_end(&s);
	assert_int_equal(s.exits, 1);
	assert_int_equal(s.execs, 0);
	exec_events_free(e);
	loop_free(s.loop);
}

static void more_events_than_a_round_takes_all_arrive(void **state)
{
	struct exec_events *e;
	struct seen s;

	(void)state;
	listen(&s, &e);
	for (int i = 0; i < 200; i++) { /* exits of other processes, and then that of ours */
		s.pid = fork();
		if (s.pid == 0)
			_exit(0);
		assert_int_equal(waitpid(s.pid, NULL, 0), s.pid);
	}
	wait_for_end(&s);
	assert_int_equal(s.exits, 1);
	assert_int_equal(exec_events_lost(e), 0);
	exec_events_free(e);
	loop_free(s.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_starts_and_ends_is_told_twice),
		cmocka_unit_test(each_of_many_processes_is_told),
		cmocka_unit_test(an_end_comes_with_its_status),
		cmocka_unit_test(a_thread_that_ends_is_no_exit),
		cmocka_unit_test(more_events_than_a_round_takes_all_arrive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
