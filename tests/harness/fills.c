/*
 * JVMs that fill the host, beside one that does not: fills SECONDS. All of kindlingd but its socket
 * and its search for JVMs runs here. HOSTILE made-up JVMs in two containers say new names, stacks
 * and threads as fast as they are read (tests/unit/fake_session.h, "flood"); one outside says the
 * same few stacks all the time. Afterwards:
 *
 *   the daemon never took more memory than the bound, and the history no more disk than its size;
 *   every sample of the honest one came, none of them is "[profile full]",
 *   and its history is whole, from before the attack on;
 *   sessions of the hostile ones ended because of limits.memory, that of the honest one did not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/heap.h"
#include "daemon/ground/log.h"
#include "daemon/host/host.h"
#include "tests/unit/fake_session.h"

#define HOSTILE	      4
#define MEMORY_KIB    (256 * 1024) /* this process, and what each receiver adds */
#define HISTORY_BYTES (1ul << 20)
#define BEFORE_S      12 /* so that a window has been closed before the attack begins */

static struct host *host;
static pid_t pids[HOSTILE + 1];
static long most_kib, most_children_kib;
static uint64_t most_bytes;
static int bad;

static void check(bool good, const char *what, uint64_t value)
{
	printf("%s %s: %llu\n", good ? "ok  " : "FAIL", what, (unsigned long long)value);
	bad |= !good;
}

/* The value in KiB of a line of a file in /proc; 0 = there is no such line. */
static long kib_of(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	size_t len = strlen(name);
	char line[256];
	long kib = 0;

	while (f && !kib && fgets(line, sizeof(line), f))
		if (strncmp(line, name, len) == 0)
			(void)sscanf(line + len, ": %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

static bool is_ours(int pid)
{
	char path[64], exe[512];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n > 0 ? n : 0] = '\0';
	return strstr(exe, "/kindling-");
}

/* The memory of receivers and of kindling-symbols: private pages, and their part of shared ones. */
static long children_kib(void)
{
	long sum = 0;
	char path[64];
	int pid;
	FILE *list;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	list = fopen(path, "re");
	while (list && fscanf(list, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
		sum += is_ours(pid) ? kib_of(path, "Pss") : 0;
	}
	if (list)
		fclose(list);
	return sum;
}

static struct target *begin(int number, const char *manner)
{
	struct target *t = NULL;
	struct jvm jvm;

	pids[number] = fork();
	if (pids[number] == 0)
		for (;;)
			pause();
	process = pids[number]; /* fill_in() describes this process */
	fill_in(&jvm);
	if (number)
		snprintf(jvm.container_id, sizeof(jvm.container_id), "%064x", 1 + number % 2);
	snprintf(config.agent, sizeof(config.agent), "%s", manner);
	if (targets_add(host_targets(host), &jvm, clock_mono_ns(), &t) < 0)
		exit(2);
	while (t->state == TARGET_FOUND || t->state == TARGET_INJECTING)
		(void)loop_round(loop, 5 * NS_PER_MS);
	return t;
}

static void run(uint64_t seconds)
{
	uint64_t until = clock_mono_ns() + seconds * NS_PER_S, look = 0;
	long children = 0;

	while (clock_mono_ns() < until) {
		struct store_counts c;
		long kib;

		(void)loop_round(loop, 5 * NS_PER_MS);
		if (clock_mono_ns() > look) {
			children = children_kib();
			most_children_kib =
				children > most_children_kib ? children : most_children_kib;
			look = clock_mono_ns() + NS_PER_S / 5;
		}
		kib = kib_of("/proc/self/status", "VmRSS") + children;
		store_counts(host_store(host), &c);
		most_kib = kib > most_kib ? kib : most_kib;
		most_bytes = c.bytes > most_bytes ? c.bytes : most_bytes;
	}
}

static struct profile *history_of(const struct target *t, uint64_t from, uint64_t to)
{
	const uint32_t pid = (uint32_t)t->jvm.pid;
	const struct profile_filter f = { .pids = &pid, .n_pids = 1 };
	struct profile *p = NULL;

	if (host_query(host, from, to, &f, &p) < 0)
		exit(2);
	return p;
}

static uint64_t full_samples(const struct profile *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_node *node = &p->nodes[p->rows[i].node];
		const char *thread = p->strings[p->threads[p->rows[i].thread].name];

		if (strcmp(thread, "[profile full]") == 0 ||
		    strcmp(p->strings[p->frames[node->frame].method], "[profile full]") == 0)
			n += p->rows[i].samples;
	}
	return n;
}

static void judge_honest(struct target *t, uint64_t begin_ns)
{
	struct profile *all = history_of(t, 0, UINT64_MAX), *first;
	struct stream_counts c;
	uint64_t samples_of_all = profile_samples(all), before;

	target_counts(t, &c);
	first = history_of(t, 0, begin_ns + (BEFORE_S - 3) * NS_PER_S);
	before = profile_samples(first);
	check(t->state == TARGET_STREAMING, "the honest one's state", t->state);
	check(samples_of_all == c.of[WIRE_EVENT_CPU].delivered && samples_of_all > 1000,
	      "its samples in the history", samples_of_all);
	check(c.of[WIRE_EVENT_CPU].taken == c.of[WIRE_EVENT_CPU].delivered,
	      "its samples that were taken", c.of[WIRE_EVENT_CPU].taken);
	check(full_samples(all) == 0, "of them [profile full]", full_samples(all));
	check(before >= 5 * STEADY_A_SECOND, "of them before the attack", before);
	profile_free(all);
	profile_free(first);
}

static int prepare(void)
{
	struct fault f = { 0 };

	heap_begin(HEAP_APART);
	log_set_level(LOG_LEVEL_ERR);
	strcpy(dir, "/tmp/kindling-fills-XXXXXX");
	if (!mkdtemp(dir) || loop_new(&loop) < 0)
		return 2;
	setenv("KINDLING_TEST_DIR", dir, 1);
	config_defaults(&config);
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	memset(config.injector, 0, sizeof(config.injector));
	(void)!readlink("/proc/self/exe", config.injector, sizeof(config.injector) - 1);
	config.attach_rate = 0;
	config.store_max_bytes = HISTORY_BYTES;
	config.host_engine = config.kernel_stacks = false;
	config.decode_cpu_permille = 0; /* the limits of memory and disk must hold at any speed */
	if (host_new(loop, &config, false, true, &host, &f) == 0)
		return 0;
	fprintf(stderr, "%s\n", f.what);
	return 2;
}

static void attack(uint64_t seconds)
{
	struct target *honest = begin(0, "steady");
	uint64_t begin_ns = clock_real_ns(), hostile = 0;

	run(BEFORE_S);
	for (int i = 1; i <= HOSTILE; i++)
		(void)begin(i, "flood");
	run(seconds);
	for (struct target *t = targets_next(host_targets(host), NULL); t;
	     t = targets_next(host_targets(host), t)) {
		struct stream_counts c;

		target_counts(t, &c);
		if (t != honest)
			hostile += c.of[WIRE_EVENT_CPU].delivered;
	}
	judge_honest(honest, begin_ns);
	check(hostile > 100000, "samples of the hostile ones", hostile);
	check(host_memory_ended(host) > 0, "sessions ended by limits.memory",
	      host_memory_ended(host));
	printf("of the children %ld KiB at most\n", most_children_kib);
	check(most_kib < MEMORY_KIB, "memory at most, KiB", (uint64_t)most_kib);
	check(most_bytes <= HISTORY_BYTES, "bytes of history at most", most_bytes);
}

int main(int argc, char **argv)
{
	char command[128];

	if (is_injector(argc, argv))
		return injector(argv);
	if (argc != 2 || atoi(argv[1]) < 1 || prepare())
		return 2;
	attack((uint64_t)atoi(argv[1]));
	for (int i = 0; i <= HOSTILE; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	host_free(host);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || bad;
}
