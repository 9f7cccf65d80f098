/*
 * The daemon's loop while agents of made-up JVMs say the most that they may: hostile_api. All of
 * kindlingd but its search for JVMs runs here, with its socket. A second process asks for
 * everything that can be asked for, over and over, while these agents talk:
 *
 *   deep    chains of nodes as deep as nothing is, with samples at every one of thousands of leaves
 *   waits   thousands of waits that go on, under one number, told again and again between RESETs
 *   links   thousands of mapped files, told again and again, each path milliseconds to look up
 *
 * and an honest one has samples ten times a second. What is held against a bound is the CPU time of
 * one round of the loop, and of all between two samples of the honest one, which a busy machine
 * does not make longer, and that every question has an answer. Answers may be refusals, of what
 * would take too long; those about the daemon itself may not.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/core/heap.h"
#include "daemon/ground/log.h"
#include "daemon/host/host.h"
#include "daemon/serve/serve.h"
#include "tests/unit/fake_session.h"

#define RUN_NS (25 * NS_PER_S)
#define CHAINS 85u /* chains of nodes, each */
#define DEPTH                                                                              \
	6000u /* this long: half a million nodes, as many as limits.memory allows */
#define WAITS	  12000u
#define MAPPINGS  2000u
#define ROUND_MS  50.0 /* CPU time of one round of the loop; a few rounds may exceed it: */
#define FEW	  0.01
#define ROUND_MAX 400.0
#define GAP_MS	  1000.0 /* CPU time between two samples of the honest agent */
#define WAIT_S	  1.0 /* deadline for an answer about the daemon itself */

/* ---- what the agents say --------------------------------------------------------------------- */

struct voice {
	struct wire_writer w;
	uint8_t buf[WIRE_FRAME_MAX];
	uint64_t sequence;
	int fd;
};

static void send_frame(struct voice *v)
{
	size_t len = wire_end(&v->w, v->sequence++), at = 0;

	while (at < len) {
		ssize_t n = write(v->fd, v->buf + at, len - at);

		if (n <= 0)
			_exit(0); /* the daemon has ended its session */
		at += (size_t)n;
	}
}

static void begin(struct voice *v, enum wire_type type)
{
	wire_begin(&v->w, v->buf, type);
}

#define SAY(v, type, put)               \
	do {                            \
		if (!(put)) {           \
			send_frame(v);  \
			begin(v, type); \
			(void)(put);    \
		}                       \
	} while (0)

static void greet(struct voice *v, int events, uint64_t session)
{
	const struct wire_hello h = {
		.protocol = WIRE_PROTOCOL, .session = session, .ns_pid = 1, .secret = AGENT_SECRET
	};

	*v = (struct voice){ .fd = events, .sequence = 1 };
	v->w.buf = v->buf;
	begin(v, WIRE_HELLO);
	(void)wire_put_hello(&v->w, &h);
	send_frame(v);
}

static void say_label(struct voice *v)
{
	begin(v, WIRE_STRING);
	(void)wire_put_string(&v->w, &(struct wire_string){ 1, { "deep", 4 } });
	send_frame(v);
}

static void deep(struct voice *v)
{
	begin(v, WIRE_NODE);
	for (uint32_t i = 0; i < CHAINS * DEPTH; i++) {
		const struct wire_node n = { .id = i + 1,
					     .parent = i % DEPTH ? i : 0,
					     .kind = WIRE_KIND_STUB,
					     .ref = 1,
					     .line = (int32_t)(i & 0xffff) };

		SAY(v, WIRE_NODE, wire_put_node(&v->w, &n));
	}
	send_frame(v);
	/* samples at every leaf of the deepest chains, until the pipe is closed */
	for (uint32_t i = 0;; i++) {
		const struct wire_sample s = { clock_mono_ns(), 1 + i % 50,
					       1 + i * 7919u % (CHAINS * DEPTH), 1, 0 };

		if (i == 0)
			begin(v, WIRE_CPU);
		SAY(v, WIRE_CPU, wire_put_sample(&v->w, &s));
	}
}

static void waits(struct voice *v)
{
	for (uint32_t round = 0;; round++) {
		uint64_t now = clock_mono_ns();

		begin(v, WIRE_LOCK);
		for (uint32_t i = 1; i <= WAITS; i++) {
			const struct wire_lock l = { .begin_ns = 1000000 + i,
						     .duration_ns = now - 1000000 - i,
						     .tid = WIRE_VIRTUAL_TID,
						     .identity = 1,
						     .flags = WIRE_LOCK_OPEN };

			SAY(v, WIRE_LOCK, wire_put_lock(&v->w, &l));
		}
		send_frame(v);
		for (int i = 0; i < 5000; i++) {
			begin(v, WIRE_RESET);
			send_frame(v);
		}
	}
}

/* A path of as many symbolic links as the kernel follows, each of which takes a thousand steps
 * through "." and "..". */
#define LINKS 39
#define STEPS 1000

static void make_links(void)
{
	static char body[4 * STEPS + 80];
	size_t steps = 0;
	char path[128];

	for (int i = 0; i < STEPS / 3; i++)
		steps += (size_t)sprintf(body + steps, "d/../");
	snprintf(path, sizeof(path), "%s/d", dir);
	(void)!mkdir(path, 0755);
	for (int i = 0; i < LINKS; i++) {
		sprintf(body + steps, "l%d", i + 1);
		snprintf(path, sizeof(path), "%s/l%d", dir, i);
		(void)!symlink(body, path);
	}
}

static void links(struct voice *v)
{
	for (uint64_t start = 4096;; start += 4096) { /* elsewhere each time */
		char path[128];

		begin(v, WIRE_STRING);
		for (uint32_t i = 1; i <= MAPPINGS; i++) {
			int n = snprintf(path, sizeof(path), "%s/l0/%u",
					 getenv("KINDLING_TEST_DIR"), i);

			SAY(v, WIRE_STRING,
			    wire_put_string(&v->w,
					    &(struct wire_string){ i, { path, (uint32_t)n } }));
		}
		send_frame(v);
		begin(v, WIRE_MAPPING);
		for (uint32_t i = 1; i <= MAPPINGS; i++) {
			const struct wire_mapping m = {
				.id = i, .path_id = i, .start = start, .end = start + 4096
			};

			SAY(v, WIRE_MAPPING, wire_put_mapping(&v->w, &m));
		}
		send_frame(v);
		begin(v, WIRE_RESET);
		send_frame(v);
	}
}

static bool hostile(const char *manner, int events, uint64_t session)
{
	static struct voice v;

	if (strcmp(manner, "deep") != 0 && strcmp(manner, "waits") != 0 &&
	    strcmp(manner, "links") != 0)
		return false;
	greet(&v, events, session);
	if (strcmp(manner, "links") == 0)
		links(&v);
	say_label(&v);
	if (strcmp(manner, "deep") == 0)
		deep(&v);
	waits(&v);
	return true;
}

/* ---- who asks -------------------------------------------------------------------------------- */

/* The status of the answer; 0 = there was none. */
static int ask(const char *path, double *ret_s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t begin_ns = clock_mono_ns();
	char text[65536];
	int status = 0;
	ssize_t n;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", config.socket);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return 0;
	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: k\r\nConnection: close\r\n\r\n",
		 path);
	if (write(fd, text, strlen(text)) < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	*ret_s = (double)(clock_mono_ns() - begin_ns) / 1e9;
	if (n > 0) {
		text[n] = '\0';
		(void)sscanf(text, "HTTP/1.1 %d", &status);
	}
	while (n > 0)
		n = read(fd, text, sizeof(text));
	return status;
}

struct question {
	const char *path;
	bool may_refuse;
};

/* Returns 0, or 1 if a request had no answer or one that is not allowed. */
static int ask_all(const struct question *questions, size_t n, double *longest)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		double s = 0;
		int status = ask(questions[i].path, &s);

		printf("%s: HTTP %d, %.3f s\n", questions[i].path, status, s);
		if (status != 200 && !(questions[i].may_refuse && status == 503))
			bad = 1;
		if (!questions[i].may_refuse && s > *longest)
			*longest = s;
	}
	return bad;
}

static int ask_of_now(void)
{
	static const struct question questions[] = {
		{ "/v1/status", false }, { "/v1/top", true },
		{ "/healthz", false },	 { "/v1/locks?graph=1&stacks=1", true },
		{ "/metrics", false },	 { "/v1/threads", true },
	};
	uint64_t until_ns = clock_mono_ns() + RUN_NS;
	double longest = 0;
	int bad = 0;

	while (clock_mono_ns() < until_ns)
		bad |= ask_all(questions, ARRAY_SIZE(questions), &longest);
	printf("status and metrics within %.3f s\n", longest);
	fflush(stdout);
	return bad || longest > WAIT_S;
}

/* Sends requests until it is killed; each may take as long as its limit allows. */
static _Noreturn void ask_of_the_past(void)
{
	static const struct question questions[] = {
		{ "/v1/profile?last=20s&format=json", true },
		{ "/v1/profile?last=20s&format=collapsed", true },
		{ "/v1/profile?last=20s&format=pb.gz", true },
	};
	double longest = 0;

	for (;;) {
		if (ask_all(questions, ARRAY_SIZE(questions), &longest))
			printf("FAILED\n");
		fflush(stdout);
	}
}

/* ---- the honest agent beside them ------------------------------------------------------------ */

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static uint64_t heard_mono_ns;
static double heard_cpu_ms, longest_gap_s, longest_gap_cpu_ms;

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static void on_sample(void *userdata, struct target *t, const struct stream_sample *s,
		      uint64_t real_ns)
{
	uint64_t now = clock_mono_ns();
	double cpu = cpu_ms();

	(void)userdata;
	(void)s;
	(void)real_ns;
	if (strcmp(t->jvm.name, "Made.Up.steady") != 0)
		return;
	if (heard_mono_ns) {
		longest_gap_s = larger(longest_gap_s, (double)(now - heard_mono_ns) / 1e9);
		longest_gap_cpu_ms = larger(longest_gap_cpu_ms, cpu - heard_cpu_ms);
	}
	heard_mono_ns = now;
	heard_cpu_ms = cpu;
}

static void on_lock(void *userdata, struct target *t, const struct stream_lock *l, bool idle,
		    uint64_t real_ns)
{
	(void)userdata;
	(void)t;
	(void)l;
	(void)idle;
	(void)real_ns;
}

static void on_gone(void *userdata, struct target *t)
{
	(void)userdata;
	(void)t;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static struct host *host;
static struct serve *server;
static pid_t jvms[4];

static int prepare(void)
{
	struct fault f = { 0 };

	heap_begin(HEAP_APART);
	log_set_level(LOG_LEVEL_ERR);
	strcpy(dir, "/tmp/kindling-hostile-XXXXXX");
	if (!mkdtemp(dir) || loop_new(&loop) < 0)
		return 2;
	setenv("KINDLING_TEST_DIR", dir, 1);
	config_defaults(&config);
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	snprintf(config.socket, sizeof(config.socket), "%s/socket", dir);
	memset(config.injector, 0, sizeof(config.injector));
	(void)!readlink("/proc/self/exe", config.injector, sizeof(config.injector) - 1);
	config.attach_rate = 0;
	config.host_engine = config.kernel_stacks = false;
	config.decode_cpu_permille = 0; /* off: the agents send as much as the other limits allow */
	(void)signal(SIGPIPE, SIG_IGN);
	if (host_new(loop, &config, false, true, &host, &f) == 0 &&
	    serve_new(host, &server, &f) == 0)
		return 0;
	fprintf(stderr, "%s\n", f.what);
	return 2;
}

static void add_jvm(int i, const char *manner)
{
	uint64_t until_ns = clock_mono_ns() + 60 * NS_PER_S;
	struct target *t = NULL;
	struct jvm jvm;

	jvms[i] = fork();
	if (jvms[i] == 0)
		for (;;)
			pause();
	process = jvms[i];
	fill_in(&jvm);
	snprintf(config.agent, sizeof(config.agent), "%s", manner);
	snprintf(jvm.name, sizeof(jvm.name), "Made.Up.%s", manner);
	if (targets_add(host_targets(host), &jvm, clock_mono_ns(), &t) < 0)
		exit(2);
	/* the next target's agent behaves in another manner */
	while (t->state != TARGET_STREAMING && clock_mono_ns() < until_ns)
		(void)loop_round(loop, 10 * NS_PER_MS);
}

/* Runs the loop until the process that sends requests has ended; returns 0, or the number of
 * failures. */
static int run(pid_t asking)
{
	unsigned n = 0, long_ones = 0;
	double longest = 0, total = cpu_ms();
	int status = 0;

	while (waitpid(asking, &status, WNOHANG) == 0) {
		double begin_ms = cpu_ms(), ms;

		(void)loop_round(loop, 20 * NS_PER_MS);
		ms = cpu_ms() - begin_ms;
		longest = ms > longest ? ms : longest;
		long_ones += ms > ROUND_MS;
		n++;
	}
	total = cpu_ms() - total;
	printf("the honest one's longest gap %.3f s, or %.1f ms of CPU time\n", longest_gap_s,
	       longest_gap_cpu_ms);
	printf("%u rounds, %.1f s of CPU time, the longest %.1f ms, %u longer than %.0f ms\n", n,
	       total / 1e3, longest, long_ones, ROUND_MS);
	return status != 0 || longest > ROUND_MAX || long_ones > FEW * n || !heard_mono_ns ||
	       longest_gap_cpu_ms > GAP_MS;
}

int main(int argc, char **argv)
{
	static struct host_listener honest = { .on_sample = on_sample, .on_lock = on_lock, .on_gone = on_gone };
	char command[128];
	pid_t asking, past;
	int bad;

	more_agents = hostile;
	if (is_injector(argc, argv))
		return injector(argv);
	if (prepare())
		return 2;
	host_listen(host, &honest);
	add_jvm(0, "steady");
	add_jvm(1, "deep");
	add_jvm(2, "waits");
	make_links();
	add_jvm(3, "links");
	past = fork();
	if (past == 0)
		ask_of_the_past();
	asking = fork();
	if (asking == 0)
		_exit(ask_of_now());
	bad = run(asking);
	kill(past, SIGKILL);
	waitpid(past, NULL, 0);
	for (struct target *t = targets_next(host_targets(host), NULL); t;
	     t = targets_next(host_targets(host), t)) {
		struct stream_counts c;

		target_counts(t, &c);
		printf("%s: %s, %llu bytes, %llu samples %s\n", t->jvm.name,
		       target_state_names[t->state], (unsigned long long)c.bytes,
		       (unsigned long long)c.of[WIRE_EVENT_CPU].taken, t->fault.what);
		/* the hostile agents were read all the time */
		bad |= t->state != TARGET_STREAMING;
		bad |= !c.of[WIRE_EVENT_CPU].delivered &&
		       strcmp(t->jvm.name, "Made.Up.waits") != 0 &&
		       strcmp(t->jvm.name, "Made.Up.links") != 0;
	}
	serve_free(server);
	host_free(host);
	loop_free(loop);
	for (int i = 0; i < 4; i++) {
		kill(jvms[i], SIGKILL);
		waitpid(jvms[i], NULL, 0);
	}
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) || bad;
}
