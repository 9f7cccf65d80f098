/* The functions that a target's stream calls, for what the target itself keeps. Samples, waits and
 * other events go straight to the next room: targets_ops.stream. */
#include "daemon/target/target_priv.h"

#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/utf8.h"

#define AGENT_LINES_BURST 10 /* lines of the log with texts that the agent sent */
#define AGENT_LINES_PER_S 1

static void session_calls_copy(char *dst, size_t size, struct wire_str s)
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

	session_calls_copy(vendor, sizeof(vendor), h->jvm_vendor);
	session_calls_copy(version, sizeof(version), h->jvm_version);
	snprintf(t->jdk, sizeof(t->jdk), "%.60s %.90s", vendor, version);
	session_calls_copy(t->engine, sizeof(t->engine), h->engine);
	session_calls_copy(t->walker, sizeof(t->walker), h->walker);
	session_calls_copy(t->note, sizeof(t->note), h->note);
	/* read from the host's clocks, so that a time sent by the container need not be trusted */
	t->real_minus_mono_ns = (int64_t)(clock_real_ns() - clock_mono_ns());
	t->priv->timer = loop_timer_free(t->priv->timer);
	if (table->ops.on_hello)
		table->ops.on_hello(table->userdata, t);
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

static const char *session_calls_log_name(const struct target *t)
{
	static char name[24];

	snprintf(name, sizeof(name), "pid=%d", t->jvm.pid);
	return name;
}

/* May a text of the agent be logged, or were there too many? */
static bool session_calls_may_log(struct target *t)
{
	t->priv->words.burst = AGENT_LINES_BURST;
	t->priv->words.per_s = AGENT_LINES_PER_S;
	return log_allowed(&t->priv->words, session_calls_log_name(t));
}

/* Keeps the last note on each step; "" removes it. There is room for all steps that our agent
 * has. */
static void on_note(void *userdata, const char *step, const char *what)
{
	struct target *t = userdata;
	struct target_note *at = NULL, note;

	if (log_wanted(LOG_LEVEL_DEBUG) && session_calls_may_log(t))
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

void session_log_end(struct target *t)
{
	log_limit_end(&t->priv->words, session_calls_log_name(t));
}

void session_report_ledger(struct target *t)
{
	struct stream_counts c;

	target_counts(t, &c);
	recent_add(&t->recent, clock_mono_ns(), c.ledger.counter[WIRE_COUNTER_AGENT_CPU_NS]);
	if (t->priv->table->ops.on_ledger)
		t->priv->table->ops.on_ledger(t->priv->table->userdata, t);
}

static void on_ledger(void *userdata)
{
	struct target *t = userdata;

	/* what kept the agent from collecting anything is over */
	if (t->state == TARGET_STREAMING && target_events(t))
		t->fault = (struct fault){ 0 };
	session_report_ledger(t);
}

static void on_fault(void *userdata, const struct fault *f)
{
	struct target *t = userdata;

	if (session_calls_may_log(t))
		log_warn("target.agent_fault", "pid=%d what=%s", t->jvm.pid, log_str(f->what));
	t->fault = *f;
}

static void on_bye(void *userdata, const struct fault *why)
{
	struct target *t = userdata;

	if (log_wanted(LOG_LEVEL_DEBUG) && session_calls_may_log(t))
		log_debug("target.bye", "pid=%d what=%s", t->jvm.pid, log_str(why->what));
	/* the session ends after stream_feed() returns: the stream must not be freed in here */
	t->priv->got_bye = true;
}

void session_report_reset(struct target *t)
{
	if (t->priv->table->ops.on_reset)
		t->priv->table->ops.on_reset(t->priv->table->userdata, t);
}

static void on_reset(void *userdata)
{
	session_report_reset(userdata);
}

void session_stream_ops(const struct targets_ops *ops, struct stream_ops *ret)
{
	*ret = ops->stream;
	ret->limits = possible_limits;
	ret->on_hello = on_hello;
	ret->on_sample = on_sample;
	ret->on_note = on_note;
	ret->on_ledger = on_ledger;
	ret->on_fault = on_fault;
	ret->on_bye = on_bye;
	ret->on_reset = on_reset;
}
