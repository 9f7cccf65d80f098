/*
 * The daemon's memory over many lives of JVMs: lives COUNT ALIVE. All of kindlingd but its socket
 * and its search for JVMs runs here, with a store, for made-up JVMs, ALIVE of them at a time and
 * LIVES_A_SECOND at most, whose agents say as much as that of a JVM of some seconds
 * (tests/unit/fake_session.h, "rich"). More resident memory than the bound is a failure, and so is
 * growth of its mean from the first thousand lives to the last tenth: for a moment, when a window
 * of ten seconds closes, there is more.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/heap.h"
#include "daemon/ground/log.h"
#include "daemon/ground/proc.h"
#include "daemon/host/host.h"
#include "tests/unit/fake_session.h"

#define BASE_KIB       (24 * 1024) /* limits of memory: for a daemon, whatever it has seen, */
#define EACH_KIB       205 /* and for each JVM that lives now */
#define GROWTH_KIB     2048
#define WARM_UP	       400 /* the last 30 s of the lives are in memory */
#define FIRST	       1000
#define LIVES_A_SECOND 10
#define ALIVE_MAX      64

struct life {
	pid_t pid;
};

static struct host *host;

static long resident_kib(void)
{
	long kib = 0;
	char line[128];
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static void begin(struct life *l)
{
	struct jvm jvm;

	l->pid = fork();
	if (l->pid == 0)
		for (;;)
			pause();
	process = l->pid; /* fill_in() describes this process */
	fill_in(&jvm);
	snprintf(jvm.name, sizeof(jvm.name), "Made.Up%d", (int)l->pid);
	if (targets_add(host_targets(host), &jvm, clock_mono_ns(), NULL) < 0)
		exit(2);
}

static void end(struct life *l)
{
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	l->pid = 0;
}

static bool is_through(const struct life *l)
{
	for (struct target *t = targets_next(host_targets(host), NULL); t;
	     t = targets_next(host_targets(host), t)) {
		struct stream_counts c;

		if (t->jvm.pid != l->pid || t->state != TARGET_STREAMING)
			continue;
		target_counts(t, &c);
		return c.of[WIRE_EVENT_CPU].delivered >= RICH_SAMPLES;
	}
	return false;
}

static struct {
	int count, done;
	long first_kib, n_first; /* sums of the first thousand lives */
	long last_kib, n_last, most_kib; /* of the last tenth */
} seen;

static void look(void)
{
	long kib = resident_kib();

	seen.done++;
	if (seen.done > WARM_UP && seen.done <= FIRST) {
		seen.first_kib += kib;
		seen.n_first++;
	}
	if (seen.done > seen.count - seen.count / 10) {
		seen.last_kib += kib;
		seen.n_last++;
		seen.most_kib = kib > seen.most_kib ? kib : seen.most_kib;
	}
	if (seen.done % (seen.count / 10))
		return;
	printf("%d lives: %ld KiB\n", seen.done, kib);
	fflush(stdout);
}

static int verdict(int alive)
{
	long bound_kib = BASE_KIB + alive * EACH_KIB, first_kib;
	long last_kib = seen.last_kib / seen.n_last;
	int bad = last_kib > bound_kib;

	printf("in the last tenth %ld KiB on average, %ld at most, allowed %ld\n", last_kib,
	       seen.most_kib, bound_kib);
	if (seen.count > 2 * FIRST) {
		first_kib = seen.first_kib / seen.n_first;
		printf("in the first thousand %ld KiB on average\n", first_kib);
		bad |= last_kib > first_kib + GROWTH_KIB;
	}
	return bad;
}

static int prepare(void)
{
	struct fault f = { 0 };

	heap_begin(HEAP_APART);
	log_set_level(LOG_LEVEL_ERR);
	strcpy(dir, "/tmp/kindling-lives-XXXXXX");
	if (!mkdtemp(dir) || loop_new(&loop) < 0)
		return 2;
	setenv("KINDLING_TEST_DIR", dir, 1);
	config_defaults(&config);
	snprintf(config.agent, sizeof(config.agent), "rich");
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	memset(config.injector, 0, sizeof(config.injector));
	(void)!readlink("/proc/self/exe", config.injector, sizeof(config.injector) - 1);
	config.attach_rate = 0;
	config.host_engine = config.kernel_stacks = false;
	if (host_new(loop, &config, false, true, &host, &f) == 0)
		return 0;
	fprintf(stderr, "%s\n", f.what);
	return 2;
}

static void run(struct life *lives, int alive)
{
	uint64_t next_ns = 0;

	while (seen.done < seen.count) {
		for (int i = 0; i < alive; i++) {
			if (!lives[i].pid && clock_mono_ns() >= next_ns) {
				next_ns = clock_mono_ns() + NS_PER_S / LIVES_A_SECOND;
				begin(&lives[i]);
			} else if (lives[i].pid && is_through(&lives[i])) {
				end(&lives[i]);
				look();
			}
		}
		(void)loop_round(loop, 5 * NS_PER_MS);
	}
}

int main(int argc, char **argv)
{
	struct life lives[ALIVE_MAX] = { 0 };
	char command[128];
	int alive, bad;

	if (is_injector(argc, argv))
		return injector(argv);
	seen.count = argc == 3 ? atoi(argv[1]) : 0;
	alive = argc == 3 ? atoi(argv[2]) : 0;
	if (seen.count < 10 || alive < 1 || alive > ALIVE_MAX || prepare())
		return 2;
	run(lives, alive);
	bad = verdict(alive);
	for (int i = 0; i < alive; i++)
		if (lives[i].pid)
			end(&lives[i]);
	host_free(host);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || bad;
}
