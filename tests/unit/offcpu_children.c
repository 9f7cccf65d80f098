/* See offcpu_children.h. */
#include "tests/unit/offcpu_children.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/host_cookie.h"
#include "tests/unit/unit.h"

#define STORM_PAIRS   4 /* on each CPU */

struct words *shared;

static void on_signal(int signo, siginfo_t *info, void *ucontext)
{
	uint32_t i = __atomic_fetch_add(&shared->n_cookies, 1, __ATOMIC_RELAXED);

	(void)ucontext;
	if (i < COOKIES_MAX) {
		shared->cookies[i].cookie =
			signo == OWN_SIGNAL ? host_cookie_offcpu(HOST_COOKIE_OFFCPU_UNKNOWN_NS, 0)
					    : (uint64_t)(uintptr_t)info->si_value.sival_ptr;
		shared->cookies[i].tid = (uint32_t)syscall(SYS_gettid);
	}
}

void offcpu_child_install(void)
{
	struct sigaction action = { .sa_sigaction = on_signal,
				    .sa_flags = SA_SIGINFO | SA_RESTART };

	sigaction(SIGPROF, &action, NULL);
	sigaction(OWN_SIGNAL, &action, NULL);
	__atomic_store_n(&shared->handler, (uint64_t)(uintptr_t)on_signal, __ATOMIC_SEQ_CST);
}

void offcpu_child_nap(uint64_t ns)
{
	struct timespec ts = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };

	while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
		;
}

static int ends[2][2]; /* a pipe and a pair of sockets: one thread reads, another writes */

static void *feed(void *unused)
{
	(void)unused;
	for (int i = 0; i < WAITS; i++) {
		offcpu_child_nap(WAIT_NS);
		(void)!write(ends[0][1], "x", 1);
		(void)!write(ends[1][1], "x", 1);
	}
	return NULL;
}

static void wait_once(int kind)
{
	struct timespec ts = { 0, WAIT_NS };
	uint32_t word = 0;
	char c;

	switch (kind) {
	case SLEEPS:
		offcpu_child_nap(WAIT_NS);
		break;
	case FUTEXES:
		(void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
		break;
	case POLLS:
		(void)poll(NULL, 0, (int)(WAIT_NS / NS_PER_MS));
		break;
	default:
		(void)!read(ends[kind - PIPES][0], &c, 1);
	}
}

static void *wait_often(void *arg)
{
	int kind = (int)(intptr_t)arg;
	uint64_t before_ns;

	shared->tids[kind] = (uint32_t)syscall(SYS_gettid);
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		offcpu_child_nap(NS_PER_MS / 2);
	before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (int i = 0; i < WAITS; i++) {
		struct wait *w = &shared->waits[kind][i];

		w->begin_ns = clock_mono_ns();
		wait_once(kind);
		w->end_ns = clock_mono_ns();
	}
	shared->cpu_ns[kind] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
	__atomic_fetch_add(&shared->done, 1, __ATOMIC_RELEASE);
	offcpu_child_nap(600 * NS_PER_S);
	return NULL;
}

static void wait_in_every_way(void)
{
	pthread_t threads[KINDS], feeder;

	if (pipe(ends[0]) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends[1]) < 0)
		_exit(1);
	for (intptr_t i = 0; i < KINDS; i++)
		pthread_create(&threads[i], NULL, wait_often, (void *)i);
	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		offcpu_child_nap(NS_PER_MS / 2);
	pthread_create(&feeder, NULL, feed, NULL);
	pthread_join(feeder, NULL);
	offcpu_child_nap(600 * NS_PER_S);
}

static void *wait_for_ever(void *arg)
{
	int kind = (int)(intptr_t)arg;
	uint32_t word = 0;
	char c;

	shared->tids[kind] = (uint32_t)syscall(SYS_gettid);
	switch (kind) {
	case SLEEPS:
		offcpu_child_nap(600 * NS_PER_S);
		break;
	case FUTEXES:
		(void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		break;
	case POLLS:
		(void)poll(NULL, 0, -1);
		break;
	default:
		(void)!read(ends[kind - PIPES][0], &c, 1);
	}
	return NULL;
}

/* A thread for each kind of wait; none of the waits ends. */
static void stay_asleep(void)
{
	pthread_t thread;

	if (pipe(ends[0]) < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends[1]) < 0)
		_exit(1);
	for (intptr_t i = 0; i < KINDS; i++)
		pthread_create(&thread, NULL, wait_for_ever, (void *)i);
	pthread_join(thread, NULL);
}

static void *spin(void *arg)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	shared->tids[(intptr_t)arg] = (uint32_t)syscall(SYS_gettid);
	while (!__atomic_load_n(&shared->done, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Two threads for one CPU. */
static void compete(void)
{
	pthread_t one;

	pthread_create(&one, NULL, spin, NULL);
	spin((void *)(intptr_t)1);
}

static void crowd(void)
{
	pthread_t t;

	for (intptr_t i = 0; i < 2; i++)
		pthread_create(&t, NULL, spin, (void *)i);
	for (;;)
		offcpu_child_nap(WAIT_NS);
}

/* More short sleeps than there are signals. */
static void sleep_often(void)
{
	for (;;)
		offcpu_child_nap(NS_PER_MS / 5);
}

static void *sleep_long(void *unused)
{
	(void)unused;
	for (;;)
		offcpu_child_nap(LONG_NS);
	return NULL;
}

static void begin_sleepers(void)
{
	pthread_t t;

	while (!__atomic_load_n(&shared->go, __ATOMIC_ACQUIRE))
		offcpu_child_nap(NS_PER_MS / 2);
	for (int i = 0; i < MANY_THREADS; i++)
		pthread_create(&t, NULL, sleep_long, NULL);
	sleep_long(NULL);
}

static void *sleep_a_little(void *unused)
{
	(void)unused;
	for (;;)
		offcpu_child_nap(NS_PER_MS + NS_PER_MS / 10);
	return NULL;
}

/* Four threads with more short sleeps than there are signals, and a thread with long sleeps. */
static void sleep_mixed(void)
{
	pthread_t t;

	for (int i = 0; i < 4; i++)
		pthread_create(&t, NULL, sleep_a_little, NULL);
	sleep_long(NULL);
}

/*
 * Sleeps on the CPU clock of a process. The lowest byte of that clock's number is the one of
 * CLOCK_REALTIME if the five lowest bits of the process's number are set (include/linux/posix-timers.h).
 */
static void sleep_disguised(void)
{
	struct timespec ts = { 0, 8 * NS_PER_MS };
	pid_t pid;

	for (;;) {
		pid = fork();
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			while ((getpid() & 31) == 31)
				;
			_exit(0);
		}
		if (pid < 0 || (pid & 31) == 31)
			break;
		waitpid(pid, NULL, 0);
	}
	while (pid > 0)
		(void)syscall(SYS_clock_nanosleep, (clockid_t)(~(unsigned)pid << 3), 0, &ts, NULL);
}

static void park(void)
{
	const struct timespec ts = { 0, NS_PER_MS / 5 };
	uint32_t word = 0;

	for (;;)
		(void)syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0);
}

static void *live_shortly(void *unused)
{
	(void)unused;
	offcpu_child_nap(3 * NS_PER_MS);
	return NULL;
}

static void begin_threads(void)
{
	for (;;) {
		pthread_t t;

		pthread_create(&t, NULL, live_shortly, NULL);
		pthread_join(t, NULL);
	}
}

static void *sleep_blocked(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;)
		offcpu_child_nap(NS_PER_MS);
	return NULL;
}

/* A thread with the name of the agent's thread and one with another name; both block all
 * signals. */
static void block_signals(void)
{
	sigset_t all;
	pthread_t t;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_create(&t, NULL, sleep_blocked, "kindling");
	pthread_create(&t, NULL, sleep_blocked, "another");
	for (;;)
		pause();
}

static void *bounce(void *arg)
{
	const int *pipes = arg; /* read from [0], write to [1] */
	char c;

	while (read(pipes[0], &c, 1) == 1 && write(pipes[1], &c, 1) == 1)
		;
	return NULL;
}

/* Pairs of threads that hand a byte to and fro: on each CPU nothing but context switches. */
static void storm(void)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (long cpu = 0; cpu < n_cpus; cpu++) {
		for (int pair = 0; pair < STORM_PAIRS; pair++) {
			int *pipes = calloc(4, sizeof(*pipes)), there[2], back[2];
			pthread_attr_t attr;
			cpu_set_t set;
			pthread_t t;

			if (!pipes || pipe(there) < 0 || pipe(back) < 0)
				_exit(1);
			pipes[0] = there[0];
			pipes[1] = back[1];
			pipes[2] = back[0];
			pipes[3] = there[1];
			CPU_ZERO(&set);
			CPU_SET(cpu, &set);
			pthread_attr_init(&attr);
			pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
			pthread_create(&t, &attr, bounce, pipes);
			pthread_create(&t, &attr, bounce, pipes + 2);
			(void)!write(there[1], "x", 1);
		}
	}
	for (;;)
		pause();
}

pid_t offcpu_child(enum offcpu_manner manner)
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (manner == UNHANDLED)
		shared->handler = (uint64_t)(uintptr_t)on_signal;
	else
		offcpu_child_install();
	if (manner == WAITING)
		wait_in_every_way();
	if (manner == COMPETING)
		compete();
	if (manner == CROWDED)
		crowd();
	if (manner == MIXED)
		sleep_mixed();
	if (manner == BEGINNING)
		begin_threads();
	if (manner == ASLEEP)
		stay_asleep();
	if (manner == SELDOM)
		sleep_long(NULL);
	while (manner == LONG)
		offcpu_child_nap(30 * NS_PER_S);
	if (manner == MANY)
		begin_sleepers();
	if (manner == BLOCKING)
		block_signals();
	if (manner == DISGUISED)
		sleep_disguised();
	if (manner == PARKING)
		park();
	if (manner == STORMING)
		storm();
	sleep_often();
	_exit(0);
}

void offcpu_child_wait(void)
{
	while (!__atomic_load_n(&shared->handler, __ATOMIC_SEQ_CST))
		usleep(1000);
}

void offcpu_child_end(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL); /* and nothing before it */
}
