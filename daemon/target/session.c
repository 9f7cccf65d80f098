/* The session of one target: sends START and DETACH to its receiver, and passes on the frames that
 * come back. docs/decisions/0002, 0008. */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

unsigned target_asked_events(const struct target *t)
{
	unsigned events = t->priv->table->config->events | t->wanted_events;

	/* the engine that samples the CPU also sends the signals for time off the CPU */
	if (events & 1u << WIRE_EVENT_OFFCPU)
		events |= 1u << WIRE_EVENT_CPU;
	return events & target_allowed_events(t);
}

static void session_choose_id(struct target *t)
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
		.interval_ns = owning_interval_ns(t, interval_ns),
		.flags = WIRE_START_IDLE_APART | (no_budget ? WIRE_START_NO_BUDGET : 0),
		.max_cpu_permille = c->max_cpu_permille,
		.ring_bytes = c->ring_bytes,
		.events = target_asked_events(t),
		.lock_min_ns = t->wanted_lock_min_ns ? t->wanted_lock_min_ns : c->lock_min_ns,
		.monitors = c->monitors,
		.alloc_interval = target_interval(t, WIRE_EVENT_ALLOC),
		.wall_interval_ns = target_interval(t, WIRE_EVENT_WALL),
		.wall_threads = { threads, (uint32_t)strlen(threads) },
		.trace = (c->trace_otel ? WIRE_TRACE_OTEL : 0) |
			 (c->trace_skywalking ? WIRE_TRACE_SKYWALKING : 0) |
			 (c->trace_brave ? WIRE_TRACE_BRAVE : 0) |
			 (c->trace_published ? WIRE_TRACE_PUBLISHED : 0),
		.mdc_keys = { c->trace_mdc, (uint32_t)strlen(c->trace_mdc) },
		.idle = { c->idle, (uint32_t)strlen(c->idle) },
	};
	const struct targets_ops *ops = &t->priv->table->ops;
	struct wire_writer w;
	uint64_t host_ns = 0;

	interval_ns = owning_interval_ns(t, interval_ns);
	if (ops->on_host_wanted)
		host_ns = ops->on_host_wanted(t->priv->table->userdata, t, interval_ns);
	if (t->states)
		start.flags |= WIRE_START_THREADS;
	if (!host_ns || t->priv->table->no_offcpu)
		start.events &= ~(1ull << WIRE_EVENT_OFFCPU);
	if (start.events & 1u << WIRE_EVENT_OFFCPU && c->offcpu_virtual)
		start.virtual_min_ns = c->offcpu_min_ns;
	if (host_ns) {
		start.flags |=
			WIRE_START_HOST | (t->priv->table->own_signal ? WIRE_START_OWN_SIGNAL : 0);
		start.interval_ns = host_ns;
	}
	if (!t->priv->session)
		session_choose_id(t);
	start.session = t->priv->session;
	/* only a newly loaded agent is told the secret; one that is there already must know it */
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

/* The counters of the last LEDGER. Called for each sample, so it adds nothing up. */
static const uint64_t *session_ledger(const struct target *t)
{
	return t->stream ? stream_ledger(t->stream)->counter : t->past.ledger.counter;
}

static bool session_is_hosted(const uint64_t *counter)
{
	return counter[WIRE_COUNTER_HOST_SIGNAL] != 0;
}

uint64_t target_interval_ns(const struct target *t)
{
	const uint64_t *counter = session_ledger(t);
	uint64_t said = counter[WIRE_COUNTER_INTERVAL_NS];
	struct timespec tick = { 0, 0 };

	if (!said)
		said = t->interval_ns;
	if (session_is_hosted(counter))
		return said;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return said && said < (uint64_t)tick.tv_nsec ? (uint64_t)tick.tv_nsec : said;
}

uint64_t target_interval(const struct target *t, enum wire_event event)
{
	const struct config *c = t->priv->table->config;
	uint64_t in_force;

	switch (event) {
	case WIRE_EVENT_LOCK: /* the agent's budget may have raised it */
		in_force = session_ledger(t)[WIRE_COUNTER_LOCK_MIN_NS];
		return in_force ? in_force : c->lock_min_ns;
	case WIRE_EVENT_ALLOC:
		return t->wanted_alloc_interval ? t->wanted_alloc_interval : c->alloc_interval;
	case WIRE_EVENT_OFFCPU:
		return t->offcpu_min_ns ? t->offcpu_min_ns : c->offcpu_min_ns;
	case WIRE_EVENT_WALL:
		return t->wanted_wall_interval_ns ? t->wanted_wall_interval_ns
						  : c->wall_interval_ns;
	default:
		return target_interval_ns(t);
	}
}

unsigned target_events(const struct target *t)
{
	const uint64_t *counter = session_ledger(t);

	if (t->state != TARGET_STREAMING)
		return 0;
	if (!counter[WIRE_COUNTER_SESSION_NS]) /* no LEDGER yet */
		return 1u << WIRE_EVENT_CPU;
	return (unsigned)counter[WIRE_COUNTER_EVENTS] & ((1u << WIRE_EVENT_COUNT) - 1);
}

const char *target_engine(const struct target *t)
{
	return session_is_hosted(session_ledger(t)) ? "host" : t->engine;
}

const char *target_engine_note(const struct target *t)
{
	const uint64_t *counter = session_ledger(t);
	bool samples = counter[WIRE_COUNTER_EVENTS] & 1u << WIRE_EVENT_CPU;

	/* before the first LEDGER, and while no CPU time is sampled, the engine is unknown */
	return samples && !session_is_hosted(counter) ? TARGET_TIMERS_NOTE : "";
}

/* ---- the pipe ------------------------------------------------------------------------------- */

static void session_log_accounts(const struct target *t)
{
	struct stream_counts c;

	target_counts(t, &c);
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct stream_accounts *b = &c.of[e];
		uint64_t dropped = 0;

		for (int i = 0; i < WIRE_DROP_COUNT; i++)
			dropped += b->dropped[i].n;
		if (e == WIRE_EVENT_CPU || b->taken)
			TARGET_LOG(
				INFO, t, "target.accounts",
				"pid=%d event=%s taken=%llu delivered=%llu dropped=%llu lost=%llu",
				t->jvm.pid, wire_event_names[e], (unsigned long long)b->taken,
				(unsigned long long)b->delivered, (unsigned long long)dropped,
				(unsigned long long)b->lost);
	}
}

static void session_add_accounts(struct stream_accounts *a, const struct stream_accounts *b)
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

static void session_add_counts(struct stream_counts *a, const struct stream_counts *b)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		session_add_accounts(&a->of[e], &b->of[e]);
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
		session_add_counts(ret, &now);
	}
}

void target_missed(struct target *t, uint64_t cpu_ns)
{
	struct stream_accounts *b = &t->past.of[WIRE_EVENT_CPU];
	uint64_t n = t->interval_ns ? (cpu_ns + t->interval_ns / 2) / t->interval_ns : 0;

	if (!n || !(target_asked_events(t) & 1u << WIRE_EVENT_CPU))
		return;
	b->taken += n;
	b->taken_weight += cpu_ns;
	b->dropped[WIRE_DROP_RESTART].n += n;
	b->dropped[WIRE_DROP_RESTART].weight += cpu_ns;
}

void session_close(struct target *t)
{
	struct target_priv *p = t->priv;
	struct stream_counts c;

	session_log_end(t);
	if (t->stream) {
		session_log_accounts(t);
		session_report_ledger(t); /* the accounts since the last LEDGER */
		session_report_reset(t); /* while its nodes have their meanings */
		target_counts(t, &c);
		t->past = c;
		t->stream = stream_free(t->stream);
	}
	receiver_stop(t);
	p->timer = loop_timer_free(p->timer);
	p->looking = p->ending = false;
	p->session = 0;
	p->got_bye = false;
	memset(t->notes, 0, sizeof(t->notes));
	t->recent = (struct target_recent){ 0 };
}

static void session_break(struct target *t, const struct fault *why)
{
	if (clock_mono_ns() - t->priv->session_mono_ns > STEADY_NS)
		t->attempts = 0;
	session_close(t);
	t->attempts++;
	target_fail(t, why);
}

static void session_finish_detach(struct target *t, const struct fault *why)
{
	if (why)
		TARGET_LOG(WARNING, t, "target.detach", "pid=%d what=%s", t->jvm.pid,
			   log_str(why->what));
	if (t->priv->leave_why.code)
		why = &t->priv->leave_why;
	session_close(t);
	target_set_state(t, t->priv->leave_to, why);
}

static void session_fail(struct target *t, const struct fault *why)
{
	if (t->priv->ending)
		target_end(t);
	else if (t->state == TARGET_DRAINING)
		session_finish_detach(t, NULL);
	else
		session_break(t, why);
}

/* An agent that was there already does not understand this daemon: without its secret the next
 * attempt, which follows soon, does not take it over but attaches. */
static void session_forget_agent(struct target *t, struct fault *why)
{
	if (!t->priv->taken_over)
		return;
	secrets_forget(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
	why->flags |= FAULT_RETRY_SOON;
}

static void session_feed(struct target *t, const uint8_t *buf, size_t len)
{
	struct fault f = { 0 };

	stream_hold_back(t->stream, decoding_is_held(t));
	if (stream_feed(t->stream, buf, len, &f) < 0) {
		if (f.code == EPERM) /* not our agent: the next attempt attaches */
			secrets_forget(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
		else if (f.code == EPROTONOSUPPORT)
			session_forget_agent(t, &f);
		session_fail(t, &f);
	} else if (t->priv->got_bye) {
		fault_set(&f, ESHUTDOWN, FAULT_AGENT, "the agent has ended");
		session_fail(t, &f);
	}
}

static void session_on_late(struct target *t)
{
	struct fault f = { .flags = FAULT_RETRY_SOON }; /* the agent sleeps until a command comes */

	fault_set(&f, ETIMEDOUT, FAULT_STREAM,
		  "the daemon did not read for so long that the agent paused itself");
	session_fail(t, &f);
}

void session_stuck(struct target *t)
{
	struct fault f = { 0 };

	TARGET_LOG(WARNING, t, "target.stuck", "pid=%d", t->jvm.pid);
	fault_set(&f, ETIMEDOUT, FAULT_STREAM,
		  "its pipe does not answer: a read of it has not ended");
	session_fail(t, &f);
}

static void session_on_closed(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	fault_set(&f, EPIPE, FAULT_AGENT, "the agent closed its pipe");
	session_fail(t, &f);
}

/* The receiver has ended, because no process has the pipe open for writing any more, and all of it
 * has been read. Usually the JVM is ending, which its pidfd reports in a moment. */
static void session_on_end(struct target *t)
{
	struct target_priv *p = t->priv;

	if (p->ending) {
		target_end(t);
		return;
	}
	p->socket_source = loop_source_free(p->socket_source);
	p->timer = loop_timer_free(p->timer);
	(void)loop_timer_add(p->table->loop, CLOSED_GRACE_NS, 0, session_on_closed, t, &p->timer);
}

static void session_on_unwritten(struct target *t)
{
	if (t->state == TARGET_DRAINING && !t->priv->ending)
		session_finish_detach(t, NULL);
	else
		TARGET_LOG(WARNING, t, "target.control", "pid=%d error=\"the agent does not read\"",
			   t->jvm.pid);
}

static void session_read_message(struct target *t, size_t *ret_len)
{
	static uint8_t buf[RECEIVE_BYTES];
	size_t len = 0;
	int what = receiver_read(t, buf, sizeof(buf), &len);

	*ret_len = len;
	switch (what) {
	case RECEIVE_DATA:
		gathering_on_message(t);
		session_feed(t, buf, len);
		return;
	case RECEIVE_LATE:
		session_on_late(t);
		return;
	case RECEIVE_UNWRITTEN:
		session_on_unwritten(t);
		return;
	case RECEIVE_ANSWER:
		if (t->priv->ending)
			target_end(t);
		return;
	case -EPIPE:
		session_on_end(t);
		return;
	default:
		return;
	}
}

static void session_on_message(void *userdata, uint32_t events)
{
	struct target *t = userdata;
	const struct targets *table = t->priv->table;
	uint64_t begin_ns;
	size_t len;

	(void)events;
	if (table->ops.on_message)
		table->ops.on_message(table->userdata);
	begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	session_read_message(t, &len);
	decoding_pay(t, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns, len);
}

static void session_on_ending_late(void *userdata)
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
	decoding_drain(t);
	receiver_ask(t);
	return loop_timer_add(p->table->loop, ENDING_NS, 0, session_on_ending_late, t, &p->timer) ==
	       0;
}

static void session_on_no_hello(void *userdata)
{
	struct target *t = userdata;
	struct fault f = { 0 };

	fault_set(&f, ETIMEDOUT, FAULT_HELLO, "the agent did not answer START within 5 s");
	session_forget_agent(t, &f); /* an agent that was there may not understand START */
	session_break(t, &f);
}

void session_open(struct target *t)
{
	struct target_priv *p = t->priv;

	p->session_mono_ns = clock_mono_ns();
	p->facts.has_agent = true;
	p->got_bye = false;
	p->taken_over = false;
	decoding_begin(t);
	p->socket_source = loop_source_free(p->socket_source);
	if (stream_new(&p->table->stream_ops, t, &t->stream) < 0 ||
	    loop_add(p->table->loop, p->socket_fd, EPOLLIN, session_on_message, t,
		     &p->socket_source) < 0)
		log_err("target.session", "pid=%d error=\"out of memory\"", t->jvm.pid);
	if (t->stream)
		stream_expect(t->stream, p->secret);
	(void)loop_timer_add(p->table->loop, HELLO_DEADLINE_NS, 0, session_on_no_hello, t,
			     &p->timer);
	other_profilers_watch(t);
}

void target_give_up(struct target *t, const struct fault *why)
{
	if (t->stream)
		session_fail(t, why);
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

static void session_on_no_bye(void *userdata)
{
	struct fault f = { 0 };

	fault_set(&f, ETIMEDOUT, FAULT_AGENT, "the agent did not answer DETACH within 5 s");
	session_finish_detach(userdata, &f);
}

static void session_send_detach(struct target *t)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_writer w;
	uint32_t len;

	wire_begin(&w, frame, WIRE_DETACH);
	len = wire_end(&w, 1);
	target_set_state(t, TARGET_DRAINING, NULL);
	decoding_detach(t);
	t->priv->timer = loop_timer_free(t->priv->timer);
	(void)loop_timer_add(t->priv->table->loop, DRAIN_DEADLINE_NS, 0, session_on_no_bye, t,
			     &t->priv->timer);
	if (receiver_write(t, frame, len) < 0)
		session_finish_detach(t, NULL);
}

void target_leave(struct target *t, enum target_state to, const struct fault *why)
{
	t->priv->leave_to = to;
	t->priv->leave_why = why ? *why : (struct fault){ 0 };
	if (t->priv->ending || t->priv->looking)
		t->priv->leave = true; /* once the process has ended, or was examined */
	else if (t->state == to)
		t->fault = t->priv->leave_why;
	else if (t->state == TARGET_EXCLUDED || t->state == TARGET_DETACHED)
		target_set_state(t, to, &t->priv->leave_why);
	else if (t->state == TARGET_FOUND || t->state == TARGET_FAILED)
		session_leave_idle(t);
	if (t->state == TARGET_STREAMING && !t->priv->ending)
		session_send_detach(t);
	else if (t->state == TARGET_INJECTING)
		t->priv->leave = true; /* an attempt cannot be undone halfway, and ends soon */
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
