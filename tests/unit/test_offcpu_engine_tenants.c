/* What a tenant has for itself of the off-CPU engine: signals, entries in the table, room in the
 * ring. */
#include "tests/unit/unit.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000
#define LONG_WAITS    40

static struct offcpu_counts counts_of(pid_t pid)
{
	struct offcpu_counts c;
	struct offcpu_minimums minimums[OFFCPU_PARTS];

	assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
	return c;
}

/* However many targets one tenant has, they share what it has for itself. */
static void a_tenant_of_many_targets_leaves_others_their_signals(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t greedy[8], pid;
	struct offcpu_counts c = { 0 };

	(void)state;
	offcpu_engines_or_skip(100);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++) {
		greedy[i] = offcpu_child(SLEEPING);
		offcpu_child_wait();
		offcpu_measure_of(1, greedy[i], OFFCPU_MIN_NS_LEAST);
	}
	pid = offcpu_child(SELDOM);
	offcpu_child_wait();
	offcpu_measure_of(2, pid, OFFCPU_MIN_NS_LEAST);
	while (c.signalled < LONG_WAITS && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		c = counts_of(pid);
	}
	assert_true(counts_of(greedy[0]).over_budget > 0);
	assert_true(c.signalled >= LONG_WAITS);
	assert_int_equal(offcpu_waits_over_budget(pid), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		offcpu_child_end(greedy[i]);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* 64 slots: 48 for who is alone, then 12 at least for each of two tenants. */
static void who_has_many_threads_leaves_others_room_in_the_table(void **state)
{
	pid_t greedy = offcpu_child(MANY), pid;
	uint64_t all = 0;

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_engine_limit_threads(seen.engine, 64);
	offcpu_measure_of(1, greedy, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 200 && counts_of(greedy).crowded < MANY_THREADS - 48; i++)
		usleep(20000);
	assert_true(counts_of(greedy).crowded > 0);
	assert_in_range(offcpu_threads_of(greedy), 48, 50); /* two CPUs may ask at once */
	/* those that were there first may have asked more than once before the last one began */
	for (int i = 0; i < 200 && all < MANY_THREADS + 1; i++) {
		usleep(20000);
		offcpu_engine_tick(seen.engine);
		all = offcpu_engine_without_slot(seen.engine, greedy) + offcpu_threads_of(greedy);
	}
	assert_int_equal(all, MANY_THREADS + 1);
	pid = offcpu_child(WAITING);
	offcpu_child_wait();
	offcpu_measure_of(2, pid, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 500 && __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < KINDS; i++)
		usleep(20000);
	assert_int_equal(counts_of(pid).crowded, 0);
	for (int kind = 0; kind < KINDS; kind++)
		(void)offcpu_times_of(pid, shared->tids[kind]);
	/* who goes gives its room back, and who is alone has most of the table */
	offcpu_engine_remove(seen.engine, greedy);
	offcpu_child_end(greedy);
	offcpu_engine_remove(seen.engine, pid);
	offcpu_child_end(pid);
	assert_int_equal(offcpu_threads_of(0), 0);
	greedy = offcpu_child(MANY);
	offcpu_child_wait();
	offcpu_measure_of(1, greedy, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 200 && counts_of(greedy).crowded < MANY_THREADS - 48; i++)
		usleep(20000);
	assert_in_range(offcpu_threads_of(greedy), 48, 50);
	offcpu_child_end(greedy);
	offcpu_engines_free();
}

/* Nobody empties the ring any more, which the greedy ones would fill within a second. */
static void who_fills_the_ring_leaves_others_room_in_it(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t greedy[2], pid;

	(void)state;
	offcpu_engines_or_skip(100000);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++) {
		greedy[i] = offcpu_child(STORMING);
		offcpu_child_wait();
		offcpu_measure_of(1, greedy[i], OFFCPU_MIN_NS_LEAST);
	}
	pid = offcpu_child(SELDOM);
	offcpu_child_wait();
	offcpu_measure_of(2, pid, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_drain(seen.engine);
	while ((counts_of(greedy[0]).lost < 1000 || counts_of(pid).intervals < LONG_WAITS) &&
	       clock_mono_ns() < deadline)
		usleep(20000);
	print_message("lost: %u of %u, of others %u of %u\n", (unsigned)counts_of(pid).lost,
		      (unsigned)counts_of(pid).intervals, (unsigned)counts_of(greedy[0]).lost,
		      (unsigned)counts_of(greedy[0]).intervals);
	assert_true(counts_of(greedy[0]).lost >= 1000);
	assert_true(counts_of(pid).intervals >= LONG_WAITS);
	assert_int_equal(counts_of(pid).lost, 0);
	/* a storm that goes on can keep the kernel for a minute from releasing a process that ended
	 */
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		kill(greedy[i], SIGKILL);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		offcpu_child_end(greedy[i]);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tenant_of_many_targets_leaves_others_their_signals),
		cmocka_unit_test(who_has_many_threads_leaves_others_room_in_the_table),
		cmocka_unit_test(who_fills_the_ring_leaves_others_room_in_it),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
