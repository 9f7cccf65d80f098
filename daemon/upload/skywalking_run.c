/*
 * A task of one JVM. Every second it asks kindlingd for the recording until there is a profile,
 * which it puts into the sink's spool, or reports to the OAP why there is none. Each step is on
 * disk before the next one is started.
 */
#include "daemon/upload/skywalking_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/ground/utf8.h"
#include "daemon/upload/upload.h"
#include "daemon/upload/upload_message.h"

#define RUNS_MAX     512 /* ended ones included */
#define BUSY_NS	     (60 * NS_PER_S) /* longest wait for another user's recording */
#define LATE_NS	     (60 * NS_PER_S) /* longest wait for an answer after the end */
#define TELL_NS	     (1200 * NS_PER_S) /* how long reports are repeated without an answer */
#define REMEMBER_NS  (3600 * NS_PER_S) /* how long ended tasks are remembered */
#define TELL_WAIT_NS (60 * NS_PER_S) /* the longest pause between two attempts */
#define COLLECT	     "/skywalking.v10.AsyncProfilerTask/collect"

struct skywalking_run {
	struct skywalking_run *next;
	struct skywalking *of;
	struct skywalking_saved saved;
	struct grpc_call *call; /* the report to the OAP that is in progress */
	unsigned tries;
	uint64_t try_mono_ns;
};

static void run_free(struct skywalking_run *r)
{
	struct skywalking_run **at = &r->of->runs;

	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	r->of->n_runs--;
	grpc_call_free(r->call);
	free(r);
}

static uint64_t run_length_ns(const struct skywalking_run *r)
{
	return r->saved.task.seconds * NS_PER_S;
}

static uint64_t run_age_ns(const struct skywalking_run *r)
{
	uint64_t now = clock_real_ns();

	return now > r->saved.begin_real_ns ? now - r->saved.begin_real_ns : 0;
}

static void run_step(struct skywalking_run *r, enum skywalking_step step)
{
	int e;

	r->saved.step = step;
	e = skywalking_save(r->of->sink->dfd, &r->saved);
	if (e < 0)
		log_err("sink.task", "sink=%s error=%s", r->of->sink->config->name,
			log_str(strerror(-e)));
}

/* ---- requests to kindlingd ------------------------------------------------------------------- */

static void run_ask(const struct skywalking_run *r, enum upload_wish wish)
{
	const struct skywalking_task *t = &r->saved.task;
	struct upload_record ask = { .pid = r->saved.pid,
				     .key = r->saved.key,
				     .start_time = r->saved.start_time,
				     .length_ns = run_length_ns(r),
				     .interval_ns = t->interval_ns,
				     .lock_min_ns = t->lock_min_ns,
				     .alloc_interval = t->alloc_interval,
				     .wall_interval_ns = t->wall_interval_ns,
				     .events = t->events,
				     .wish = wish };

	sink_record(r->of->sink, &ask);
}

static void run_fail(struct skywalking_run *r, const char *why)
{
	log_warn("sink.task", "sink=%s task=%s pid=%u error=%s", r->of->sink->config->name,
		 log_str(r->saved.task.id), r->saved.pid, log_str(why));
	run_ask(r, UPLOAD_WISH_FORGET);
	utf8_copy(r->saved.why, sizeof(r->saved.why), why, strlen(why));
	r->tries = 0;
	run_step(r, SKYWALKING_TELLS);
}

void skywalking_run_failed(struct skywalking *w, uint64_t key, const char *why)
{
	for (struct skywalking_run *r = w->runs; r; r = r->next)
		if (r->saved.key == key) {
			run_fail(r, why);
			return;
		}
}

/* The profile is in the spool. */
static void run_taken(struct skywalking_run *r)
{
	run_ask(r, UPLOAD_WISH_FORGET);
	/* reports to the OAP if a part of what the task asked for is missing */
	run_step(r, r->saved.why[0] ? SKYWALKING_TELLS : SKYWALKING_OVER);
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* Reads the profile that kindlingd wrote into malloc'ed memory. 0 or -errno. */
static int run_read(int fd, uint8_t **ret, size_t *ret_len)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -EBADF;
	if (!S_ISREG(st.st_mode) || st.st_size > SPOOL_BODY_MAX)
		return -EFBIG;
	bytes = malloc((size_t)st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	if (pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	*ret = TAKE_PTR(bytes);
	*ret_len = (size_t)st.st_size;
	return 0;
}

static int run_spool(struct skywalking_run *r, const struct upload_recorded *a, int fd)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct sink *s = r->of->sink;
	struct sink_interval in = { .begin_real_ns = a->begin_real_ns,
				    .end_real_ns = a->end_real_ns,
				    .node = s->upload->config->node };
	char key[480];
	size_t len = 0;
	int e = run_read(fd, &bytes, &len);

	if (e == 0)
		e = profile_decode(bytes, len, &p);
	if (e < 0)
		return e;
	if (p->n_processes == 0)
		return -EBADMSG;
	in.profile = p;
	in.process = &p->processes[0];
	skywalking_spool_key(&r->saved, key, sizeof(key));
	return sink_put_now(s, &in, key, "", bytes, len, profile_samples(p));
}

/* Adds a sentence about what the task wanted and the profile does not have. */
static void run_note(struct skywalking_run *r, const char *text)
{
	const unsigned both = 1u << WIRE_EVENT_CPU | 1u << WIRE_EVENT_WALL;

	if (!*text && (r->saved.task.events & both) == both)
		text = "the profile leaves out CPU time, because an OAP would add it to "
		       "wall-clock time";
	utf8_copy(r->saved.why, sizeof(r->saved.why), text, strlen(text));
}

static void run_take(struct skywalking_run *r, const struct upload_recorded *a, int fd)
{
	char why[SINK_TEXT_MAX];
	int e;

	if (a->samples == 0) {
		run_fail(r, a->text[0] ? a->text
				       : "there were no samples of these events: the JVM was idle");
		return;
	}
	run_note(r, a->text);
	r->saved.seq = r->of->sink->ledger.next_seq;
	run_step(r, SKYWALKING_TAKES);
	e = run_spool(r, a, fd);
	if (e == 0) {
		run_taken(r);
		return;
	}
	snprintf(why, sizeof(why), "the profile could not be kept: %s", strerror(-e));
	run_fail(r, why);
}

static void run_recorded(struct skywalking_run *r, const struct upload_recorded *a, int fd)
{
	if (r->saved.step != SKYWALKING_NEW && r->saved.step != SKYWALKING_RECORDS)
		return;
	switch (a->state) {
	case UPLOAD_RECORDED_RUNS:
		if (r->saved.step == SKYWALKING_NEW)
			run_step(r, SKYWALKING_RECORDS);
		break;
	case UPLOAD_RECORDED_DONE:
		run_take(r, a, fd);
		break;
	case UPLOAD_RECORDED_BUSY:
		if (run_age_ns(r) > BUSY_NS)
			run_fail(r, a->text);
		break;
	case UPLOAD_RECORDED_FAILED:
		run_fail(r, a->text);
		break;
	default:
		run_fail(r, "kindlingd was restarted while the task ran");
	}
}

void skywalking_runs_recorded(struct skywalking *w, const struct upload_recorded *a, int fd)
{
	for (struct skywalking_run *r = w->runs; r; r = r->next)
		if (r->saved.key == a->key) {
			run_recorded(r, a, fd);
			sink_run(w->sink);
			return;
		}
}

/* ---- reports to the OAP ---------------------------------------------------------------------- */

static void run_on_reported(void *userdata, const struct grpc_end *end)
{
	struct skywalking_run *r = userdata;
	uint64_t wait = NS_PER_S << (r->tries < 6 ? r->tries : 6);

	r->call = grpc_call_free(r->call);
	r->tries++;
	if (end->status == GRPC_OK) {
		run_step(r, SKYWALKING_OVER);
	} else if (run_age_ns(r) > run_length_ns(r) + TELL_NS) {
		log_warn("sink.task", "sink=%s task=%s not_reported=%s", r->of->sink->config->name,
			 log_str(r->saved.task.id), log_str(end->text));
		run_step(r, SKYWALKING_OVER);
	} else {
		wait = wait < TELL_WAIT_NS ? wait : TELL_WAIT_NS;
		r->try_mono_ns = clock_mono_ns() + wait / 2 + sink_random(wait / 2);
	}
}

/* Sends the report. The answer has no content: the call's status is the result. */
static void run_report(struct skywalking_run *r)
{
	static const struct grpc_handler handler = { .on_end = run_on_reported };
	CLEANUP(freep) uint8_t *m = NULL;
	size_t len = 0;

	if (r->call || clock_mono_ns() < r->try_mono_ns)
		return;
	m = skywalking_meta(&r->saved.id, r->saved.task.id, 0, r->saved.why, &len);
	if (!m || grpc_call_new(r->of->multi, &r->of->server, COLLECT, &handler, r, &r->call) < 0)
		return; /* no memory: the next tick tries again */
	if (grpc_call_send(r->call, m, len) < 0)
		r->call = grpc_call_free(r->call);
	else
		grpc_call_end(r->call);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* May free @r. */
static void run_tick(struct skywalking_run *r)
{
	switch ((enum skywalking_step)r->saved.step) {
	case SKYWALKING_NEW:
	case SKYWALKING_RECORDS:
		if (run_age_ns(r) > BUSY_NS + run_length_ns(r) + LATE_NS)
			run_fail(r, "kindlingd did not end the recording");
		else
			run_ask(r, r->saved.step == SKYWALKING_NEW ? UPLOAD_WISH_BEGIN
								   : UPLOAD_WISH_GO_ON);
		break;
	case SKYWALKING_TELLS:
		run_report(r);
		break;
	case SKYWALKING_TAKES: /* the profile is in the spool, or kindlingd has it still */
		if (r->saved.seq < r->of->sink->ledger.next_seq)
			run_taken(r);
		else
			run_step(r, SKYWALKING_RECORDS);
		break;
	case SKYWALKING_OVER:
		if (run_age_ns(r) > run_length_ns(r) + REMEMBER_NS) {
			skywalking_unsave(r->of->sink->dfd, r->saved.key);
			run_free(r);
		}
	}
}

void skywalking_runs_tick(struct skywalking *w)
{
	struct skywalking_run *r = w->runs, *next;

	for (; r; r = next) {
		next = r->next;
		run_tick(r);
	}
}

static struct skywalking_run *run_add(struct skywalking *w)
{
	struct skywalking_run *r = w->n_runs < RUNS_MAX ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return NULL;
	r->of = w;
	r->next = w->runs;
	w->runs = r;
	w->n_runs++;
	return r;
}

static void run_begin(struct skywalking_run *r)
{
	struct skywalking_task *t = &r->saved.task;
	const struct sink *s = r->of->sink;

	if (s->events)
		t->events &= s->events;
	if (t->why[0]) {
		run_fail(r, t->why);
	} else if (!t->events) {
		run_fail(r, "none of the task's events is in the sink's `events`");
	} else {
		log_info("sink.task", "sink=%s task=%s pid=%u seconds=%u", s->config->name,
			 log_str(t->id), r->saved.pid, t->seconds);
		run_step(r, SKYWALKING_NEW);
	}
	run_tick(r);
}

void skywalking_run_new(struct skywalking_jvm *j, const struct skywalking_task *t)
{
	uint64_t key = skywalking_key(t->id, j->pid, j->start_time);
	struct skywalking_run *r;

	for (r = j->of->runs; r; r = r->next)
		if (r->saved.key == key)
			return;
	r = run_add(j->of);
	if (!r) {
		log_warn("sink.task", "sink=%s task=%s error=\"too many tasks\"",
			 j->of->sink->config->name, log_str(t->id));
		return;
	}
	r->saved.key = key;
	r->saved.begin_real_ns = clock_real_ns();
	r->saved.pid = j->pid;
	r->saved.start_time = j->start_time;
	r->saved.id = j->id;
	r->saved.task = *t;
	run_begin(r);
}

static void run_on_saved(void *userdata, const struct skywalking_saved *saved)
{
	struct skywalking_run *r = run_add(userdata);

	if (r)
		r->saved = *saved;
}

void skywalking_runs_load(struct skywalking *w)
{
	skywalking_load(w->sink->dfd, run_on_saved, w);
}

void skywalking_runs_free(struct skywalking *w)
{
	while (w->runs)
		run_free(w->runs);
}
