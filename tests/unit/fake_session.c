/* See fake_session.h. */
#include "tests/unit/fake_session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/ground/proc.h"
#include "injector/result.h"

/* ---- the made-up agent ---------------------------------------------------------------------- */

void hello(int events, uint64_t session)
{
	struct wire_hello h = {
		.protocol = WIRE_PROTOCOL, .session = session, .ns_pid = 1, .secret = AGENT_SECRET
	};
	struct wire_sample s = { .mono_ns = 1, .tid = 1, .weight_ns = 10000000 };
	struct wire_ledger l = { 0 };
	static uint8_t buf[3 * WIRE_FRAME_MAX];
	struct wire_writer w;
	size_t len;

	wire_begin(&w, buf, WIRE_HELLO);
	(void)wire_put_hello(&w, &h);
	len = wire_end(&w, 1);
	wire_begin(&w, buf + len, WIRE_CPU);
	(void)wire_put_sample(&w, &s);
	len += wire_end(&w, 2);
	l.accounts[WIRE_EVENT_CPU].taken = l.accounts[WIRE_EVENT_CPU].written = 1;
	l.accounts[WIRE_EVENT_CPU].taken_weight = l.accounts[WIRE_EVENT_CPU].written_weight =
		10000000;
	wire_begin(&w, buf + len, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &l);
	len += wire_end(&w, 3);
	/* in one write, so that a reader that sees the first byte has all of it even if the
	 * process ends */
	(void)!write(events, buf, len);
}

/* Sends as many frames as needed: @one returns false when a frame is full. */
static void put(int events, struct wire_writer *w, uint64_t *sequence, enum wire_type type,
		bool (*one)(struct wire_writer *w, uint32_t i), uint32_t n)
{
	wire_begin(w, w->buf, type);
	for (uint32_t i = 1; i <= n; i++) {
		if (one(w, i))
			continue;
		(void)!write(events, w->buf, wire_end(w, (*sequence)++));
		wire_begin(w, w->buf, type);
		(void)one(w, i);
	}
	(void)!write(events, w->buf, wire_end(w, (*sequence)++));
}

static bool rich_string(struct wire_writer *w, uint32_t i)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "com/shop/orders/Class%u$Inner%d", i, (int)getpid());

	return wire_put_string(w, &(struct wire_string){ i, { text, (uint32_t)n } });
}

static bool rich_method(struct wire_writer *w, uint32_t i)
{
	return wire_put_method(
		w, &(struct wire_method){
			   .id = i, .class_id = i, .name_id = i, .sig_id = 1, .file_id = i });
}

static bool rich_node(struct wire_writer *w, uint32_t i)
{
	return wire_put_node(w, &(struct wire_node){ .id = i,
						     .parent = i / 3,
						     .kind = WIRE_KIND_C2,
						     .ref = 1 + i % RICH_METHODS,
						     .line = (int32_t)i });
}

static bool rich_thread(struct wire_writer *w, uint32_t i)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "worker %u", i);

	return wire_put_thread(
		w, &(struct wire_thread){ i, WIRE_THREAD_JAVA, i, { text, (uint32_t)n } });
}

static bool rich_sample(struct wire_writer *w, uint32_t i)
{
	return wire_put_sample(w, &(struct wire_sample){ clock_mono_ns(), 1 + i % RICH_THREADS,
							 1 + i % RICH_NODES, 1000000, 0 });
}

static void tell_much(int events, uint64_t session)
{
	struct wire_hello h = {
		.protocol = WIRE_PROTOCOL, .session = session, .ns_pid = 1, .secret = AGENT_SECRET
	};
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_ledger l = { 0 };
	struct wire_writer w = { .buf = buf };
	uint64_t sequence = 1;

	wire_begin(&w, buf, WIRE_HELLO);
	(void)wire_put_hello(&w, &h);
	(void)!write(events, buf, wire_end(&w, sequence++));
	put(events, &w, &sequence, WIRE_STRING, rich_string, RICH_METHODS);
	put(events, &w, &sequence, WIRE_METHOD, rich_method, RICH_METHODS);
	put(events, &w, &sequence, WIRE_NODE, rich_node, RICH_NODES);
	put(events, &w, &sequence, WIRE_THREAD, rich_thread, RICH_THREADS);
	put(events, &w, &sequence, WIRE_CPU, rich_sample, RICH_SAMPLES);
	l.accounts[WIRE_EVENT_CPU].taken = l.accounts[WIRE_EVENT_CPU].written = RICH_SAMPLES;
	l.accounts[WIRE_EVENT_CPU].taken_weight = l.accounts[WIRE_EVENT_CPU].written_weight =
		RICH_SAMPLES * 1000000ull;
	wire_begin(&w, buf, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &l);
	(void)!write(events, buf, wire_end(&w, sequence));
}

/* ---- agents that never stop ------------------------------------------------------------------ */

static uint32_t round_of_ids; /* the next name, method and node to send */
static uint32_t name_bytes;

static bool long_string(struct wire_writer *w, uint32_t i)
{
	static char text[1024];
	int n = snprintf(text, sizeof(text), "com/shop/C%u_%d_%0*d", round_of_ids + i,
			 (int)getpid(), (int)name_bytes, 0);

	return wire_put_string(w, &(struct wire_string){ round_of_ids + i, { text, (uint32_t)n } });
}

static bool next_method(struct wire_writer *w, uint32_t i)
{
	return rich_method(w, round_of_ids + i);
}

static bool next_node(struct wire_writer *w, uint32_t i)
{
	uint32_t id = round_of_ids + i;

	return wire_put_node(w, &(struct wire_node){ .id = id,
						     .parent = i > 1 ? id - 1 - i / 2 : 0,
						     .kind = WIRE_KIND_C2,
						     .ref = id,
						     .line = (int32_t)id });
}

static bool next_sample(struct wire_writer *w, uint32_t i)
{
	return wire_put_sample(w, &(struct wire_sample){ clock_mono_ns(), 1 + i % RICH_THREADS,
							 round_of_ids + i, 1, 0 });
}

static bool sample_without_stack(struct wire_writer *w, uint32_t i)
{
	return wire_put_sample(w, &(struct wire_sample){ clock_mono_ns(), i, 0, 1, 0 });
}

static bool next_thread(struct wire_writer *w, uint32_t i)
{
	return rich_thread(w, round_of_ids + i);
}

static void put_ledger(int events, struct wire_writer *w, uint64_t *sequence, uint64_t samples_put)
{
	struct wire_ledger l = { 0 };

	l.accounts[WIRE_EVENT_CPU].taken = l.accounts[WIRE_EVENT_CPU].written = samples_put;
	l.accounts[WIRE_EVENT_CPU].taken_weight = l.accounts[WIRE_EVENT_CPU].written_weight =
		samples_put;
	wire_begin(w, w->buf, WIRE_LEDGER);
	(void)wire_put_ledger(w, &l);
	(void)!write(events, w->buf, wire_end(w, (*sequence)++));
}

static void begin_telling(int events, uint64_t session, struct wire_writer *w, uint64_t *sequence)
{
	struct wire_hello h = {
		.protocol = WIRE_PROTOCOL, .session = session, .ns_pid = 1, .secret = AGENT_SECRET
	};

	wire_begin(w, w->buf, WIRE_HELLO);
	(void)wire_put_hello(w, &h);
	(void)!write(events, w->buf, wire_end(w, (*sequence)++));
	put(events, w, sequence, WIRE_THREAD, rich_thread, RICH_THREADS);
}

/* Sends new names, methods, stacks and threads without end, as fast as they are read. */
static void flood(int events, uint64_t session)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w = { .buf = buf };
	uint64_t sequence = 1, n = 1;

	name_bytes = 300;
	begin_telling(events, session, &w, &sequence);
	put(events, &w, &sequence, WIRE_CPU, sample_without_stack, 1);
	for (;; round_of_ids += FLOOD_ROUND) {
		put(events, &w, &sequence, WIRE_STRING, long_string, FLOOD_ROUND);
		put(events, &w, &sequence, WIRE_METHOD, next_method, FLOOD_ROUND);
		put(events, &w, &sequence, WIRE_NODE, next_node, FLOOD_ROUND);
		put(events, &w, &sequence, WIRE_THREAD, next_thread, FLOOD_ROUND);
		put(events, &w, &sequence, WIRE_CPU, next_sample, FLOOD_ROUND);
		put_ledger(events, &w, &sequence, n += FLOOD_ROUND);
	}
}

/* Sends samples of the same few stacks again and again, STEADY_A_SECOND a second. */
static void be_steady(int events, uint64_t session)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w = { .buf = buf };
	uint64_t sequence = 1, n = 0;

	begin_telling(events, session, &w, &sequence);
	put(events, &w, &sequence, WIRE_STRING, long_string, RICH_NODES);
	put(events, &w, &sequence, WIRE_METHOD, next_method, RICH_NODES);
	put(events, &w, &sequence, WIRE_NODE, next_node, RICH_NODES);
	for (;;) {
		put(events, &w, &sequence, WIRE_CPU, next_sample, STEADY_A_SECOND / 10);
		put_ledger(events, &w, &sequence, n += STEADY_A_SECOND / 10);
		usleep(100000);
	}
}

static void tell_faults(int events, uint64_t sequence)
{
	const struct wire_fault fault = { 5, { "made up", 7 }, { "all is lost", 11 } };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	for (uint64_t i = 0; i < LOUD_FAULTS; i++) {
		wire_begin(&w, buf, WIRE_FAULT);
		(void)wire_put_fault(&w, &fault);
		(void)!write(events, buf, wire_end(&w, sequence + i));
	}
}

static void claim(int events, uint64_t sequence)
{
	struct wire_sample s = { .mono_ns = 1, .tid = 1, .weight_ns = GREEDY_S * NS_PER_S };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_CPU);
	(void)wire_put_sample(&w, &s);
	(void)!write(events, buf, wire_end(&w, sequence));
}

bool (*more_agents)(const char *manner, int events, uint64_t session);

static void agent(const char *manner, int events, int control)
{
	struct wire_fault bye = { 0 };
	uint8_t buf[2 * WIRE_FRAME_MAX];
	struct wire_start start;
	struct wire_frame frame;
	struct wire_writer w;
	size_t len = 0;
	ssize_t n;
	int size;

	if (strcmp(manner, "garbage") == 0)
		(void)!write(events, "this is not the protocol at all", 31);
	while ((n = read(control, buf + len, sizeof(buf) - len)) > 0) {
		len += (size_t)n;
		while ((size = wire_peek(buf, len, &frame)) > 0) {
			if (frame.type == WIRE_START && strcmp(manner, "mute") != 0 &&
			    wire_get_start(&frame, &start) == 0) {
				if (start.secret.len == sizeof(agent_secret) &&
				    strcmp(manner, "stranger") != 0)
					memcpy(agent_secret, start.secret.p, sizeof(agent_secret));
				if (strcmp(manner, "flood") == 0)
					flood(events, start.session);
				if (strcmp(manner, "steady") == 0)
					be_steady(events, start.session);
				if (strcmp(manner, "rich") == 0)
					tell_much(events, start.session);
				else if (!more_agents ||
					 !more_agents(manner, events, start.session))
					hello(events, start.session);
				if (strcmp(manner, "loud") == 0)
					tell_faults(events, 4);
				if (strcmp(manner, "greedy") == 0)
					claim(events, 4);
			}
			if (frame.type == WIRE_START && strcmp(manner, "short") == 0)
				return;
			if (frame.type == WIRE_DETACH) {
				wire_begin(&w, buf, WIRE_BYE);
				(void)wire_put_fault(&w, &bye);
				(void)!write(events, buf, wire_end(&w, 4));
				return;
			}
			len -= (size_t)size;
			memmove(buf, buf + size, len);
		}
	}
}

/* ---- the made-up injector ------------------------------------------------------------------- */

/* Sends the pipes to the receiver over fd 4, the result over fd 3. */
static void answer(const struct inject_result *result, const int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	if (fds) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
		(void)sendmsg(4, &msg, MSG_NOSIGNAL);
	}
	(void)send(3, result, sizeof(*result), MSG_NOSIGNAL);
}

void mark(const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", getenv("KINDLING_TEST_DIR"), what);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

bool marked(const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", getenv("KINDLING_TEST_DIR"), what);
	return access(path, F_OK) == 0;
}

bool is_injector(int argc, char **argv)
{
	return argc > 5 && strcmp(argv[1], "--result-fd") == 0;
}

void injector_real(char **argv)
{
	char path[4096], *slash;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);

	path[n > 0 ? n : 0] = '\0';
	for (int i = 0; i < 2 && (slash = strrchr(path, '/')); i++)
		*slash = '\0';
	strcat(path, "/bin/kindling-inject");
	(void)execv(path, argv);
}

int injector(char **argv)
{
	/* --result-fd 3 PID START attach AGENT ..., or "cleanup" instead of "attach" */
	const char *manner = argv[6];
	struct inject_result result = { 0 };
	int events[2], control[2];
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n;

	if (strcmp(argv[5], "receive") == 0 || strcmp(argv[5], "reattach") == 0) {
		injector_real(argv); /* the receiver is the real one */
		return 1;
	}
	if (strcmp(argv[5], "cleanup") == 0) {
		mark("cleanup");
		return 0;
	}
	n = read(0, frame, sizeof(frame));
	if (n <= 0 || strcmp(manner, "die") == 0)
		return 1;
	if (strcmp(manner, "hang") == 0)
		pause();
	while (strcmp(manner, "patient") == 0 && !marked("go"))
		usleep(10000);
	if (strcmp(manner, "slow") == 0)
		usleep(300000);
	if (strcmp(manner, "refuse") == 0) {
		fault_set(&result.fault, EPERM, FAULT_PREFLIGHT, "its owner forbids it");
		result.fault.flags = FAULT_PERMANENT;
		answer(&result, NULL);
		return 1;
	}
	if (pipe2(events, O_CLOEXEC) < 0 || pipe2(control, O_CLOEXEC) < 0 ||
	    fcntl(events[0], F_SETFL, O_NONBLOCK) < 0 || write(control[1], frame, (size_t)n) != n)
		return 1;
	if (fork() == 0) {
		close(3);
		close(4);
		close(events[0]);
		close(control[1]);
		agent(manner, events[1], control[0]);
		_exit(0);
	}
	/* like the real injector: no result before the agent has sent something */
	if (strcmp(manner, "mute") != 0)
		(void)poll(&(struct pollfd){ .fd = events[0], .events = POLLIN }, 1, 4000);
	answer(&result, (int[2]){ events[0], control[1] });
	return 0;
}

char dir[64];
struct config config;
struct loop *loop;
struct targets *table;

unsigned count_targets(void)
{
	unsigned n = 0;

	for (struct target *t = targets_next(table, NULL); t; t = targets_next(table, t))
		n++;
	return n;
}

pid_t process;
unsigned samples, freed;
bool agent_known;
uint8_t agent_secret[WIRE_SECRET_BYTES];

static void on_sample(void *userdata, struct target *t, const struct stream_sample *s)
{
	(void)userdata;
	(void)t;
	(void)s;
	samples++;
}

static void on_free(void *userdata, struct target *t)
{
	(void)userdata;
	(void)t;
	freed++;
}

uint64_t host_gives_ns;

static uint64_t on_host_wanted(void *userdata, struct target *t, uint64_t interval_ns)
{
	(void)userdata;
	(void)t;
	return interval_ns < 4 * NS_PER_MS ? host_gives_ns : 0;
}

int setup(void **state)
{
	static const struct targets_ops ops = { .on_sample = on_sample,
						.on_free = on_free,
						.on_host_wanted = on_host_wanted };

	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/kindling-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("KINDLING_TEST_DIR", dir, 1);
	memset(&config, 0, sizeof(config));
	snprintf(config.injector, sizeof(config.injector), "/proc/self/exe");
	assert_true(readlink("/proc/self/exe", config.injector, sizeof(config.injector) - 1) > 0);
	config.cpu_interval_ns = 10 * NS_PER_MS;
	config.attach_deadline_ns = 10 * NS_PER_S;
	config.pipe_bytes = 65536;
	samples = freed = 0;
	agent_known = true;
	host_gives_ns = 0;
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(targets_new(loop, &config, &ops, NULL, &table), 0);
	process = fork();
	if (process == 0) {
		pause();
		_exit(0);
	}
	return 0;
}

void end_process(void)
{
	if (process > 0) {
		kill(process, SIGKILL);
		waitpid(process, NULL, 0);
	}
	process = 0;
}

int teardown(void **state)
{
	char command[128];

	(void)state;
	table = targets_free(table);
	loop = loop_free(loop);
	end_process();
	/* the cleanup after a killed injector may still create its mark, and then the folder is
	 * not empty */
	snprintf(command, sizeof(command), "rm -rf %s 2>/dev/null || rm -rf %s", dir, dir);
	return system(command);
}

void fill_in(struct jvm *jvm)
{
	int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY), dfd = proc_open(proc_dfd, process);
	struct proc_stat stat = { 0 };
	char text[1024];

	assert_true(proc_read(dfd, "stat", text, sizeof(text)) > 0);
	assert_true(proc_parse_stat(text, &stat));
	close(dfd);
	close(proc_dfd);
	*jvm = (struct jvm){ .pid = process, .ns_pid = 1, .start_time = stat.start_time };
	jvm->uid = getuid();
	snprintf(jvm->name, sizeof(jvm->name), "Made.Up");
}

struct target *add(const char *manner)
{
	struct target *t = NULL;
	struct jvm jvm;

	snprintf(config.agent, sizeof(config.agent), "%s", manner);
	fill_in(&jvm);
	assert_int_equal(targets_add(table, &jvm, clock_mono_ns(), &t), 0);
	return t;
}

/* ---- an agent that is in the JVM already ----------------------------------------------------- */

/* FIFOs at the paths of an agent's. Their names are not removed as an agent does; that makes no
 * difference to the daemon. */
char events_path[96];
static char control_path[96];
int agent_fd;

void remove_fifos(void)
{
	(void)unlink(events_path);
	(void)unlink(control_path);
	(void)rmdir("/tmp/kindling/" KINDLING_VERSION);
	(void)rmdir("/tmp/kindling");
}

int make_fifos(void)
{
	const char *home = "/tmp/kindling/" KINDLING_VERSION;

	snprintf(events_path, sizeof(events_path), "%s/events-test-%d", home, getpid());
	snprintf(control_path, sizeof(control_path), "%s/control-test-%d", home, getpid());
	/* other tests that use the folders remove them when they are done; their injectors may write
	 * there as other users */
	for (int i = 0; i < 100; i++) {
		mode_t old = umask(0);

		(void)mkdir("/tmp/kindling", 01777);
		(void)mkdir(home, 01777);
		(void)umask(old);
		if (mkfifo(control_path, 0600) == 0 && mkfifo(events_path, 0600) == 0)
			return 0;
		remove_fifos();
	}
	return -1;
}

/* The agent's ends of the FIFOs are open in this process, which plays the JVM here. */
struct target *add_with_fifos(const char *events, int *ret_control)
{
	struct target *t = NULL;
	struct jvm jvm;
	int fd;

	kill(process, SIGKILL);
	waitpid(process, NULL, 0);
	process = getpid();
	snprintf(config.agent, sizeof(config.agent), "refuse");
	fill_in(&jvm);
	process = 0;
	if (agent_known)
		assert_int_equal(
			secrets_make(&table->secrets, jvm.pid, jvm.start_time, agent_secret), 0);
	*ret_control = open(control_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	fd = open(events,
		  O_RDWR | O_NONBLOCK | O_CLOEXEC); /* so that the next open() finds a reader */
	agent_fd = open(events, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	close(fd);
	assert_true(*ret_control >= 0 && agent_fd >= 0);
	assert_int_equal(targets_add(table, &jvm, clock_mono_ns(), &t), 0);
	return t;
}

size_t read_control(int control, uint8_t *buf, size_t size)
{
	ssize_t n = -1;

	UNTIL(n > 0 || (n = read(control, buf, size)) > 0);
	return (size_t)n;
}

/* A second process, which plays a JVM with the same name, libjvm and JDK. */
static pid_t other;

struct target *add_other(const char *manner)
{
	pid_t first = process;
	struct target *t;

	other = fork();
	if (other == 0) {
		(void)close_range(3, ~0u, 0); /* an agent in the first process is not in this one */
		pause();
		_exit(0);
	}
	process = other;
	t = add(manner);
	process = first;
	return t;
}

void end_other(void)
{
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

uint64_t frames_of(const struct target *t)
{
	struct stream_counts c;

	target_counts(t, &c);
	return c.frames;
}
