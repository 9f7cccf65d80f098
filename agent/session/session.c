/*
 * See session.h. States of the agent:
 *
 * WAITING: no session. It sleeps until START comes on `control`; nothing is sampled.
 *
 * RUNNING: the engine is on; rest.h decides when the thread wakes up.
 *
 * PAUSED: STOP came, or a requirement is missing, which a FAULT has reported: connected, engine
 * off.
 *
 * A session ends when its reader is gone (POLLERR on `events`), when the pipe stays full for 10 s
 * (a stopped daemon never causes POLLERR), or when a START with another session number comes. The
 * agent ends when DETACH comes. The daemon unlinks the FIFOs once both are open here; a later
 * daemon reaches them through /proc/PID/fd.
 */
#include "agent/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "agent/engine/cpu_timer.h"
#include "agent/engine/handler_cost.h"
#include "agent/engine/pauses.h"
#include "agent/engine/wall.h"
#include "agent/events/idle_waits.h"
#include "agent/events/sources.h"
#include "agent/events/virtual_states.h"
#include "agent/events/waits.h"
#include "agent/hotspot/jni_names.h"
#include "agent/hotspot/libjvm.h"
#include "agent/hotspot/owner.h"
#include "agent/output/budget.h"
#include "agent/output/hello.h"
#include "agent/output/ledger.h"
#include "agent/output/thread_states.h"
#include "agent/output/threads.h"
#include "agent/output/writer.h"
#include "agent/session/rest.h"
#include "agent/trace/trace.h"
#include "proto/idle.h"

#define BATCH_NS       (10 * NS_PER_MS)
#define WAITS_CHECK_NS (NS_PER_S / 4)
#define SCAN_NS	       (2 * NS_PER_S)
#define SCAN_SHARE     200 /* a scan may take 1/200 of the time between two scans */
/* CPU time that the process must have used since the last scan or pass over names for another one,
 * unless LATE_NS has passed */
#define SCAN_CPU_NS  (20 * NS_PER_MS)
#define NAMES_NS     (5 * NS_PER_S)
#define NAMES_CPU_NS (50 * NS_PER_MS)
#define LATE_NS	     (30 * NS_PER_S) /* time after which one is made in any case */
#define LEASE_NS     (10 * NS_PER_S)
#define WRITE_TRIES  200 /* batches to wait for room for a frame that the session depends on */

enum session_state { WAITING, RUNNING, PAUSED };

/* An action that is repeated once enough time has passed and the process has used enough CPU
 * time. */
struct turn {
	uint64_t next_ns, late_ns, cpu_ns;
};

static struct {
	enum session_state state;
	int events_fd, control_fd;
	struct wire_start start; /* number of the running session */
	char secret[WIRE_SECRET_BYTES]; /* FIFOs that came with the attach */
	uint32_t secret_len;
	uint8_t control[WIRE_FRAME_MAX]; /* holds the bytes of an incomplete frame */
	uint32_t control_len;
	bool detached;
	bool walker_ready;
	bool stuck; /* a handler hangs, so its memory is never freed */
	bool ledger_due;
	bool sampled; /* the first samples of the session have come */
	bool pauses_begun; /* or this JVM's safepoints cannot be read */
	uint64_t next_waits_check_ns;
	struct turn scan, names;
	uint64_t taken_at_ledger;
	uint32_t left_out; /* value of walker_left_out() last reported */
} session = { .events_fd = -1, .control_fd = -1 };

/* ---- a session's begin and end ------------------------------------------------------------ */

static void close_fds(void)
{
	if (session.events_fd >= 0)
		close(session.events_fd);
	if (session.control_fd >= 0)
		close(session.control_fd);
	session.events_fd = session.control_fd = -1;
	session.control_len = 0;
}

static void stop_engine(void)
{
	session.stuck |= !engine_stop();
}

static void stop_sampling(void)
{
	session.stuck |= !sources_end();
	stop_engine();
	pauses_end();
}

/* The reader is gone: nothing of the agent runs in the application until the next START. The next
 * session counts what the reader did not get as no_reader. */
static void session_stop_streaming(void)
{
	if (session.state == WAITING)
		return;
	stop_sampling();
	writer_discard();
	writer_free();
	thread_states_end();
	threads_free();
	session.state = WAITING;
}

static enum writer_result session_hello(void)
{
	return hello_send(&session.start);
}

static enum writer_result session_bye(void)
{
	return writer_fault(WIRE_BYE, 0, "detach", "detached");
}

/* Reports which tables of the JVM are missing, and the consequence. */
static enum writer_result session_note_walker(void)
{
	return *walker_note() ? writer_fault(WIRE_NOTE, 0, "walker", walker_note()) : WRITER_OK;
}

/* Writes a frame that the session depends on, and waits a moment for room in the pipe. */
static enum writer_result session_write_waiting(enum writer_result (*put)(void))
{
	struct timespec pause = { 0, BATCH_NS };
	enum writer_result r = put();

	for (int i = 0; r == WRITER_FULL && i < WRITE_TRIES; i++) {
		nanosleep(&pause, NULL);
		r = put();
	}
	return r;
}

static int make_ring(void)
{
	uint64_t wanted = session.start.ring_bytes;

	if (agent.ring.mem)
		return 0;
	return ring_init(&agent.ring,
			 wanted && wanted < RING_BYTES_MAX ? (uint32_t)wanted : RING_BYTES_DEFAULT);
}

static bool wants_host(const struct wire_start *start)
{
	return start->flags & WIRE_START_HOST;
}

/* The signal of one profiler may interrupt the stack walk of another. The agent's own walk
 * tolerates that, but AsyncGetCallTrace does not: the JVM can crash in it (JDK-8283849,
 * JDK-8329103, JDK-8352649). */
static int session_may_share_signal(const char **step, const char **why)
{
	if (engine_is_alone() || strcmp(walker_name(), "asgct") != 0)
		return 0;
	*step = "walker";
	*why = "another profiler is loaded, and two profilers that use AsyncGetCallTrace can crash the JVM";
	return -EBUSY;
}

static bool wants_cpu(const struct wire_start *start)
{
	return events_wanted(start) & 1u << WIRE_EVENT_CPU;
}

static bool wants_offcpu(const struct wire_start *start)
{
	return wants_host(start) && events_wanted(start) & 1u << WIRE_EVENT_OFFCPU;
}

static bool wants_own_signal(const struct wire_start *start)
{
	return wants_offcpu(start) && start->flags & WIRE_START_OWN_SIGNAL;
}

static int start_engine(const char **step, const char **why)
{
	int r = session_may_share_signal(step, why);

	__atomic_store_n(&engine.offcpu, wants_offcpu(&session.start), __ATOMIC_RELAXED);
	if (r == 0) {
		*step = "engine";
		r = engine_start(budget_interval(&session.start), wants_host(&session.start), why);
	}
	if (r == 0)
		engine_own_signal(wants_own_signal(&session.start));
	return r;
}

static void turn_done(struct turn *t, uint64_t now, uint64_t pause_ns)
{
	t->next_ns = now + pause_ns;
	t->late_ns = now + LATE_NS;
	t->cpu_ns = process_cpu_ns();
}

/* A user is watching the threads (WIRE_START_THREADS). */
static bool is_watched(void)
{
	return thread_states_next_ns() != UINT64_MAX;
}

static bool turn_is_due(const struct turn *t, uint64_t now, uint64_t cpu_ns)
{
	return now >= t->next_ns &&
	       (is_watched() || now >= t->late_ns || process_cpu_ns() - t->cpu_ns >= cpu_ns);
}

/* Switches sampling on. A FAULT reports a missing requirement, and the session stays connected. */
static void session_start_sampling(int r, const char *step, const char *why)
{
	uint64_t now = mono_ns();

	session.state = PAUSED;
	if (r == 0 && wants_cpu(&session.start))
		r = start_engine(&step, &why);
	if (r < 0) {
		session.stuck |= !sources_end();
		(void)writer_fault(WIRE_FAULT, (uint32_t)-r, step, why);
		/* it collects nothing now, and gets no signals */
		(void)writer_ledger();
		return;
	}
	session.state = RUNNING;
	session.ledger_due = true;
	session.pauses_begun = false;
	trace_begin(&session.start);
	rest_begin(now);
	turn_done(&session.scan, now, SCAN_NS);
	turn_done(&session.names, now, NAMES_NS);
	sources_begin(&session.start);
	budget_begin(&session.start);
	threads_refresh(true);
	(void)writer_flush();
	if (engine.host) /* the daemon learns from this ledger which signal to send */
		session.ledger_due = writer_ledger() != WRITER_OK;
}

static int start_walker(const char **why)
{
	int r = session.walker_ready ? 0 : walker_init(agent.vm, agent.env, why);

	if (r == 0 && !session.walker_ready)
		owner_init();
	session.walker_ready = r == 0;
	return r;
}

/* From this version on JFR has CPU-time events, which need SIGPROF: if SIGPROF has a handler, JFR
 * records none and warns on the application's output. */
#define JFR_CPU_TIME 25

static void session_begin(void)
{
	const char *step = "walker", *why = "";
	int r;

	ledger_begin();
	r = start_walker(&why);
	if (r == 0 && make_ring() < 0) {
		step = "ring";
		why = "no memory for the ring";
		r = -ENOMEM;
	}
	writer_begin(session.events_fd);
	engine.interval_ns = budget_interval(&session.start);
	engine.spare_sigprof = libjvm_version().feature >= JFR_CPU_TIME;
	session.state = PAUSED;
	session.sampled = false;
	session.left_out = 0;
	writer_register();
	sources_new_reader();
	if (session_write_waiting(session_hello) != WRITER_OK ||
	    (r == 0 && session_write_waiting(session_note_walker) != WRITER_OK))
		session_stop_streaming();
	else
		session_start_sampling(r, step, why);
}

bool session_open(const struct session_paths *paths)
{
	session_stop_streaming();
	close_fds();
	session.detached = false;
	session.secret_len = 0;
	/* O_RDWR: the agent's own write end keeps the FIFO alive between daemons. `events` already
	 * has a reader; without one the open fails with ENXIO, and so does the attach. */
	session.control_fd = open(paths->control, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	session.events_fd = open(paths->events, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	return session.control_fd >= 0 && session.events_fd >= 0;
}

/* Sends the final ledger and BYE. */
static void session_send_bye(void)
{
	stop_sampling();
	if (session_write_waiting(writer_ledger) == WRITER_OK)
		(void)session_write_waiting(session_bye);
}

void session_close(void)
{
	session_stop_streaming();
	close_fds();
	thread_start_unhook();
	trace_end();
	if (session.walker_ready)
		walker_deinit();
	session.walker_ready = false;
	jni_names_free();
	if (!session.stuck) {
		engine_restore_signal();
		wall_free();
		engine_free();
		ring_deinit(&agent.ring);
	}
	session.stuck = false;
}

/* ---- commands ----------------------------------------------------------------------------- */

static void keep_text(struct wire_str *s, char *room, uint32_t size)
{
	if (s->len > size)
		s->len = size;
	if (s->len)
		memcpy(room, s->p, s->len);
	s->p = room;
}

/* Copies the START with its strings, which are part of the frame: sampling may begin again long
 * after. */
static void session_copy_start(const struct wire_start *start)
{
	static char threads[WIRE_STRING_MAX], keys[WIRE_STRING_MAX];

	session.start = *start;
	keep_text(&session.start.wall_threads, threads, sizeof(threads));
	keep_text(&session.start.mdc_keys, keys, sizeof(keys));
	idle_add(start->idle.p, start->idle.len);
	session.start.idle = (struct wire_str){ 0 };
	/* kept for later HELLOs: a daemon that takes over sends no secret but expects it in
	 * HELLO */
	if (start->secret.len == sizeof(session.secret)) {
		memcpy(session.secret, start->secret.p, sizeof(session.secret));
		session.secret_len = sizeof(session.secret);
	}
	session.start.secret = (struct wire_str){ session.secret, session.secret_len };
}

static void on_start(const struct wire_start *start)
{
	bool same = session.state != WAITING && start->session == session.start.session;
	const char *why = "";

	if (!same)
		session_stop_streaming();
	session_copy_start(start);
	ledger.details = handler_cost.each = start->flags & WIRE_START_DETAILS;
	if (!same) {
		session_begin();
	} else if (session.state == PAUSED) {
		session_start_sampling(start_walker(&why), "walker", why);
	} else {
		/* a ledger before and one after the change, so that the daemon sees the new
		 * interval at once */
		(void)writer_ledger();
		if (wants_cpu(start) != (engine.running != 0) ||
		    (wants_cpu(start) && wants_host(start) != engine.host)) {
			stop_engine();
			session_start_sampling(0, "", "");
		} else {
			trace_begin(&session.start);
			sources_begin(start);
			__atomic_store_n(&engine.offcpu, wants_offcpu(start), __ATOMIC_RELAXED);
			engine_own_signal(wants_own_signal(start));
			if (wants_cpu(start) && budget_interval(start) != engine.interval_ns)
				engine_set_interval(budget_interval(start));
			budget_begin(start);
		}
		session.ledger_due = writer_ledger() != WRITER_OK;
	}
	thread_states_begin(start->flags & WIRE_START_THREADS);
}

/* A daemon of another version: HELLO tells it this agent's protocol, and the daemon replaces the
 * agent. */
static void session_introduce(const struct wire_start *start)
{
	if (session.state != WAITING)
		return;
	session_copy_start(start);
	writer_begin(session.events_fd);
	(void)session_write_waiting(session_hello);
	writer_free();
}

static void on_command(const struct wire_frame *f)
{
	struct wire_start start;

	switch (f->type) {
	case WIRE_START:
		if (wire_get_start(f, &start) < 0)
			break;
		if (start.protocol == WIRE_PROTOCOL)
			on_start(&start);
		else
			session_introduce(&start);
		break;
	case WIRE_STOP:
		if (session.state == RUNNING) {
			stop_sampling();
			(void)session_write_waiting(writer_ledger);
			session.state = PAUSED;
		}
		break;
	case WIRE_DETACH:
		if (session.state != WAITING)
			session_send_bye();
		session.detached = true;
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
	while (!session.detached &&
	       (size = wire_peek(session.control, session.control_len, &frame)) > 0) {
		on_command(&frame);
		session.control_len -= (uint32_t)size;
		memmove(session.control, session.control + size, session.control_len);
	}
	if (size < 0)
		session.control_len = 0; /* not a frame of a daemon; only root and this uid can
					  * write here */
}

/* ---- housekeeping -------------------------------------------------------------------------- */

static bool session_every(uint64_t *next_ns, uint64_t now, uint64_t period)
{
	if (now < *next_ns)
		return false;
	*next_ns = now + period;
	return true;
}

/* Handles threads that were started, ended or renamed; with thousands of threads, less often. */
static void session_follow_threads(uint64_t now)
{
	uint64_t took_ns = 0;
	bool names;

	if (turn_is_due(&session.scan, now, SCAN_CPU_NS)) {
		if (engine.running)
			took_ns = engine_scan() * SCAN_SHARE;
		threads_sweep();
		turn_done(&session.scan, now, took_ns > SCAN_NS ? took_ns : SCAN_NS);
	}
	names = turn_is_due(&session.names, now, NAMES_CPU_NS);
	threads_refresh(names);
	if (names)
		turn_done(&session.names, now, NAMES_NS);
}

/* Another profiler has taken the agent's signal: takes another signal, or yields. */
static void session_keep_signal(void)
{
	const char *step, *why;

	if (!engine.running || (engine_has_signal() && session_may_share_signal(&step, &why) == 0))
		return;
	stop_engine();
	session_start_sampling(0, "", "");
}

/* A number that changes whenever a counter does. */
static uint64_t session_taken(void)
{
	uint64_t sum, ns, unpaired, idle;

	waits_counts(&sum, &ns, &unpaired);
	idle_waits_counts(&idle, &ns);
	sum += idle;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		sum += agent.counters.of[e].taken;
	return sum;
}

static void session_report_left_out(void)
{
	uint32_t n = walker_left_out();
	char what[160] = "";

	if (n == session.left_out)
		return;
	if (n)
		snprintf(
			what, sizeof(what),
			"%u native libraries have no place in the agent's table: stacks end at their frames",
			n);
	if (writer_fault(WIRE_NOTE, 0, "native", what) == WRITER_OK)
		session.left_out = n;
}

static void tick_events(uint64_t now)
{
	uint64_t begin_ns;

	if (sources_next_ns() > now && thread_states_next_ns() > now)
		return;
	begin_ns = thread_cpu_ns(0);
	sources_tick(now);
	thread_states_tick(now);
	agent.housekeeping_ns += thread_cpu_ns(0) - begin_ns;
}

static enum writer_result session_housekeep(uint64_t now)
{
	enum writer_result r = WRITER_OK;
	uint64_t begin_ns = thread_cpu_ns(0);
	bool quiet = !session.ledger_due && session_taken() == session.taken_at_ledger;

	session_follow_threads(now);
	walker_refresh();
	session_report_left_out();
	agent.housekeeping_ns += thread_cpu_ns(0) - begin_ns;
	if (budget_keep(&session.start))
		session.ledger_due = true;
	if (session.ledger_due || session_taken() != session.taken_at_ledger) {
		session.taken_at_ledger = session_taken();
		r = writer_ledger();
		session.ledger_due = r != WRITER_OK;
	}
	session_keep_signal();
	rest_checked(now, quiet && !is_watched() && !session.ledger_due && !writer_full_since() &&
				  !threads_are_missing());
	return r;
}

/* ---- safepoints ---------------------------------------------------------------------------- */

/* Called after the first samples were sent, because it reads libjvm's file. */
static void session_begin_pauses(void)
{
	struct wire_pause from = { .begin_ns = mono_ns(), .kind = WIRE_PAUSE_NONE };
	uint64_t begin_ns = thread_cpu_ns(0);

	session.pauses_begun = true;
	if (strcmp(walker_name(), "hotspot") == 0 && pauses_begin(&from.number))
		writer_pause(&from, "");
	agent.housekeeping_ns += thread_cpu_ns(0) - begin_ns;
}

/* Reports recorded safepoints. They are written before the samples, because a time off the CPU
 * among those may have been such a pause. */
static void session_report_pauses(uint64_t now)
{
	struct safepoint s;

	pauses_tick(now);
	while (pauses_take(&s)) {
		const char *operation = safepoints_operation(s.operation);
		struct wire_pause record = {
			.begin_ns = s.begin_ns,
			.reach_ns = s.reached_ns - s.begin_ns,
			.length_ns = s.end_ns - s.begin_ns,
			.number = s.number,
			.kind = safepoints_collects(s.operation) ? WIRE_PAUSE_GC
								 : WIRE_PAUSE_SAFEPOINT,
		};

		writer_pause(&record, operation);
	}
}

static void run_once(uint64_t now)
{
	uint64_t tail = agent.ring.tail;
	enum writer_result r;

	session_report_pauses(now);
	r = writer_drain(UINT64_MAX);
	rest_batch(now, agent.ring.tail != tail);
	session.sampled |= agent.ring.tail != tail;
	if (r != WRITER_GONE) {
		threads_refresh(false);
		tick_events(now);
		agent.housekeeping_ns += trace_tick(now, virtual_threads_each);
	}
	if (session_every(&session.next_waits_check_ns, now, WAITS_CHECK_NS) &&
	    budget_check_waits(&session.start))
		session.ledger_due = true;
	if (r != WRITER_GONE && now >= rest_check_ns())
		r = session_housekeep(now);
	if (r != WRITER_GONE)
		r = writer_flush();
	if (session.sampled)
		walker_catch_up();
	if (r != WRITER_GONE && session.sampled && !session.pauses_begun)
		session_begin_pauses();
	if (r == WRITER_GONE || (writer_full_since() && now > writer_full_since() + LEASE_NS))
		session_stop_streaming();
}

/* Tells handlers that the writer is about to wait, and how many samples may gather before they wake
 * it. false = there is already something to do. */
static bool session_may_wait(enum writer_idle how)
{
	uint64_t held;

	__atomic_store_n(&agent.writer_idle, how, __ATOMIC_SEQ_CST);
	held = ring_head_sig(&agent.ring) - agent.ring.tail;
	if (how == WRITER_RESTS ? held <= agent.ring.size / 4 : held == 0)
		return true;
	__atomic_store_n(&agent.writer_idle, WRITER_WORKS, __ATOMIC_SEQ_CST);
	return false;
}

/* Milliseconds to sleep. */
static int session_sleep_ms(uint64_t now)
{
	uint64_t next = rest_check_ns(), event = sources_next_ns(), wait;
	bool rests = rest_until_ns() > now;

	if (session.state != RUNNING)
		return -1;
	next = event < next ? event : next;
	next = thread_states_next_ns() < next ? thread_states_next_ns() : next;
	if (rests && rest_until_ns() < next)
		next = rest_until_ns();
	wait = next > now ? next - now : 0;
	if (!session_may_wait(rests ? WRITER_RESTS : WRITER_IDLE) && wait > BATCH_NS)
		wait = BATCH_NS;
	return (int)((wait + NS_PER_MS - 1) / NS_PER_MS);
}

/* Lets a batch gather; does what becomes due meanwhile. */
static void session_gather(void)
{
	/* while the writer is not idle, only urgent samples wake it: then it does what is due */
	struct pollfd hurry = { .fd = agent.wake_fd, .events = POLLIN };
	uint64_t now = mono_ns(), end = now + BATCH_NS, count;

	for (; now < end; now = mono_ns()) {
		uint64_t next = sources_next_ns() < end ? sources_next_ns() : end;

		if (next > now)
			(void)poll(&hurry, 1, (int)((next - now + NS_PER_MS - 1) / NS_PER_MS));
		if (hurry.revents & POLLIN)
			(void)!read(agent.wake_fd, &count, sizeof(count));
		tick_events(mono_ns());
	}
}

/* A sample has woken the thread, or something is due. */
static void session_do_due(bool woken)
{
	uint64_t now = mono_ns();

	__atomic_store_n(&agent.writer_idle, WRITER_WORKS, __ATOMIC_SEQ_CST);
	tick_events(now);
	if ((woken && rest_gathers(now)) || sources_next_ns() <= now + BATCH_NS)
		session_gather();
}

/* Milliseconds until the next check for a safepoint, @ms at most (-1: no limit). */
static int session_until_pause(uint64_t now, int ms)
{
	uint64_t next = pauses_next_ns();
	int until;

	if (session.state != RUNNING || next == UINT64_MAX)
		return ms;
	until = next > now ? (int)((next - now + NS_PER_MS - 1) / NS_PER_MS) : 0;
	return ms < 0 || until < ms ? until : ms;
}

/* The thread has slept since @since, for less than the @ms after which something else is due. true
 * = it only had to check for a safepoint and can sleep again. */
static bool session_only_checks_safepoint(uint64_t since, int ms)
{
	uint64_t now = mono_ns();

	if (pauses_next_ns() > now || session.state != RUNNING ||
	    (ms >= 0 && now >= since + (uint64_t)ms * NS_PER_MS))
		return false;
	pauses_tick(now);
	return !pauses_are_many();
}

bool session_step(void)
{
	struct pollfd fds[3] = {
		{ .fd = agent.wake_fd, .events = POLLIN },
		{ .fd = session.control_fd, .events = POLLIN },
		/* poll reports POLLERR even if no events are asked for; without a reader the thread
		 * would never sleep */
		{ .fd = session.state == WAITING ? -1 : session.events_fd, .events = 0 },
	};
	uint64_t count, now = mono_ns();
	int ms = session_sleep_ms(now), n;
	bool woken;

	n = poll(fds, 3, session_until_pause(now, ms));
	if (n < 0 || (n == 0 && session_only_checks_safepoint(now, ms)))
		return true;
	woken = fds[0].revents & POLLIN && read(agent.wake_fd, &count, sizeof(count)) > 0;
	if (session.state == RUNNING)
		session_do_due(woken);
	/* first, because `control` may already hold the START of a reader that came back */
	if (fds[2].revents & (POLLERR | POLLNVAL))
		session_stop_streaming();
	if (fds[1].revents & POLLIN)
		read_control();
	if (session.state == RUNNING && !session.detached)
		run_once(mono_ns());
	return !session.detached;
}
