/*
 * Agents that say more than decoding may cost, beside one that does not: floods SECONDS [PERMILLE
 * [NUMBER]].
 * All of kindlingd but its socket and its search for JVMs runs here; limits.decode_cpu is PERMILLE
 * of a CPU, its default unless given, 0 = none. Four made-up JVMs in two containers, or the first
 * NUMBER of them, talk as fast as they are read:
 *
 *   flood   new names, stacks and threads
 *   same    samples of a few stacks; its process uses a CPU, which earns it a part of ours
 *   tiny    a sample a frame, a frame a write
 *   resets  nothing but RESET; its process uses a CPU, too
 *
 * and one outside says 500 samples a second. Afterwards: all of kindlingd's processes together used
 * little CPU time, nothing of the honest one was dropped, and every book holds.
 */
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

#define MOST_PERCENT 15.0 /* of a CPU, all processes; ten times as much without a budget */

static const struct {
	const char *manner;
	bool busy;
} hostile[] = { { "flood", false }, { "same", true }, { "tiny", false }, { "resets", true } };
#define HOSTILE ARRAY_SIZE(hostile)

/* ---- what the agents say --------------------------------------------------------------------- */

static void send_frame(int events, struct wire_writer *w, uint64_t *sequence)
{
	uint32_t len = wire_end(w, (*sequence)++);

	if (write(events, w->buf, len) != (ssize_t)len)
		_exit(0); /* the daemon has ended its session */
}

static void greet(int events, struct wire_writer *w, uint64_t *sequence, uint64_t session)
{
	const struct wire_hello h = {
		.protocol = WIRE_PROTOCOL, .session = session, .ns_pid = 1, .secret = AGENT_SECRET
	};

	wire_begin(w, w->buf, WIRE_HELLO);
	(void)wire_put_hello(w, &h);
	send_frame(events, w, sequence);
	wire_begin(w, w->buf, WIRE_STRING);
	(void)wire_put_string(w, &(struct wire_string){ 1, { "stub", 4 } });
	send_frame(events, w, sequence);
	wire_begin(w, w->buf, WIRE_NODE);
	for (uint32_t i = 1; i <= 20; i++)
		(void)wire_put_node(w, &(struct wire_node){ .id = i,
							    .parent = i - 1,
							    .kind = WIRE_KIND_STUB,
							    .ref = 1,
							    .line = -1 });
	send_frame(events, w, sequence);
}

/* Sends samples without end, @a_frame in each frame. */
static void say_samples(int events, struct wire_writer *w, uint64_t *sequence, uint32_t a_frame)
{
	for (;;) {
		wire_begin(w, w->buf, WIRE_CPU);
		for (uint32_t i = 0; i < a_frame; i++) {
			const struct wire_sample s = { clock_mono_ns(), 1 + i % 5, 1 + i % 20, 1,
						       0 };

			if (!wire_put_sample(w, &s))
				break;
		}
		send_frame(events, w, sequence);
	}
}

static bool talk(const char *manner, int events, uint64_t session)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w = { .buf = buf };
	uint64_t sequence = 1;

	if (strcmp(manner, "same") != 0 && strcmp(manner, "tiny") != 0 &&
	    strcmp(manner, "resets") != 0)
		return false;
	greet(events, &w, &sequence, session);
	if (strcmp(manner, "resets") != 0)
		say_samples(events, &w, &sequence, strcmp(manner, "tiny") == 0 ? 1 : UINT32_MAX);
	for (;;) {
		wire_begin(&w, buf, WIRE_RESET);
		send_frame(events, &w, &sequence);
	}
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static struct host *host;
static unsigned n_hostile = HOSTILE;
static pid_t pids[HOSTILE + 1];
static int bad;

static void check(bool good, const char *what, double value)
{
	printf("%s %s: %.6g\n", good ? "ok  " : "FAIL", what, value);
	bad |= !good;
}

/* CPU time of the receivers that run and of those that have ended. */
static uint64_t receivers_ns(void)
{
	static struct {
		pid_t pid;
		uint64_t ns;
	} seen[256];
	uint64_t ns, sum = 0;
	char path[64], text[256];
	int pid;
	FILE *list, *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	list = fopen(path, "re");
	while (list && fscanf(list, "%d", &pid) == 1) {
		size_t n, len = 0;

		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		f = fopen(path, "re");
		if (f) {
			len = fread(text, 1, sizeof(text), f);
			fclose(f);
		}
		if (!memmem(text, len, "\0receive", 9) || !clock_process_cpu_ns(pid, &ns))
			continue;
		for (n = 0; n < ARRAY_SIZE(seen) - 1 && seen[n].pid && seen[n].pid != pid; n++)
			;
		seen[n].pid = pid;
		seen[n].ns = ns;
	}
	if (list)
		fclose(list);
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		sum += seen[i].ns;
	return sum;
}

static struct target *begin(unsigned number, const char *manner, bool busy)
{
	struct target *t = NULL;
	struct jvm jvm;

	pids[number] = fork();
	if (pids[number] == 0)
		while (busy || pause())
			;
	process = pids[number]; /* fill_in() describes this process */
	fill_in(&jvm);
	if (number)
		snprintf(jvm.container_id, sizeof(jvm.container_id), "%064x", 1 + number % 2);
	snprintf(jvm.name, sizeof(jvm.name), "Made.Up.%s", manner);
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

	while (clock_mono_ns() < until) {
		(void)loop_round(loop, 20 * NS_PER_MS);
		if (clock_mono_ns() > look) {
			/* for a receiver that has ended the last reading counts */
			(void)receivers_ns();
			look = clock_mono_ns() + NS_PER_S;
		}
	}
}

static int prepare(const char *permille)
{
	struct fault f = { 0 };

	heap_begin(HEAP_APART);
	log_set_level(LOG_LEVEL_ERR);
	strcpy(dir, "/tmp/kindling-floods-XXXXXX");
	if (!mkdtemp(dir) || loop_new(&loop) < 0)
		return 2;
	setenv("KINDLING_TEST_DIR", dir, 1);
	config_defaults(&config);
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	memset(config.injector, 0, sizeof(config.injector));
	(void)!readlink("/proc/self/exe", config.injector, sizeof(config.injector) - 1);
	config.attach_rate = 0;
	config.host_engine = config.kernel_stacks = false;
	if (permille)
		config.decode_cpu_permille = (unsigned)atoi(permille);
	if (host_new(loop, &config, false, true, &host, &f) == 0)
		return 0;
	fprintf(stderr, "%s\n", f.what);
	return 2;
}

/* Did decoding @t's data over @ns cost more than an equal part of the decoding budget? */
static bool is_dear(const struct target *t, uint64_t ns)
{
	uint64_t all_ns = ns / 1000 * config.decode_cpu_permille;

	return target_decode_ns(t) > all_ns / (n_hostile + 1);
}

static void judge(const struct target *t, bool honest, uint64_t ns)
{
	struct stream_counts c;
	const struct stream_accounts *b = &c.of[WIRE_EVENT_CPU];
	char why[256] = "";
	uint64_t dropped = 0;

	target_counts(t, &c);
	for (int i = 0; i < WIRE_DROP_COUNT; i++)
		dropped += b->dropped[i].n;
	(void)target_held_back(t, why, sizeof(why));
	printf("%s: %s, %llu bytes, %llu samples, decoding %.1f ms; %s %s\n", t->jvm.name,
	       target_state_names[t->state], (unsigned long long)c.bytes,
	       (unsigned long long)b->taken, (double)target_decode_ns(t) / 1e6, why, t->fault.what);
	check(b->taken == b->delivered + dropped + b->lost, "its accounts", (double)b->taken);
	/* data that its receiver gathers slowly enough need not be held back */
	check(honest || config.decode_cpu_permille == 0 || why[0] || !is_dear(t, ns),
	      "it is held back, and status says so, or cheap", why[0] != 0);
	if (!honest)
		return;
	check(t->state == TARGET_STREAMING && !why[0], "the honest one's state", t->state);
	check(b->taken == b->delivered && b->taken > 1000, "its samples", (double)b->delivered);
}

static void attack(uint64_t seconds)
{
	struct target *honest = begin(0, "steady", false);
	uint64_t begin_ns, cpu_ns, received_ns;

	run(3);
	begin_ns = clock_mono_ns();
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	received_ns = receivers_ns();
	for (unsigned i = 0; i < n_hostile; i++)
		(void)begin(i + 1, hostile[i].manner, hostile[i].busy);
	run(seconds);
	cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	received_ns = receivers_ns() - received_ns;
	begin_ns = clock_mono_ns() - begin_ns;
	for (struct target *t = targets_next(host_targets(host), NULL); t;
	     t = targets_next(host_targets(host), t))
		judge(t, t == honest, begin_ns);
	printf("kindlingd %.2f %% of a CPU, receivers %.2f %%\n",
	       (double)cpu_ns * 100 / (double)begin_ns,
	       (double)received_ns * 100 / (double)begin_ns);
	check((double)(cpu_ns + received_ns) * 100 / (double)begin_ns < MOST_PERCENT,
	      "all of it in % of a CPU", (double)(cpu_ns + received_ns) * 100 / (double)begin_ns);
}

int main(int argc, char **argv)
{
	char command[128];

	more_agents = talk;
	if (is_injector(argc, argv))
		return injector(argv);
	if (argc < 2 || atoi(argv[1]) < 1 || prepare(argc > 2 ? argv[2] : NULL))
		return 2;
	if (argc > 3 && (unsigned)atoi(argv[3]) < HOSTILE)
		n_hostile = (unsigned)atoi(argv[3]);
	attack((uint64_t)atoi(argv[1]));
	for (unsigned i = 0; i <= n_hostile; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	host_free(host);
	loop_free(loop);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || bad;
}
