/*
 * The agent's own thread: a session with a daemon over two FIFOs.
 *
 *   WAITING   no session: sleeps until START comes on `control`; nothing is sampled
 *   RUNNING   engine on; wakes every 10 ms while samples come, once a second when idle
 *   PAUSED    STOP came: connected, engine off
 *
 * A session ends when its reader is gone (POLLERR on `events`), when the pipe stays full for 10 s (a
 * stopped daemon never gives POLLERR), or when a START with another session number comes. The agent
 * ends when DETACH comes. FIFO names are unlinked by the daemon's side once both are open here; a
 * later daemon reaches them through /proc/PID/fd.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/agent.h"
#include "agent/engine/cpu_timer.h"
#include "agent/jni_names.h"
#include "agent/ledger.h"
#include "agent/threads.h"
#include "agent/writer.h"

#define BATCH_NS            (10 * NS_PER_MS)
#define SCAN_NS             (2 * NS_PER_S)
#define NAMES_NS            (5 * NS_PER_S)
#define LEASE_NS            (10 * NS_PER_S)
#define INTERVAL_NS_MIN     (NS_PER_MS / 10)
#define INTERVAL_NS_MAX     NS_PER_S
#define MAX_CPU_DEFAULT     10 /* permille of the process's own CPU time */
#define CPU_FLOOR_NS        NS_PER_MS /* per second: below this no budget is enforced */

enum session_state { WAITING, RUNNING, PAUSED, ENDED };

static struct {
	enum session_state state;
	int events_fd, control_fd;
	struct wire_start start; /* of the running session */
	uint8_t control[WIRE_FRAME_MAX]; /* bytes of an incomplete frame */
	uint32_t control_len;
	bool walker_ready;
	bool say_bye; /* the lease was lost with a reader there: BYE when the pipe has room */
	uint64_t next_batch_ns, next_second_ns, next_scan_ns, next_names_ns;
	uint64_t budget_agent_ns, budget_process_ns; /* at the last look */
	uint64_t taken_at_ledger;
} session;

/* Hands paths from Agent_OnAttach to the thread: 0 = none, 1 = being filled in, 2 = there. */
static struct {
	uint32_t full;
	uint32_t thread_lives;
	char events[PATH_BYTES], control[PATH_BYTES];
} mailbox;

/* ---- opening ----------------------------------------------------------------------------- */

static void option(const char *options, const char *key, char *ret)
{
	size_t key_len = strlen(key), n = 0;
	const char *p = options;

	ret[0] = '\0';
	while (p && strncmp(p, key, key_len) != 0) {
		p = strstr(p, ",");
		p = p ? p + 1 : NULL;
	}
	if (!p)
		return;
	for (p += key_len; p[n] && p[n] != ',' && n < PATH_BYTES - 1; n++)
		ret[n] = p[n];
	ret[n] = '\0';
}

static void close_fds(void)
{
	if (session.events_fd >= 0)
		close(session.events_fd);
	if (session.control_fd >= 0)
		close(session.control_fd);
	session.events_fd = session.control_fd = -1;
	session.control_len = 0;
}

static void open_fifos(void)
{
	/* O_RDWR: our own end keeps the FIFO alive between daemons. events has its reader already;
	 * without one the open is refused (ENXIO) and the attach has failed. */
	session.control_fd = open(mailbox.control, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	session.events_fd = open(mailbox.events, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (session.control_fd < 0 || session.events_fd < 0)
		close_fds();
}

/* ---- a session's begin and end ------------------------------------------------------------ */

static void say_hello(void)
{
	char vendor[128], version[128], name[128];
	struct timespec tick = { 0, 0 };
	const char *file = strrchr(agent.library, '/');
	struct timespec real;
	struct wire_hello h;

	jni_property(agent.env, "java.vm.vendor", vendor, sizeof(vendor));
	jni_property(agent.env, "java.runtime.version", version, sizeof(version));
	jni_property(agent.env, "java.vm.name", name, sizeof(name));
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	clock_gettime(CLOCK_REALTIME, &real);
	memset(&h, 0, sizeof(h));
	h.protocol = WIRE_PROTOCOL;
	h.agent_version = wire_text(KINDLING_VERSION);
	h.agent_hash = wire_text(file ? file + 1 : "");
	h.jvm_vendor = wire_text(vendor);
	h.jvm_version = wire_text(version);
	h.jvm_name = wire_text(name);
	h.libc = wire_text(dlsym(RTLD_DEFAULT, "gnu_get_libc_version") ? "glibc" : "musl");
	h.engine = wire_text("cpu-timer");
	h.walker = wire_text(walker_name());
	h.note = wire_text(walker_note());
	h.ns_pid = (uint64_t)getpid();
	h.interval_ns = engine.interval_ns;
	h.mono_ns = mono_ns();
	h.real_ns = (uint64_t)real.tv_sec * NS_PER_S + (uint64_t)real.tv_nsec;
	h.session = session.start.session;
	h.tick_ns = (uint64_t)tick.tv_nsec;
	(void)writer_hello(&h);
}

/* The reader is gone: nothing of ours runs in the application until the next START. */
static void end_session(void)
{
	engine_stop();
	writer_discard();
	writer_free();
	threads_free();
	session.state = WAITING;
}

static void fail(int code, const char *step, const char *why)
{
	(void)writer_fault(WIRE_FAULT, (uint32_t)-code, step, why);
}

static uint64_t clamp_interval(uint64_t ns)
{
	if (ns < INTERVAL_NS_MIN)
		return INTERVAL_NS_MIN;
	return ns > INTERVAL_NS_MAX ? INTERVAL_NS_MAX : ns;
}

static void begin_session(const struct wire_start *start)
{
	const char *why = "";
	uint64_t now;
	int r = 0;

	session.start = *start;
	session.state = RUNNING;
	session.say_bye = false;
	if (!agent.ring.mem &&
	    ring_init(&agent.ring, start->ring_bytes && start->ring_bytes < RING_BYTES_MAX ?
					   (uint32_t)start->ring_bytes :
					   RING_BYTES_DEFAULT) < 0) {
		session.state = WAITING;
		return;
	}
	writer_begin(session.events_fd);
	ledger_begin();
	engine.interval_ns = clamp_interval(start->interval_ns);
	if (!session.walker_ready) {
		r = walker_init(agent.vm, agent.env, &why);
		session.walker_ready = r == 0;
	}
	say_hello();
	if (!session.walker_ready) {
		fail(r, "walker", why);
		session.state = PAUSED;
		return;
	}
	if (!scratch_init()) {
		fail(-ENOMEM, "engine", "no memory for scratch buffers");
		session.state = PAUSED;
		return;
	}
	r = engine_start(engine.interval_ns, &why);
	if (r < 0) {
		fail(r, "engine", why);
		session.state = PAUSED;
		return;
	}
	threads_refresh(true);
	(void)writer_flush();
	now = mono_ns();
	session.next_batch_ns = now;
	session.next_second_ns = now + NS_PER_S;
	session.next_scan_ns = now + SCAN_NS;
	session.next_names_ns = now + NAMES_NS;
	session.budget_agent_ns = agent.books.handler_ns + thread_cpu_ns(0);
	session.budget_process_ns = process_cpu_ns();
}

/* The final books and a good-bye; then the thread ends and a later attach begins anew. */
static void detach(void)
{
	engine_stop();
	thread_start_unhook();
	walker_deinit();
	if (writer_ledger() != WRITER_GONE)
		(void)writer_fault(WIRE_BYE, 0, "detach", "detached");
	writer_discard();
	writer_free();
	threads_free();
	session.state = ENDED;
}

/* ---- commands ----------------------------------------------------------------------------- */

static void on_start(const struct wire_start *start)
{
	if (session.state == WAITING || start->session != session.start.session) {
		if (session.state != WAITING)
			end_session();
		begin_session(start);
		return;
	}
	session.start = *start;
	if (session.state == PAUSED) {
		begin_session(start);
		return;
	}
	/* ledger before and after, so that the daemon sees the new interval at once */
	(void)writer_ledger();
	engine_set_interval(clamp_interval(start->interval_ns));
	(void)writer_ledger();
}

static void on_command(const struct wire_frame *f)
{
	struct wire_start start;

	switch (f->type) {
	case WIRE_START:
		if (wire_get_start(f, &start) == 0 && start.protocol == WIRE_PROTOCOL)
			on_start(&start);
		break;
	case WIRE_STOP:
		if (session.state == RUNNING) {
			engine_stop();
			(void)writer_ledger();
			session.state = PAUSED;
		}
		break;
	case WIRE_DETACH:
		detach();
		break;
	default:
		break; /* a newer daemon's command */
	}
}

static void read_control(void)
{
	long n = read(session.control_fd, session.control + session.control_len,
		      sizeof(session.control) - session.control_len);
	struct wire_frame frame;
	int size = 0;

	if (n <= 0)
		return;
	session.control_len += (uint32_t)n;
	while (session.state != ENDED &&
	       (size = wire_peek(session.control, session.control_len, &frame)) > 0) {
		on_command(&frame);
		session.control_len -= (uint32_t)size;
		memmove(session.control, session.control + size, session.control_len);
	}
	if (size < 0)
		session.control_len = 0; /* not ours: only root and our uid can write here */
}

/* ---- housekeeping -------------------------------------------------------------------------- */

/* Keep our own CPU under max_cpu of the process's, by a longer interval; weights follow it. */
static void keep_budget(void)
{
	uint64_t agent_ns = agent.books.handler_ns + thread_cpu_ns(0);
	uint64_t process_ns = process_cpu_ns();
	uint64_t ours = agent_ns - session.budget_agent_ns;
	uint64_t all = process_ns - session.budget_process_ns;
	uint64_t permille = session.start.max_cpu_permille ? session.start.max_cpu_permille :
							     MAX_CPU_DEFAULT;
	uint64_t wanted = clamp_interval(session.start.interval_ns);
	uint64_t budget = all * permille / 1000;

	session.budget_agent_ns = agent_ns;
	session.budget_process_ns = process_ns;
	if (session.start.flags & WIRE_START_NO_BUDGET)
		return;
	if (budget < CPU_FLOOR_NS)
		budget = CPU_FLOOR_NS;
	if (ours > budget && engine.interval_ns < INTERVAL_NS_MAX)
		engine_set_interval(clamp_interval(engine.interval_ns + engine.interval_ns / 2));
	else if (ours < budget / 2 && engine.interval_ns > wanted)
		engine_set_interval(engine.interval_ns * 2 / 3 > wanted ?
					    engine.interval_ns * 2 / 3 :
					    wanted);
}

static bool every(uint64_t *next_ns, uint64_t now, uint64_t period)
{
	if (now < *next_ns)
		return false;
	*next_ns = now + period;
	return true;
}

static void run_once(uint64_t now)
{
	enum writer_result r = writer_drain(UINT64_MAX);

	if (every(&session.next_scan_ns, now, SCAN_NS))
		engine_scan();
	if (every(&session.next_names_ns, now, NAMES_NS))
		threads_refresh(true);
	if (every(&session.next_second_ns, now, NS_PER_S)) {
		threads_refresh(false);
		walker_refresh();
		keep_budget();
		if (r != WRITER_GONE && agent.books.taken != session.taken_at_ledger) {
			session.taken_at_ledger = agent.books.taken;
			r = writer_ledger();
		}
	}
	if (r != WRITER_GONE)
		r = writer_flush();
	if (r == WRITER_GONE) {
		end_session();
	} else if (writer_full_since() && mono_ns() - writer_full_since() > LEASE_NS) {
		end_session();
		session.say_bye = true; /* a daemon that was stopped and goes on must know */
	}
}

/* How long to sleep, in ms. Idle means: no sample since the writer said it would sleep. */
static int sleep_ms(uint64_t now)
{
	uint64_t wait = session.next_second_ns > now ? session.next_second_ns - now : 0;

	if (session.state == WAITING || session.state == PAUSED)
		return 1000;
	__atomic_store_n(&agent.writer_idle, 1, __ATOMIC_SEQ_CST);
	if (ring_head_sig(&agent.ring) != agent.ring.tail) {
		__atomic_store_n(&agent.writer_idle, 0, __ATOMIC_SEQ_CST);
		return (int)(BATCH_NS / NS_PER_MS);
	}
	return (int)((wait + NS_PER_MS - 1) / NS_PER_MS);
}

static void take_mail(void)
{
	if (__atomic_load_n(&mailbox.full, __ATOMIC_ACQUIRE) != 2)
		return;
	if (session.state == RUNNING || session.state == PAUSED)
		end_session();
	close_fds();
	open_fifos();
	__atomic_store_n(&mailbox.full, 0, __ATOMIC_RELEASE);
}

/* Wait for a command, a sample, the reader's end or the time. */
static void wait_for_something(void)
{
	struct pollfd fds[3] = {
		{ .fd = agent.wake_fd, .events = POLLIN },
		{ .fd = session.control_fd, .events = POLLIN },
		/* POLLERR needs no events; without a reader it would never sleep */
		{ .fd = session.state == WAITING && !session.say_bye ? -1 : session.events_fd,
		  .events = session.say_bye ? POLLOUT : 0 },
	};
	struct timespec batch = { 0, (long)BATCH_NS };
	uint64_t count;

	if (poll(fds, 3, sleep_ms(mono_ns())) < 0)
		return;
	if (fds[0].revents & POLLIN && read(agent.wake_fd, &count, sizeof(count)) > 0 &&
	    session.state == RUNNING)
		nanosleep(&batch, NULL); /* let a batch gather */
	if (fds[1].revents & POLLIN)
		read_control();
	if (session.say_bye && fds[2].revents) {
		session.say_bye = false;
		if (!(fds[2].revents & (POLLERR | POLLNVAL)))
			(void)writer_fault(WIRE_BYE, 0, "lease", "the pipe was full for 10 s");
	}
	if (fds[2].revents & (POLLERR | POLLNVAL) &&
	    (session.state == RUNNING || session.state == PAUSED))
		end_session();
}

/* ---- the thread ----------------------------------------------------------------------------- */

static bool attach_to_jvm(void)
{
	static char name[] = "kindling";
	JavaVMAttachArgs args = { JNI_VERSION_1_6, name, NULL };
	struct timespec pause = { 0, 10000000 };

	/* loaded with -agentpath the JVM is not there yet */
	for (int i = 0; i < 6000; i++) {
		if ((*agent.vm)->AttachCurrentThreadAsDaemon(agent.vm, (void **)&agent.env, &args) ==
		    JNI_OK)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void *session_main(void *unused)
{
	(void)unused;
	syscall(SYS_prctl, PR_SET_NAME, "kindling", 0, 0, 0);
	if (agent.wake_fd < 0) /* EFD_NONBLOCK | EFD_CLOEXEC have the values of O_x */
		agent.wake_fd = (int)syscall(SYS_eventfd2, 0, O_NONBLOCK | O_CLOEXEC);
	session.events_fd = session.control_fd = -1;
	session.state = WAITING;
	if (attach_to_jvm()) {
		while (session.state != ENDED) {
			take_mail();
			if (session.control_fd < 0)
				break; /* the FIFOs could not be opened: the daemon sees no HELLO */
			wait_for_something();
			if (session.state == RUNNING)
				run_once(mono_ns());
		}
		jni_names_free();
		session.walker_ready = false;
		(*agent.vm)->DetachCurrentThread(agent.vm);
		agent.env = NULL;
	}
	close_fds();
	/* handlers may still run for threads with a pending signal: what they touch stays: slots,
	 * ring, scratch buffers. The ring's pages go back to the system. */
	__atomic_store_n(&mailbox.thread_lives, 0, __ATOMIC_RELEASE);
	return NULL;
}

void session_open(const char *options)
{
	sigset_t all, old;
	pthread_t thread;
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&mailbox.full, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return; /* another attach is being taken in: its caller sees no HELLO and retries */
	option(options, "events=", mailbox.events);
	option(options, "control=", mailbox.control);
	__atomic_store_n(&mailbox.full, 2, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&mailbox.thread_lives, 1, __ATOMIC_ACQ_REL)) {
		uint64_t one = 1;

		if (agent.wake_fd >= 0 && write(agent.wake_fd, &one, sizeof(one)) < 0)
			return;
		return;
	}
	memset(&all, 0xff, sizeof(all));
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, session_main, NULL) == 0)
		pthread_detach(thread);
	else
		__atomic_store_n(&mailbox.thread_lives, 0, __ATOMIC_RELEASE);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
