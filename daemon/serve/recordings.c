/* /v1/recordings: a profile of one JVM for a limited time, at an interval of its own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/value.h"
#include "daemon/host/recording.h"
#include "daemon/serve/serve_priv.h"

#define KEEP_NS (300 * NS_PER_S)
#define LOOK_NS (200 * NS_PER_MS)

struct recording_entry {
	struct recording_entry *next;
	struct serve *serve;
	uint64_t id, begin_mono_ns, length_ns;
	uint32_t pid;
	uint64_t start_time; /* together with the pid it identifies the JVM */
	uid_t uid; /* who started it */
	uint64_t interval_ns; /* between CPU samples; 0 = unchanged */
	uint64_t elapsed_ns; /* set at its end */
	char reason[200]; /* why it ended early; "" = it did not */
	char notes[400]; /* set at its end: which events were not collected, and why */
	struct recording *recording;
	bool done;
	unsigned events; /* bits 1 << enum wire_event */
	struct loop_timer *timer; /* ends it, later deletes it */
	struct loop_timer *look; /* looks whether the JVM still streams */
};

static void recordings_forget(struct recording_entry *e)
{
	struct recording_entry **link;

	for (link = &e->serve->recordings; *link && *link != e; link = &(*link)->next)
		;
	if (*link)
		*link = e->next;
	loop_timer_free(e->timer);
	loop_timer_free(e->look);
	recording_free(e->recording);
	free(e);
}

void recordings_free(struct serve *s)
{
	while (s->recordings)
		recordings_forget(s->recordings);
}

static void on_kept(void *userdata)
{
	recordings_forget(userdata);
}

static uint64_t elapsed_of(const struct recording_entry *e)
{
	uint64_t elapsed = clock_mono_ns() - e->begin_mono_ns;

	return e->done ? e->elapsed_ns : elapsed < e->length_ns ? elapsed : e->length_ns;
}

static void recordings_finish(struct recording_entry *e)
{
	e->elapsed_ns = elapsed_of(e);
	(void)recording_notes(e->recording, e->notes, sizeof(e->notes));
	recording_end(e->recording);
	e->done = true;
	e->timer = loop_timer_free(e->timer);
	e->look = loop_timer_free(e->look);
	(void)loop_timer_add(e->serve->loop, KEEP_NS, 0, on_kept, e, &e->timer);
}

static void recordings_on_end(void *userdata)
{
	recordings_finish(userdata);
}

static void recordings_on_look(void *userdata)
{
	struct recording_entry *e = userdata;

	if (!recording_runs(e->recording, e->reason, sizeof(e->reason)))
		recordings_finish(e);
}

/* Parses the request. false: the error has been answered. */
static bool recordings_wanted(struct request *r, struct recording_options *ret,
			      uint64_t *ret_length_ns)
{
	const char *seconds = argument(r, "seconds"), *interval = argument(r, "interval");
	const char *types = argument(r, "type"), *thread = argument(r, "thread");
	const char *min_wait = argument(r, "min_wait");

	*ret = (struct recording_options){ .events = 1u << WIRE_EVENT_CPU,
					   .thread = thread,
					   .trace_ids = argument_is_set(r, "trace_ids") };
	if (!seconds || !parse_duration(seconds, ret_length_ns) ||
	    *ret_length_ns > 24 * 3600 * NS_PER_S)
		(void)answer_error(r, 400,
				   "the length must be a duration of at most 24h, such as 30s");
	else if (interval && value_is_bare(interval))
		(void)answer_error(
			r, 400,
			"the interval must be from 100us to 1s; %.20s has no unit: %.20sms?",
			interval, interval);
	else if (interval && (!parse_duration(interval, &ret->interval_ns) ||
			      ret->interval_ns < NS_PER_MS / 10 || ret->interval_ns > NS_PER_S))
		(void)answer_error(r, 400, "the interval must be from 100us to 1s");
	else if (min_wait &&
		 (value_is_bare(min_wait) || !parse_duration(min_wait, &ret->lock_min_ns) ||
		  ret->lock_min_ns < RECORDING_MIN_WAIT_LEAST ||
		  ret->lock_min_ns > RECORDING_MIN_WAIT_MOST))
		(void)answer_error(r, 400, "the shortest wait must be from 1us to 1m, such as 5ms");
	else if (types && !report_events_by_name(types, &ret->events))
		(void)answer_error(
			r, 400,
			"the types must be among cpu, lock, alloc, wall and offcpu, not \"%s\"",
			types);
	else if (thread && strlen(thread) >= RECORDING_THREAD_MAX)
		(void)answer_error(r, 400, "the part of thread names is longer than %d bytes",
				   RECORDING_THREAD_MAX - 1);
	else
		return true;
	return false;
}

static enum MHD_Result answer_created(struct request *r, const struct recording_entry *e,
				      const struct target *t)
{
	struct text_out json = { 0 };

	json_begin_object(&json, NULL);
	json_add_u64(&json, "id", e->id);
	json_add_i64(&json, "pid", t->jvm.pid);
	json_add_string(&json, "name", t->jvm.name);
	json_end_object(&json);
	return answer_json(r, 201, &json);
}

/* Refuses the request, with the uid that records this JVM now and how long that still takes. */
static enum MHD_Result answer_busy(struct request *r, const struct target *t)
{
	const struct recording_entry *e = r->serve->recordings;
	char until[16] = "", what[64], interval[32], at[48] = "";
	uint64_t left_ns;
	struct tm tm;
	time_t end;

	while (e &&
	       !(!e->done && e->pid == (uint32_t)t->jvm.pid && e->start_time == t->jvm.start_time))
		e = e->next;
	if (!e)
		return answer_error(r, 409, "process %d is already being recorded", t->jvm.pid);
	left_ns = e->length_ns - elapsed_of(e);
	end = time(NULL) + (time_t)((left_ns + NS_PER_S - 1) / NS_PER_S);
	strftime(until, sizeof(until), "%H:%M:%S", localtime_r(&end, &tm));
	if (e->interval_ns)
		snprintf(at, sizeof(at), " at %s", value_duration_text(e->interval_ns, interval));
	return answer_error(
		r, 409,
		"process %d is being recorded by uid %u until %s, %llu s more (%s%s); one "
		"recording of a JVM at a time. The history goes on meanwhile: kindling report %d",
		t->jvm.pid, e->uid, until,
		(unsigned long long)((left_ns + NS_PER_S - 1) / NS_PER_S),
		report_events_list(e->events, what, sizeof(what)), at, t->jvm.pid);
}

static enum MHD_Result answer_forbidden(struct request *r, const struct target *t)
{
	char note[200], what[64];

	(void)target_owners_note(t, note, sizeof(note));
	return answer_error(r, 403, "the owner of process %d allows only %s (%s)", t->jvm.pid,
			    report_events_list(target_allowed_events(t), what, sizeof(what)), note);
}

static enum MHD_Result recordings_begin(struct request *r, struct target *t,
					const struct recording_options *options, uint64_t length_ns)
{
	struct recording_entry *e = calloc(1, sizeof(*e));
	int error;

	if (!e)
		return MHD_NO;
	error = recording_new(r->serve->host, t, options, &e->recording);
	if (error < 0) {
		free(e);
		if (error == -EBUSY)
			return answer_busy(r, t);
		if (error == -EACCES)
			return answer_forbidden(r, t);
		return answer_error(r, 409, "process %d cannot be recorded now: %s", t->jvm.pid,
				    strerror(-error));
	}
	e->serve = r->serve;
	e->events = options->events;
	e->pid = (uint32_t)t->jvm.pid;
	e->start_time = t->jvm.start_time;
	e->uid = uid_of(r);
	e->interval_ns = options->interval_ns;
	e->id = ++r->serve->next_recording;
	e->begin_mono_ns = clock_mono_ns();
	e->length_ns = length_ns;
	e->next = r->serve->recordings;
	r->serve->recordings = e;
	(void)loop_timer_add(r->serve->loop, length_ns, 0, recordings_on_end, e, &e->timer);
	(void)loop_timer_add(r->serve->loop, LOOK_NS, LOOK_NS, recordings_on_look, e, &e->look);
	return answer_created(r, e, t);
}

static enum MHD_Result recordings_create(struct request *r)
{
	struct recording_entry *oldest_done = NULL;
	struct recording_options options;
	uint64_t length_ns;
	unsigned count = 0;
	struct target *t;

	if (!recordings_wanted(r, &options, &length_ns))
		return MHD_YES;
	t = api_one_target(r, argument(r, "target"));
	if (!t)
		return MHD_YES;
	if (t->state != TARGET_STREAMING)
		return answer_error(r, 409, "process %d is %s%s%s", t->jvm.pid,
				    target_state_names[t->state], t->fault.code ? ": " : "",
				    t->fault.code ? t->fault.what : "");
	for (struct recording_entry *e = r->serve->recordings; e; e = e->next) {
		count++;
		oldest_done = e->done ? e : oldest_done;
	}
	if (count >= RECORDINGS_MAX && !oldest_done)
		return answer_error(r, 503, "there are %u recordings already; end or wait for one",
				    count);
	if (count >= RECORDINGS_MAX) /* the oldest one that has ended makes room */
		recordings_forget(oldest_done);
	return recordings_begin(r, t, &options, length_ns);
}

static enum MHD_Result recordings_progress(struct request *r, const struct recording_entry *e)
{
	struct text_out json = { 0 };

	json_begin_object(&json, NULL);
	json_add_string(&json, "state", e->done ? "done" : "recording");
	json_add_double(&json, "elapsed_s", (double)elapsed_of(e) / 1e9);
	json_add_u64(&json, "samples", recording_samples(e->recording));
	if (e->reason[0])
		json_add_string(&json, "reason", e->reason);
	if (e->notes[0])
		json_add_string(&json, "notes", e->notes);
	json_end_object(&json);
	return answer_json(r, 200, &json);
}

static enum MHD_Result recordings_result(struct request *r, const struct recording_entry *e)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct report_options options;
	enum report_format format;
	char recorded[64];

	if (!e->done)
		return answer_error(r, 409, "the recording is still running");
	if (!is_apart(r))
		return answer_apart(r, APART_HISTORY);
	if (!api_report(r, e->events, &format, &options))
		return MHD_YES;
	if (options.events & ~e->events)
		return answer_error(r, 400, "the recording has only %s",
				    report_events_list(e->events, recorded, sizeof(recorded)));
	if (recording_profile(e->recording, &p) < 0)
		return answer_error(r, 503, "no memory");
	return api_answer_profile(r, p, format, &options);
}

/* The client that fetched a recording deletes it; otherwise it is kept for KEEP_NS. */
static enum MHD_Result recordings_discard(struct request *r, struct recording_entry *e)
{
	struct text_out json = { 0 };

	if (!e->done)
		return answer_error(r, 409, "the recording is still running");
	recordings_forget(e);
	json_begin_object(&json, NULL);
	json_add_string(&json, "state", "gone");
	json_end_object(&json);
	return answer_json(r, 200, &json);
}

enum MHD_Result serve_recordings(struct request *r, const char *method, const char *rest)
{
	struct recording_entry *e;
	unsigned long long id;
	char *end;

	if (rest[0] == '\0' || rest[1] == '\0')
		return strcmp(method, "POST") == 0
			       ? recordings_create(r)
			       : answer_error(r, 405, "POST /v1/recordings starts a recording");
	id = strtoull(rest + 1, &end, 10);
	for (e = r->serve->recordings; e && e->id != id; e = e->next)
		;
	if (!e)
		return answer_error(r, 404, "there is no recording %s", rest + 1);
	if (strcmp(method, "DELETE") == 0 && *end == '\0') {
		if (!e->done) {
			snprintf(e->reason, sizeof(e->reason), "the recording was ended early");
			recordings_finish(e);
		}
		return recordings_progress(r, e);
	}
	if (strcmp(method, "DELETE") == 0 && strcmp(end, "/profile") == 0)
		return recordings_discard(r, e);
	if (strcmp(method, "GET") != 0)
		return answer_error(r, 405, "a recording allows only GET and DELETE");
	if (strcmp(end, "/profile") == 0)
		return recordings_result(r, e);
	return *end ? answer_error(r, 404, "a recording has no %s", end)
		    : recordings_progress(r, e);
}
