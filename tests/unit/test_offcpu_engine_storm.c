/* What the off-CPU engine does when context switches cost too much. A tick measures the time since
 * the last one, so it need not be a second. */
#include "tests/unit/unit.h"
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>
#include "daemon/bpf/offcpu_engine_priv.h"
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000
#define ENOUGH_SWITCHES                                                           \
	220000 /* a second, on two CPUs, to cost more than 1 % without any target \
		*/

/* A tick that decides who rests. One run of the programs in 64 is timed, of at most 20 us: in a
 * tick of 100 ms on two CPUs a single one makes the quiet child cost more than its tenant's share.
 */
#define DECIDES_MS 300

static struct offcpu_state tick_after(unsigned ms)
{
	struct offcpu_state s;

	usleep(ms * 1000);
	offcpu_engine_drain(seen.engine);
	offcpu_engine_tick(seen.engine);
	offcpu_engine_state(seen.engine, &s);
	return s;
}

/* Ticks until all targets rest, for a minute at most. */
static struct offcpu_state until_all_rest(void)
{
	struct offcpu_state s = { 0 };

	for (int i = 0; i < 600 && !s.resting; i++)
		s = tick_after(100);
	if (!s.resting)
		print_message("no rest of all: %llu switches a second cost %llu ppm, %u targets "
			      "rest, wakers %d, rests %llu\n",
			      (unsigned long long)s.switches_per_s, (unsigned long long)s.cost_ppm,
			      s.resting_targets, s.wakers, (unsigned long long)s.rests);
	return s;
}

/* Measures a quiet child of tenant 1, and one of @tenant that switches all the time. */
static void begin_storm(uint64_t tenant, pid_t *ret_quiet, pid_t *ret_storm)
{
	*ret_quiet = offcpu_child(SELDOM);
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure_of(1, *ret_quiet, NS_PER_MS);
	*ret_storm = offcpu_child(STORMING);
	offcpu_child_wait();
	offcpu_measure_of(tenant, *ret_storm, NS_PER_MS);
}

static void a_storm_of_switches_costs_the_wakers_and_then_a_rest(void **state)
{
	struct offcpu_state s = { .wakers = true };
	struct offcpu_lookup l = { 0 };
	bool without_wakers = false;
	pid_t quiet, pid;
	unsigned of;

	(void)state;
	begin_storm(2, &quiet, &pid);
	for (int i = 0; i < 600 && !s.resting_targets; i++) {
		s = tick_after(DECIDES_MS);
		without_wakers |= !s.wakers && !s.resting_targets;
	}
	print_message("%llu switches a second\n", (unsigned long long)s.switches_per_s);
	assert_true(without_wakers);
	/* only the one whose storm it is, also if it is asked for again */
	assert_int_equal(s.resting_targets, 1);
	assert_false(s.resting);
	assert_int_equal(s.rests, 0);
	assert_in_range(offcpu_engine_measured(seen.engine, pid, &of), 3, 59);
	assert_true(offcpu_engine_measured(seen.engine, pid, &of) < of);
	assert_int_equal(offcpu_engine_measured(seen.engine, quiet, &of), of);
	assert_true(offcpu_engine_rested_ns(seen.engine, pid) > 0);
	assert_int_equal(offcpu_engine_rested_ns(seen.engine, quiet), 0);
	offcpu_measure_of(2, pid, NS_PER_MS);
	kill(pid, SIGSTOP); /* so many switches cost too much also without being measured */
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, offcpu_look_up, &l), 1);
	seen.n = 0;
	for (int i = 0; i < 50 && !seen.n; i++)
		s = tick_after(DECIDES_MS);
	assert_true(seen.n > 0);
	assert_false(s.resting);
	/* it goes on after its rest, and so again and again */
	for (int rounds = 0; rounds < 3; rounds++) {
		/* a single timed run in so short a tick may have the quiet child rest as well */
		for (int i = 0; i < 600 && (s.resting || s.resting_targets); i++)
			s = tick_after(20);
		assert_int_equal(s.resting_targets, 0);
		l = (struct offcpu_lookup){ 0 };
		assert_true(offcpu_engine_threads(seen.engine, 0, offcpu_look_up, &l) > 1);
		kill(pid, SIGCONT);
		for (int i = 0; i < 600 && !s.resting_targets; i++)
			s = tick_after(DECIDES_MS);
		assert_int_equal(s.resting_targets, 1);
		assert_false(s.resting);
		kill(pid, SIGSTOP);
	}
	/* the storm is over: a minute later all of the last minute was measured */
	for (int i = 0; i < 100 && s.resting_targets; i++)
		s = tick_after(20);
	for (int i = 0; i < OFFCPU_LAST_TICKS; i++)
		s = tick_after(100);
	assert_int_equal(offcpu_engine_measured(seen.engine, pid, &of), OFFCPU_LAST_TICKS);
	assert_int_equal(of, OFFCPU_LAST_TICKS);
	offcpu_child_end(pid);
	offcpu_child_end(quiet);
	offcpu_engines_free();
}

/* A storm of processes that are no targets: all targets rest. */
static void a_storm_of_others_costs_all_a_rest(void **state)
{
	pid_t quiet = offcpu_child(SELDOM), others[4];
	struct offcpu_state s = { 0 };
	struct offcpu_lookup l = { 0 };

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(quiet, shared->handler, NS_PER_MS);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = offcpu_child(STORMING);
	for (int i = 0; i < 60 && !s.resting; i++)
		s = tick_after(100);
	print_message("%llu switches a second\n", (unsigned long long)s.switches_per_s);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		offcpu_child_end(others[i]);
	if (!s.resting && s.switches_per_s < ENOUGH_SWITCHES) {
		offcpu_child_end(quiet);
		offcpu_engines_free();
		skip(); /* this machine is too slow, or too busy, for such a storm */
	}
	assert_true(s.resting);
	assert_int_equal(s.rests, 1);
	assert_int_equal(s.cost_ppm, 0);
	assert_true(offcpu_engine_rested_ns(seen.engine, quiet) > 0);
	/* nothing is measured during a rest, and a target that comes then is no exception */
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, offcpu_look_up, &l), 0);
	offcpu_engine_remove(seen.engine, quiet);
	offcpu_measure(quiet, shared->handler, NS_PER_MS);
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, offcpu_look_up, &l), 0);
	for (int i = 0; i < OFFCPU_DEBT_TICKS_MAX && s.resting; i++)
		s = tick_after(1);
	assert_false(s.resting);
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, offcpu_look_up, &l), 1);
	/* how long it takes until it asks for wakers again depends on what else runs here:
	 * test_offcpu_cost */
	seen.n = 0;
	for (int i = 0; i < 100 && !seen.n; i++)
		s = tick_after(20);
	assert_true(seen.n > 0);
	offcpu_child_end(quiet);
	offcpu_engines_free();
}

/* A JVM that switches all the time, alone on its host. */
static void a_storm_of_the_only_tenant_is_measured_in_turns(void **state)
{
	struct offcpu_state s = { 0 };
	pid_t quiet, pid;
	unsigned of;

	(void)state;
	begin_storm(1, &quiet, &pid);
	for (int rounds = 1; rounds <= 3; rounds++) {
		s = until_all_rest();
		assert_true(s.resting);
		assert_int_equal(s.resting_targets, 0);
		assert_int_equal(s.rests, rounds);
		for (int i = 0; i < OFFCPU_DEBT_TICKS_MAX && s.resting; i++)
			s = tick_after(1);
		assert_false(s.resting);
		seen.n = 0;
		s = tick_after(200);
		assert_true(seen.n > 0);
	}
	assert_in_range(offcpu_engine_measured(seen.engine, pid, &of), 3, OFFCPU_LAST_TICKS / 2);
	offcpu_child_end(pid);
	offcpu_child_end(quiet);
	offcpu_engines_free();
}

/* The programs' time for the switches of @pid since it is a target. */
static uint64_t cost_ns_of(pid_t pid)
{
	for (unsigned i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (seen.engine->entries[i].pid == pid)
			return offcpu_mapped(seen.engine, i)->timed_ns * OFFCPU_COST_EVERY;
	return 0;
}

/* On a host with many CPUs a process that switches all the time never costs 1 % of them all. Where
 * programs are slow it costs a third of a CPU, so the number of CPUs is far above 64.
 */
static void a_storm_on_a_large_host_costs_its_own_process_little(void **state)
{
	uint64_t used_ns = 0, end_ns = 0, cost_ns;
	struct offcpu_state s;
	unsigned measured, of;
	pid_t quiet, pid;

	(void)state;
	begin_storm(1, &quiet, &pid);
	seen.engine->n_cpus = 256;
	assert_true(clock_process_cpu_ns(pid, &used_ns));
	for (int i = 0; i < 100; i++) {
		s = tick_after(100);
		assert_true(s.wakers && !s.resting && s.resting_targets <= 1);
	}
	assert_true(clock_process_cpu_ns(pid, &end_ns));
	used_ns = end_ns - used_ns;
	cost_ns = cost_ns_of(pid);
	measured = offcpu_engine_measured(seen.engine, pid, &of);
	print_message("%llu switches a second, %u of %u ticks, %.2f %% of its CPU time\n",
		      (unsigned long long)s.switches_per_s, measured, of,
		      100.0 * (double)cost_ns / (double)used_ns);
	assert_in_range(cost_ns, 1, used_ns / 40);
	assert_int_equal(offcpu_engine_measured(seen.engine, quiet, &of), of);
	offcpu_child_end(pid);
	offcpu_child_end(quiet);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_storm_of_switches_costs_the_wakers_and_then_a_rest),
		cmocka_unit_test(a_storm_of_others_costs_all_a_rest),
		cmocka_unit_test(a_storm_of_the_only_tenant_is_measured_in_turns),
		cmocka_unit_test(a_storm_on_a_large_host_costs_its_own_process_little),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
