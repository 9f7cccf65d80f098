/* Signals of the kernel to children of this program, which count them. Skipped where the kernel
 * refuses BPF, with the sentence that a user would see. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/bpf/clock_events.h"
#include "daemon/bpf/host_engine.h"
#include "daemon/ground/clock.h"

#define GENERATIONS 100
#define BULK_BYTES  (16u << 20)
#define CHILDREN    2

/* Results of a child, in memory that it shares with us. */
struct words {
	uint64_t handler; /* 0 = not installed yet */
	uint64_t owed_ns; /* the CPU time that the signals stand for */
	uint64_t signals, strangers; /* strangers: signals without the form of the kernel's own */
	uint64_t cpu_ns;
	uint64_t reads, short_reads;
	uint32_t generation;
};

static bool direct; /* as on a kernel that cannot delay signals */
static struct words *shared;
static struct words *mine; /* of this child */

static void on_signal(int signo, siginfo_t *info, void *ucontext)
{
	(void)signo;
	(void)ucontext;
	mine->signals++;
	mine->owed_ns += (uint64_t)(uintptr_t)info->si_value.sival_ptr;
	mine->strangers += info->si_code != SI_KERNEL || info->si_pid != 0;
}

static void burn(uint64_t ns)
{
	uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), now;

	do {
		for (volatile int i = 0; i < 200; i++)
			;
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		mine->cpu_ns = now;
	} while (now - begin < ns);
}

static void install(void)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };

	sigaction(SIGPROF, &action, NULL);
	__atomic_store_n(&mine->handler, (uint64_t)(uintptr_t)on_signal, __ATOMIC_SEQ_CST);
}

static struct host_engine *engine_or_skip(void)
{
	char why[HOST_ENGINE_WHY_MAX];
	struct host_engine *e;

	if (host_engine_new(direct, &e, why) < 0) {
		print_message("no host engine here: %s\n", why);
		exit(77);
	}
	return e;
}

enum manner { HANDLED, DEFAULT, BLOCKED, READING, READING_IN_A_NAMESPACE, SPINNING };

/* System calls that copy for milliseconds, which a pending signal cuts short. */
static void read_in_bulk(void)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *buf = malloc(BULK_BYTES);

	for (;;) {
		mine->short_reads += read(fd, buf, BULK_BYTES) != (ssize_t)BULK_BYTES;
		mine->reads++;
	}
}

static pid_t child(int n, enum manner manner)
{
	sigset_t set;
	pid_t pid;

	shared[n] = (struct words){ 0 };
	pid = (pid_t)syscall(SYS_clone,
			     SIGCHLD | (manner == READING_IN_A_NAMESPACE ? CLONE_NEWPID : 0), 0, 0,
			     0, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	mine = &shared[n];
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	if (manner == BLOCKED)
		sigprocmask(SIG_BLOCK, &set, NULL);
	if (manner == DEFAULT)
		mine->handler = (uint64_t)(uintptr_t)on_signal;
	else
		install();
	if (manner == READING || manner == READING_IN_A_NAMESPACE)
		read_in_bulk();
	while (manner == SPINNING)
		__atomic_add_fetch(&mine->reads, 1, __ATOMIC_RELAXED);
	burn(60 * NS_PER_S);
	_exit(0);
}

static void wait_for_handler(int n)
{
	while (!__atomic_load_n(&shared[n].handler, __ATOMIC_SEQ_CST))
		usleep(1000);
}

static uint64_t cpu_of(pid_t pid)
{
	return clock_ns(
		/* the number of a process's CPU clock, as clock_getcpuclockid(3) computes it */
		(clockid_t)(~(unsigned)pid << 3 | 2));
}

/* Waits by the child's CPU clock, because on a busy machine a child gets less CPU time than time
 * passes. */
static void wait_for_cpu(int n, uint64_t ns)
{
	uint64_t end = shared[n].cpu_ns + ns;

	for (int i = 0; i < 60000 && __atomic_load_n(&shared[n].cpu_ns, __ATOMIC_SEQ_CST) < end;
	     i++)
		usleep(1000);
}

static int set(struct host_engine *e, pid_t pid, int n, uint64_t interval_ns)
{
	struct host_engine_target t = { shared[n].handler, interval_ns, SIGPROF, 0 };

	return host_engine_set(e, pid, &t);
}

static void end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL); /* and nothing before it */
}

/* Signals per interval of CPU time. A clock ticks less often than it should while a hypervisor
 * takes the CPU away or its ticks take long, so a rate that is too low is measured again, ten times
 * at most.
 */
static double rate_of(int n, uint64_t interval_ns, double least)
{
	double rate = 0;

	for (int i = 0; i < 10 && rate <= least; i++) {
		uint64_t signals = shared[n].signals, cpu_ns = shared[n].cpu_ns;

		/* clocks have random periods: of 600 signals the count deviates by a few percent */
		wait_for_cpu(n, 600 * interval_ns);
		rate = (double)(shared[n].signals - signals) * (double)interval_ns /
		       (double)(shared[n].cpu_ns - cpu_ns);
	}
	return rate;
}

static void periods_are_drawn_and_tick_once_in_the_interval_together(void **state)
{
	uint64_t before[CLOCK_EVENTS_PER_CPU] = { 0 }, now[CLOCK_EVENTS_PER_CPU];

	(void)state;
	for (int n = 0; n < 100; n++) {
		double rate = 0;

		clock_events_draw(10 * NS_PER_MS, now);
		for (int i = 0; i < CLOCK_EVENTS_PER_CPU; i++) {
			rate += 1e7 / (double)now[i];
			assert_true(now[i] > 20 * NS_PER_MS && now[i] < 45 * NS_PER_MS);
			assert_true(now[i] != before[i]);
		}
		assert_true(rate > 0.999 && rate < 1.001);
		memcpy(before, now, sizeof(now));
	}
}

static void a_tick_has_a_price(void **state)
{
	struct host_engine *e = engine_or_skip();
	uint64_t ns = host_engine_price(e);

	(void)state;
	print_message("a tick costs %llu ns\n", (unsigned long long)ns);
	assert_true(ns < 40 * NS_PER_MS); /* 0 if this machine was too busy to measure it */
	host_engine_free(e);
}

static void a_target_gets_a_signal_per_interval_of_its_cpu(void **state)
{
	static const uint64_t intervals[] = { NS_PER_MS, NS_PER_MS / 5, 3 * NS_PER_MS };
	struct host_engine *e = engine_or_skip();
	pid_t pid = child(0, HANDLED);

	(void)state;
	wait_for_handler(0);
	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) { /* shorter, then longer */
		double rate;

		assert_int_equal(set(e, pid, 0, intervals[i]), 0);
		rate = rate_of(0, intervals[i], 0.75);
		print_message("every %llu us: %.3f signals an interval\n",
			      (unsigned long long)intervals[i] / 1000, rate);
		assert_true(rate > 0.75 && rate < 1.1);
	}
	assert_int_equal(shared[0].strangers, 0);
	end(pid);
	host_engine_free(e);
}

static void each_of_two_targets_has_its_own_interval(void **state)
{
	struct host_engine *e = engine_or_skip();
	pid_t pids[CHILDREN];
	double rate;

	(void)state;
	for (int i = 0; i < CHILDREN; i++) {
		pids[i] = child(i, HANDLED);
		wait_for_handler(i);
	}
	assert_int_equal(set(e, pids[0], 0, NS_PER_MS), 0);
	assert_int_equal(set(e, pids[1], 1, 7 * NS_PER_MS / 2), 0); /* no multiple */
	rate = rate_of(1, 7 * NS_PER_MS / 2, 0.7);
	assert_true(rate > 0.7 && rate < 1.2);
	/* the clocks tick more slowly now; the other target gets as many signals as before */
	host_engine_remove(e, pids[0]);
	assert_int_equal(host_engine_targets(e), 1);
	rate = rate_of(1, 7 * NS_PER_MS / 2, 0.7);
	assert_true(rate > 0.7 && rate < 1.2);
	for (int i = 0; i < CHILDREN; i++)
		end(pids[i]);
	host_engine_free(e);
}

static void a_process_whose_handler_is_another_gets_none(void **state)
{
	struct host_engine *e = engine_or_skip();
	struct host_engine_counts before, after;
	pid_t unhandled = child(0, DEFAULT), other = child(1, HANDLED);

	(void)state;
	wait_for_handler(0);
	wait_for_handler(1);
	shared[1].handler += 16;
	assert_int_equal(set(e, unhandled, 0, NS_PER_MS), 0);
	assert_int_equal(set(e, other, 1, NS_PER_MS), 0);
	host_engine_counts(e, &before);
	wait_for_cpu(0, 250 * NS_PER_MS);
	wait_for_cpu(1, 250 * NS_PER_MS);
	host_engine_counts(e, &after);
	assert_true(after.foreign > before.foreign + 100);
	assert_int_equal(after.sent, before.sent);
	assert_int_equal(shared[1].signals, 0);
	end(unhandled); /* SIGPROF would have ended it */
	end(other);
	host_engine_free(e);
}

static void impossible_reports_are_refused(void **state)
{
	static const struct host_engine_target bad[] = {
		{ 0, NS_PER_MS, SIGPROF, 0 },	    { 1, NS_PER_MS, SIGPROF, 0 },
		{ 0x10000, NS_PER_MS, SIGKILL, 0 }, { 0x10000, NS_PER_MS, 0, 0 },
		{ 0x10000, NS_PER_MS, 1 << 30, 0 }, { 0x10000, 0, SIGPROF, 0 },
		{ 0x10000, 1000, SIGPROF, 0 },	    { 0x10000, NS_PER_MS, SIGPROF, SIGKILL },
	};
	struct host_engine *e = engine_or_skip();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(host_engine_set(e, getpid(), &bad[i]), -EINVAL);
	assert_int_equal(host_engine_targets(e), 0);
	host_engine_free(e);
}

static void more_targets_than_there_is_room_for_are_refused(void **state)
{
	const struct host_engine_target t = { 0x10000, 100 * NS_PER_MS, SIGPROF, 0 };
	struct host_engine *e = engine_or_skip();
	int r = 0, n = 0;

	(void)state;
	for (pid_t pid = 1u << 23; r == 0 && n < 5000; pid++, n++) /* pids that nobody has */
		r = host_engine_set(e, pid, &t);
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(host_engine_targets(e), 1024);
	host_engine_free(e);
}

static void a_thread_that_blocks_the_signal_has_none_pending(void **state)
{
	struct host_engine *e = engine_or_skip();
	pid_t pid = child(0, BLOCKED);
	struct host_engine_counts c;

	(void)state;
	wait_for_handler(0);
	assert_int_equal(set(e, pid, 0, NS_PER_MS), 0);
	/* three seconds of CPU time, because on a busy machine a clock ticks less often than it
	 * should */
	for (int i = 0; i < 30; i++) {
		wait_for_cpu(0, 100 * NS_PER_MS);
		host_engine_counts(e, &c);
		if (c.held > 100)
			break;
	}
	assert_true(c.held > 100);
	assert_int_equal(c.sent, 0);
	end(pid);
	host_engine_free(e);
}

static void a_signal_that_is_put_off_cuts_no_system_call_short(void **state)
{
	struct host_engine *e = engine_or_skip();
	pid_t pid = child(0, READING);
	uint64_t cpu_ns;

	(void)state;
	wait_for_handler(0);
	assert_int_equal(set(e, pid, 0, NS_PER_MS), 0);
	cpu_ns = cpu_of(pid);
	for (int i = 0; i < 600 && (i < 15 || shared[0].signals < 100 || shared[0].reads < 100);
	     i++)
		usleep(100000);
	cpu_ns = cpu_of(pid) - cpu_ns;
	print_message("%llu of %llu long reads cut short, %llu signals for %.3f of the CPU time\n",
		      (unsigned long long)shared[0].short_reads,
		      (unsigned long long)shared[0].reads, (unsigned long long)shared[0].signals,
		      (double)shared[0].owed_ns / (double)cpu_ns);
	assert_true(shared[0].signals > 20 && shared[0].reads > 20);
	if (host_engine_puts_off(e)) {
		assert_int_equal(shared[0].short_reads, 0);
		/* several ticks within one read become one signal, which passes their number */
		assert_true((double)shared[0].owed_ns > 0.75 * (double)cpu_ns);
		assert_true((double)shared[0].owed_ns < 1.15 * (double)cpu_ns);
	}
	end(pid);
	host_engine_free(e);
}

static void a_removed_target_gets_no_more_and_the_last_ends_the_ticks(void **state)
{
	struct host_engine *e = engine_or_skip();
	struct host_engine_counts before, after;
	pid_t pid = child(0, HANDLED);
	uint64_t signals;

	(void)state;
	wait_for_handler(0);
	assert_int_equal(set(e, pid, 0, NS_PER_MS), 0);
	wait_for_cpu(0, 100 * NS_PER_MS);
	host_engine_remove(e, pid);
	wait_for_cpu(0, 20 * NS_PER_MS); /* a signal that was sent before the removal arrives */
	signals = shared[0].signals;
	assert_true(signals > 0);
	host_engine_counts(e, &before);
	wait_for_cpu(0, 200 * NS_PER_MS);
	host_engine_counts(e, &after);
	assert_int_equal(shared[0].signals, signals);
	assert_int_equal(after.ticks, before.ticks);
	end(pid);
	host_engine_free(e);
}

/* Disables all clock events of this process, as the kernel ends those of a CPU that goes offline:
 * their descriptors stay. Returns their number. */
static unsigned disable_events(void)
{
	char path[64], what[64];
	unsigned n = 0;

	for (int fd = 3; fd < 1024; fd++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, what, sizeof(what) - 1);
		what[len > 0 ? len : 0] = '\0';
		if (strcmp(what, "anon_inode:[perf_event]") == 0)
			n += ioctl(fd, PERF_EVENT_IOC_DISABLE, 0) == 0;
	}
	return n;
}

static void a_cpu_whose_events_ended_gets_new_ones(void **state)
{
	struct host_engine *e = engine_or_skip();
	struct host_engine_counts before, after;
	pid_t pid = child(0, HANDLED);

	(void)state;
	wait_for_handler(0);
	assert_int_equal(set(e, pid, 0, NS_PER_MS), 0);
	wait_for_cpu(0, 50 * NS_PER_MS);
	assert_true(disable_events() >= CLOCK_EVENTS_PER_CPU);
	host_engine_counts(e, &before);
	wait_for_cpu(0, 50 * NS_PER_MS);
	host_engine_counts(e, &after);
	assert_int_equal(after.ticks, before.ticks);
	for (int i = 0; i < 100 && after.ticks == before.ticks; i++) {
		usleep(100000);
		host_engine_tick(e);
		host_engine_counts(e, &after);
	}
	assert_true(after.ticks > before.ticks);
	end(pid);
	host_engine_free(e);
}

/*
 * The hard case: a process that calls execve again and again, with so many arguments that the call
 * takes long. A single signal that outlives an exec would end it.
 */
static void a_process_that_execs_is_never_ended_by_a_signal(void **state)
{
	struct host_engine *e = engine_or_skip();
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct host_engine_counts c;
	uint32_t seen = 0;
	int status = 0;
	pid_t pid;

	(void)state;
	shared[0] = (struct words){ 0 };
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_host_engine", "again", (char *)NULL);
		_exit(1);
	}
	while (waitpid(pid, &status, WNOHANG) == 0 && clock_mono_ns() < deadline) {
		uint32_t now = __atomic_load_n(&shared[0].generation, __ATOMIC_SEQ_CST);

		if (now != seen && shared[0].handler) {
			/* like a daemon that learns of the exec at once */
			host_engine_remove(e, pid);
			(void)set(e, pid, 0, NS_PER_MS / 10);
			seen = now;
		}
		usleep(200);
	}
	host_engine_counts(e, &c);
	print_message("%u programs, %llu signals, %llu held back, %llu not ours\n",
		      shared[0].generation, (unsigned long long)c.sent, (unsigned long long)c.held,
		      (unsigned long long)c.foreign);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(shared[0].generation, GENERATIONS);
	assert_true(c.sent > GENERATIONS);
	host_engine_free(e);
}

/* One life of that process: it has a handler and gets signals for a while, then it calls execve. */
static int live_again(void)
{
	static char filling[64 * 1024];
	char *argv[16] = { (char *)(uintptr_t) "test_host_engine", (char *)(uintptr_t) "again" };

	/* there is no handler yet: a signal left over from the life before would end the process
	 * here */
	burn(NS_PER_MS);
	mine->handler = 0;
	if (++mine->generation >= GENERATIONS)
		return 0;
	install();
	burn(5 * NS_PER_MS);
	memset(filling, 'x', sizeof(filling) - 1);
	for (int i = 2; i < 15; i++)
		argv[i] = filling;
	execv("/proc/self/exe", argv);
	return 1;
}

static void signals_end_with_the_engines_process(void **state)
{
	pid_t pid = child(0, HANDLED), holder;
	uint64_t signals;

	(void)state;
	host_engine_free(engine_or_skip());
	wait_for_handler(0);
	holder = fork();
	if (holder == 0) {
		struct host_engine *e = engine_or_skip();

		(void)set(e, pid, 0, NS_PER_MS);
		for (;;)
			pause();
	}
	for (int i = 0; i < 500 && shared[0].signals < 100; i++)
		usleep(10000);
	assert_true(shared[0].signals >= 100);
	kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	usleep(500000);
	signals = shared[0].signals;
	wait_for_cpu(0, 300 * NS_PER_MS); /* its CPU time is not sampled any more */
	assert_int_equal(shared[0].signals, signals);
	end(pid);
}

static void without_rights_there_is_a_sentence(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	host_engine_free(engine_or_skip());
	pid = fork();
	if (pid == 0) {
		char why[HOST_ENGINE_WHY_MAX] = "";
		struct host_engine *e = NULL;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		_exit(host_engine_new(direct, &e, why) < 0 && strstr(why, "permission denied") ? 0
											       : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

struct seen {
	pid_t pid;
	uint32_t tid;
	uint64_t since_ns;
	int stacks, wrong;
};

static void on_stack(void *userdata, pid_t pid, uint32_t tid, uint64_t mono_ns, const uint64_t *ips,
		     unsigned n)
{
	struct seen *s = userdata;

	s->stacks++;
	s->wrong += pid != s->pid || tid != s->tid || mono_ns < s->since_ns ||
		    mono_ns > clock_mono_ns() || n < 1 || n > 64;
	for (unsigned i = 0; i < n; i++)
		s->wrong += ips[i] >> 63 == 0; /* not an address of user mode */
}

static void check_stacks(enum manner manner)
{
	struct host_engine *e = engine_or_skip();
	struct seen seen = { .pid = child(0, manner), .since_ns = clock_mono_ns() };
	struct host_engine_counts c;

	seen.tid = manner == READING_IN_A_NAMESPACE ? 1 : (uint32_t)seen.pid;
	wait_for_handler(0);
	assert_int_equal(set(e, seen.pid, 0, NS_PER_MS), 0);
	usleep(200000);
	host_engine_counts(e, &c);
	assert_int_equal(c.stacks, 0); /* nobody wants them yet */
	assert_int_equal(host_engine_take_stacks(e, on_stack, &seen), 0);
	for (int i = 0; i < 100 && (i < 10 || (manner != SPINNING && seen.stacks <= 100)); i++) {
		usleep(100000);
		host_engine_drain(e);
	}
	end(seen.pid);
	host_engine_drain(e);
	host_engine_counts(e, &c);
	print_message("%d stacks of the kernel\n", seen.stacks);
	assert_true(manner == SPINNING ? seen.stacks < 100 : seen.stacks > 100);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(c.stacks, (uint64_t)seen.stacks + c.stacks_lost);
	host_engine_free(e);
}

static void ticks_in_system_calls_bring_stacks_of_the_kernel(void **state)
{
	(void)state;
	check_stacks(READING);
}

static void ticks_in_user_mode_bring_none(void **state)
{
	(void)state;
	check_stacks(SPINNING);
}

static void a_stack_has_the_number_that_the_thread_has_for_itself(void **state)
{
	(void)state;
	check_stacks(READING_IN_A_NAMESPACE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periods_are_drawn_and_tick_once_in_the_interval_together),
		cmocka_unit_test(a_tick_has_a_price),
		cmocka_unit_test(a_target_gets_a_signal_per_interval_of_its_cpu),
		cmocka_unit_test(each_of_two_targets_has_its_own_interval),
		cmocka_unit_test(a_process_whose_handler_is_another_gets_none),
		cmocka_unit_test(impossible_reports_are_refused),
		cmocka_unit_test(more_targets_than_there_is_room_for_are_refused),
		cmocka_unit_test(a_thread_that_blocks_the_signal_has_none_pending),
		cmocka_unit_test(a_signal_that_is_put_off_cuts_no_system_call_short),
		cmocka_unit_test(a_removed_target_gets_no_more_and_the_last_ends_the_ticks),
		cmocka_unit_test(a_cpu_whose_events_ended_gets_new_ones),
		cmocka_unit_test(a_process_that_execs_is_never_ended_by_a_signal),
		cmocka_unit_test(signals_end_with_the_engines_process),
		cmocka_unit_test(ticks_in_system_calls_bring_stacks_of_the_kernel),
		cmocka_unit_test(ticks_in_user_mode_bring_none),
		cmocka_unit_test(a_stack_has_the_number_that_the_thread_has_for_itself),
		cmocka_unit_test(without_rights_there_is_a_sentence),
	};
	bool again = argc > 1 && strcmp(argv[1], "again") == 0;
	int fd = again ? atoi(getenv("WORDS_FD")) : memfd_create("words", 0);
	char number[16];
	int failed = 0;

	snprintf(number, sizeof(number), "%d", fd);
	setenv("WORDS_FD", number, 1);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		return 1;
	shared = mmap(NULL, CHILDREN * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	mine = &shared[0];
	if (again)
		return live_again();
	for (int i = 0; i < 2 && !failed; i++) {
		direct = i == 1;
		failed += cmocka_run_group_tests_name(direct ? "direct" : "put off", tests, NULL,
						      NULL);
	}
	return failed;
}
