/*
 * No system call notices the host engine: the calls of tests/harness/undisturbed.c run in a child
 * with and without signals for its times off the CPU and for its CPU time. A call that does not
 * return EINTR, or less than was asked for, without signals must not do so with them. Skipped where
 * the kernel refuses BPF, with the sentence that a user would see.
 */
#include "tests/unit/unit.h"
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/ground/clock.h"
#include "proto/host_cookie.h"
#include "tests/harness/undisturbed.h"
#include "tests/unit/halts.h"

#define OFF_MIN_NS  (NS_PER_MS / 10)
#define SIGNALS_MAX 5000 /* a second */
#define WAITS	    12
#define NAP_NS	    (NS_PER_MS / 20)
#define NAPS_NS	    (3 * NS_PER_S / 2)

struct words {
	uint64_t handler;
	uint32_t off_signals, cpu_signals, done;
	uint32_t waits, waits_cut;
	uint64_t cpu_ns; /* of all naps */
	uint32_t results[UNDISTURBED_CALLS][UNDISTURBED_RESULTS];
};

static struct words *shared;

/* ---- the child ------------------------------------------------------------------------------- */

static void on_signal(int signo, siginfo_t *info, void *ucontext)
{
	uint64_t cookie = (uint64_t)(uintptr_t)info->si_value.sival_ptr;

	(void)ucontext;
	if (!host_cookie_is_offcpu(cookie) && signo != SIGVTALRM) {
		shared->cpu_signals++;
		return;
	}
	shared->off_signals++;
	/* it may stand for CPU time, too */
	if (signo != SIGVTALRM)
		shared->cpu_signals += (uint32_t)host_cookie_intervals(cookie);
}

/* Waits for 100 ms in a call that the kernel makes again with what is left of its time. */
static bool wait_to_the_end(int kind)
{
	struct timespec ts = { 0, 100 * NS_PER_MS };
	uint32_t word = 0;

	switch (kind) {
	case 0:
		return poll(NULL, 0, 100) == 0;
	case 1:
		return syscall(SYS_nanosleep, &ts, &ts) == 0;
	case 2:
		return syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, &ts) == 0;
	default:
		return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) < 0 &&
		       errno == ETIMEDOUT;
	}
}

static void wait_often(void)
{
	for (int i = 0; i < WAITS; i++) {
		shared->waits_cut += !wait_to_the_end(i % 4);
		__atomic_fetch_add(&shared->waits, 1, __ATOMIC_SEQ_CST);
	}
}

/* Waits that are hardly longer than the time that the kernel takes for them. */
static bool nap(unsigned kind)
{
	struct timespec ts = { 0, NAP_NS };
	uint32_t word = 0;

	switch (kind) {
	case 0:
		return syscall(SYS_nanosleep, &ts, NULL) == 0;
	case 1:
		return syscall(SYS_ppoll, NULL, 0, &ts, NULL, 8) == 0;
	default:
		return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0) < 0 &&
		       errno == ETIMEDOUT;
	}
}

static uint64_t own_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void nap_often(void)
{
	uint64_t end_ns = clock_mono_ns() + NAPS_NS, cpu_ns = own_cpu_ns();

	for (unsigned i = 0; clock_mono_ns() < end_ns; i++) {
		shared->waits_cut += !nap(i % 3);
		shared->waits++;
	}
	shared->cpu_ns = own_cpu_ns() - cpu_ns;
}

/* @instead: of the calls of undisturbed.h; NULL = these. */
static pid_t child(void (*instead)(void))
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(120); /* the alarm ends the child if a call never returns, and the test fails */
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGVTALRM, &action, NULL);
	undisturbed_open();
	__atomic_store_n(&shared->handler, (uint64_t)(uintptr_t)on_signal, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE))
		usleep(1000);
	if (instead)
		instead();
	else
		undisturbed_run(shared->results);
	undisturbed_close();
	_exit(0);
}

/* ---- the engines ----------------------------------------------------------------------------- */

struct engines {
	struct host_engine *host;
	struct offcpu_engine *off;
};

static void engines_or_skip(enum offcpu_way way, struct engines *e)
{
	bool exits = getenv("OFFCPU_SYSCALL_EXITS") != NULL;
	char why[OFFCPU_ENGINE_WHY_MAX];

	if (host_engine_new(way != OFFCPU_BY_TASK_WORK, &e->host, why) < 0 ||
	    (way == OFFCPU_BY_OWN_SIGNAL
		     ? offcpu_engine_new_by(e->host, way, SIGNALS_MAX, exits, &e->off, why)
		     : offcpu_engine_new(e->host, SIGNALS_MAX, exits, &e->off, why)) < 0) {
		print_message("no off-CPU engine here: %s\n", why);
		exit(77);
	}
}

/* Runs all calls, or @instead; @cpu_ns is the interval of CPU samples. */
static void run(struct engines *e, bool off, uint64_t cpu_ns, void (*instead)(void))
{
	pid_t pid = child(instead);
	struct host_engine_target t = { 0, cpu_ns, SIGPROF, SIGVTALRM };
	int status;

	while (!__atomic_load_n(&shared->handler, __ATOMIC_SEQ_CST))
		usleep(1000);
	t.handler = shared->handler;
	if (e->host)
		assert_int_equal(host_engine_set(e->host, pid, &t), 0);
	if (off)
		assert_int_equal(offcpu_engine_set(e->off, pid, 0, OFF_MIN_NS), 0);
	__atomic_store_n(&shared->done, 1, __ATOMIC_RELEASE);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	if (e->off)
		offcpu_engine_remove(e->off, pid);
	if (e->host)
		host_engine_remove(e->host, pid);
}

/* Calls with a result other than expected, except those in @without. */
static unsigned disturbed(const struct words *without, const char *what)
{
	unsigned n = 0;

	for (unsigned i = 0; i < UNDISTURBED_CALLS; i++) {
		const uint32_t *r = shared->results[i], *w = without->results[i];

		assert_int_equal(r[UNDISTURBED_FINE] + r[UNDISTURBED_CUT] + r[UNDISTURBED_SHORT] +
					 r[UNDISTURBED_WRONG],
				 UNDISTURBED_RUNS);
		if (r[UNDISTURBED_FINE] >= w[UNDISTURBED_FINE])
			continue;
		print_message("%s: %s: %u EINTR, %u short, %u wrong of %d\n", what,
			      undisturbed_name(i), r[UNDISTURBED_CUT], r[UNDISTURBED_SHORT],
			      r[UNDISTURBED_WRONG], UNDISTURBED_RUNS);
		n += w[UNDISTURBED_FINE] - r[UNDISTURBED_FINE];
	}
	return n;
}

static void check(enum offcpu_way way, bool off, uint64_t cpu_ns, const char *what)
{
	struct engines none = { NULL, NULL }, e;
	struct words *without;
	unsigned n;

	/* see offcpu_engines_or_skip() */
	if (way == OFFCPU_BY_TASK_WORK && getenv("OFFCPU_SYSCALL_EXITS"))
		skip();
	without = malloc(sizeof(*without));
	engines_or_skip(way, &e);
	run(&none, false, 0, NULL);
	assert_int_equal(shared->off_signals + shared->cpu_signals, 0);
	memcpy(without, shared, sizeof(*without));
	run(&e, off, cpu_ns, NULL);
	n = disturbed(without, what);
	print_message("%s: %u calls disturbed, %u signals for times off the CPU, %u for CPU time\n",
		      what, n, shared->off_signals, shared->cpu_signals);
	assert_int_equal(n, 0);
	/* each waiting call waits once; fsync and the bulk calls do not wait */
	assert_true(!off || shared->off_signals > 30 * UNDISTURBED_RUNS);
	free(without);
	offcpu_engine_free(e.off);
	host_engine_free(e.host);
}

static void signals_of_times_off_the_cpu_disturb_nothing(void **state)
{
	(void)state;
	check(OFFCPU_BY_TASK_WORK, true, 60 * NS_PER_S, "offcpu");
}

static void signals_of_cpu_time_disturb_nothing(void **state)
{
	(void)state;
	check(OFFCPU_BY_TASK_WORK, false, NS_PER_MS, "cpu");
}

static void both_disturb_nothing(void **state)
{
	(void)state;
	check(OFFCPU_BY_TASK_WORK, true, NS_PER_MS, "both");
}

static void rseq_is_not_disturbed(void **state)
{
	(void)state;
	check(OFFCPU_BY_RSEQ, true, 60 * NS_PER_S, "offcpu by rseq");
}

static void a_signal_of_its_own_disturbs_nothing(void **state)
{
	(void)state;
	check(OFFCPU_BY_OWN_SIGNAL, true, 60 * NS_PER_S, "offcpu by a signal of its own");
}

/* Before Linux 6.18 calls that copy for long are short, and those on sockets with a timeout may
 * end, unless a program runs at the end of each call. */
static void ticks_are_put_off_to_the_ends_of_system_calls(void **state)
{
	(void)state;
	if (!getenv("OFFCPU_SYSCALL_EXITS"))
		skip();
	check(OFFCPU_BY_RSEQ, true, NS_PER_MS, "both, with syscall_exits");
	check(OFFCPU_BY_OWN_SIGNAL, true, NS_PER_MS, "both by a signal of its own");
}

/* Many ticks meet the kernel in a wait, which must not end, and yet each has its signal. Half of
 * the thread's CPU time is in switches away from it, in which a tick waits until it has gone. */
static void naps_are_sampled_and_not_cut(void **state)
{
	const uint64_t interval_ns = NS_PER_MS;

	(void)state;
	for (int way = OFFCPU_BY_RSEQ; way <= OFFCPU_BY_OWN_SIGNAL; way++) {
		struct engines e;
		uint64_t due;

		engines_or_skip((enum offcpu_way)way, &e);
		run(&e, true, interval_ns, nap_often);
		due = shared->cpu_ns / interval_ns;
		print_message("%u of %u naps cut, %u signals in %llu intervals of CPU time\n",
			      shared->waits_cut, shared->waits, shared->cpu_signals,
			      (unsigned long long)due);
		assert_int_equal(shared->waits_cut, 0);
		assert_true(due > 50);
		assert_true(shared->cpu_signals > due / 4);
		offcpu_engine_free(e.off);
		host_engine_free(e.host);
	}
}

/* The kernel makes the call of a thread again that was halted meanwhile, if no signal is pending.
 */
static void check_halts(enum offcpu_way way, size_t halt_way)
{
	struct host_engine_target t = { 0, 60 * NS_PER_S, SIGPROF, SIGVTALRM };
	struct engines e;
	struct halt h;
	int status;
	pid_t pid = child(wait_often);

	if (!halt_new(&h, halt_way, pid)) {
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		return;
	}
	engines_or_skip(way, &e);
	while (!__atomic_load_n(&shared->handler, __ATOMIC_SEQ_CST))
		usleep(1000);
	t.handler = shared->handler;
	assert_int_equal(host_engine_set(e.host, pid, &t), 0);
	assert_int_equal(offcpu_engine_set(e.off, pid, 0, OFF_MIN_NS), 0);
	__atomic_store_n(&shared->done, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->waits, __ATOMIC_SEQ_CST) < WAITS - 1) {
		usleep(30000);
		halt_begin(&h);
		usleep(5000);
		halt_end(&h);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	print_message("%s: %u of %d waits cut, %u signals\n", h.name, shared->waits_cut, WAITS,
		      shared->off_signals);
	halt_free(&h);
	assert_int_equal(shared->waits_cut, 0);
	assert_true(shared->off_signals >= WAITS / 2);
	offcpu_engine_free(e.off);
	host_engine_free(e.host);
}

static void a_halted_thread_notices_nothing(void **state)
{
	bool exits = getenv("OFFCPU_SYSCALL_EXITS") != NULL;

	(void)state;
	for (int way = exits ? OFFCPU_BY_RSEQ : OFFCPU_BY_TASK_WORK; way <= OFFCPU_BY_OWN_SIGNAL;
	     way++)
		for (size_t i = 0; i < HALT_WAYS; i++)
			check_halts((enum offcpu_way)way, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_of_times_off_the_cpu_disturb_nothing),
		cmocka_unit_test(signals_of_cpu_time_disturb_nothing),
		cmocka_unit_test(both_disturb_nothing),
		cmocka_unit_test(rseq_is_not_disturbed),
		cmocka_unit_test(a_signal_of_its_own_disturbs_nothing),
		cmocka_unit_test(ticks_are_put_off_to_the_ends_of_system_calls),
		cmocka_unit_test(naps_are_sampled_and_not_cut),
		cmocka_unit_test(a_halted_thread_notices_nothing),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
