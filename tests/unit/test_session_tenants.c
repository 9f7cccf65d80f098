/* What tenants share: the number of concurrent attempts, and slots in the table. See
 * fake_session.h. */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define PROCESSES 12

static pid_t pids[PROCESSES];
static unsigned n_pids, displaced;
static pid_t displaced_pid;

static void on_displaced(void *userdata, struct target *t)
{
	(void)userdata;
	displaced++;
	displaced_pid = t->jvm.pid;
}

/* Adds another process of a container: @ret may be NULL. Returns the same as targets_add(). */
static int add_of(const char *container, const char *manner, struct target **ret)
{
	pid_t first = process;
	struct jvm jvm;

	snprintf(config.agent, sizeof(config.agent), "%s", manner);
	process = fork();
	if (process == 0) {
		pause();
		_exit(0);
	}
	pids[n_pids++] = process;
	fill_in(&jvm);
	process = first;
	snprintf(jvm.container_id, sizeof(jvm.container_id), "%s", container);
	return targets_add(table, &jvm, clock_mono_ns(), ret);
}

static int set_up(void **state)
{
	n_pids = displaced = 0;
	if (setup(state) < 0)
		return -1;
	table->ops.on_displaced = on_displaced;
	return 0;
}

static int tear_down(void **state)
{
	int r = teardown(state);

	for (unsigned i = 0; i < n_pids; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return r;
}
#define TENANTS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static unsigned count(const char *container, enum target_state state)
{
	unsigned n = 0;

	for (struct target *t = targets_next(table, NULL); t; t = targets_next(table, t))
		n += t->state == state && strcmp(t->jvm.container_id, container) == 0;
	return n;
}

static void one_whose_attaches_hang_has_half_of_the_places(void **state)
{
	struct target *t;

	(void)state;
	for (int i = 0; i < 6; i++)
		assert_int_equal(add_of("evil", "hang", NULL), 0);
	/* of four attempts: docs/security.md */
	assert_int_equal(count("evil", TARGET_INJECTING), 2);
	for (int i = 0; i < 3; i++) { /* the others may use the other half */
		assert_int_equal(add_of("good", "talk", &t), 0);
		UNTIL(t->state == TARGET_STREAMING);
	}
	assert_int_equal(count("evil", TARGET_INJECTING), 2);
	assert_int_equal(count("evil", TARGET_FOUND), 4);
}

static void tenants_take_turns(void **state)
{
	struct target *t;

	(void)state;
	config.attach_rate = 1; /* all but the first wait for the same second */
	for (int i = 0; i < 6; i++)
		assert_int_equal(add_of("many", "talk", NULL), 0);
	assert_int_equal(add_of("few", "talk", &t), 0);
	UNTIL(t->state != TARGET_FOUND);
	/* it is not the last one, although it came last */
	assert_true(count("many", TARGET_FOUND) > 0);
	config.attach_rate = 0;
}

static void those_whose_attempts_failed_wait_for_their_turn_too(void **state)
{
	struct target *t;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(add_of("evil", "die", NULL), 0);
	UNTIL(count("evil", TARGET_FAILED) == 4);
	snprintf(config.agent, sizeof(config.agent), "hang");
	UNTIL(count("evil", TARGET_INJECTING) == TENANT_INJECTORS);
	assert_int_equal(add_of("good", "talk", &t), 0);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(count("evil", TARGET_INJECTING), TENANT_INJECTORS);
}

static struct tenant *tenant_of(const char *container)
{
	for (struct tenant *t = table->tenants; t; t = t->next)
		if (strcmp(t->name, container) == 0)
			return t;
	return NULL;
}

static void attempts_cost_their_tenant_cpu_time(void **state)
{
	struct target *t;

	(void)state;
	assert_int_equal(add_of("evil", "talk", &t), 0);
	UNTIL(t->state == TARGET_STREAMING);
	UNTIL(tenant_of("evil")->attempts_cpu_ns < 500000000);
	tenant_of("evil")->attempts_cpu_ns = -1000000000;
	assert_int_equal(add_of("evil", "talk", &t), 0);
	assert_int_equal(add_of("good", "talk", NULL), 0);
	UNTIL(count("good", TARGET_STREAMING) == 1);
	assert_int_equal(t->state, TARGET_FOUND);
	tenant_of("evil")->attempts_cpu_ns = 1000000; /* of itself it waits for almost a minute */
	UNTIL(t->state == TARGET_STREAMING);
}

static void cpu_time_of_attempts_comes_back_slowly(void **state)
{
	struct tenant t = { 0 };

	(void)state;
	tenant_earn_attempts(&t, 1000000000);
	assert_int_equal(t.attempts_cpu_ns, 500000000); /* half a second: docs/security.md */
	t.attempts_cpu_ns = -900000000;
	tenant_earn_attempts(&t, 51000000000);
	assert_int_equal(t.attempts_cpu_ns, 100000000); /* a second in fifty */
	tenant_earn_attempts(&t, 5100000000000);
	assert_int_equal(t.attempts_cpu_ns, 500000000);
}

static void in_a_full_table_who_has_the_most_makes_room(void **state)
{
	(void)state;
	config.opt_in = true; /* nothing is attached to */
	table->bound = 6;
	for (int i = 0; i < 6; i++)
		assert_int_equal(add_of("evil", "talk", NULL), 0);
	assert_int_equal(add_of("evil", "talk", NULL), -ENOSPC);
	for (int i = 0; i < 3; i++)
		assert_int_equal(add_of("good", "talk", NULL), 0);
	assert_int_equal(displaced, 3);
	assert_int_equal(displaced_pid, pids[3]); /* the last one to come was the first to go */
	assert_int_equal(count_targets(), 6);
	assert_int_equal(add_of("good", "talk", NULL), -ENOSPC); /* it has as many */
	assert_int_equal(add_of("third", "talk", NULL), 0);
	assert_int_equal(count_targets(), 6);
	assert_int_equal(count("third", TARGET_EXCLUDED), 1);
}

static void one_that_streams_is_detached_before_it_makes_room(void **state)
{
	struct jvm jvm;
	struct target *t;
	pid_t first = process;

	(void)state;
	table->bound = 2;
	for (int i = 0; i < 2; i++)
		assert_int_equal(add_of("evil", "talk", NULL), 0);
	UNTIL(count("evil", TARGET_STREAMING) == 2);
	assert_int_equal(add_of("good", "talk", NULL), -ENOSPC);
	UNTIL(count("evil", TARGET_EXCLUDED) == 1);
	assert_int_equal(count("evil", TARGET_STREAMING), 1);
	assert_int_equal(displaced, 0);
	/* discovery reports it again */
	process = pids[2];
	fill_in(&jvm);
	process = first;
	strcpy(jvm.container_id, "good");
	assert_int_equal(targets_add(table, &jvm, clock_mono_ns(), &t), 0);
	assert_int_equal(displaced, 1);
	UNTIL(t->state == TARGET_STREAMING);
	assert_int_equal(count("evil", TARGET_STREAMING), 1);
}

static void an_evicted_target_comes_back_when_there_is_room(void **state)
{
	(void)state;
	table->bound = 2;
	for (int i = 0; i < 2; i++)
		assert_int_equal(add_of("evil", "talk", NULL), 0);
	UNTIL(count("evil", TARGET_STREAMING) == 2);
	assert_int_equal(add_of("good", "talk", NULL), -ENOSPC);
	UNTIL(count("evil", TARGET_EXCLUDED) == 1);
	table->bound = 3;
	targets_review_soon(table, 0);
	UNTIL(count("evil", TARGET_STREAMING) == 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TENANTS_TEST(one_whose_attaches_hang_has_half_of_the_places),
		TENANTS_TEST(tenants_take_turns),
		TENANTS_TEST(those_whose_attempts_failed_wait_for_their_turn_too),
		TENANTS_TEST(attempts_cost_their_tenant_cpu_time),
		cmocka_unit_test(cpu_time_of_attempts_comes_back_slowly),
		TENANTS_TEST(in_a_full_table_who_has_the_most_makes_room),
		TENANTS_TEST(one_that_streams_is_detached_before_it_makes_room),
		TENANTS_TEST(an_evicted_target_comes_back_when_there_is_room),
	};

	if (is_injector(argc, argv))
		return injector(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
