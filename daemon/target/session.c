/* The session of one target: START and DETACH to its receiver, frames from there.
 * docs/decisions/0002, 0008. */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/core/utf8.h"

#define WORDS_BURST 10 /* lines of the log that are the agent's words */
#define WORDS_PER_S 1

unsigned target_asked_events(const struct target *t)
{
	return t->priv->table->config->events | t->wanted_events;
}

static void begin_session(struct target *t)
{
	if (getrandom(&t->priv->session, sizeof(t->priv->session), 0) < 0)
		t->priv->session = clock_mono_ns();
	possible_begin(t);
}

int session_frame(struct target *t, uint8_t *buf, uint64_t interval_ns, bool no_budget)
{
	const struct config *c = t->priv->table->config;
	const char *threads = t->wanted_threads[0] ? t->wanted_threads : c->wall_threads;
	struct wire_start start = {
		.protocol = WIRE_PROTOCOL,
		.interval_ns = interval_ns,
		.flags = WIRE_START_IDLE_APART | (no_budget ? WIRE_START_NO_BUDGET : 0),
		.max_cpu_permille = c->max_cpu_permille,
		.ring_bytes = c->ring_bytes,
		.events = target_asked_events(t),
		.lock_min_ns = t->wanted_lock_min_ns ? t->wanted_lock_min_ns : c->lock_min_ns,
		.monitors = c->monitors,
		.alloc_interval = c->alloc_interval,
		.wall_interval_ns = c->wall_interval_ns,
		.wall_threads = { threads, (uint32_t)strlen(threads) },
	};
	const struct targets_ops *ops = &t->priv->table->ops;
	struct wire_writer w;
	uint64_t host_ns = 0;

	if (ops->on_host_wanted)
		host_ns = ops->on_host_wanted(t->priv->table->userdata, t, interval_ns);
	if (t->states)
		start.flags |= WIRE_START_THREADS;
	if (host_ns) {
		start.flags |= WIRE_START_HOST;
		start.interval_ns = host_ns;
	}
	if (!t->priv->session)
		begin_session(t);
	start.session = t->priv->session;
	/* only what is loaded now may read it; who is there already has to know it */
	if (t->state == TARGET_INJECTING)
		start.secret =
			(struct wire_str){ (const char *)t->priv->secret, sizeof(t->priv->secret) };
	t->interval_ns = interval_ns;
	t->host_interval_ns = host_ns;
	t->no_budget = no_budget;
	wire_begin(&w, buf, WIRE_START);
	(void)wire_put_start(&w, &start);
	return (int)wire_end(&w, 1);
}

static const uint64_t *ledger_of(const struct target *t, struct stream_counts *c)
{
	target_counts(t, c);
	return c->ledger.counter;
}

static bool is_hosted(const uint64_t *counter)
{
	return counter[WIRE_COUNTER_HOST_SIGNAL] != 0;
}

uint64_t target_interval_ns(const struct target *t)
{
	struct stream_counts c;
	const uint64_t *counter = ledger_of(t, &c);
	uint64_t said = counter[WIRE_COUNTER_INTERVAL_NS];
	struct timespec tick = { 0, 0 };

	if (!said)
		said = t->interval_ns;
	if (is_hosted(counter))
		return said;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return said && said < (uint64_t)tick.tv_nsec ? (uint64_t)tick.tv_nsec : said;
}

uint64_t target_interval(const struct target *t, enum wire_event event)
{
	const struct config *c = t->priv->table->config;
	struct stream_counts counts;
	uint64_t in_force;

	switch (event) {
	case WIRE_EVENT_LOCK: /* the agent's budget may have raised it */
		in_force = ledger_of(t, &counts)[WIRE_COUNTER_LOCK_MIN_NS];
		return in_force ? in_force : c->lock_min_ns;
	case WIRE_EVENT_ALLOC:
		return c->alloc_interval;
	case WIRE_EVENT_WALL:
		return c->wall_interval_ns;
	default:
		return target_interval_ns(t);
	}
}

unsigned target_events(const struct target *t)
{
	struct stream_counts c;
	uint64_t said = ledger_of(t, &c)[WIRE_COUNTER_EVENTS];

	if (t->state != TARGET_STREAMING)
		return 0;
	if (!said) /* no LEDGER yet, or an agent that does not know of any but CPU */
		return 1u << WIRE_EVENT_CPU;
	return (unsigned)said & ((1u << WIRE_EVENT_COUNT) - 1);
}

const char *target_engine(const struct target *t)
{
	struct stream_counts c;

	return is_hosted(ledger_of(t, &c)) ? "host" : t->engine;
}

const char *target_engine_note(const struct target *t)
{
	struct stream_counts c;
	const uint64_t *counter = ledger_of(t, &c);
	bool samples = counter[WIRE_COUNTER_EVENTS] & 1u << WIRE_EVENT_CPU;

	/* before the first LEDGER, and while nothing is sampled, no engine has said that it runs */
	return samples && !is_hosted(counter) ? TARGET_TIMERS_NOTE : "";
}

/* ---- what the stream says ------------------------------------------------------------------- */

static void copy(char *dst, size_t size, struct wire_str s)
{
	char clean[3 * 256 + 1];

	utf8_clean(clean, s.p, s.len < 256 ? s.len : 256);
	snprintf(dst, size, "%s", clean);
}

static void on_hello(void *userdata, const struct wire_hello *h)
{
	struct target *t = userdata;
	struct targets *table = t->priv->table;
	char vendor[128], version[128];

	copy(vendor, sizeof(vendor), h->jvm_vendor);
	copy(version, sizeof(version), h->jvm_version);
	snprintf(t->jdk, sizeof(t->jdk), "%.60s %.90s", vendor, version);
	copy(t->engine, sizeof(t->engine), h->engine);
	copy(t->walker, sizeof(t->walker), h->walker);
	copy(t->note, sizeof(t->note), h->note);
	/* the clocks are the host's own, read here: a container's words about time are not needed
	 */
	t->real_minus_mono_ns = (int64_t)(clock_real_ns() - clock_mono_ns());
	t->priv->timer = loop_timer_free(t->priv->timer);
	if (table->ops.on_hello)
		table->ops.on_hello(table->userdata, t);
}

static void on_mapping(void *userdata, const struct wire_mapping *m, const char *path)
{
	struct target *t = userdata;

	if (t->priv->table->ops.on_mapping)
		t->priv->table->ops.on_mapping(t->priv->table->userdata, t, m, path);
}

static void on_sample(void *userdata, const struct stream_sample *s)
{
	struct target *t = userdata;

	if (!t->first_sample_mono_ns) {
		t->first_sample_mono_ns = clock_mono_ns();
		TARGET_LOG(INFO, t, "target.first_sample", "pid=%d after_ms=%.1f", t->jvm.pid,
			   (double)(t->first_sample_mono_ns - t->seen_mono_ns) / 1e6);
	}
	if (t->priv->table->ops.on_sample)
		t->priv->table->ops.on_sample(t->priv->table->userdata, t, s);
}

/* What goes to the next room as it is. */
#define HAND_ON(op, type)                                        \
	static void op(void *userdata, const type *what)         \
	{                                                        \
		struct target *t = userdata;                     \
		struct targets *table = t->priv->table;          \
                                                                 \
		if (table->ops.op)                               \
			table->ops.op(table->userdata, t, what); \
	}
HAND_ON(on_wall, struct stream_sample)
HAND_ON(on_lock, struct stream_lock)
HAND_ON(on_alloc, struct stream_alloc)
HAND_ON(on_virtual, struct stream_virtual)

static void on_thread(void *userdata, const struct wire_thread *w, const char *name)
{
	struct target *t = userdata;

	if (t->priv->table->ops.on_thread)
		t->priv->table->ops.on_thread(t->priv->table->userdata, t, w, name);
}

static void on_thread_state(void *userdata, const struct wire_state *w, const char *thread)
{
	struct target *t = userdata;

	(void)thread;
	if (t->priv->table->ops.on_thread_state)
		t->priv->table->ops.on_thread_state(t->priv->table->userdata, t, w);
}

static const char *words_name(const struct target *t)
{
	static char name[24];

	snprintf(name, sizeof(name), "pid=%d", t->jvm.pid);
	return name;
}

/* May the agent's own words become a line of the log? */
static bool may_say(struct target *t)
{
	t->priv->words.burst = WORDS_BURST;
	t->priv->words.per_s = WORDS_PER_S;
	return log_allowed(&t->priv->words, words_name(t));
}

/* The last word on each step; "" takes it back. There is no room for more steps than an agent has.
 */
static void on_note(void *userdata, const char *step, const char *what)
{
	struct target *t = userdata;
	struct target_note *at = NULL, note;

	if (log_wanted(LOG_LEVEL_DEBUG) && may_say(t))
		log_debug("target.note", "pid=%d step=%s what=%s", t->jvm.pid, log_str(step),
			  log_str(what));
	utf8_copy(note.step, sizeof(note.step), step, strlen(step));
	utf8_copy(note.what, sizeof(note.what), what, strlen(what));
	for (int i = NOTES_MAX - 1; i >= 0; i--)
		if (!t->notes[i].step[0])
			at = &t->notes[i];
	for (int i = 0; i < NOTES_MAX; i++)
		if (strcmp(t->notes[i].step, note.step) == 0)
			at = &t->notes[i];
	if (at && note.step[0])
		*at = note.what[0] ? note : (struct target_note){ 0 };
}

static void on_ledger(void *userdata)
{
	struct target *t = userdata;
	struct stream_counts c;

	recent_add(&t->recent, clock_mono_ns(), ledger_of(t, &c)[WIRE_COUNTER_AGENT_CPU_NS]);
	if (t->priv->table->ops.on_ledger)
		t->priv->table->ops.on_ledger(t->priv->table->userdata, t);
}

static void on_fault(void *userdata, const struct fault *f)
{
	struct target *t = userdata;

	if (may_say(t))
		log_warn("target.agent_fault", "pid=%d what=%s", t->jvm.pid, log_str(f->what));
	t->fault = *f;
}

static void on_bye(void *userdata, const struct fault *why)
{
	struct target *t = userdata;

	if (log_wanted(LOG_LEVEL_DEBUG) && may_say(t))
		log_debug("target.bye", "pid=%d what=%s", t->jvm.pid, log_str(why->what));
	t->priv->said_bye = true; /* seen in feed(): the stream may not be freed in here */
}

static void on_reset(void *userdata)
{
	struct target *t = userdata;

	if (t->priv->table->ops.on_reset)
		t->priv->table->ops.on_reset(t->priv->table->userdata, t);
}

static const struct stream_ops stream_calls = {
	.limits = possible_limits,
	.on_hello = on_hello,
	.on_mapping = on_mapping,
	.on_thread = on_thread,
	.on_sample = on_sample,
	.on_wall = on_wall,
	.on_lock = on_lock,
	.on_alloc = on_alloc,
	.on_state = on_thread_state,
	.on_virtual = on_virtual,
	.on_note = on_note,
	.on_ledger = on_ledger,
	.on_fault = on_fault,
	.on_bye = on_bye,
	.on_reset = on_reset,
};

/* ---- the pipe ------------------------------------------------------------------------------- */

static void log_books(const struct target *t)
{
	struct stream_counts c;

	target_counts(t, &c);
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct stream_books *b = &c.of[e];
		uint64_t dropped = 0;

		for (int i = 0; i < WIRE_DROP_COUNT; i++)
			dropped += b->dropped[i].n;
		if (e == WIRE_EVENT_CPU || b->taken)
			TARGET_LOG(
				INFO, t, "target.books",
				"pid=%d event=%s taken=%llu delivered=%llu dropped=%llu lost=%llu",
				t->jvm.pid, wire_event_names[e], (unsigned long long)b->taken,
				(unsigned long long)b->delivered, (unsigned long long)dropped,
				(unsigned long long)b->lost);
	}
}

static void add_books(struct stream_books *a, const struct stream_books *b)
{
	a->taken += b->taken;
	a->taken_weight += b->taken_weight;
	a->delivered += b->delivered;
	a->delivered_weight += b->delivered_weight;
	a->lost += b->lost;
	a->lost_weight += b->lost_weight;
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		a->dropped[i].n += b->dropped[i].n;
		a->dropped[i].weight += b->dropped[i].weight;
	}
}

static void add_counts(struct stream_counts *a, const struct stream_counts *b)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		add_books(&a->of[e], &b->of[e]);
	a->bytes += b->bytes;
	a->frames += b->frames;
	a->ledger = b->ledger;
}

void target_counts(const struct target *t, struct stream_counts *ret)
{
	struct stream_counts now;

	*ret = t->past;
	if (t->stream) {
		stream_counts(t->stream, &now);
		add_counts(ret, &now);
	}
}

void session_close(struct target *t)
{
	struct target_priv *p = t->priv;
	struct stream_counts c;

	log_limit_end(&p->words, words_name(t));
	if (t->stream) {
		log_books(t);
		on_ledger(t); /* the books of the last moments go where the others went */
		target_counts(t, &c);
		t->past = c;
		t->stream = stream_free(t->stream);
		on_reset(t);
	}
	receiver_stop(t);
	p->timer = loop_timer_free(p->timer);
	p->looking = p->ending = false;
	p->session = 0;
	p->said_bye = false;
	memset(t->notes, 0, sizeof(t->notes));
	t->recent = (struct target_recent){ 0 };
}

static void break_session(struct target *t, const struct fault *why)
{
	if (clock_mono_ns() - t->priv->session_mono_ns > STEADY_NS)
		t->attempts = 0;
	session_close(t);
	t->attempts++;
	target_fail(t, why);
}

static void finish_detach(struct target *t, const struct fault *why)
{
	if (why)
		TARGET_LOG(WARNING, t, "target.detach", "pid=%d what=%s", t->jvm.pid,
			   log_str(why->what));
	if (t->priv->leave_why.code)
		why = &t->priv->leave_why;
	session_close(t);
	target_set_state(t, t->priv->leave_to, why);
}

static void end_session(struct target *t, const struct fault *why)
{
	if (t->priv->ending)
		target_end(t);
	else if (t->state == TARGET_DRAINING)
		finish_detach(t, NULL);
	else
		break_session(t, why);
}

static void feed(struct target *t, const uint8_t *buf, size_t len)
{
	struct fault f = { 0 };

	if (stream_feed(t->stream, buf, len, &f) < 0) {
		if (f.code == EPERM) /* not what was attached: the next attempt is an attach */
			secrets_forget(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
		end_session(t, &f);
	} else if (t->priv->said_bye) {
		fault_set(&f, ESHUTDOWN, FAULT_AGENT, "the agent has ended");
		end_session(t, &f);
	}
}

static void on_late(struct target *t)
{
	struct fault f = { .flags = FAULT_RETRY_SOON }; /* it sleeps until it is told */

	fault_set(&f, ETIMEDOUT, FAULT_STREAM,
		  "the daemon did not read for so long that the agent paused itself");
	end_session(t, &f);
}

void session_stuck(struct target *t)
{
	struct fault f = { 0 };

	TARGET_LOG(WARNING, t, "target.stuck", "pid=%d", t->jvm.pid);
	fault_set(&f, ETIMEDOUT, FAULT_STREAM,
		  "its pipe does not answer: a read of it has not ended");
	end_session(t, &f);
}

static void on_closed(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	fault_set(&f, EPIPE, FAULT_AGENT, "the agent closed its pipe");
	end_session(t, &f);
}

/* The receiver ended: nobody can write into the pipe any more, and all of it was read. Most often
 * the process is ending: its pidfd says so in a moment. */
static void on_end(struct target *t)
{
	struct target_priv *p = t->priv;

	if (p->ending) {
		target_end(t);
		return;
	}
	p->socket_source = loop_source_free(p->socket_source);
	p->timer = loop_timer_free(p->timer);
	(void)loop_timer_add(p->table->loop, CLOSED_GRACE_NS, 0, on_closed, t, &p->timer);
}

static void on_unwritten(struct target *t)
{
	if (t->state == TARGET_DRAINING && !t->priv->ending)
		finish_detach(t, NULL);
	else
		TARGET_LOG(WARNING, t, "target.control", "pid=%d error=\"the agent does not read\"",
			   t->jvm.pid);
}

static void on_message(void *userdata, uint32_t events)
{
	static uint8_t buf[RECEIVE_BYTES];
	struct target *t = userdata;
	size_t len = 0;

	(void)events;
	switch (receiver_read(t, buf, sizeof(buf), &len)) {
	case RECEIVE_DATA:
		feed(t, buf, len);
		return;
	case RECEIVE_LATE:
		on_late(t);
		return;
	case RECEIVE_UNWRITTEN:
		on_unwritten(t);
		return;
	case RECEIVE_ANSWER:
		if (t->priv->ending)
			target_end(t);
		return;
	case -EPIPE:
		on_end(t);
		return;
	default:
		return;
	}
}

static void on_ending_late(void *userdata)
{
	target_end(userdata);
}

bool session_end(struct target *t)
{
	struct target_priv *p = t->priv;

	if (!t->stream || !p->socket_source)
		return false;
	p->ending = true;
	p->timer = loop_timer_free(p->timer);
	receiver_ask(t);
	return loop_timer_add(p->table->loop, ENDING_NS, 0, on_ending_late, t, &p->timer) == 0;
}

static void on_no_hello(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	fault_set(&f, ETIMEDOUT, FAULT_HELLO, "the agent did not answer START within 5 s");
	break_session(t, &f);
}

void session_open(struct target *t)
{
	struct target_priv *p = t->priv;

	p->session_mono_ns = clock_mono_ns();
	p->said_bye = false;
	p->socket_source = loop_source_free(p->socket_source);
	if (stream_new(&stream_calls, t, &t->stream) < 0 ||
	    loop_add(p->table->loop, p->socket_fd, EPOLLIN, on_message, t, &p->socket_source) < 0)
		log_err("target.session", "pid=%d error=\"out of memory\"", t->jvm.pid);
	if (t->stream)
		stream_expect(t->stream, p->secret);
	(void)loop_timer_add(p->table->loop, HELLO_DEADLINE_NS, 0, on_no_hello, t, &p->timer);
	neighbours_watch(t);
}

void target_give_up(struct target *t, const struct fault *why)
{
	if (t->stream)
		end_session(t, why);
}

/* ---- commands ------------------------------------------------------------------------------- */

int target_start(struct target *t, uint64_t interval_ns, bool no_budget)
{
	uint8_t frame[WIRE_FRAME_MAX];
	int len;

	if (t->state != TARGET_STREAMING)
		return -EAGAIN;
	len = session_frame(t, frame, interval_ns, no_budget);
	return receiver_write(t, frame, (size_t)len);
}

static void on_no_bye(void *userdata)
{
	struct fault f = { 0 };

	fault_set(&f, ETIMEDOUT, FAULT_AGENT, "the agent did not answer DETACH within 5 s");
	finish_detach(userdata, &f);
}

static void send_detach(struct target *t)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	wire_begin(&w, frame, WIRE_DETACH);
	len = wire_end(&w, 1);
	target_set_state(t, TARGET_DRAINING, NULL);
	t->priv->timer = loop_timer_free(t->priv->timer);
	(void)loop_timer_add(t->priv->table->loop, DRAIN_DEADLINE_NS, 0, on_no_bye, t,
			     &t->priv->timer);
	if (receiver_write(t, frame, len) < 0)
		finish_detach(t, NULL);
}

void target_leave(struct target *t, enum target_state to, const struct fault *why)
{
	t->priv->leave_to = to;
	t->priv->leave_why = why ? *why : (struct fault){ 0 };
	if (t->priv->ending || t->priv->looking)
		t->priv->leave = true; /* it ends by itself, or as soon as the look has ended */
	else if (t->state == to)
		t->fault = t->priv->leave_why;
	else if (t->state == TARGET_EXCLUDED || t->state == TARGET_DETACHED)
		target_set_state(t, to, &t->priv->leave_why);
	else if (t->state == TARGET_FOUND || t->state == TARGET_FAILED)
		session_leave_idle(t);
	if (t->state == TARGET_STREAMING && !t->priv->ending)
		send_detach(t);
	else if (t->state == TARGET_INJECTING)
		t->priv->leave = true; /* between two steps nothing can be undone: it ends soon */
}

void target_detach(struct target *t)
{
	if (t->state == TARGET_EXCLUDED || t->state == TARGET_DETACHED)
		return;
	if ((t->state == TARGET_INJECTING || t->priv->looking) && t->priv->leave)
		return;
	if (t->state != TARGET_DRAINING)
		target_leave(t, TARGET_DETACHED, &t->fault);
}
