/*
 * Processes that a kindlingd takes for JVMs, for tests/bench/scale.py: many_jvms NUMBER
 * SAMPLES_A_SECOND. Each maps a libjvm.so, answers the attach protocol and speaks the agent's, as
 * an agent does in a server: every 100 ms the samples of that time, from 40 threads and 600 stacks
 * of 20 to 60 frames of which a few take most of the time; names and stacks are sent when they are
 * first needed, a LEDGER every second. They use next to no CPU time themselves, so their samples
 * weigh little: the host holds the weights against its own clocks. All end when stdin does.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "proto/wire.h"

#define JVMS_MAX  1000
#define ROUND_NS  (100 * NS_PER_MS)
#define THREADS	  40
#define STACKS	  600
#define METHODS	  900
#define NODES_MAX 40000 /* of all stacks together */
#define PLACES	  (1u << 17) /* slots of the index that finds a node by its parent and method */
#define WEIGHT_NS 10000
#define FIRST_UID 20000
#define DRAWS	  4 /* the larger, the fewer stacks take most of the samples */

static uint64_t seed;
static unsigned number; /* of this JVM */

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % below;
}

static uint32_t draw_few(uint32_t below)
{
	uint32_t a = draw(below);

	for (int i = 0; i < DRAWS; i++) {
		uint32_t b = draw(below);

		a = b < a ? b : a;
	}
	return a;
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* Definitions that have not been sent yet, by the frame type that carries them. */
static struct {
	uint32_t methods[METHODS], n_methods;
	struct wire_node nodes[NODES_MAX];
	uint32_t n_nodes;
	uint32_t threads[THREADS], n_threads;
	struct wire_sample *samples;
	uint32_t n_samples;
} news;

static struct {
	bool methods[METHODS], threads[THREADS + 1];
	struct {
		uint32_t parent, method, id;
	} nodes[PLACES];
	uint32_t n_nodes;
	uint64_t samples, sequence;
} known;

static uint32_t node(uint32_t parent, uint32_t method)
{
	uint32_t at = (parent * 2654435761u ^ method * 40503u) % PLACES;

	for (; known.nodes[at].id; at = (at + 1) % PLACES)
		if (known.nodes[at].parent == parent && known.nodes[at].method == method)
			return known.nodes[at].id;
	if (known.n_nodes == NODES_MAX)
		return parent;
	known.nodes[at].parent = parent;
	known.nodes[at].method = method;
	known.nodes[at].id = ++known.n_nodes;
	news.nodes[news.n_nodes++] = (struct wire_node){ .id = known.n_nodes,
							 .parent = parent,
							 .kind = WIRE_KIND_C2,
							 .ref = 1 + method,
							 .line = (int32_t)(method % 400) };
	if (!known.methods[method])
		news.methods[news.n_methods++] = method;
	known.methods[method] = true;
	return known.n_nodes;
}

/* All stacks are paths of one tree: all have the first twelve frames in common, those of one
 * request the next twelve. */
static uint32_t stack(uint32_t which)
{
	uint32_t depth = 20 + which * 7 % 40, at = 0;

	for (uint32_t i = 0; i < depth; i++) {
		uint32_t branch = i < 12 ? i : i < 24 ? which % 20 * 40 + i : which * 61 + i;

		at = node(at, branch % METHODS);
	}
	return at;
}

static void sample(uint64_t mono_ns)
{
	uint32_t thread = 1 + draw_few(THREADS);

	if (!known.threads[thread])
		news.threads[news.n_threads++] = thread;
	known.threads[thread] = true;
	news.samples[news.n_samples++] =
		(struct wire_sample){ mono_ns, (uint32_t)getpid() + thread, stack(draw_few(STACKS)),
				      WEIGHT_NS, 0 };
}

/* ---- on the wire ----------------------------------------------------------------------------- */

static bool put_string(struct wire_writer *w, uint32_t i)
{
	uint32_t method = news.methods[i / 3];
	char text[96];
	int n = 0;

	if (i % 3 == 0)
		n = snprintf(text, sizeof(text), "com/example/shop%u/module%u/OrderService%u",
			     number % 8, method % 30, method / 4);
	else if (i % 3 == 1)
		n = snprintf(text, sizeof(text), "handle%u", method);
	else
		n = snprintf(text, sizeof(text), "OrderService%u.java", method / 4);
	return wire_put_string(
		w, &(struct wire_string){ 2 + 3 * method + i % 3, { text, (uint32_t)n } });
}

static bool put_signature(struct wire_writer *w, uint32_t i)
{
	(void)i;
	return wire_put_string(w, &(struct wire_string){ 1, { "(Ljava/lang/Object;)V", 21 } });
}

static bool put_method(struct wire_writer *w, uint32_t i)
{
	uint32_t m = news.methods[i];

	return wire_put_method(w, &(struct wire_method){ .id = 1 + m,
							 .class_id = 2 + 3 * m,
							 .name_id = 3 + 3 * m,
							 .sig_id = 1,
							 .file_id = 4 + 3 * m });
}

static bool put_node(struct wire_writer *w, uint32_t i)
{
	return wire_put_node(w, &news.nodes[i]);
}

static bool put_thread(struct wire_writer *w, uint32_t i)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "http-nio-8080-exec-%u", news.threads[i]);

	return wire_put_thread(w, &(struct wire_thread){ (uint32_t)getpid() + news.threads[i],
							 WIRE_THREAD_JAVA,
							 news.threads[i],
							 { text, (uint32_t)n } });
}

static bool put_sample(struct wire_writer *w, uint32_t i)
{
	return wire_put_sample(w, &news.samples[i]);
}

static void send_frame(int events, struct wire_writer *w)
{
	uint32_t len = wire_end(w, ++known.sequence);

	if (write(events, w->buf, len) != (ssize_t)len)
		_exit(0); /* nobody reads any more */
}

/* Sends as many frames as the records need. */
static void send_all(int events, enum wire_type type, bool (*put)(struct wire_writer *, uint32_t),
		     uint32_t n)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	for (uint32_t i = 0; i < n;) {
		wire_begin(&w, buf, type);
		while (i < n && put(&w, i))
			i++;
		send_frame(events, &w);
	}
}

static void send_news(int events)
{
	send_all(events, WIRE_STRING, put_string, 3 * news.n_methods);
	send_all(events, WIRE_METHOD, put_method, news.n_methods);
	send_all(events, WIRE_NODE, put_node, news.n_nodes);
	send_all(events, WIRE_THREAD, put_thread, news.n_threads);
	send_all(events, WIRE_CPU, put_sample, news.n_samples);
	known.samples += news.n_samples;
	news.n_methods = news.n_nodes = news.n_threads = news.n_samples = 0;
}

static void send_ledger(int events)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_ledger l = { 0 };
	struct wire_writer w;

	l.accounts[WIRE_EVENT_CPU].taken = l.accounts[WIRE_EVENT_CPU].written = known.samples;
	l.accounts[WIRE_EVENT_CPU].taken_weight = l.accounts[WIRE_EVENT_CPU].written_weight =
		known.samples * WEIGHT_NS;
	l.counter[WIRE_COUNTER_INTERVAL_NS] = 10 * NS_PER_MS;
	l.counter[WIRE_COUNTER_EVENTS] = 1u << WIRE_EVENT_CPU;
	wire_begin(&w, buf, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &l);
	send_frame(events, &w);
}

static void send_hello(int events, const struct wire_start *start)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	const struct wire_hello h = { .protocol = WIRE_PROTOCOL,
				      .jvm_version = { "17.0.15+6", 9 },
				      .jvm_name = { "made up", 7 },
				      .engine = { "cpu-timer", 9 },
				      .ns_pid = (uint64_t)getpid(),
				      .interval_ns = start->interval_ns,
				      .mono_ns = clock_mono_ns(),
				      .real_ns = clock_real_ns(),
				      .session = start->session,
				      .secret = start->secret };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	(void)wire_put_hello(&w, &h);
	send_frame(events, &w);
}

/* The times of the samples are spread over the 100 ms before, as real ones would be. */
static void talk(int events, int control, unsigned rate)
{
	uint64_t begin_ns = clock_mono_ns() + draw(100) * NS_PER_MS, said = 0, at = begin_ns;
	struct pollfd end = { .fd = control, .events = POLLIN };
	uint8_t junk[WIRE_FRAME_MAX];

	news.samples = calloc(rate + 1, sizeof(*news.samples));
	send_all(events, WIRE_STRING, put_signature, 1);
	for (unsigned round = 1; news.samples; round++) {
		uint64_t due = rate * (uint64_t)round * ROUND_NS / NS_PER_S, now;

		at += ROUND_NS;
		now = clock_mono_ns();
		if (now < at)
			(void)poll(&end, 1, (int)((at - now) / NS_PER_MS) + 1);
		if (end.revents)
			(void)!read(control, junk, sizeof(junk)); /* a START of the same session */
		for (; said < due; said++)
			sample(begin_ns + said * NS_PER_S / rate);
		send_news(events);
		if (round % 10 == 0)
			send_ledger(events);
	}
}

/* ---- what a JVM does ------------------------------------------------------------------------- */

static void on_sigquit(int signo)
{
	(void)signo;
}

static int listen_for_attach(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/.java_pid%d", (int)getpid());
	(void)unlink(addr.sun_path);
	if (bind(s, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(addr.sun_path, 0600) < 0 ||
	    listen(s, 4) < 0)
		return -1;
	return s;
}

/* The options of a `load`: protocol 1, "1", "load", library, "true", options, each NUL-terminated.
 */
static bool read_load(int client, char *options, size_t size)
{
	char text[4096];
	size_t len = 0, words = 0, last = 0;
	ssize_t n;

	while (words < 5 && len < sizeof(text) &&
	       (n = read(client, text + len, sizeof(text) - len)) > 0)
		for (ssize_t i = 0; i < n; i++, len++)
			if (!text[len] && ++words == 4)
				last = len + 1;
	if (words != 5 || strcmp(text + 2, "load") != 0)
		return false;
	snprintf(options, size, "%s", text + last);
	return true;
}

static bool open_pipes(const char *options, int *ret_events, int *ret_control)
{
	char events[256], control[256];

	if (sscanf(options, "events=%255[^,],control=%255s", events, control) != 2)
		return false;
	*ret_control = open(control, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	*ret_events = open(events, O_WRONLY | O_CLOEXEC);
	return *ret_control >= 0 && *ret_events >= 0;
}

static bool read_start(int control, uint8_t buf[WIRE_FRAME_MAX], struct wire_start *ret)
{
	struct wire_frame frame;
	ssize_t n = read(control, buf, WIRE_FRAME_MAX);

	return n > 0 && wire_peek(buf, (size_t)n, &frame) > 0 && frame.type == WIRE_START &&
	       wire_get_start(&frame, ret) == 0;
}

static void serve(int s, unsigned rate)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	struct wire_start start;
	char options[1024];
	int client, events, control;

	for (; (client = accept4(s, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(client)) {
		if (!read_load(client, options, sizeof(options)) ||
		    !open_pipes(options, &events, &control) || !read_start(control, frame, &start))
			continue;
		(void)!write(client, "0\nreturn code: 0\n\n", 18);
		close(client);
		send_hello(events, &start);
		talk(events, control, rate);
	}
}

static int be_jvm(unsigned rate)
{
	const struct sigaction quit = { .sa_handler = on_sigquit, .sa_flags = SA_RESTART };
	const char *libjvm = getenv("MADE_UP_LIBJVM");
	int fd = libjvm ? open(libjvm, O_RDONLY | O_CLOEXEC) : -1, s;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed = 88172645463325252ull + number * 7919u;
	/* before anything else, as the daemon may send a SIGQUIT as soon as it finds this
	 * process */
	if (sigaction(SIGQUIT, &quit, NULL) < 0 || fd < 0 ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 2;
	s = listen_for_attach();
	if (s < 0)
		return 2;
	serve(s, rate);
	return 0;
}

/* ---- many of them ---------------------------------------------------------------------------- */

static pid_t begin(unsigned which, char *rate)
{
	char name[40], service[48];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(name, sizeof(name), "com.example.Shop%u", which);
	snprintf(service, sizeof(service), "shop-%u", which);
	setenv("OTEL_SERVICE_NAME", service, 1);
	/* each has its own uid, like JVMs in separate containers: quotas are per owner */
	if (setresgid(FIRST_UID + which, FIRST_UID + which, FIRST_UID + which) < 0 ||
	    setresuid(FIRST_UID + which, FIRST_UID + which, FIRST_UID + which) < 0)
		_exit(127);
	(void)execl("/proc/self/exe", "java", name, rate, (char *)NULL);
	_exit(127);
}

static void make_libjvm(char path[64])
{
	int fd;

	strcpy(path, "/tmp/kindling-scale-XXXXXX");
	if (!mkdtemp(path) || chmod(path, 0755) < 0)
		exit(2);
	strcat(path, "/libjvm.so");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		exit(2);
	close(fd);
	setenv("MADE_UP_LIBJVM", path, 1);
}

int main(int argc, char **argv)
{
	static pid_t pids[JVMS_MAX];
	char libjvm[64], name[64], byte;
	unsigned n;

	if (argc == 3 && sscanf(argv[1], "com.example.Shop%u", &number) == 1)
		return be_jvm((unsigned)atoi(argv[2]));
	n = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
	if (n < 1 || n > JVMS_MAX)
		return 2;
	make_libjvm(libjvm);
	for (unsigned i = 0; i < n; i++)
		pids[i] = begin(i, argv[2]);
	puts("READY");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (unsigned i = 0; i < n; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
		snprintf(name, sizeof(name), "/tmp/.java_pid%d", (int)pids[i]);
		(void)unlink(name);
	}
	(void)unlink(libjvm);
	*strrchr(libjvm, '/') = '\0';
	(void)rmdir(libjvm);
	return 0;
}
