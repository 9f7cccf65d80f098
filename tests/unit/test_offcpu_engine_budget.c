/* Which times off the CPU the off-CPU engine sends a signal for when there are more than it may
 * send. */
#include "tests/unit/unit.h"
#include <stdbool.h>
#include <unistd.h>
#include "tests/unit/offcpu_engines.h"

#define LONG_WAITS 40

static void signals_beyond_the_budget_are_counted_and_the_minimum_grows(void **state)
{
	struct offcpu_minimums before = { 0 }, minimums = { 0 };
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
		assert_true(offcpu_engine_target(seen.engine, pid, &c, &before));
		if (c.over_budget > 100)
			break;
	}
	assert_true(c.over_budget > 100);
	assert_true(c.over_budget_ns > c.over_budget * OFFCPU_MIN_NS_LEAST);
	assert_int_equal(c.intervals, c.signalled + c.over_budget + c.unreachable + c.lost);
	/* waits for work give way first; here there are none */
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_NOTHING);
	offcpu_engine_tick(seen.engine);
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_LONG);
	usleep(500000);
	offcpu_engine_tick(seen.engine);
	assert_true(offcpu_engine_target(seen.engine, pid, &c, &minimums));
	assert_int_equal(before.record_ns, OFFCPU_MIN_NS_LEAST);
	assert_int_equal(before.signal_ns, OFFCPU_MIN_NS_LEAST);
	assert_int_equal(minimums.signal_ns, 2 * OFFCPU_MIN_NS_LEAST);
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

static void those_that_use_the_signals_up_leave_others_theirs(void **state)
{
	struct offcpu_minimums minimums;
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
		assert_true(offcpu_engine_target(seen.engine, pid, &c, &minimums));
	}
	assert_true(offcpu_engine_target(seen.engine, greedy[0], &of_greedy, &minimums));
	print_message("%u of %u seldom ones are signalled, %u of %u others\n",
		      (unsigned)c.signalled, (unsigned)c.intervals, (unsigned)of_greedy.signalled,
		      (unsigned)of_greedy.intervals);
	assert_true(of_greedy.over_budget > 0);
	assert_true(c.signalled >= LONG_WAITS);
	assert_int_equal(c.over_budget, 0);
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

static bool always; /* the habit, in counts_after() */

/* Counts of the only target, @ms milliseconds later, in which each 20 ms @habit was called. */
static struct offcpu_counts counts_after(pid_t pid, unsigned ms, bool habit)
{
	struct offcpu_counts c = { 0 };
	struct offcpu_minimums minimums;

	for (unsigned i = 0; i < ms; i += 20) {
		if (habit)
			offcpu_engine_idle_habit(seen.engine, pid, (uint32_t)pid, OFFCPU_SLEEP,
						 always, clock_mono_ns());
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	assert_true(offcpu_engine_target(seen.engine, pid, &c, &minimums));
	return c;
}

/* Waits for work of some 0.25 ms: a habit is told from the second that was too much on. */
static pid_t begin_spared(uint64_t min_ns)
{
	struct offcpu_counts c;
	pid_t pid = offcpu_child(SLEEPING);

	offcpu_engines_or_skip(100);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, min_ns);
	offcpu_engine_tick(seen.engine);
	/* while signals are not short a habit changes nothing */
	c = counts_after(pid, 500, true);
	assert_int_equal(c.spared + c.unneeded, 0);
	assert_true(c.over_budget > 0);
	offcpu_engine_tick(seen.engine);
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_LONG);
	(void)counts_after(pid, 40, true);
	return pid;
}

static void waits_for_work_have_no_events_while_signals_are_short(void **state)
{
	pid_t pid = begin_spared(NS_PER_MS / 10);
	struct offcpu_counts before = counts_after(pid, 0, true), c = counts_after(pid, 500, true);

	(void)state;
	assert_true(c.spared > before.spared + 100);
	/* other work on this CPU makes a few longer, and some are times in the run queue */
	assert_true((c.intervals - before.intervals) * 10 < c.spared - before.spared);
	/* a habit that is not confirmed ends within a second */
	before = counts_after(pid, 1100, false);
	c = counts_after(pid, 500, false);
	assert_int_equal(c.spared, before.spared);
	assert_true(c.signalled > before.signalled);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void long_waits_for_work_have_records_without_signals_then(void **state)
{
	pid_t pid = begin_spared(OFFCPU_MIN_NS_LEAST);
	struct offcpu_counts before = counts_after(pid, 0, true), c = counts_after(pid, 500, true);

	(void)state;
	assert_true(c.unneeded > before.unneeded + 10);
	assert_true((c.signalled + c.over_budget - before.signalled - before.over_budget) * 10 <
		    c.spared - before.spared);
	assert_true(c.spared - before.spared >= c.unneeded - before.unneeded);
	assert_int_equal(c.intervals,
			 c.signalled + c.over_budget + c.unreachable + c.unneeded + c.lost);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* A JVM's own thread that sleeps for some 0.25 ms, again and again. */
static void threads_without_java_lose_their_records_first(void **state)
{
	pid_t pid = offcpu_child(SLEEPING);
	struct offcpu_counts before, c;

	(void)state;
	offcpu_engines_or_skip(100);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS / 10);
	for (int i = 0; i < OFFCPU_BARE_STACKS_ENOUGH; i++)
		offcpu_engine_bare_stack(seen.engine, pid, (uint32_t)pid);
	offcpu_engine_tick(seen.engine);
	before = counts_after(pid, 1000, false);
	assert_true(before.unneeded > 200);
	assert_int_equal(before.spared, 0);
	offcpu_engine_tick(seen.engine);
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_RECORDS);
	before = counts_after(pid, 40, false);
	c = counts_after(pid, 500, false);
	assert_true(c.spared > before.spared + 100);
	assert_true((c.intervals - before.intervals) * 10 < c.spared - before.spared);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* Waits for work of some 0.25 ms: signals are not short, but each costs more than its record. */
static pid_t begin_many_signals(uint64_t min_ns)
{
	pid_t pid = offcpu_child(SLEEPING);
	struct offcpu_counts before;

	offcpu_engines_or_skip(20000);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, min_ns);
	offcpu_engine_tick(seen.engine);
	for (int i = 0; i < 100; i++) {
		before = counts_after(pid, 100, true);
		if (before.signalled > 20000 / 4)
			break;
	}
	assert_true(before.signalled > 20000 / 4);
	assert_int_equal(before.spared + before.unneeded, 0);
	offcpu_engine_tick(seen.engine);
	assert_int_equal(offcpu_engine_spares(seen.engine, pid), OFFCPU_SPARES_SIGNALS);
	return pid;
}

static void waits_for_work_keep_their_records_while_there_are_many_signals(void **state)
{
	pid_t pid = begin_many_signals(NS_PER_MS / 10);
	struct offcpu_counts before, c;

	(void)state;
	/* eight such waits are no habit yet */
	c = counts_after(pid, 500, true);
	assert_int_equal(c.spared + c.unneeded, 0);
	always = true;
	before = counts_after(pid, 40, true);
	c = counts_after(pid, 500, true);
	always = false;
	assert_true(c.spared > before.spared + 100);
	assert_int_equal(c.spared - before.spared, c.unneeded - before.unneeded);
	/* some are times in the run queue */
	assert_true((c.signalled - before.signalled) * 10 < c.unneeded - before.unneeded);
	/* a habit that is not confirmed ends within a second */
	before = counts_after(pid, 1100, false);
	c = counts_after(pid, 500, false);
	assert_int_equal(c.spared, before.spared);
	assert_true(c.signalled > before.signalled + 100);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void long_waits_for_work_have_their_signals_then(void **state)
{
	pid_t pid = begin_many_signals(OFFCPU_MIN_NS_LEAST);
	struct offcpu_counts before = counts_after(pid, 0, true), c;

	(void)state;
	always = true;
	c = counts_after(pid, 500, true);
	always = false;
	assert_true(c.signalled > before.signalled + 100);
	assert_true((c.spared - before.spared) * 10 < c.signalled - before.signalled);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_beyond_the_budget_are_counted_and_the_minimum_grows),
		cmocka_unit_test(signals_that_cost_much_become_fewer),
		cmocka_unit_test(those_that_use_the_signals_up_leave_others_theirs),
		cmocka_unit_test(short_times_do_not_use_up_the_signals_of_long_ones),
		cmocka_unit_test(waits_for_work_keep_their_records_while_there_are_many_signals),
		cmocka_unit_test(long_waits_for_work_have_their_signals_then),
		cmocka_unit_test(waits_for_work_have_no_events_while_signals_are_short),
		cmocka_unit_test(threads_without_java_lose_their_records_first),
		cmocka_unit_test(long_waits_for_work_have_records_without_signals_then),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
