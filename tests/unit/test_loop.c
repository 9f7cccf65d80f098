#include "tests/unit/unit.h"
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include "daemon/core/loop.h"
#include "daemon/core/worker.h"
#include "daemon/ground/clock.h"

struct pair {
	struct loop *loop;
	struct loop_source *a, *b;
	int calls;
};

static void on_io_free_both(void *userdata, uint32_t events)
{
	struct pair *p = userdata;

	(void)events;
	p->calls++;
	p->a = loop_source_free(p->a);
	p->b = loop_source_free(p->b);
	loop_stop(p->loop, 0);
}

static void removed_source_is_not_called_in_the_same_round(void **state)
{
	struct pair p = { 0 };
	int x[2], y[2];

	(void)state;
	assert_int_equal(loop_new(&p.loop), 0);
	assert_int_equal(pipe(x), 0);
	assert_int_equal(pipe(y), 0);
	assert_int_equal(write(x[1], "x", 1), 1);
	assert_int_equal(write(y[1], "y", 1), 1);
	assert_int_equal(loop_add(p.loop, x[0], EPOLLIN, on_io_free_both, &p, &p.a), 0);
	assert_int_equal(loop_add(p.loop, y[0], EPOLLIN, on_io_free_both, &p, &p.b), 0);
	assert_int_equal(loop_run(p.loop), 0);
	assert_int_equal(p.calls, 1);
	for (int i = 0; i < 2; i++) {
		close(x[i]);
		close(y[i]);
	}
	loop_free(p.loop);
}

struct ticks {
	struct loop *loop;
	struct loop_timer *self, *other;
	int count;
};

static void on_tick_third_time_free(void *userdata)
{
	struct ticks *t = userdata;

	if (++t->count < 3)
		return;
	t->self = loop_timer_free(t->self);
	t->other = loop_timer_free(t->other);
	loop_stop(t->loop, 42);
}

static void on_never(void *userdata)
{
	(void)userdata;
	fail();
}

static void a_timer_may_free_itself_and_others(void **state)
{
	struct ticks t = { 0 };

	(void)state;
	assert_int_equal(loop_new(&t.loop), 0);
	assert_int_equal(loop_timer_add(t.loop, 3600 * NS_PER_S, 0, on_never, NULL, &t.other), 0);
	assert_int_equal(
		loop_timer_add(t.loop, 0, NS_PER_MS, on_tick_third_time_free, &t, &t.self), 0);
	assert_int_equal(loop_run(t.loop), 42);
	assert_int_equal(t.count, 3);
	loop_free(t.loop);
}

static void on_signal_stop(void *userdata, int signo)
{
	loop_stop(userdata, signo);
}

static void a_signal_is_a_call_from_the_loop(void **state)
{
	struct loop *loop;

	(void)state;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(loop_signal(loop, SIGUSR1, on_signal_stop, loop), 0);
	assert_int_equal(loop_signal(loop, SIGUSR2, on_signal_stop, loop), 0);
	assert_int_equal(raise(SIGUSR2), 0);
	assert_int_equal(loop_run(loop), SIGUSR2);
	loop_free(loop);
}

static int ran, finished;

static void run_job(void *userdata)
{
	(void)userdata;
	ran++;
}

static void done_job(void *userdata)
{
	if (++finished == 100 && userdata)
		loop_stop(userdata, 0);
}

static void every_accepted_job_runs_and_is_reported_once(void **state)
{
	struct worker *w;
	struct loop *loop;
	int accepted = 0;

	(void)state;
	ran = finished = 0;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(worker_new(loop, &w), 0);
	while (accepted < 100) {
		int r = worker_submit(w, run_job, done_job, loop);

		if (r == -EBUSY)
			assert_int_equal(loop_round(loop, NS_PER_MS), 0);
		else
			accepted++;
	}
	worker_free(w);
	assert_int_equal(ran, 100);
	assert_int_equal(finished, 100);
	loop_free(loop);
}

static void on_tick_note_now(void *userdata)
{
	struct ticks *t = userdata;
	const struct loop_now first = *loop_now(t->loop), *again;

	while (clock_mono_ns() < first.mono_ns + NS_PER_MS)
		;
	again = loop_now(t->loop);
	assert_int_equal(again->mono_ns, first.mono_ns);
	assert_int_equal(again->real_ns, first.real_ns);
	t->count++;
}

static void the_time_is_that_of_the_round(void **state)
{
	struct ticks t = { 0 };
	uint64_t before;

	(void)state;
	assert_int_equal(loop_new(&t.loop), 0);
	assert_int_equal(loop_timer_add(t.loop, 0, 0, on_tick_note_now, &t, &t.self), 0);
	for (int i = 0; i < 2; i++) {
		before = clock_mono_ns();
		assert_int_equal(loop_round(t.loop, NS_PER_MS), 0);
		assert_true(loop_now(t.loop)->mono_ns >= before);
		loop_timer_set(t.self, 0, 0);
	}
	assert_int_equal(t.count, 2);
	loop_timer_free(t.self);
	loop_free(t.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removed_source_is_not_called_in_the_same_round),
		cmocka_unit_test(a_timer_may_free_itself_and_others),
		cmocka_unit_test(a_signal_is_a_call_from_the_loop),
		cmocka_unit_test(every_accepted_job_runs_and_is_reported_once),
		cmocka_unit_test(the_time_is_that_of_the_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
