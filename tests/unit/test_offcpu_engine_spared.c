/* What threads are spared that wait for work again and again, or for locks, and how they are asked
 * whether they still do. */
#include "tests/unit/unit.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "daemon/bpf/offcpu_engine_priv.h"
#include "tests/unit/offcpu_engines.h"

/* The only target, as the programs see it. */
static struct offcpu_target *mapped(pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (seen.engine->entries[i].pid == pid)
			return offcpu_mapped(seen.engine, i);
	assert_true(false);
	return NULL;
}

static uint64_t waits_signalled(pid_t pid)
{
	return mapped(pid)->parts[OFFCPU_WAITS].signalled;
}

static bool always; /* the habit, in counts_after() */

/* Counts of the only target, @ms milliseconds later, in which each 20 ms @habit was called. */
static struct offcpu_counts counts_after(pid_t pid, unsigned ms, bool habit)
{
	struct offcpu_counts c = { 0 };
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	uint64_t end_ns = clock_mono_ns() + ms * NS_PER_MS;

	/* a busy machine sleeps longer, and habits end by the clock */
	while (clock_mono_ns() < end_ns) {
		if (habit)
			offcpu_engine_idle_habit(seen.engine, pid, (uint32_t)pid, OFFCPU_SLEEP,
						 always, clock_mono_ns());
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
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

/* A second after its last stack the thread is asked by a signal whether its habit goes on; without
 * an answer it ends another second later. Returns the counts then. */
static struct offcpu_counts ends_when_it_is_not_confirmed(pid_t pid)
{
	struct offcpu_counts before = counts_after(pid, 1200, false), c;

	c = counts_after(pid, 400, false);
	assert_true(c.spared > before.spared + 100);
	before = counts_after(pid, 800, false);
	c = counts_after(pid, 500, false);
	assert_int_equal(c.spared, before.spared);
	return c;
}

static void waits_for_work_have_no_events_while_signals_are_short(void **state)
{
	pid_t pid = begin_spared(NS_PER_MS / 10);
	struct offcpu_counts before = counts_after(pid, 0, true), c = counts_after(pid, 500, true);

	(void)state;
	assert_true(c.spared > before.spared + 100);
	/* other work on this CPU makes a few longer, and some are times in the run queue */
	assert_true((c.intervals - before.intervals) * 10 < c.spared - before.spared);
	ends_when_it_is_not_confirmed(pid);
	assert_true(counts_after(pid, 500, false).signalled > c.signalled);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void long_waits_for_work_lose_their_signals_before_their_records(void **state)
{
	pid_t pid = begin_spared(OFFCPU_MIN_NS_LEAST);
	struct offcpu_counts before = counts_after(pid, 0, true), c = counts_after(pid, 500, true);

	(void)state;
	assert_true(c.unneeded > before.unneeded + 10);
	assert_true((c.signalled + c.over_budget - before.signalled - before.over_budget) * 10 <
		    c.spared - before.spared);
	assert_true(c.spared - before.spared >= c.unneeded - before.unneeded);
	offcpu_counts_add_up(pid);
	mapped(pid)->spares = OFFCPU_SPARES_LONG_RECORDS;
	before = counts_after(pid, 20, true);
	c = counts_after(pid, 500, true);
	assert_true(c.spared > before.spared + 100);
	assert_true((c.intervals - before.intervals) * 10 < c.spared - before.spared);
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
	/* on a busy machine most signals are for times in the run queue, which do not count here */
	for (int i = 0; i < 100; i++) {
		before = counts_after(pid, 100, true);
		if (waits_signalled(pid) > 20000 / 4)
			break;
	}
	assert_true(waits_signalled(pid) > 20000 / 4);
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
	c = ends_when_it_is_not_confirmed(pid);
	assert_true(counts_after(pid, 500, false).signalled > c.signalled + 100);
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

/* No time off the CPU is long enough for a signal. */
static void without_signals(pid_t pid)
{
	for (int part = 0; part < OFFCPU_PARTS; part++)
		mapped(pid)->parts[part].signal_min_ns = NS_PER_S;
}

static void waits_too_short_for_a_signal_are_asked_all_the_same(void **state)
{
	pid_t pid = begin_spared(NS_PER_MS / 10);
	struct offcpu_counts before, c;

	(void)state;
	without_signals(pid);
	before = counts_after(pid, 40, true);
	for (unsigned i = 1; i <= 3; i++) {
		c = counts_after(pid, 1300, false);
		assert_int_equal(c.signalled, before.signalled + i);
		(void)counts_after(pid, 20, true);
	}
	assert_true(c.spared > before.spared + 500);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void without_a_signal_to_ask_a_habit_goes_on_for_16_seconds(void **state)
{
	pid_t pid = begin_spared(NS_PER_MS / 10);
	struct offcpu_counts before, c;

	(void)state;
	mapped(pid)->signals_max = 0;
	offcpu_engine_idle_habit(seen.engine, pid, (uint32_t)pid, OFFCPU_SLEEP, false,
				 clock_mono_ns() - 14 * NS_PER_S);
	before = counts_after(pid, 500, false);
	c = counts_after(pid, 500, false);
	assert_true(c.spared > before.spared + 100);
	assert_true(mapped(pid)->unasked > 100);
	before = counts_after(pid, 1200, false);
	c = counts_after(pid, 500, false);
	assert_int_equal(c.spared, before.spared);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void threads_ask_later_when_too_many_would(void **state)
{
	pid_t pid = begin_spared(NS_PER_MS / 10);
	struct offcpu_counts before;

	(void)state;
	without_signals(pid);
	mapped(pid)->habit_ns = 2 * NS_PER_S;
	before = counts_after(pid, 40, true);
	assert_int_equal(counts_after(pid, 1700, false).signalled, before.signalled);
	assert_int_equal(counts_after(pid, 500, false).signalled, before.signalled + 1);
	assert_int_equal(mapped(pid)->asked, 1);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void lock_events_begin_a_habit_and_stacks_go_on_with_it(void **state)
{
	pid_t pid = begin_spared(NS_PER_MS / 10);
	struct offcpu_thread *t = offcpu_threads_find(&seen.engine->programs, pid, (uint32_t)pid);

	(void)state;
	assert_non_null(t);
	t->idle_ns = t->idle_class = 0;
	seen.engine->entries[t->target].minimum.spares = OFFCPU_SPARES_RECORDS;
	offcpu_engine_waits_for_work(seen.engine, pid, (uint32_t)pid, NS_PER_S);
	assert_int_equal(t->idle_ns, 0);
	seen.engine->entries[t->target].minimum.spares = OFFCPU_SPARES_LONG;
	for (uint64_t s = 1; s <= 2; s++) {
		offcpu_engine_waits_for_work(seen.engine, pid, (uint32_t)pid, s * NS_PER_S);
		assert_int_equal(t->idle_ns, NS_PER_S);
		assert_int_equal(t->idle_class, OFFCPU_FUTEX);
	}
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* Counts of the only target, @ms milliseconds later, in which each 20 ms a lock event told of a
 * wait of its thread that ended then. */
static struct offcpu_counts counts_told(pid_t pid, unsigned ms)
{
	for (unsigned i = 0; i < ms; i += 20) {
		offcpu_engine_told_habit(seen.engine, pid, (uint32_t)pid, clock_mono_ns());
		(void)counts_after(pid, 20, false);
	}
	return counts_after(pid, 0, false);
}

/* Waits in futexes of some 0.25 ms, with signals for all. */
static pid_t begin_told(enum offcpu_spares spares)
{
	pid_t pid = offcpu_child(PARKING);
	struct offcpu_counts before, c;

	offcpu_engines_or_skip(20000);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS / 10);
	/* while nothing is short a habit changes nothing */
	before = counts_told(pid, 40);
	c = counts_told(pid, 500);
	assert_int_equal(c.spared, 0);
	assert_true(c.signalled > before.signalled + 200);
	mapped(pid)->spares = spares;
	return pid;
}

/* Without a lock event that tells of them, the waits have signals again: at once if @untold, else
 * after a second. */
static void ends_when_nothing_tells(pid_t pid, bool untold)
{
	struct offcpu_counts before = counts_told(pid, 40), c;

	if (untold) {
		offcpu_engine_told_habit(seen.engine, pid, (uint32_t)pid, 0);
	} else {
		c = counts_after(pid, 600, false);
		assert_true(c.spared > before.spared + 200);
		(void)counts_after(pid, 600, false);
	}
	before = counts_after(pid, 20, false);
	c = counts_after(pid, 500, false);
	assert_int_equal(c.spared, before.spared);
	assert_true(c.signalled > before.signalled + 200);
}

static void waits_of_which_lock_events_tell_need_no_signals(void **state)
{
	pid_t pid = begin_told(OFFCPU_SPARES_SIGNALS);
	struct offcpu_counts before = counts_told(pid, 40), c = counts_told(pid, 1000);

	(void)state;
	assert_true(c.spared > before.spared + 500);
	assert_int_equal(c.spared - before.spared, c.unneeded - before.unneeded);
	/* one in 32 asks; and some are times in the run queue */
	assert_true(c.signalled > before.signalled);
	assert_true((c.signalled - before.signalled) * 8 < c.spared - before.spared);
	ends_when_nothing_tells(pid, false);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void waits_of_which_lock_events_tell_need_no_records(void **state)
{
	pid_t pid = begin_told(OFFCPU_SPARES_RECORDS);
	struct offcpu_counts before = counts_told(pid, 40), c = counts_told(pid, 1000);

	(void)state;
	assert_true(c.spared > before.spared + 500);
	assert_true(c.signalled > before.signalled);
	/* other work on this CPU makes a few long */
	assert_true((c.intervals - before.intervals) * 8 < c.spared - before.spared);
	ends_when_nothing_tells(pid, true);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void no_lock_event_tells_of_a_sleep(void **state)
{
	pid_t pid = offcpu_child(SLEEPING);
	struct offcpu_counts c;

	(void)state;
	offcpu_engines_or_skip(20000);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS / 10);
	mapped(pid)->spares = OFFCPU_SPARES_RECORDS;
	c = counts_told(pid, 500);
	assert_int_equal(c.spared, 0);
	assert_true(c.signalled > 200);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* All threads of @pid wait for work, as their stacks told just now. */
static void all_threads_wait_for_work(pid_t pid)
{
	const struct dirent *entry;
	char path[32];
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	threads = opendir(path);
	assert_non_null(threads);
	while ((entry = readdir(threads)))
		offcpu_engine_idle_habit(seen.engine, pid,
					 (uint32_t)strtoul(entry->d_name, NULL, 10), OFFCPU_SLEEP,
					 false, clock_mono_ns());
	closedir(threads);
}

static void half_of_the_signals_are_not_for_asking(void **state)
{
	pid_t pid = offcpu_child(MANY);
	const struct offcpu_target *m;
	uint64_t most = 0, asked;

	(void)state;
	offcpu_engines_or_skip(100);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	offcpu_engine_tick(seen.engine);
	(void)counts_after(pid, 1000, false);
	offcpu_engine_tick(seen.engine);
	assert_true(offcpu_engine_spares(seen.engine, pid) >= OFFCPU_SPARES_LONG);
	all_threads_wait_for_work(pid);
	m = mapped(pid);
	for (int i = 0; i < 1000; i++) {
		usleep(2000);
		asked = m->asked_in_window;
		most = asked > most ? asked : most;
	}
	assert_int_equal(most, m->signals_max / 2 + 1);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_for_work_keep_their_records_while_there_are_many_signals),
		cmocka_unit_test(long_waits_for_work_have_their_signals_then),
		cmocka_unit_test(waits_for_work_have_no_events_while_signals_are_short),
		cmocka_unit_test(threads_without_java_lose_their_records_first),
		cmocka_unit_test(long_waits_for_work_lose_their_signals_before_their_records),
		cmocka_unit_test(waits_too_short_for_a_signal_are_asked_all_the_same),
		cmocka_unit_test(without_a_signal_to_ask_a_habit_goes_on_for_16_seconds),
		cmocka_unit_test(threads_ask_later_when_too_many_would),
		cmocka_unit_test(lock_events_begin_a_habit_and_stacks_go_on_with_it),
		cmocka_unit_test(waits_of_which_lock_events_tell_need_no_signals),
		cmocka_unit_test(waits_of_which_lock_events_tell_need_no_records),
		cmocka_unit_test(no_lock_event_tells_of_a_sleep),
		cmocka_unit_test(half_of_the_signals_are_not_for_asking),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
