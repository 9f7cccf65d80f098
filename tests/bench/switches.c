/*
 * What the off-CPU engine adds to a context switch: switches [ROUNDS]. Two processes on one CPU
 * hand a byte to and fro through pipes; each switch takes one off the CPU and wakes the other. In
 * turn, a fifth of a second each: no engine; an empty program at each of the engine's two places,
 * to show what the kernel takes to call any; an engine whose target is another process; one whose
 * targets are the two. CPU time of both per switch: other load on the machine changes little.
 * Prints medians, and those of the differences within a round. Then the time of the engine's
 * programs alone, by the kernel's statistics, of which an empty program's time is taken off. It
 * measures and does not judge.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
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

#define PROGRAMS_MAX 512

enum manner { WITHOUT, EMPTY, OTHERS, TARGETS, MANNERS };

static const char *const names[MANNERS] = { "no engine", "empty programs", "not a target",
					    "target" };
static const char *const places[] = { "sched_switch", "sched_waking" };

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
		shared->switches++; /* only one of the two runs at a time */
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

/* ---- programs that do nothing ---------------------------------------------------------------- */

static int empty_fd;
static int empty_attached[2][ARRAY_SIZE(places)];

static int empty_load(void)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", "GPL", nothing,
			     ARRAY_SIZE(nothing), NULL);
}

static void empty_attach(int at)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		empty_attached[at][i] = bpf_raw_tracepoint_open(places[i], empty_fd);
}

static void empty_detach(int at)
{
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		(void)close(empty_attached[at][i]);
}

/* ---- what is added to a switch --------------------------------------------------------------- */

static void begin(struct offcpu_engine *e, enum manner manner, const pid_t *two, pid_t third)
{
	if (manner == EMPTY)
		empty_attach(0);
	if (manner == OTHERS)
		(void)offcpu_engine_set(e, third, 0, NS_PER_MS);
	for (int i = 0; manner == TARGETS && i < 2; i++)
		(void)offcpu_engine_set(e, two[i], 0, NS_PER_MS);
	usleep(20000);
}

static void end(struct offcpu_engine *e, enum manner manner, const pid_t *two, pid_t third)
{
	if (manner == EMPTY)
		empty_detach(0);
	offcpu_engine_remove(e, third);
	for (int i = 0; i < 2; i++)
		offcpu_engine_remove(e, two[i]);
}

static void measure(struct offcpu_engine *e, const pid_t *two, pid_t third, int round)
{
	for (int m = 0; m < MANNERS; m++) {
		enum manner at =
			/* each state comes first equally often */
			(enum manner)((m + round) % MANNERS);

		begin(e, at, two, third);
		measured[at][round] = ns_per_switch();
		end(e, at, two, third);
	}
}

/* ---- the programs alone ---------------------------------------------------------------------- */

struct runs {
	char name[BPF_OBJ_NAME_LEN];
	__u32 id;
	uint64_t n, ns;
};

/* The runs of all programs of this machine so far. */
static size_t runs_read(struct runs *ret)
{
	__u32 id = 0;
	size_t n = 0;

	while (n < PROGRAMS_MAX && bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0) {
			memcpy(ret[n].name, info.name, sizeof(ret[n].name));
			ret[n].id = info.id;
			ret[n].n = info.run_cnt;
			ret[n++].ns = info.run_time_ns;
		}
		if (fd >= 0)
			(void)close(fd);
	}
	return n;
}

struct snapshot {
	struct runs of[PROGRAMS_MAX];
	size_t n;
};

static double ns_per_run(const char *name, const struct snapshot *before,
			 const struct snapshot *after)
{
	uint64_t runs = 0, ns = 0;

	for (size_t b = 0; b < before->n; b++)
		for (size_t a = 0; a < after->n; a++) {
			if (after->of[a].id != before->of[b].id ||
			    strcmp(after->of[a].name, name) != 0)
				continue;
			runs += after->of[a].n - before->of[b].n;
			ns += after->of[a].ns - before->of[b].ns;
		}
	return runs ? (double)ns / (double)runs : 0;
}

static void print_alone(struct offcpu_engine *e, enum manner manner, const pid_t *two, pid_t third)
{
	static struct snapshot before, after;

	/* before the engine and after it, because the first program called at a place takes longer
	 */
	empty_attach(0);
	begin(e, manner, two, third);
	empty_attach(1);
	before.n = runs_read(before.of);
	(void)ns_per_switch();
	after.n = runs_read(after.of);
	printf("%-14s alone: at the switch %+.1f ns, at the wake-up %+.1f ns\n", names[manner],
	       ns_per_run("on_switch_put_o", &before, &after) -
		       ns_per_run("empty", &before, &after),
	       ns_per_run("on_waking", &before, &after) - ns_per_run("empty", &before, &after));
	end(e, manner, two, third);
	empty_detach(0);
	empty_detach(1);
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
		printf("%-14s %+7.1f ns a switch (quarter %+.1f, three quarters %+.1f)\n", names[m],
		       low, more[rounds / 4], more[3 * rounds / 4]);
	}
	printf("%-14s %7.1f ns a switch\n", names[WITHOUT], median(measured[WITHOUT], rounds));
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
	if (host_engine_new(false, &host, why) < 0 ||
	    offcpu_engine_new(host, 100, false, &e, why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 77;
	}
	empty_fd = empty_load();
	if (empty_fd < 0)
		return 2;
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
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) >= 0) {
		print_alone(e, OTHERS, two, third);
		print_alone(e, TARGETS, two, third);
	}
	kill(two[0], SIGKILL);
	kill(two[1], SIGKILL);
	kill(third, SIGKILL);
	offcpu_engine_free(e);
	host_engine_free(host);
	return 0;
}
