/* Which times off the CPU the off-CPU engine sends a signal for when there are more than it may
 * send. */
#include "tests/unit/unit.h"
#include <stdbool.h>
#include <unistd.h>
#include "tests/unit/offcpu_engines.h"

#define LONG_WAITS 40

static void signals_beyond_the_budget_are_counted_and_the_minimum_grows(void **state)
{
	struct offcpu_minimums before[OFFCPU_PARTS], minimums[OFFCPU_PARTS];
	struct offcpu_counts c;
	pid_t pid = offcpu_child(SLEEPING);

	(void)state;
	offcpu_engines_or_skip(100);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_tick(seen.engine);
	for (int i = 0; i < 100; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, before));
		if (c.over_budget > 100)
			break;
	}
	assert_true(c.over_budget > 100);
	assert_true(c.over_budget_ns > c.over_budget * OFFCPU_MIN_NS_LEAST);
	offcpu_counts_add_up(pid);
	/* waits for work give way first; here there are none */
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_NOTHING);
	offcpu_engine_tick(seen.engine);
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_LONG);
	usleep(500000);
	offcpu_engine_tick(seen.engine);
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_LONG_RECORDS);
	usleep(500000);
	offcpu_engine_tick(seen.engine);
	assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
	assert_int_equal(before[OFFCPU_WAITS].record_ns, OFFCPU_MIN_NS_LEAST);
	assert_int_equal(before[OFFCPU_WAITS].signal_ns, OFFCPU_MIN_NS_LEAST);
	assert_int_equal(minimums[OFFCPU_WAITS].signal_ns, 2 * OFFCPU_MIN_NS_LEAST);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void signals_that_cost_much_become_fewer(void **state)
{
	struct offcpu_state before, after;
	pid_t pid = offcpu_child(MIXED);

	(void)state;
	offcpu_engines_or_skip(100000);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_state(seen.engine, &before);
	assert_true(before.all_signals_per_s >= 100000);
	assert_int_equal(before.signal_price_ns, 0);
	for (int i = 0; i < 3; i++) {
		offcpu_engine_tick(seen.engine);
		usleep(500000);
	}
	offcpu_engine_state(seen.engine, &after);
	print_message("a signal costs %lu ns: %lu a second, of %lu\n",
		      (unsigned long)after.signal_price_ns, (unsigned long)after.all_signals_per_s,
		      (unsigned long)before.all_signals_per_s);
	assert_in_range(after.signal_price_ns, 100, 20000);
	assert_true(after.all_signals_per_s < before.all_signals_per_s);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void their_number_follows_what_they_cost(void **state)
{
	struct offcpu_state before, after;
	pid_t pid = offcpu_child(MIXED);

	(void)state;
	offcpu_engines_or_skip(60);
	offcpu_engine_follow_price(seen.engine);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_state(seen.engine, &before);
	assert_int_equal(before.signals_per_s, 60);
	for (int i = 0; i < 3; i++) {
		offcpu_engine_tick(seen.engine);
		usleep(1000000);
	}
	offcpu_engine_state(seen.engine, &after);
	assert_in_range(after.signals_per_s, offcpu_engine_affordable(20000) / 2,
			offcpu_engine_affordable(100));
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void those_that_use_the_signals_up_leave_others_theirs(void **state)
{
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t greedy[2] = { offcpu_child(SLEEPING), offcpu_child(SLEEPING) },
	      pid = offcpu_child(SELDOM);
	struct offcpu_counts c = { 0 }, of_greedy;

	(void)state;
	offcpu_engines_or_skip(200);
	offcpu_child_wait();
	offcpu_measure(greedy[0], shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_measure(greedy[1], shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	while (c.signalled < LONG_WAITS && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
	}
	assert_true(offcpu_engine_target(seen.engine, greedy[0], &of_greedy, minimums));
	print_message("%u of %u seldom ones are signalled, %u of %u others\n",
		      (unsigned)c.signalled, (unsigned)c.intervals, (unsigned)of_greedy.signalled,
		      (unsigned)of_greedy.intervals);
	assert_true(of_greedy.over_budget > 0);
	assert_true(c.signalled >= LONG_WAITS);
	assert_int_equal(offcpu_waits_over_budget(pid), 0);
	for (int i = 0; i < 2; i++)
		offcpu_child_end(greedy[i]);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static unsigned count_seen(bool is_long, unsigned flag)
{
	unsigned n = 0;

	for (unsigned i = 0; i < seen.n; i++)
		n += (seen.intervals[i].duration_ns >= LONG_NS) == is_long &&
		     (!flag || seen.intervals[i].flags & flag);
	return n;
}

static void short_times_do_not_use_up_the_signals_of_long_ones(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	unsigned n_short, n_long, short_over, long_over;
	pid_t pid = offcpu_child(MIXED);

	(void)state;
	offcpu_engines_or_skip(200);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	while (count_seen(true, 0) < LONG_WAITS && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	n_short = count_seen(false, 0);
	n_long = count_seen(true, 0);
	short_over = count_seen(false, OFFCPU_OVER_BUDGET);
	long_over = count_seen(true, OFFCPU_OVER_BUDGET);
	print_message("over the budget: %u of %u short times, %u of %u long ones\n", short_over,
		      n_short, long_over, n_long);
	assert_true(n_long >= LONG_WAITS);
	assert_true(short_over > n_short / 4);
	assert_true(long_over < n_long / 2);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static unsigned count_class(enum offcpu_class class, unsigned flag)
{
	unsigned n = 0;

	for (unsigned i = 0; i < seen.n; i++)
		n += seen.intervals[i].class == class && (!flag || seen.intervals[i].flags & flag);
	return n;
}

static void times_in_the_run_queue_do_not_use_up_the_signals_of_waits(void **state)
{
	struct offcpu_minimums now[OFFCPU_PARTS];
	unsigned sleeps, queued, of_sleeps, of_queued;
	pid_t pid = offcpu_child(CROWDED);
	struct offcpu_counts c;

	(void)state;
	offcpu_engines_or_skip(200);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	for (int s = 0; s < 6; s++) {
		if (s == 3)
			seen.n = 0; /* the engine knows by now what waits need */
		for (int i = 0; i < 50; i++) {
			usleep(20000);
			offcpu_engine_drain(seen.engine);
		}
		offcpu_engine_tick(seen.engine);
	}
	sleeps = count_class(OFFCPU_SLEEP, 0);
	of_sleeps = count_class(OFFCPU_SLEEP, OFFCPU_SIGNALLED);
	queued = count_class(OFFCPU_RUNQUEUE, 0);
	of_queued = count_class(OFFCPU_RUNQUEUE, OFFCPU_SIGNALLED);
	assert_true(offcpu_engine_target(seen.engine, pid, &c, now));
	print_message(
		"signalled: %u of %u sleeps, %u of %u times in the run queue from %lu ns on\n",
		of_sleeps, sleeps, of_queued, queued, (unsigned long)now[OFFCPU_QUEUED].record_ns);
	assert_true(sleeps > 100);
	assert_true(of_sleeps > sleeps - sleeps / 10);
	assert_int_equal(now[OFFCPU_WAITS].signal_ns, NS_PER_MS);
	assert_true(of_queued > 0);
	assert_true(now[OFFCPU_QUEUED].signal_ns > NS_PER_MS);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_beyond_the_budget_are_counted_and_the_minimum_grows),
		cmocka_unit_test(signals_that_cost_much_become_fewer),
		cmocka_unit_test(their_number_follows_what_they_cost),
		cmocka_unit_test(those_that_use_the_signals_up_leave_others_theirs),
		cmocka_unit_test(short_times_do_not_use_up_the_signals_of_long_ones),
		cmocka_unit_test(times_in_the_run_queue_do_not_use_up_the_signals_of_waits),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
