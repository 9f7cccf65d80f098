/*
 * What a signal for a time off the CPU costs: signals [ROUNDS]. Two processes on one CPU hand a byte
 * to and fro and compute for SPIN_NS between, so that each switch ends a time off the CPU that is long
 * enough for a record. In turn, a fifth of a second each: no engine; records alone (the two block
 * the signal); records and signals by task work; the same by restartable sequences. CPU time of both
 * per switch: medians, and those of the differences within a round. It measures and does not judge.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/ground/clock.h"

#define BLOCK_NS      (NS_PER_S / 5)
#define SPIN_NS	      15000
#define SIGNALS_PER_S 1000000
#define ROUNDS_MAX    1000

enum manner { WITHOUT, RECORDS, TASK_WORK, RSEQ, MANNERS };

static const char *const names[MANNERS] = { "no engine", "records alone", "by task work",
					    "by rseq" };

/* What the two say. */
struct words {
	uint64_t switches, signals;
	uint64_t cpu_ns[2];
	uint64_t handler;
	int blocks;
};

static struct words *shared;
static double measured[MANNERS][ROUNDS_MAX], signalled[MANNERS], priced[MANNERS][ROUNDS_MAX];

static void on_signal(int signo)
{
	(void)signo;
	shared->signals++;
}

static void block(int blocks)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	sigprocmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static void play(int in, int out, int me)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	int blocks = 0;
	cpu_set_t set;
	char c = 'x';

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGPROF, &action, NULL);
	shared->handler = (uint64_t)(uintptr_t)on_signal;
	for (;;) {
		uint64_t until;

		if (read(in, &c, 1) != 1)
			_exit(1);
		if (blocks != shared->blocks)
			block(blocks = shared->blocks);
		until = clock_mono_ns() + SPIN_NS;
		while (clock_mono_ns() < until)
			;
		shared->switches++; /* only one of the two runs at a time */
		if (shared->switches % 64 < 2)
			shared->cpu_ns[me] = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		if (write(out, &c, 1) != 1)
			_exit(1);
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

struct engines {
	struct host_engine *host;
	struct offcpu_engine *off;
};

static void begin(struct engines *of, enum manner manner, const pid_t *two)
{
	struct engines *e = &of[manner == RSEQ];
	struct host_engine_target t = { shared->handler, 60 * NS_PER_S, SIGPROF, 0 };

	shared->blocks = manner == RECORDS;
	for (int i = 0; manner != WITHOUT && i < 2; i++)
		if (host_engine_set(e->host, two[i], &t) < 0 ||
		    offcpu_engine_set(e->off, two[i], 0, OFFCPU_MIN_NS_LEAST) < 0)
			exit(2);
	offcpu_engine_tick(e->off); /* what follows is a tick of its own */
	usleep(20000);
}

/* What the engine says that a signal costs it. */
static double price(struct engines *of, enum manner manner)
{
	struct offcpu_state state;

	offcpu_engine_tick(of[manner == RSEQ].off);
	offcpu_engine_state(of[manner == RSEQ].off, &state);
	return manner == TASK_WORK || manner == RSEQ ? (double)state.signal_price_ns : 0;
}

static void end(struct engines *of, const pid_t *two)
{
	for (int way = 0; way < 2; way++) {
		for (int i = 0; i < 2; i++) {
			offcpu_engine_remove(of[way].off, two[i]);
			host_engine_remove(of[way].host, two[i]);
			offcpu_engine_drain(of[way].off);
		}
		offcpu_engine_tick(of[way].off);
	}
}

static void measure(struct engines *of, const pid_t *two, int round)
{
	for (int m = 0; m < MANNERS; m++) {
		/* each state comes first equally often */
		enum manner at = (enum manner)((m + round) % MANNERS);
		uint64_t signals, switches;

		begin(of, at, two);
		signals = shared->signals;
		switches = shared->switches;
		measured[at][round] = ns_per_switch();
		signalled[at] = (double)(shared->signals - signals) /
				(double)(shared->switches - switches);
		priced[at][round] = price(of, at);
		end(of, two);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(int rounds)
{
	double more[ROUNDS_MAX];

	for (int m = 0; m < MANNERS; m++) {
		for (int i = 0; i < rounds; i++)
			more[i] = measured[m][i] - measured[WITHOUT][i];
		qsort(more, (size_t)rounds, sizeof(*more), compare);
		qsort(priced[m], (size_t)rounds, sizeof(*more), compare);
		printf("%-14s %+8.0f ns a switch (quarter %+.0f, three quarters %+.0f), %.2f signals, "
		       "the programs' part %.0f ns\n",
		       names[m], more[rounds / 2], more[rounds / 4], more[3 * rounds / 4],
		       signalled[m], priced[m][rounds / 2]);
	}
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
	struct engines of[2];
	pid_t two[2];

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (rounds < 1 || rounds > ROUNDS_MAX || shared == MAP_FAILED || pipe(a) < 0 || pipe(b) < 0)
		return 2;
	for (int way = 0; way < 2; way++)
		if (host_engine_new(way == 1, &of[way].host, why) < 0 ||
		    offcpu_engine_new(of[way].host, SIGNALS_PER_S, false, &of[way].off, why) < 0) {
			fprintf(stderr, "%s\n", why);
			return 77;
		}
	two[0] = player(a[0], b[1], 0);
	two[1] = player(b[0], a[1], 1);
	(void)!write(a[1], "x", 1);
	usleep(100000);
	for (int i = 0; i < rounds; i++)
		measure(of, two, i);
	print(rounds);
	kill(two[0], SIGKILL);
	kill(two[1], SIGKILL);
	return 0;
}
