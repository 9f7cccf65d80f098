/* The clock of the off-CPU programs on CPUs that have always something to run: there it is that of
 * the run queue, and so is how long a thread waits for its CPU. */
#include "tests/unit/unit.h"
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000
#define CPUS	      2
#define SPINNERS      2 /* on each CPU */
#define LATE_NS	      (3 * NS_PER_MS) /* a spinner's timer interrupt may come late */

static pid_t spinners[CPUS * SPINNERS];

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(pid, sizeof(set), &set), 0);
}

static void unpin(void)
{
	cpu_set_t set;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void spinners_begin(int cpus)
{
	for (int i = 0; i < cpus * SPINNERS; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(0, i / SPINNERS);
			for (;;)
				;
		}
		spinners[i] = pid;
	}
}

static void spinners_end(int cpus)
{
	for (int i = 0; i < cpus * SPINNERS; i++) {
		kill(spinners[i], SIGKILL);
		waitpid(spinners[i], NULL, 0);
	}
}

/* A child that waits in every way, on CPU 0 among threads that spin. @nice: its own. @moves: all
 * its threads are moved to the other CPU, and back, all the time. */
static pid_t wait_among_spinners(int nice, bool moves)
{
	int cpu = 0;
	pid_t pid;

	pin(0, 0);
	pid = offcpu_child(WAITING);
	unpin();
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	while (!__atomic_load_n(&shared->tids[KINDS - 1], __ATOMIC_ACQUIRE))
		usleep(1000);
	for (int kind = 0; kind < KINDS; kind++)
		assert_int_equal(setpriority(PRIO_PROCESS, shared->tids[kind], nice), 0);
	spinners_begin(moves ? CPUS : 1);
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 30000 && __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < KINDS;
	     i++) {
		usleep(moves ? 1000 : 20000);
		for (int kind = 0; moves && kind < KINDS; kind++)
			pin((pid_t)shared->tids[kind], cpu);
		cpu = !cpu;
		offcpu_engine_drain(seen.engine);
	}
	spinners_end(moves ? CPUS : 1);
	assert_int_equal(shared->done, KINDS);
	offcpu_engine_drain(seen.engine);
	return pid;
}

static void waits_on_a_busy_cpu_are_where_their_threads_say(void **state)
{
	pid_t pid = wait_among_spinners(0, false);

	(void)state;
	for (int kind = 0; kind < KINDS; kind++) {
		unsigned found = 0;

		for (int i = 0; i < WAITS; i++) {
			const struct wait *w = &shared->waits[kind][i];

			found += w->end_ns - w->begin_ns < 2 * NS_PER_MS ||
				 offcpu_interval_in(shared->tids[kind], w);
		}
		assert_in_range(found, WAITS - 2, WAITS);
	}
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* What is left of each sleep without its time in run queues is as long as was asked for; and the
 * thread that spins when the timer ends it is not the one that wakes. */
static void check_sleeps(void)
{
	uint64_t queued_ns = 0;
	unsigned right = 0;

	for (int i = 0; i < WAITS; i++) {
		const struct offcpu_interval *v =
			offcpu_interval_in(shared->tids[SLEEPS], &shared->waits[SLEEPS][i]);

		if (!v || v->class != OFFCPU_SLEEP)
			continue;
		assert_int_equal(v->waker_tid, 0);
		queued_ns += v->runqueue_ns;
		right += v->duration_ns - v->runqueue_ns >= WAIT_NS - CLOCKS_APART_NS &&
			 v->duration_ns - v->runqueue_ns <= WAIT_NS + LATE_NS;
	}
	print_message("%u of %d sleeps as long as asked for, and %llu ms in run queues\n", right,
		      WAITS, (unsigned long long)(queued_ns / NS_PER_MS));
	assert_true(right >= WAITS - 3);
	assert_true(queued_ns > WAITS * NS_PER_MS / 2);
}

static void a_wait_for_the_cpu_is_no_sleep(void **state)
{
	pid_t pid = wait_among_spinners(19, false);

	(void)state;
	check_sleeps();
	offcpu_child_end(pid);
	offcpu_engines_free();
}

static void a_wait_for_several_cpus_is_no_sleep(void **state)
{
	pid_t pid;

	(void)state;
	if (sysconf(_SC_NPROCESSORS_ONLN) < CPUS) {
		print_message("needs %d CPUs\n", CPUS);
		skip();
	}
	pid = wait_among_spinners(19, true);
	check_sleeps();
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* The first time off the CPU of a thread that slept already when it became a target. */
static const struct offcpu_interval *first_of(pid_t pid)
{
	seen.n = 0;
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < 100 && !seen.n; i++) {
		usleep(10000);
		offcpu_engine_drain(seen.engine);
	}
	offcpu_engine_remove(seen.engine, pid);
	assert_true(seen.n > 0);
	return &seen.intervals[0];
}

static void what_a_thread_waited_for_its_cpu_before_is_not_counted(void **state)
{
	uint64_t slept_ns = 0, queued_ns = 0;
	pid_t pid;

	(void)state;
	pin(0, 0);
	pid = offcpu_child(SELDOM);
	unpin();
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, 19), 0);
	spinners_begin(1);
	usleep(2000000);
	spinners_end(1);
	/* other work on that CPU lets it wait little */
	assert_int_equal(setpriority(PRIO_PROCESS, (id_t)pid, 0), 0);
	for (int i = 0; i < 10; i++) {
		const struct offcpu_interval *v = first_of(pid);

		slept_ns += v->duration_ns;
		queued_ns += v->runqueue_ns;
	}
	print_message("%llu of %llu ms in run queues\n",
		      (unsigned long long)(queued_ns / NS_PER_MS),
		      (unsigned long long)(slept_ns / NS_PER_MS));
	assert_true(queued_ns < slept_ns / 2);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_on_a_busy_cpu_are_where_their_threads_say),
		cmocka_unit_test(a_wait_for_the_cpu_is_no_sleep),
		cmocka_unit_test(a_wait_for_several_cpus_is_no_sleep),
		cmocka_unit_test(what_a_thread_waited_for_its_cpu_before_is_not_counted),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
