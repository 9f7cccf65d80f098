/* Which processes and threads the off-CPU engine measures, and which get a signal. */
#include "tests/unit/unit.h"
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000
#define GENERATIONS   60

static void a_process_with_another_handler_gets_no_signal(void **state)
{
	struct host_engine_counts c;
	pid_t pid = offcpu_child(UNHANDLED);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	for (int i = 0; i < 200 && seen.n < 200; i++) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	host_engine_counts(seen.host, &c);
	assert_true(seen.n >= 200);
	assert_int_equal(c.off_sent, 0);
	assert_true(c.off_dropped > 0);
	offcpu_child_end(pid); /* SIGPROF would have ended it */
	offcpu_engines_free();
}

static void a_process_that_is_no_target_has_no_record(void **state)
{
	pid_t pid = offcpu_child(SLEEPING);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	for (int i = 0; i < 200 && seen.n < 50; i++) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	for (unsigned i = 0; i < seen.n; i++)
		assert_int_equal(seen.intervals[i].pid, pid);
	assert_true(seen.n >= 50);
	offcpu_engine_remove(seen.engine, pid);
	offcpu_engine_drain(seen.engine);
	seen.n = 0;
	usleep(100000);
	offcpu_engine_drain(seen.engine);
	assert_int_equal(seen.n, 0);
	assert_int_equal(
		offcpu_engine_threads(seen.engine, 0, offcpu_look_up, &(struct offcpu_lookup){ 0 }),
		0);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* The number of sleeps of @pid so far, and of those whose stack one of @other's has. */
static unsigned sleeps_of(pid_t pid, pid_t other, unsigned *ret_mixed)
{
	unsigned sleeps = 0, mixed = 0;

	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *a = &seen.intervals[i];
		bool same = false;

		if (a->pid != pid || a->class != OFFCPU_SLEEP || a->state != 'S')
			continue;
		for (unsigned k = 0; k < seen.n; k++)
			same |= seen.intervals[k].pid == other &&
				seen.stack_hashes[k] == seen.stack_hashes[i];
		sleeps++;
		mixed += same;
	}
	*ret_mixed = mixed;
	return sleeps;
}

static void a_process_never_gets_the_kernel_stack_of_another(void **state)
{
	unsigned n = 0, n_disguised = 0, mixed = 0, mixed_disguised = 0;
	pid_t pid, disguised = offcpu_child(DISGUISED);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	pid = offcpu_child(SELDOM);
	offcpu_child_wait();
	offcpu_measure(disguised, shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	for (int i = 0; i < 400 && (n < 50 || n_disguised < 50) && seen.n < RECORDS_MAX; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
		n = sleeps_of(pid, disguised, &mixed);
		n_disguised = sleeps_of(disguised, pid, &mixed_disguised);
	}
	print_message(
		"%u sleeps and %u that look like them, %u and %u with a stack of the others\n", n,
		n_disguised, mixed, mixed_disguised);
	assert_true(n >= 50 && n_disguised >= 50);
	assert_int_equal(mixed + mixed_disguised, 0);
	offcpu_child_end(pid);
	offcpu_child_end(disguised);
	offcpu_engines_free();
}

/* The thread that waits as @spared_kind needs no stacks; that of @other_kind does. */
static void needs_no_stack(int spared_kind, enum offcpu_class spared_class, int other_kind)
{
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	uint64_t signalled, deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t pid = offcpu_child(WAITING);
	struct offcpu_counts c = { 0 };
	uint32_t spared, other;

	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	do {
		usleep(1000);
		spared = __atomic_load_n(&shared->tids[spared_kind], __ATOMIC_SEQ_CST);
		other = __atomic_load_n(&shared->tids[other_kind], __ATOMIC_SEQ_CST);
	} while (!spared || !other);
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < OFFCPU_BARE_STACKS_ENOUGH; i++)
		offcpu_engine_bare_stack(seen.engine, pid, spared);
	/* a thread that starts has one: not enough */
	offcpu_engine_bare_stack(seen.engine, pid, other);
	/* of another process: nothing */
	for (int i = 0; i < OFFCPU_BARE_STACKS_ENOUGH; i++)
		offcpu_engine_bare_stack(seen.engine, getpid(), other);
	__atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
	while (c.unneeded < WAITS / 2 && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
	}
	signalled = 0;
	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *v = &seen.intervals[i];

		if (v->host_tid != spared)
			signalled += (v->flags & OFFCPU_SIGNALLED) != 0;
		else if (v->class == spared_class)
			assert_int_equal(v->flags & (OFFCPU_SIGNALLED | OFFCPU_UNNEEDED),
					 OFFCPU_UNNEEDED);
		if (v->host_tid == other)
			assert_int_equal(v->flags & OFFCPU_UNNEEDED, 0);
	}
	assert_true(c.unneeded >= WAITS / 2);
	assert_true(c.unneeded_ns >= c.unneeded * NS_PER_MS);
	assert_true(signalled > 0);
	offcpu_counts_add_up(pid);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void a_thread_that_needs_no_stack_has_records_and_no_signals(void **state)
{
	(void)state;
	needs_no_stack(FUTEXES, OFFCPU_FUTEX, SLEEPS);
	needs_no_stack(SLEEPS, OFFCPU_SLEEP, FUTEXES);
}

/* Of threads that block the signal, all but the agent's are counted as unreachable. */
static void the_agents_thread_has_no_events(void **state)
{
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct offcpu_counts c = { 0 };
	pid_t pid = offcpu_child(BLOCKING);
	uint32_t tid = 0;

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	while (c.unreachable < 100 && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
	}
	assert_true(c.unreachable >= 100);
	for (unsigned i = 0; i < seen.n; i++) {
		assert_true(!tid || seen.intervals[i].host_tid == tid);
		tid = seen.intervals[i].host_tid;
	}
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* The hard case of test_host_engine.c (execve again and again), with a thread that sleeps. */
static void a_process_that_execs_is_never_ended_by_a_signal(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct host_engine_counts c;
	uint32_t before = 0;
	int status = 0;
	pid_t pid;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	offcpu_engines_or_skip(SIGNALS_PER_S);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_offcpu_engine_targets", "again", (char *)NULL);
		_exit(1);
	}
	while (waitpid(pid, &status, WNOHANG) == 0 && clock_mono_ns() < deadline) {
		uint32_t now = __atomic_load_n(&shared->generation, __ATOMIC_SEQ_CST);

		if (now != before && __atomic_load_n(&shared->handler, __ATOMIC_SEQ_CST)) {
			/* like a daemon that learns of the exec at once */
			host_engine_remove(seen.host, pid);
			offcpu_engine_remove(seen.engine, pid);
			offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
			before = now;
		}
		usleep(200);
	}
	host_engine_counts(seen.host, &c);
	print_message("%u programs, %llu signals, %llu not sent\n", shared->generation,
		      (unsigned long long)c.off_sent, (unsigned long long)c.off_dropped);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(shared->generation, GENERATIONS);
	assert_true(c.off_sent > GENERATIONS / 4);
	offcpu_engines_free();
}

/* One life of that process: a handler and short sleeps for a while, then it calls execve. */
static int live_again(void)
{
	uint64_t end_ns = clock_mono_ns() + 200 * NS_PER_MS;

	/* there is no handler yet: a signal left over from the life before would end the process
	 * here */
	offcpu_child_nap(NS_PER_MS / 2);
	shared->handler = 0;
	if (++shared->generation >= GENERATIONS)
		return 0;
	offcpu_child_install();
	shared->n_cookies = 0;
	while (clock_mono_ns() < end_ns && shared->n_cookies < 3)
		offcpu_child_nap(NS_PER_MS / 20);
	execl("/proc/self/exe", "test_offcpu_engine_targets", "again", (char *)NULL);
	return 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_with_another_handler_gets_no_signal),
		cmocka_unit_test(a_process_that_is_no_target_has_no_record),
		cmocka_unit_test(a_process_never_gets_the_kernel_stack_of_another),
		cmocka_unit_test(a_thread_that_needs_no_stack_has_records_and_no_signals),
		cmocka_unit_test(the_agents_thread_has_no_events),
		cmocka_unit_test(a_process_that_execs_is_never_ended_by_a_signal),
	};

	if (argc > 1 && strcmp(argv[1], "again") == 0)
		return offcpu_engines_shared() ? live_again() : 1;
	return offcpu_engines_run(tests, OFFCPU_BY_OWN_SIGNAL);
}
