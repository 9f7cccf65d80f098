/*
 * A task of one JVM: waits until the history has the time that was asked for, and uploads it as
 * JFR. What is larger than the OAP takes goes in pieces of less time, down to one window.
 */
#include "daemon/upload/skywalking_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/clock.h"
#include "daemon/core/log.h"
#include "daemon/report/report.h"
#include "daemon/upload/source.h"
#include "daemon/upload/upload.h"

#define WINDOW_NS   (10 * NS_PER_S)
#define CONTENT_MAX (30u << 20) /* what an OAP takes by itself, its jfrMaxSize */
#define TRIES_MAX   5
#define RUNS_MAX    8 /* of a JVM */
#define LATE_NS	    (120 * NS_PER_S) /* the history does not come */
#define COLLECT	    "/skywalking.v10.AsyncProfilerTask/collect"

struct skywalking_run {
	struct skywalking_run *next;
	struct skywalking_jvm *jvm;
	struct skywalking_task task;
	uint64_t begin_ns, end_ns; /* whole windows */
	uint64_t at_ns, span_ns; /* the piece that is being uploaded */
	char *content; /* of it */
	size_t len, sent;
	uint64_t samples, all_samples;
	struct grpc_call *call;
	struct grpc_server server;
	enum skywalking_verdict verdict;
	bool answered, has_failed; /* the failure is being reported */
	unsigned tries;
	uint64_t try_mono_ns;
};

static void run_free(struct skywalking_run *r)
{
	grpc_call_free(r->call);
	free(r->content);
	free(r);
}

static void run_over(struct skywalking_run *r)
{
	struct skywalking_run **at = &r->jvm->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	run_free(r);
}

static void run_fail(struct skywalking_run *r, const char *why);
static void run_on_room(void *userdata);

/* ---- the upload ------------------------------------------------------------------------------ */

static void run_book(struct skywalking_run *r, enum sink_verdict v)
{
	sink_book(r->jvm->of->sink, r->samples, v);
	r->samples = 0;
	free(r->content);
	r->content = NULL;
}

/* Twice as fine; false = it cannot be. */
static bool run_split(struct skywalking_run *r)
{
	if (r->span_ns <= WINDOW_NS)
		return false;
	r->span_ns = r->span_ns / WINDOW_NS / 2 * WINDOW_NS;
	free(r->content);
	r->content = NULL;
	r->tries = 0;
	return true;
}

static void run_too_large(struct skywalking_run *r)
{
	char why[SINK_TEXT_MAX];

	if (run_split(r))
		return;
	snprintf(why, sizeof(why), "10 s of the JVM are %zu bytes of JFR, more than the OAP takes",
		 r->len);
	run_book(r, SINK_TOO_LARGE);
	run_fail(r, why);
}

static void run_on_message(void *userdata, const void *message, size_t len)
{
	struct skywalking_run *r = userdata;

	if (r->answered || r->has_failed)
		return;
	r->answered = true;
	if (skywalking_answer(message, len, &r->verdict) < 0)
		r->verdict = SKYWALKING_FAILED;
	if (r->verdict != SKYWALKING_GO)
		grpc_call_end(r->call);
	else
		run_on_room(r);
}

static void run_on_room(void *userdata)
{
	struct skywalking_run *r = userdata;
	size_t len = r->len - r->sent, bytes = 0;
	uint8_t *m;

	if (!r->answered)
		return; /* metadata is on its way */
	len = len < SKYWALKING_CHUNK ? len : SKYWALKING_CHUNK;
	m = len ? skywalking_content(r->content + r->sent, len, &bytes) : NULL;
	if (m && grpc_call_send(r->call, m, bytes) == 0)
		r->sent += len;
	free(m);
	if (r->sent == r->len || !m)
		grpc_call_end(r->call);
}

/* The piece is there, or never will be. */
static void run_next(struct skywalking_run *r, enum sink_verdict v)
{
	run_book(r, v);
	r->tries = 0;
	r->at_ns += r->span_ns;
	if (r->at_ns >= r->end_ns)
		run_over(r);
}

static void run_on_end(void *userdata, const struct grpc_end *end)
{
	struct skywalking_run *r = userdata;
	char why[SINK_TEXT_MAX];

	r->call = grpc_call_free(r->call);
	if (r->has_failed) {
		run_over(r);
	} else if (r->answered && r->verdict == SKYWALKING_OVERSIZE) {
		run_too_large(r);
	} else if (end->status == GRPC_OK && r->sent == r->len) {
		run_next(r, SINK_CONFIRMED);
	} else {
		snprintf(why, sizeof(why), "upload of task %s: %s (gRPC status %d)", r->task.id,
			 end->text[0] ? end->text : "refused", (int)end->status);
		skywalking_say(r->jvm->of, why);
		if (r->sent) /* it may be there: a second time it would count twice */
			run_next(r, SINK_UNKNOWN);
		else if (++r->tries == TRIES_MAX)
			run_next(r, SINK_REFUSED);
		else
			r->try_mono_ns = clock_mono_ns() + (NS_PER_S << r->tries);
	}
}

static const struct grpc_handler run_handler = { run_on_message, run_on_room, run_on_end };

/* Begins a call with metadata. 0 or -ENOMEM. */
static int run_call(struct skywalking_run *r, const char *error)
{
	struct skywalking_jvm *j = r->jvm;
	CLEANUP(freep) uint8_t *m = NULL;
	size_t len = 0;

	r->answered = false;
	r->sent = 0;
	m = skywalking_meta(&j->id, r->task.id, r->len, error, &len);
	if (!m || grpc_call_new(j->of->multi, &r->server, COLLECT, &run_handler, r, &r->call) < 0)
		return -ENOMEM;
	if (grpc_call_send(r->call, m, len) < 0) {
		r->call = grpc_call_free(r->call);
		return -ENOMEM;
	}
	if (error) /* nobody answers that */
		grpc_call_end(r->call);
	return 0;
}

/* The OAP is told, once; @r may be gone. */
static void run_fail(struct skywalking_run *r, const char *why)
{
	log_warn("sink.task", "sink=%s task=%s pid=%u error=%s", r->jvm->of->sink->config->name,
		 log_str(r->task.id), r->jvm->pid, log_str(why));
	r->has_failed = true;
	if (run_call(r, why) < 0)
		run_over(r);
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* The JFR of the piece. 0; 1: there is nothing; -errno. */
static int run_make(struct skywalking_run *r)
{
	const struct source_process who = { r->jvm->pid, r->jvm->start_time };
	const struct sink *s = r->jvm->of->sink;
	struct report_options options = { .threads = s->config->threads };
	CLEANUP(profile_freep) struct profile *p = NULL;
	uint64_t to = r->at_ns + r->span_ns;
	int e;

	e = source_profile(s->upload->source, r->at_ns, to < r->end_ns ? to : r->end_ns, &who,
			   r->task.events, &p);
	if (e < 0)
		return e;
	options.events = profile_events(p) & r->task.events;
	if (!options.events || profile_samples(p) == 0)
		return 1;
	e = report_write(p, REPORT_JFR, &options, &r->content, &r->len);
	if (e == 0) {
		r->samples = report_samples(p, &options);
		r->all_samples += r->samples;
	}
	return e;
}

/* @r may be gone. */
static void run_upload(struct skywalking_run *r)
{
	int e = r->content ? 0 : run_make(r);

	if (e == 1) {
		r->at_ns += r->span_ns;
		if (r->at_ns < r->end_ns)
			return;
		if (r->all_samples == 0)
			run_fail(
				r,
				"there were no samples of these events: the JVM was idle, or kindling does not collect them");
		else
			run_over(r);
	} else if (e < 0) {
		run_fail(r, strerror(-e));
	} else if (r->len > CONTENT_MAX) {
		r->all_samples -= r->samples;
		run_too_large(r);
	} else if (run_call(r, NULL) < 0) {
		r->try_mono_ns = clock_mono_ns() + NS_PER_S;
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void run_tick(struct skywalking_run *r)
{
	uint64_t settled = skywalking_settled_ns(r->jvm->of);

	if (r->call || clock_mono_ns() < r->try_mono_ns)
		return;
	if (settled >= r->end_ns)
		run_upload(r);
	else if (clock_real_ns() > r->end_ns + LATE_NS)
		run_fail(r, "kindlingd's history does not have the time of the task");
}

void skywalking_runs_tick(struct skywalking_jvm *j)
{
	struct skywalking_run *r = j->runs, *next;

	for (; r; r = next) {
		next = r->next;
		run_tick(r);
	}
}

static unsigned run_count(const struct skywalking_jvm *j)
{
	unsigned n = 0;

	for (const struct skywalking_run *r = j->runs; r; r = r->next)
		n++;
	return n;
}

void skywalking_run_new(struct skywalking_jvm *j, const struct skywalking_task *t)
{
	struct skywalking_run *r = calloc(1, sizeof(*r));
	const struct sink *s = j->of->sink;
	char why[200];

	if (!r)
		return;
	r->jvm = j;
	r->task = *t;
	r->server = j->of->server;
	r->server.deadline_ns = 5 * s->config->timeout_ns; /* the content needs its time */
	r->begin_ns = (clock_real_ns() + WINDOW_NS - 1) / WINDOW_NS * WINDOW_NS;
	r->span_ns = (t->seconds * NS_PER_S + WINDOW_NS - 1) / WINDOW_NS * WINDOW_NS;
	r->end_ns = r->begin_ns + r->span_ns;
	r->at_ns = r->begin_ns;
	if (s->events)
		r->task.events &= s->events;
	r->next = j->runs;
	j->runs = r;
	if (run_count(j) > RUNS_MAX)
		run_over(r); /* an OAP has one task of a service at a time */
	else if (t->why[0])
		run_fail(r, t->why);
	else if (!r->task.events)
		run_fail(r, "the sink's `events` has none of the task's");
	else if (!report_takes(REPORT_JFR, r->task.events, why, sizeof(why)))
		run_fail(r, why);
	else
		log_info("sink.task", "sink=%s task=%s pid=%u seconds=%u", s->config->name,
			 log_str(t->id), j->pid, t->seconds);
}

void skywalking_runs_free(struct skywalking_jvm *j)
{
	while (j->runs)
		run_over(j->runs);
}
