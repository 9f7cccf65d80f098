/*
 * The life of a target with a made-up injector and agent: this program again, started by the room
 * as its injector. The "agent" word of the settings says how the two behave.
 */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/core/clock.h"
#include "daemon/discovery/proc.h"
#include "daemon/target/target_priv.h"
#include "injector/result.h"

/* ---- the made-up agent ---------------------------------------------------------------------- */

static void hello(int events, uint64_t session)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL, .session = session, .ns_pid = 1 };
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
	l.books[WIRE_EVENT_CPU].taken = l.books[WIRE_EVENT_CPU].written = 1;
	l.books[WIRE_EVENT_CPU].taken_weight = l.books[WIRE_EVENT_CPU].written_weight = 10000000;
	wire_begin(&w, buf + len, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &l);
	len += wire_end(&w, 3);
	/* at once: who sees the first byte has all of it, however soon the process ends */
	(void)!write(events, buf, len);
}

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
			    wire_get_start(&frame, &start) == 0)
				hello(events, start.session);
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

static void answer(const struct inject_result *result, const int fds[2])
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)result, sizeof(*result) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (fds) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	}
	(void)sendmsg(3, &msg, MSG_NOSIGNAL);
}

static void mark(const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", getenv("KINDLING_TEST_DIR"), what);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int injector(char **argv)
{
	/* --result-fd 3 PID START attach AGENT ..., or cleanup in the place of attach */
	const char *manner = argv[6];
	struct inject_result result = { 0 };
	int events[2], control[2];
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n;

	if (strcmp(argv[5], "cleanup") == 0) {
		mark("cleanup");
		return 0;
	}
	n = read(0, frame, sizeof(frame));
	if (n <= 0 || strcmp(manner, "die") == 0)
		return 1;
	if (strcmp(manner, "hang") == 0)
		pause();
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
		close(events[0]);
		close(control[1]);
		agent(manner, events[1], control[0]);
		_exit(0);
	}
	/* like the real one: no answer before the agent has spoken */
	if (strcmp(manner, "mute") != 0)
		(void)poll(&(struct pollfd){ .fd = events[0], .events = POLLIN }, 1, 4000);
	answer(&result, (int[2]){ events[0], control[1] });
	return 0;
}

/* ---- the tests ------------------------------------------------------------------------------ */

static char dir[64];
static struct config config;
static struct loop *loop;
static struct targets *table;
static pid_t process; /* stands for the JVM */
static unsigned samples, freed;

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

static uint64_t host_gives_ns; /* what the made-up host engine can keep; 0 = there is none */

static uint64_t on_host_wanted(void *userdata, struct target *t, uint64_t interval_ns)
{
	(void)userdata;
	(void)t;
	return interval_ns < 4 * NS_PER_MS ? host_gives_ns : 0;
}

static int setup(void **state)
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

static void end_process(void)
{
	if (process > 0) {
		kill(process, SIGKILL);
		waitpid(process, NULL, 0);
	}
	process = 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	table = targets_free(table);
	loop = loop_free(loop);
	end_process();
	/* a killed injector's cleanup may still make its mark: the folder is not empty then */
	snprintf(command, sizeof(command), "rm -rf %s 2>/dev/null || rm -rf %s", dir, dir);
	return system(command);
}

static void fill_in(struct jvm *jvm)
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

static struct target *add(const char *manner)
{
	struct target *t = NULL;
	struct jvm jvm;

	snprintf(config.agent, sizeof(config.agent), "%s", manner);
	fill_in(&jvm);
	assert_int_equal(targets_add(table, &jvm, clock_mono_ns(), &t), 0);
	return t;
}

/* FIFOs where an agent has them; their names stay, which is all the same to who looks for them. */
static char events_path[96], control_path[96];
static int agent_fd;

static int make_fifos(void)
{
	const char *home = "/tmp/kindling/" KINDLING_VERSION;

	snprintf(events_path, sizeof(events_path), "%s/events-test-%d", home, getpid());
	snprintf(control_path, sizeof(control_path), "%s/control-test-%d", home, getpid());
	(void)mkdir("/tmp/kindling", 01777);
	(void)mkdir(home, 01777);
	(void)mkfifo(control_path, 0600);
	return mkfifo(events_path, 0600);
}

static void remove_fifos(void)
{
	(void)unlink(events_path);
	(void)unlink(control_path);
	(void)rmdir("/tmp/kindling/" KINDLING_VERSION);
	(void)rmdir("/tmp/kindling");
}

#define UNTIL(condition, seconds)                                         \
	do {                                                              \
		uint64_t until_ns = clock_mono_ns() + (seconds)*NS_PER_S; \
		while (!(condition) && clock_mono_ns() < until_ns)        \
			(void)loop_round(loop, 20 * NS_PER_MS);           \
		assert_true(condition);                                   \
	} while (0)

static bool marked(const char *what)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, what);
	return access(path, F_OK) == 0;
}

static void a_target_streams_and_leaves_when_told(void **state)
{
	struct stream_counts c;
	struct target *t;

	(void)state;
	t = add("talk");
	assert_int_equal(t->state, TARGET_INJECTING);
	UNTIL(samples == 1, 5);
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_true(t->first_sample_mono_ns >= t->seen_mono_ns);
	assert_false(targets_quiet(table));
	target_detach(t);
	assert_int_equal(t->state, TARGET_DRAINING);
	UNTIL(t->state == TARGET_DETACHED, 5);
	assert_int_equal(t->fault.code, 0);
	assert_true(targets_quiet(table));
	target_counts(t, &c); /* the books stay */
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 1);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 0);
}

static void the_same_process_is_taken_in_once_and_another_never(void **state)
{
	struct jvm jvm;

	(void)state;
	(void)add("talk");
	fill_in(&jvm);
	assert_int_equal(targets_add(table, &jvm, 0, NULL), -EEXIST);
	jvm.start_time++; /* the pid is another process's by now */
	assert_int_equal(targets_add(table, &jvm, 0, NULL), -ESRCH);
	assert_int_equal(targets_count(table), 1);
}

static void the_end_of_the_process_keeps_its_last_events(void **state)
{
	struct target *t;

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING, 5);
	end_process(); /* before HELLO and sample were read, most often */
	UNTIL(t->state == TARGET_GONE, 5);
	assert_int_equal(samples, 1);
	assert_true(t->gone_mono_ns > 0);
}

static void what_only_the_owner_can_change_is_not_tried_again(void **state)
{
	struct target *t;

	(void)state;
	t = add("refuse");
	UNTIL(t->state == TARGET_FAILED, 5);
	assert_string_equal(t->fault.what, "its owner forbids it");
	assert_null(t->priv->timer);
	target_detach(t);
	assert_int_equal(t->state, TARGET_DETACHED);
}

static void an_injector_that_dies_is_a_reason_and_its_leftovers_go(void **state)
{
	struct target *t;

	(void)state;
	t = add("die");
	UNTIL(t->state == TARGET_FAILED, 5);
	assert_string_equal(t->fault.what, "the injector died without an answer");
	UNTIL(marked("cleanup"), 5);
	snprintf(config.agent, sizeof(config.agent), "talk"); /* tried again after 1 s */
	UNTIL(samples == 1, 5);
	assert_int_equal(t->attempts, 2);
}

static void an_injector_that_hangs_is_killed(void **state)
{
	struct target *t;

	(void)state;
	config.attach_deadline_ns = 0; /* the axe falls 5 s later */
	t = add("hang");
	UNTIL(t->state == TARGET_FAILED, 8);
	assert_int_equal(t->fault.step, FAULT_DEADLINE);
	UNTIL(marked("cleanup"), 5);
	UNTIL(table->children == NULL, 5);
	assert_int_equal(table->injectors, 0);
}

static void detach_during_an_attempt_waits_for_its_end(void **state)
{
	struct target *t;

	(void)state;
	t = add("slow");
	target_detach(t);
	assert_int_equal(t->state, TARGET_INJECTING);
	UNTIL(t->state == TARGET_DETACHED, 5);
	assert_int_equal(t->fault.code, 0);
	assert_false(marked("cleanup")); /* nobody was killed */
}

static void bytes_that_are_no_frames_end_the_session_only(void **state)
{
	struct target *t;

	(void)state;
	t = add("garbage");
	UNTIL(t->state == TARGET_FAILED, 5);
	assert_int_equal(t->fault.step, FAULT_STREAM);
	assert_non_null(t->priv->timer); /* it is tried again */
}

static void an_agent_that_closes_its_pipe_is_missed(void **state)
{
	struct target *t;

	(void)state;
	t = add("short");
	UNTIL(t->state == TARGET_FAILED, 5);
	assert_int_equal(samples, 1);
	assert_string_equal(t->fault.what, "the agent closed its pipe");
}

static void an_agent_that_says_nothing_is_given_up(void **state)
{
	struct target *t;

	(void)state;
	t = add("mute");
	UNTIL(t->state == TARGET_FAILED, 8);
	assert_int_equal(t->fault.step, FAULT_HELLO);
}

static void a_new_interval_goes_to_the_running_session(void **state)
{
	uint64_t session;
	struct target *t;

	(void)state;
	t = add("talk");
	assert_int_equal(target_start(t, NS_PER_MS, true), -EAGAIN);
	UNTIL(samples == 1, 5);
	session = t->priv->session;
	assert_int_equal(target_start(t, NS_PER_MS, true), 0);
	assert_int_equal(t->priv->session, session);
	assert_int_equal(t->interval_ns, NS_PER_MS);
	assert_true(t->no_budget);
}

/* Its agent's end of the FIFOs is open in this process, which stands for the JVM here. */
static struct target *add_with_fifos(const char *events, int *ret_control)
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
	*ret_control = open(control_path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	fd = open(events,
		  O_RDWR | O_NONBLOCK | O_CLOEXEC); /* so that the next open finds a reader */
	agent_fd = open(events, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	close(fd);
	assert_true(*ret_control >= 0 && agent_fd >= 0);
	assert_int_equal(targets_add(table, &jvm, clock_mono_ns(), &t), 0);
	return t;
}

static void an_agent_that_is_there_already_is_taken_over(void **state)
{
	struct wire_start start = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_frame frame;
	struct target *t;
	int control;
	ssize_t n;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	assert_int_equal(t->state, TARGET_STREAMING);
	assert_int_equal(t->attempts, 0);
	n = read(control, buf, sizeof(buf));
	assert_true(n > 0 && wire_peek(buf, (size_t)n, &frame) == n);
	assert_int_equal(wire_get_start(&frame, &start), 0);
	hello(agent_fd, start.session);
	UNTIL(samples == 1, 5);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static struct wire_start read_start(int control)
{
	struct wire_start start = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_frame frame;
	ssize_t n = read(control, buf, sizeof(buf));

	assert_true(n > 0 && wire_peek(buf, (size_t)n, &frame) == n);
	assert_int_equal(wire_get_start(&frame, &start), 0);
	return start;
}

/* The agent's word about its engine, in its @sequence-th frame. */
static void say_engine(uint64_t sequence, uint64_t signo, uint64_t interval_ns)
{
	struct wire_ledger l = { 0 };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	l.books[WIRE_EVENT_CPU].taken = l.books[WIRE_EVENT_CPU].written = 1;
	l.books[WIRE_EVENT_CPU].taken_weight = l.books[WIRE_EVENT_CPU].written_weight = 10000000;
	l.counter[WIRE_COUNTER_INTERVAL_NS] = interval_ns;
	l.counter[WIRE_COUNTER_HOST_SIGNAL] = signo;
	wire_begin(&w, buf, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &l);
	len = wire_end(&w, sequence);
	assert_int_equal(write(agent_fd, buf, len), len);
}

static void a_start_leaves_the_signals_to_the_host_where_it_can(void **state)
{
	struct timespec tick;
	struct wire_start start;
	struct target *t;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	host_gives_ns = 2 * NS_PER_MS;
	config.cpu_interval_ns = NS_PER_MS;
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	assert_int_equal(start.flags, WIRE_START_HOST);
	assert_int_equal(start.interval_ns, 2 * NS_PER_MS);
	assert_int_equal(t->host_interval_ns, 2 * NS_PER_MS);
	hello(agent_fd, start.session);
	UNTIL(samples == 1, 5);
	assert_string_equal(target_engine(t), ""); /* the made-up HELLO has none */
	say_engine(4, SIGPROF, 2 * NS_PER_MS);
	UNTIL(strcmp(target_engine(t), "host") == 0, 5);
	assert_int_equal(target_interval_ns(t), 2 * NS_PER_MS);

	assert_int_equal(target_start(t, 10 * NS_PER_MS, true), 0);
	start = read_start(control);
	assert_int_equal(start.flags, WIRE_START_NO_BUDGET);
	assert_int_equal(start.interval_ns, 10 * NS_PER_MS);
	assert_int_equal(t->host_interval_ns, 0); /* whatever the agent says of the host now */
	say_engine(5, 0, NS_PER_MS); /* timers, whatever it was asked for: the tick's */
	UNTIL(strcmp(target_engine(t), "host") != 0, 5);
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	assert_int_equal(target_interval_ns(t), tick.tv_nsec);

	host_gives_ns = 0; /* refused since */
	assert_int_equal(target_start(t, NS_PER_MS, false), 0);
	start = read_start(control);
	assert_int_equal(start.flags, 0);
	assert_int_equal(start.interval_ns, NS_PER_MS);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void say_note(uint64_t sequence, const char *step, const char *what)
{
	const struct wire_fault note = { 0, { step, (uint32_t)strlen(step) }, { what, (uint32_t)strlen(what) } };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	wire_begin(&w, buf, WIRE_NOTE);
	assert_true(wire_put_fault(&w, &note));
	len = wire_end(&w, sequence);
	assert_int_equal(write(agent_fd, buf, len), len);
}

static void a_start_asks_for_what_is_configured_and_wanted(void **state)
{
	const unsigned cpu_lock = 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_LOCK;
	const unsigned alloc = 1u << WIRE_EVENT_ALLOC;
	struct wire_start start;
	struct target *t;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	config.events = cpu_lock;
	config.lock_min_ns = 2 * NS_PER_MS;
	config.monitors = WIRE_MONITORS_NEVER;
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	assert_int_equal(start.events, cpu_lock);
	assert_int_equal(start.lock_min_ns, 2 * NS_PER_MS);
	assert_int_equal(start.monitors, WIRE_MONITORS_NEVER);
	assert_int_equal(target_interval(t, WIRE_EVENT_LOCK), 2 * NS_PER_MS);
	hello(agent_fd, start.session);
	UNTIL(samples == 1, 5);
	assert_int_equal(target_events(t), 1u << WIRE_EVENT_CPU); /* nothing else was said */
	t->wanted_events = alloc;
	assert_int_equal(target_start(t, t->interval_ns, false), 0);
	assert_int_equal(read_start(control).events, cpu_lock | alloc);
	t->wanted_events = 0;
	assert_int_equal(target_start(t, t->interval_ns, false), 0);
	assert_int_equal(read_start(control).events, cpu_lock);
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void the_last_note_of_each_step_is_kept_until_it_is_taken_back(void **state)
{
	struct wire_start start;
	struct target *t;
	uint64_t n = 4;
	int control;

	(void)state;
	if (make_fifos() < 0)
		skip();
	t = add_with_fifos(events_path, &control);
	start = read_start(control);
	hello(agent_fd, start.session);
	UNTIL(samples == 1, 5);
	say_note(n++, "lock", "first");
	say_note(n++, "alloc", "needs JDK 11");
	say_note(n++, "lock", "second");
	UNTIL(strcmp(t->notes[0].what, "second") == 0, 5);
	assert_string_equal(t->notes[1].step, "alloc");
	say_note(n++, "lock", "");
	UNTIL(!t->notes[0].step[0], 5);
	/* more steps than there is room for are no harm */
	for (int i = 0; i < 2 * NOTES_MAX; i++) {
		char step[8];

		snprintf(step, sizeof(step), "s%d", i);
		say_note(n++, step, "said");
	}
	UNTIL(t->notes[0].step[0], 5);
	assert_string_equal(t->notes[0].step, "s0");
	assert_string_equal(t->notes[1].step, "alloc");
	close(control);
	close(agent_fd);
	remove_fifos();
}

static void an_agent_that_another_daemon_reads_from_is_left_alone(void **state)
{
	struct target *t;
	int control, reader;
	uint8_t byte;

	(void)state;
	if (make_fifos() < 0)
		skip();
	reader = open(events_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	t = add_with_fifos(events_path, &control);
	assert_int_equal(t->state, TARGET_FAILED);
	assert_int_equal(t->fault.code, EBUSY);
	assert_int_equal(read(control, &byte, 1), -1); /* not told anything */
	close(reader);
	UNTIL(t->state == TARGET_STREAMING, 5); /* the other one went */
	close(control);
	close(agent_fd);
	remove_fifos();
}

/* ---- who is taken in ------------------------------------------------------------------------ */

/* A second process; it stands for a JVM with the same name, libjvm and JDK. */
static pid_t other;

static struct target *add_other(const char *manner)
{
	pid_t first = process;
	struct target *t;

	other = fork();
	if (other == 0) {
		pause();
		_exit(0);
	}
	process = other;
	t = add(manner);
	process = first;
	return t;
}

static void end_other(void)
{
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
}

static void a_rule_keeps_out_before_anything_is_started(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	config.n_rules = 1;
	config.rules[0] = (struct config_rule){ .line = 3, .has_uid = true, .uid_max = UINT32_MAX };
	strcpy(config.file, "/etc/k.yaml");
	t = add("talk");
	assert_int_equal(t->state, TARGET_EXCLUDED);
	assert_int_equal(table->injectors, 0);
	assert_string_equal(t->fault.what, "kept out by targets.rules[0] (k.yaml:3): uid 0");
	assert_int_equal(target_attach(t, 0, &why), -EPERM); /* the rule is stronger */
	assert_string_equal(why.what, t->fault.what);
	assert_int_equal(t->state, TARGET_EXCLUDED);
	config.n_rules = 0;
}

static void keep_one_out(uint64_t daemon_began_s)
{
	table->begin_boot_s = daemon_began_s;
	config.opt_in = true;
	assert_int_equal(add("talk")->state, TARGET_EXCLUDED);
}

static void what_a_former_daemon_left_in_one_that_is_kept_out_goes(void **state)
{
	(void)state;
	keep_one_out(UINT32_MAX);
	UNTIL(marked("cleanup"), 5);
}

static void one_that_began_after_the_daemon_needs_no_cleaning(void **state)
{
	uint64_t end = clock_mono_ns() + 300 * NS_PER_MS;

	(void)state;
	keep_one_out(0);
	UNTIL(clock_mono_ns() > end, 5);
	assert_false(marked("cleanup"));
}

static void opt_in_takes_in_by_hand_alone(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	config.opt_in = true;
	t = add("talk");
	assert_int_equal(t->state, TARGET_EXCLUDED);
	assert_int_equal(target_attach(t, 0, &why), 0);
	UNTIL(samples == 1, 5);
	assert_int_equal(t->state, TARGET_STREAMING);
}

static void who_was_detached_stays_so_until_attach_and_over_a_restart(void **state)
{
	static const struct targets_ops none;
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	snprintf(config.state_dir, sizeof(config.state_dir), "%s", dir);
	table = targets_free(table);
	assert_int_equal(targets_new(loop, &config, &none, NULL, &table), 0);
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING, 5);
	assert_int_equal(target_detach_for(t, 7), 0);
	assert_int_equal(target_attach(t, 7, &why), -EAGAIN); /* it is on its way out */
	UNTIL(t->state == TARGET_DETACHED, 5);
	assert_int_equal(strncmp(t->fault.what, "detached by uid 7 at ", 21), 0);
	table = targets_free(table);
	assert_int_equal(targets_new(loop, &config, &none, NULL, &table), 0);
	t = add("talk");
	assert_int_equal(t->state, TARGET_DETACHED);
	assert_int_equal(strncmp(t->fault.what, "detached by uid 7 at ", 21), 0);
	assert_int_equal(target_attach(t, 7, &why), 0);
	UNTIL(t->state == TARGET_STREAMING, 5);
	end_process();
	UNTIL(t->state == TARGET_GONE, 5);
	assert_int_equal(table->wishes.n, 0);
	assert_int_equal(target_detach_for(t, 7), -ESRCH);
}

static void detach_during_an_attempt_can_be_taken_back(void **state)
{
	struct fault why = { 0 };
	struct target *t;

	(void)state;
	t = add("slow");
	assert_int_equal(target_detach_for(t, 0), 0);
	assert_int_equal(t->state, TARGET_INJECTING);
	assert_int_equal(target_attach(t, 0, &why), 0);
	UNTIL(t->state == TARGET_STREAMING, 5);
	assert_int_equal(target_detach_for(t, 0), 0);
	UNTIL(t->state == TARGET_DETACHED, 5);
}

static void a_place_that_gets_free_is_taken_unless_the_daemon_stops(void **state)
{
	struct target *first, *second;

	(void)state;
	config.targets_max = 1;
	first = add("talk");
	second = add_other("talk");
	assert_int_equal(second->state, TARGET_EXCLUDED);
	assert_int_equal(second->fault.step, FAULT_BUDGET);
	UNTIL(first->state == TARGET_STREAMING, 5);
	end_process();
	UNTIL(second->state == TARGET_STREAMING, 5);
	assert_int_equal(first->state, TARGET_GONE);
	end_other();
}

static void a_daemon_that_stops_takes_nobody_in(void **state)
{
	struct target *first, *second;
	uint64_t end = clock_mono_ns() + 1500 * NS_PER_MS;
	struct fault why = { 0 };

	(void)state;
	config.targets_max = 1;
	first = add("talk");
	second = add_other("talk");
	UNTIL(first->state == TARGET_STREAMING, 5);
	targets_stop(table);
	end_process();
	UNTIL(first->state == TARGET_GONE, 5);
	while (clock_mono_ns() < end) /* longer than a review takes to come */
		(void)loop_round(loop, 20 * NS_PER_MS);
	assert_int_equal(second->state, TARGET_EXCLUDED);
	assert_int_equal(target_attach(second, 0, &why), -ESHUTDOWN);
	end_other();
}

static void the_rate_makes_the_second_one_wait(void **state)
{
	struct target *first, *second;
	uint64_t begin = clock_mono_ns();

	(void)state;
	config.attach_rate = 1;
	first = add("talk");
	second = add_other("talk");
	assert_int_equal(second->state, TARGET_FOUND);
	UNTIL(first->state == TARGET_STREAMING, 5);
	assert_int_equal(second->state, TARGET_FOUND);
	UNTIL(second->state == TARGET_STREAMING, 5);
	assert_true(clock_mono_ns() - begin >= NS_PER_S);
	end_other();
}

static void a_crash_takes_agents_out_of_jvms_alike(void **state)
{
	struct target *first, *second;
	struct fault why = { 0 };
	pid_t pid = process;

	(void)state;
	config.crash_block_ns = 3600 * NS_PER_S;
	first = add("talk");
	second = add_other("talk");
	UNTIL(first->state == TARGET_STREAMING && second->state == TARGET_STREAMING, 5);
	targets_exited(table, 1, SIGSEGV); /* somebody else */
	assert_int_equal(targets_crashes(table), 0);
	targets_exited(table, pid, SIGSEGV);
	end_process();
	UNTIL(first->state == TARGET_GONE, 5);
	assert_string_equal(first->fault.what, "it was ended by SIGSEGV");
	UNTIL(second->state == TARGET_EXCLUDED, 5);
	assert_int_equal(second->fault.step, FAULT_CRASH);
	assert_int_equal(targets_crashes(table), 1);
	assert_non_null(strstr(targets_cohort(table, 0)->name, "Made.Up"));
	assert_null(targets_cohort(table, 1));
	assert_int_equal(target_attach(second, 0, &why), 0); /* by hand one may */
	UNTIL(second->state == TARGET_STREAMING, 5);
	end_other();
}

static void a_status_that_comes_after_the_end_counts_too(void **state)
{
	struct target *t;
	pid_t pid = process;

	(void)state;
	config.crash_block_ns = 3600 * NS_PER_S;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING, 5);
	end_process();
	UNTIL(t->state == TARGET_GONE, 5);
	assert_null(targets_cohort(table, 0));
	targets_exited(table, pid, SIGABRT | 0x80);
	assert_non_null(targets_cohort(table, 0));
	assert_string_equal(t->fault.what, "it was ended by SIGABRT");
}

static void the_injector_of_a_process_that_ended_is_not_killed(void **state)
{
	struct target *t;

	(void)state;
	t = add("slow");
	assert_int_equal(t->state, TARGET_INJECTING);
	end_process();
	UNTIL(t->state == TARGET_GONE, 5);
	assert_int_equal(table->injectors, 0);
	assert_non_null(table->children); /* it tidies up */
	UNTIL(table->children == NULL, 5);
	assert_false(marked("cleanup"));
}

static void who_ended_makes_room_in_a_full_table(void **state)
{
	struct target *t;
	struct jvm jvm;

	(void)state;
	t = add("talk");
	UNTIL(t->state == TARGET_STREAMING, 5);
	table->count += TARGETS_MAX - 1;
	fill_in(&jvm);
	jvm.start_time++;
	assert_int_equal(targets_add(table, &jvm, 0, NULL), -ENOSPC); /* all of them live */
	end_process();
	UNTIL(t->state == TARGET_GONE, 5);
	t = add_other("talk");
	assert_int_equal(freed, 1);
	assert_int_equal(table->count, TARGETS_MAX);
	table->count -= TARGETS_MAX - 1;
	UNTIL(t->state == TARGET_STREAMING, 5);
	end_other();
}

static void the_table_frees_what_is_under_way(void **state)
{
	(void)state;
	(void)add("hang");
	table = targets_free(table);
	assert_int_equal(freed, 1);
	for (int i = 0; i < 250 && !marked("cleanup"); i++)
		usleep(20000);
	assert_true(marked("cleanup"));
}

#define LIFE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIFE_TEST(a_target_streams_and_leaves_when_told),
		LIFE_TEST(the_same_process_is_taken_in_once_and_another_never),
		LIFE_TEST(the_end_of_the_process_keeps_its_last_events),
		LIFE_TEST(what_only_the_owner_can_change_is_not_tried_again),
		LIFE_TEST(an_injector_that_dies_is_a_reason_and_its_leftovers_go),
		LIFE_TEST(an_injector_that_hangs_is_killed),
		LIFE_TEST(detach_during_an_attempt_waits_for_its_end),
		LIFE_TEST(bytes_that_are_no_frames_end_the_session_only),
		LIFE_TEST(an_agent_that_closes_its_pipe_is_missed),
		LIFE_TEST(an_agent_that_says_nothing_is_given_up),
		LIFE_TEST(a_new_interval_goes_to_the_running_session),
		LIFE_TEST(an_agent_that_is_there_already_is_taken_over),
		LIFE_TEST(a_start_leaves_the_signals_to_the_host_where_it_can),
		LIFE_TEST(a_start_asks_for_what_is_configured_and_wanted),
		LIFE_TEST(the_last_note_of_each_step_is_kept_until_it_is_taken_back),
		LIFE_TEST(an_agent_that_another_daemon_reads_from_is_left_alone),
		LIFE_TEST(a_rule_keeps_out_before_anything_is_started),
		LIFE_TEST(what_a_former_daemon_left_in_one_that_is_kept_out_goes),
		LIFE_TEST(one_that_began_after_the_daemon_needs_no_cleaning),
		LIFE_TEST(opt_in_takes_in_by_hand_alone),
		LIFE_TEST(who_was_detached_stays_so_until_attach_and_over_a_restart),
		LIFE_TEST(detach_during_an_attempt_can_be_taken_back),
		LIFE_TEST(a_place_that_gets_free_is_taken_unless_the_daemon_stops),
		LIFE_TEST(a_daemon_that_stops_takes_nobody_in),
		LIFE_TEST(the_rate_makes_the_second_one_wait),
		LIFE_TEST(a_crash_takes_agents_out_of_jvms_alike),
		LIFE_TEST(a_status_that_comes_after_the_end_counts_too),
		LIFE_TEST(the_injector_of_a_process_that_ended_is_not_killed),
		LIFE_TEST(who_ended_makes_room_in_a_full_table),
		LIFE_TEST(the_table_frees_what_is_under_way),
	};

	if (argc > 5 && strcmp(argv[1], "--result-fd") == 0)
		return injector(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
