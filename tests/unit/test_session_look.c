/*
 * What has to be read from a process before an attach, and processes that make the reader hang. The
 * reader is this program again, started in place of kindling-look; it does not answer for PID while
 * the file held-PID exists. See fake_session.h.
 */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define VARIABLE "KINDLING_TEST_LOOK"

static int child(void)
{
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fds[LOOK_FDS];
	static struct look_answer a;
	struct look_question q;
	char mark_name[32];

	while (look_receive(3, &q, sizeof(q), fds, 0) == (ssize_t)sizeof(q)) {
		int answers[LOOK_FDS] = { -1, -1 };

		snprintf(mark_name, sizeof(mark_name), "held-%d", q.pid);
		while (marked(mark_name))
			usleep(10000);
		look_find_out(proc_dfd, &q, fds[0], &a, answers);
		(void)look_send(3, &a, sizeof(a), answers, LOOK_FDS, 0);
		for (int i = 0; i < LOOK_FDS; i++) {
			fd_close(fds[i]);
			fd_close(answers[i]);
		}
	}
	return 0;
}

static struct look *look;

static int set_up(void **state)
{
	int r = setup(state);

	setenv(VARIABLE, "1", 1);
	if (r == 0)
		r = look_new(loop, config.injector, &look);
	if (r == 0)
		targets_look(table, look);
	return r;
}

static int tear_down(void **state)
{
	table = targets_free(table);
	look = look_free(look);
	return teardown(state);
}

static void hold(pid_t pid)
{
	char name[32];

	snprintf(name, sizeof(name), "held-%d", (int)pid);
	mark(name);
}

static void let_go(pid_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/held-%d", dir, (int)pid);
	assert_int_equal(unlink(path), 0);
}

static void run_ns(uint64_t ns)
{
	uint64_t end = clock_mono_ns() + ns;

	UNTIL(clock_mono_ns() > end);
}

static void a_question_without_answer_fails_and_delays_nobody(void **state)
{
	struct target *t, *honest;

	(void)state;
	hold(process);
	t = add("talk");
	assert_int_equal(t->state, TARGET_FOUND);
	assert_false(targets_quiet(table));
	honest = add_other("talk");
	UNTIL(honest->state == TARGET_STREAMING);
	assert_int_equal(t->state, TARGET_FOUND);
	UNTIL(t->state == TARGET_FAILED);
	assert_string_equal(t->fault.what,
			    "the process does not answer: a read of its memory has not ended");
	assert_int_equal(table->injectors, 0);
	let_go(t->jvm.pid);
	UNTIL(t->state == TARGET_STREAMING); /* the read is tried again, as after any failure */
	end_other();
}

static void a_detach_during_the_look_prevents_the_attach(void **state)
{
	struct target *t;

	(void)state;
	hold(process);
	t = add("talk");
	target_detach(t);
	assert_int_equal(t->state, TARGET_FOUND);
	let_go(process);
	UNTIL(t->state == TARGET_DETACHED);
	assert_true(targets_quiet(table));
	assert_int_equal(t->attempts, 0);
	assert_int_equal(samples, 0);
}

static void a_detach_while_it_is_looked_at_can_be_taken_back(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	hold(process);
	t = add("talk");
	assert_int_equal(target_detach_for(t, 0), 0);
	assert_int_equal(target_attach(t, 0, &why), 0);
	let_go(process);
	UNTIL(t->state == TARGET_STREAMING);
}

/* An answer refers to the rules that were in force when it was requested. */
static void rules_that_change_meanwhile_are_asked_about_again(void **state)
{
	struct target *t;

	(void)state;
	hold(process);
	t = add("talk");
	config.n_rules = 1;
	config.rules[0] = (struct config_rule){ .line = 3 };
	strcpy(config.rules[0].command, "test_session_look");
	strcpy(config.file, "/etc/k.yaml");
	targets_settings(table);
	let_go(process);
	UNTIL(t->state == TARGET_EXCLUDED);
	assert_non_null(strstr(t->fault.what, "command \"test_session_look\""));
	assert_int_equal(t->attempts, 0);
	strcpy(config.rules[0].command, "another program");
	targets_settings(table);
	UNTIL(t->state == TARGET_STREAMING);
	config.n_rules = 0;
}

static void settings_leave_a_stream_alone_that_cannot_be_looked_at(void **state)
{
	uint64_t total;
	struct target *t;

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING);
	hold(process);
	config.cpu_interval_ns = 7 * NS_PER_MS;
	targets_settings(table);
	assert_int_equal(t->interval_ns, 10 * NS_PER_MS);
	UNTIL(t->interval_ns == 7 * NS_PER_MS);
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_int_equal(targets_stuck(table, &total), 0);
}

static void a_process_that_ends_during_the_look_is_gone(void **state)
{
	struct look_counts c;
	struct target *t;

	(void)state;
	hold(process);
	t = add("talk");
	end_process();
	UNTIL(t->state == TARGET_GONE);
	let_go(t->jvm.pid);
	run_ns(300 * NS_PER_MS); /* the answer arrives, but its target is gone */
	assert_int_equal(t->state, TARGET_GONE);
	look_counts(look, &c);
	assert_int_equal(c.given_up, 0);
}

static void a_process_being_looked_at_does_not_count_for_targets_max(void **state)
{
	struct target *first, *second;

	(void)state;
	config.targets_max = 1;
	hold(process);
	first = add("talk");
	second = add_other("talk");
	UNTIL(second->state == TARGET_STREAMING);
	let_go(process);
	UNTIL(first->state == TARGET_EXCLUDED);
	assert_int_equal(first->fault.step, FAULT_BUDGET);
	end_other();
}

static void the_file_of_a_crash_is_found_when_nobody_tells_its_signal(void **state)
{
	char before[4096], path[128];
	struct target *t;

	(void)state;
	config.crash_block_ns = 3600 * NS_PER_S;
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(chdir(dir), 0);
	t = add_other("talk");
	assert_int_equal(chdir(before), 0);
	UNTIL(t->state == TARGET_STREAMING && t->priv->cwd_fd >= 0 && !t->priv->cwd_question);
	snprintf(path, sizeof(path), "%s/hs_err_pid%d.log", dir, t->jvm.ns_pid);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	end_other();
	UNTIL(t->state == TARGET_GONE);
	UNTIL(targets_crashes(table) == 1);
	assert_non_null(strstr(targets_cohort(table, 0)->reason, "wrote hs_err"));
}

#define LOOK_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LOOK_TEST(a_question_without_answer_fails_and_delays_nobody),
		LOOK_TEST(a_detach_during_the_look_prevents_the_attach),
		LOOK_TEST(a_detach_while_it_is_looked_at_can_be_taken_back),
		LOOK_TEST(rules_that_change_meanwhile_are_asked_about_again),
		LOOK_TEST(settings_leave_a_stream_alone_that_cannot_be_looked_at),
		LOOK_TEST(a_process_that_ends_during_the_look_is_gone),
		LOOK_TEST(a_process_being_looked_at_does_not_count_for_targets_max),
		LOOK_TEST(the_file_of_a_crash_is_found_when_nobody_tells_its_signal),
	};

	if (is_injector(argc, argv))
		return injector(argv);
	if (getenv(VARIABLE))
		return child();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
