/*
 * syscalls [ROUNDS]: what a program at the end of every system call costs
 * (events.offcpu.syscall_exits), in ns of a getppid(2) of a process that is no target, and of one
 * that is: medians of paired blocks. Needs rights for BPF.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/ground/clock.h"

#define ROUNDS_MAX    1000
#define CALLS	      300000
#define SIGNALS_PER_S 100

enum { NO_TARGET, OTHER, TARGET, STATES };

static const char *const names[] = { "no target", "another process is one", "this process is one" };
static double ns_of[STATES][ROUNDS_MAX], more[ROUNDS_MAX];

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ns_per_call(void)
{
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (int i = 0; i < CALLS; i++)
		(void)syscall(SYS_getppid);
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / CALLS;
}

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static int measure(struct offcpu_engine *e, pid_t of, double *ret)
{
	int r = of ? offcpu_engine_set(e, of, 0, NS_PER_MS) : 0;

	(void)ns_per_call(); /* the attach is over */
	*ret = ns_per_call();
	if (of)
		offcpu_engine_remove(e, of);
	return r;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 40;
	char why[OFFCPU_ENGINE_WHY_MAX];
	struct offcpu_engine *e;
	struct host_engine *host;
	pid_t of[STATES] = { 0, sleeper(), getpid() };

	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	if (host_engine_new(true, &host, why) < 0 ||
	    offcpu_engine_new(host, SIGNALS_PER_S, true, &e, why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 77;
	}
	for (int i = 0; i < rounds; i++)
		for (int s = 0; s < STATES; s++)
			if (measure(e, of[s], &ns_of[s][i]) < 0)
				return 1;
	for (int s = 0; s < STATES; s++) {
		for (int i = 0; i < rounds; i++)
			more[i] = ns_of[s][i] - (s ? ns_of[NO_TARGET][i] : 0);
		qsort(more, (size_t)rounds, sizeof(*more), compare);
		printf("%-22s %s%.0f ns a call (quarter %.0f, three quarters %.0f)\n", names[s],
		       s ? "+" : "", more[rounds / 2], more[rounds / 4], more[3 * rounds / 4]);
	}
	kill(of[OTHER], SIGKILL);
	return 0;
}
