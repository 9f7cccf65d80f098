/*
 * What the off-CPU engine adds to a context switch: switches [ROUNDS]. Two processes on one CPU
 * hand a byte to and fro through pipes; each switch takes one off the CPU and wakes the other. In
 * turn, a fifth of a second each: no engine; an engine whose target is another process; one whose
 * targets are the two. CPU time of both per switch: other load on the machine changes little.
 * Prints medians, and those of the differences within a round. It measures and does not judge.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/ground/clock.h"

#define BLOCK_NS   (NS_PER_S / 5)
#define ROUNDS_MAX 1000

enum manner { WITHOUT, OTHERS, TARGETS, MANNERS };

static const char *const names[MANNERS] = { "no engine", "not a target", "target" };

/* What the two say. */
struct words {
	uint64_t switches;
	uint64_t cpu_ns[2];
};

static struct words *shared;
static double measured[MANNERS][ROUNDS_MAX];

static void play(int in, int out, int me)
{
	cpu_set_t set;
	char c = 'x';

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (read(in, &c, 1) != 1 || write(out, &c, 1) != 1)
			_exit(1);
		shared->switches++; /* one of them runs at a time */
		if (shared->switches % 64 < 2)
			shared->cpu_ns[me] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	}
}

static double ns_per_switch(void)
{
	struct words before = *shared;

	usleep(BLOCK_NS / 1000);
	return (double)(shared->cpu_ns[0] + shared->cpu_ns[1] - before.cpu_ns[0] -
			before.cpu_ns[1]) /
	       (double)(shared->switches - before.switches);
}

static void measure(struct offcpu_engine *e, const pid_t *two, pid_t third, int round)
{
	for (int m = 0; m < MANNERS; m++) {
		int at = (m + round) % MANNERS; /* each comes first as often */

		if (at == OTHERS)
			(void)offcpu_engine_set(e, third, NS_PER_MS);
		for (int i = 0; at == TARGETS && i < 2; i++)
			(void)offcpu_engine_set(e, two[i], NS_PER_MS);
		usleep(20000);
		measured[at][round] = ns_per_switch();
		offcpu_engine_remove(e, third);
		for (int i = 0; i < 2; i++)
			offcpu_engine_remove(e, two[i]);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *of, int n)
{
	qsort(of, (size_t)n, sizeof(*of), compare);
	return of[n / 2];
}

static void print(int rounds)
{
	double more[ROUNDS_MAX];

	for (int m = 0; m < MANNERS; m++) {
		double low;

		for (int i = 0; i < rounds; i++)
			more[i] = measured[m][i] - measured[WITHOUT][i];
		low = median(more, rounds);
		printf("%-13s %+7.1f ns a switch (quarter %+.1f, three quarters %+.1f)\n", names[m],
		       low, more[rounds / 4], more[3 * rounds / 4]);
	}
	printf("%-13s %7.1f ns a switch\n", names[WITHOUT], median(measured[WITHOUT], rounds));
}

static pid_t player(int in, int out, int me)
{
	pid_t pid = fork();

	if (pid == 0)
		play(in, out, me);
	return pid;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 40, a[2], b[2];
	char why[OFFCPU_ENGINE_WHY_MAX];
	struct host_engine *host;
	struct offcpu_engine *e;
	pid_t two[2], third;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (rounds < 1 || rounds > ROUNDS_MAX || shared == MAP_FAILED || pipe(a) < 0 || pipe(b) < 0)
		return 2;
	if (host_engine_new(false, &host, why) < 0 || offcpu_engine_new(host, 100, &e, why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 77;
	}
	third = fork();
	if (third == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	two[0] = player(a[0], b[1], 0);
	two[1] = player(b[0], a[1], 1);
	(void)!write(a[1], "x", 1);
	for (int i = 0; i < rounds; i++)
		measure(e, two, third, i);
	print(rounds);
	kill(two[0], SIGKILL);
	kill(two[1], SIGKILL);
	kill(third, SIGKILL);
	offcpu_engine_free(e);
	host_engine_free(host);
	return 0;
}
