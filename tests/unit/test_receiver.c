/* The process that reads a pipe, and a pipe that does not answer. See fake_session.h. */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include "daemon/target/receiver.h"
#include "tests/unit/held_pipe.h"

static struct held_pipe held;

/* Runs also after a failed test: the leak checker waits for every thread. */
static int end(void **state)
{
	held_pipe_end(&held);
	return teardown(state);
}

/* Both receive what comes; between two rounds of the loop at most a second passes. */
static uint64_t longest_ns, last_ns;

static void watch_loop(void *userdata)
{
	uint64_t now = clock_mono_ns();

	(void)userdata;
	if (last_ns && now - last_ns > longest_ns)
		longest_ns = now - last_ns;
	last_ns = now;
}

static void a_pipe_that_does_not_answer_costs_its_target_only(void **state)
{
	uint8_t buf[WIRE_FRAME_MAX];
	struct loop_timer *watch;
	uint64_t total;
	struct target *t, *honest;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	(void)read_control(control, buf, sizeof(buf));
	hello(agent_fd, t->priv->session);
	UNTIL(samples == 1);
	honest = add_other("talk");
	UNTIL(samples == 2);
	longest_ns = last_ns = 0;
	assert_int_equal(loop_timer_add(loop, 0, 10 * NS_PER_MS, watch_loop, NULL, &watch), 0);
	if (!held_pipe_begin(&held, agent_fd))
		skip();
	UNTIL(t->state == TARGET_FAILED);
	assert_non_null(strstr(t->fault.what, "its pipe does not answer"));
	assert_int_equal(targets_stuck(table, &total), 0); /* it was just asked to end */
	assert_int_equal(total, 1);
	/* nothing ends the reader, and while it hangs no other is started */
	UNTIL(targets_stuck(table, &total) == 1);
	assert_int_equal(receiver_allowed(t), -EBUSY);
	UNTIL(t->attempts == 2);
	assert_int_equal(t->state, TARGET_FAILED);
	assert_int_equal(honest->state, TARGET_STREAMING);
	assert_int_equal(target_start(honest, NS_PER_MS, true), 0);
	UNTIL(samples == 3);
	assert_true(longest_ns < NS_PER_S);
	held_pipe_end(&held);
	UNTIL(targets_stuck(table, &total) == 0);
	UNTIL(t->state == TARGET_STREAMING); /* the page of zeros is removed */
	loop_timer_free(watch);
	end_other();
	close(control);
	close(agent_fd);
	remove_fifos();
}

/* One container may have only so many receivers that hang, and another container is not
 * affected. */
static void readers_that_wait_are_counted_by_container(void **state)
{
	struct child *living = (void *)(uintptr_t)1;
	struct target all[RECEIVERS_STUCK_MAX + 2] = { 0 };
	struct target_priv priv[RECEIVERS_STUCK_MAX + 2] = { 0 };
	struct targets made_up = { .first = &all[0] };
	struct tenant *one = (void *)&all[0], *two = (void *)&all[1];

	(void)state;
	for (int i = 0; i < RECEIVERS_STUCK_MAX + 2; i++) {
		all[i].priv = &priv[i];
		priv[i].table = &made_up;
		priv[i].stuck = i < RECEIVERS_STUCK_MAX ? living : NULL;
		priv[i].next = i < RECEIVERS_STUCK_MAX + 1 ? &all[i + 1] : NULL;
		priv[i].tenant = one;
	}
	priv[RECEIVERS_STUCK_MAX + 1].tenant = two;
	assert_int_equal(receiver_allowed(&all[RECEIVERS_STUCK_MAX]), -EBUSY);
	assert_int_equal(receiver_allowed(&all[RECEIVERS_STUCK_MAX + 1]), 0);
	priv[0].stuck = NULL;
	assert_int_equal(receiver_allowed(&all[RECEIVERS_STUCK_MAX]), 0);
	assert_int_equal(receiver_allowed(&all[1]), -EBUSY); /* its own */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_pipe_that_does_not_answer_costs_its_target_only,
						setup, end),
		LIFE_TEST(readers_that_wait_are_counted_by_container),
	};

	if (is_injector(argc, argv))
		return injector(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
