/* See wanted.h. */
#include "daemon/host/wanted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/host/host_priv.h"
#include "daemon/host/recording.h"

#define MISSING_AFTER_NS (3 * NS_PER_S) /* by then the agent has said what it collects */

struct wanted_one {
	struct wanted_one *next;
	struct wanted *of;
	struct upload_record ask;
	struct recording *recording; /* NULL = it has ended */
	struct loop_timer *timer; /* ends it */
	uint64_t begin_mono_ns, keep_mono_ns;
	struct wanted_write *writing; /* NULL = the worker is not writing the profile */
	bool is_forgotten; /* the request was withdrawn meanwhile */
	int fd; /* of the profile; -1 = not written yet */
	struct upload_recorded answer;
};

struct wanted {
	struct host *host;
	wanted_answer_fn *answer;
	void *userdata;
	struct wanted_one *list;
	unsigned n;
};

struct wanted_write {
	struct wanted_one *one; /* NULL = nobody waits for it */
	struct profile *profile;
	int dfd; /* the directory to write in */
	int result; /* a descriptor, or -errno */
};

static void wanted_forget(struct wanted_one *o)
{
	struct wanted_one **at = &o->of->list;

	o->timer = loop_timer_free(o->timer);
	o->recording = recording_free(o->recording);
	if (o->writing) {
		o->is_forgotten = true; /* freed when the worker is done */
		return;
	}
	fd_close(o->fd);
	while (*at && *at != o)
		at = &(*at)->next;
	if (*at)
		*at = o->next;
	o->of->n--;
	free(o);
}

/* ---- the profile ----------------------------------------------------------------------------- */

static struct wanted_write *wanted_write_free(struct wanted_write *job)
{
	if (!job)
		return NULL;
	profile_free(job->profile);
	fd_close(job->dfd);
	if (job->result >= 0)
		close(job->result);
	free(job);
	return NULL;
}

static int wanted_write_all(int fd, const uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Makes a file without a name, which vanishes with its last descriptor. */
static int wanted_open(int dfd)
{
	static const char name[] = "recorded.tmp";
	int fd = openat(dfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd < 0 ? -errno : fd;
	(void)unlinkat(dfd, name, 0); /* left behind by an earlier process */
	fd = openat(dfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	(void)unlinkat(dfd, name, 0);
	return fd;
}

static void wanted_run_write(void *userdata)
{
	struct wanted_write *job = userdata;
	CLEANUP(freep) uint8_t *bytes = NULL;
	CLEANUP(fd_closep) int fd = -1;
	size_t len;

	job->result = profile_encode(job->profile, &bytes, &len);
	if (job->result < 0)
		return;
	fd = wanted_open(job->dfd);
	job->result = fd < 0 ? fd : wanted_write_all(fd, bytes, len);
	if (job->result == 0)
		job->result = TAKE_FD(fd);
}

static void wanted_done_write(void *userdata)
{
	struct wanted_write *job = userdata;
	struct wanted_one *o = job->one;
	int result = job->result;

	if (!o) {
		wanted_write_free(job);
		return;
	}
	job->result = -1;
	wanted_write_free(job);
	o->writing = NULL;
	o->fd = result < 0 ? -1 : result;
	o->answer.state = result < 0 ? UPLOAD_RECORDED_FAILED : UPLOAD_RECORDED_DONE;
	if (result < 0)
		snprintf(o->answer.text, sizeof(o->answer.text), "the profile was not written: %s",
			 strerror(-result));
	if (o->is_forgotten)
		wanted_forget(o);
}

static int wanted_write(struct wanted_one *o)
{
	struct wanted_write *job = calloc(1, sizeof(*job));
	int r;

	if (!job)
		return -ENOMEM;
	job->one = o;
	job->result = -1;
	/* a copy, because the worker may outlive this recording */
	job->dfd = fcntl(store_dir_fd(o->of->host->store), F_DUPFD_CLOEXEC, 0);
	r = job->dfd < 0 ? -errno : recording_working(o->recording, &job->profile);
	if (r < 0) {
		wanted_write_free(job);
		return r;
	}
	o->answer.begin_real_ns = job->profile->begin_real_ns;
	o->answer.end_real_ns = job->profile->end_real_ns;
	o->answer.samples = profile_samples(job->profile);
	o->writing = job;
	r = worker_submit(o->of->host->worker, wanted_run_write, wanted_done_write, job);
	if (r < 0)
		o->writing = wanted_write_free(job);
	return r;
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Adds a sentence such as "alloc: needs JDK 11"; @missing: bits. */
static void wanted_report_missing(struct wanted_one *o, unsigned missing)
{
	char list[64] = "", notes[256];
	size_t n = 0;

	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (missing & 1u << e)
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? "," : "",
					      wire_event_names[e]);
	if (!n)
		return;
	(void)recording_notes(o->recording, notes, sizeof(notes));
	snprintf(o->answer.text, sizeof(o->answer.text),
		 "kindling cannot collect %.60s in this JVM%s%.160s", list, *notes ? ": " : "",
		 notes);
}

static void wanted_end(struct wanted_one *o, const char *why)
{
	int r;

	wanted_report_missing(o, recording_missing(o->recording));
	if (why)
		snprintf(o->answer.text, sizeof(o->answer.text), "%s", why);
	o->timer = loop_timer_free(o->timer);
	recording_end(o->recording);
	r = wanted_write(o);
	if (r < 0) {
		o->answer.state = UPLOAD_RECORDED_FAILED;
		snprintf(o->answer.text, sizeof(o->answer.text), "the profile: %s", strerror(-r));
	}
	o->recording = recording_free(o->recording);
	log_info("recording.end", "pid=%u samples=%" PRIu64 " why=%s", o->ask.pid,
		 o->answer.samples, log_str(why ? why : "its time is over"));
}

static void wanted_on_end(void *userdata)
{
	wanted_end(userdata, NULL);
}

static void wanted_look(struct wanted_one *o)
{
	uint64_t age = clock_mono_ns() - o->begin_mono_ns;
	char why[200], text[256];

	if (!recording_runs(o->recording, why, sizeof(why))) {
		snprintf(text, sizeof(text), "%s after %.0f of %.0f s", why, (double)age / 1e9,
			 (double)o->ask.length_ns / 1e9);
		wanted_end(o, text);
	} else if (age > MISSING_AFTER_NS && recording_missing(o->recording) == o->ask.events) {
		wanted_end(o, NULL); /* none of its events will come */
	}
}

void wanted_on_second(struct wanted *w)
{
	struct wanted_one *o, *next;

	for (o = w->list; o; o = next) {
		next = o->next;
		if (clock_mono_ns() > o->keep_mono_ns)
			wanted_forget(o);
		else if (o->recording)
			wanted_look(o);
	}
}

/* ---- the start ------------------------------------------------------------------------------- */

static uint64_t wanted_within(uint64_t n, uint64_t least, uint64_t most)
{
	return n == 0 ? 0 : n < least ? least : n > most ? most : n;
}

/* Limits every value: the request comes from a network. */
static struct recording_options wanted_options(const struct upload_record *ask, size_t memory)
{
	return (struct recording_options){
		.events = ask->events,
		.interval_ns = wanted_within(ask->interval_ns, NS_PER_MS / 10, NS_PER_S),
		.lock_min_ns = wanted_within(ask->lock_min_ns, RECORDING_MIN_WAIT_LEAST,
					     RECORDING_MIN_WAIT_MOST),
		.alloc_interval = wanted_within(ask->alloc_interval, 1u << 10, 1u << 30),
		.wall_interval_ns = wanted_within(ask->wall_interval_ns, NS_PER_MS, 10 * NS_PER_S),
		.bytes_max = memory / WANTED_MAX,
		.keep_budget = true,
	};
}

static struct target *wanted_target(struct wanted *w, const struct upload_record *ask)
{
	struct target *t = NULL;

	while ((t = targets_next(w->host->targets, t)))
		if ((uint32_t)t->jvm.pid == ask->pid && t->jvm.start_time == ask->start_time)
			return t;
	return NULL;
}

static bool wanted_is_sane(const struct upload_record *ask)
{
	return ask->length_ns >= NS_PER_MS && ask->length_ns <= UPLOAD_RECORD_MAX_NS &&
	       ask->events && !(ask->events >> WIRE_EVENT_COUNT);
}

/* Starts a recording. 0, or -errno with the reason in @answer. */
static int wanted_record(struct wanted_one *o, struct upload_recorded *answer)
{
	const struct recording_options options =
		wanted_options(&o->ask, o->of->host->config->memory_bytes);
	struct target *t = wanted_target(o->of, &o->ask);
	int r;

	if (!t || t->state != TARGET_STREAMING) {
		snprintf(answer->text, sizeof(answer->text), "the JVM is %s%s%.120s",
			 t ? target_state_names[t->state] : "gone", t && t->fault.code ? ": " : "",
			 t && t->fault.code ? t->fault.what : "");
		return -ESRCH;
	}
	r = recording_new(o->of->host, t, &options, &o->recording);
	if (r == 0)
		r = loop_timer_add(o->of->host->loop, o->ask.length_ns, 0, wanted_on_end, o,
				   &o->timer);
	if (r == -EBUSY)
		answer->state = UPLOAD_RECORDED_BUSY;
	snprintf(answer->text, sizeof(answer->text), "%s",
		 r == -EBUSY ? "another user is recording this JVM" : strerror(-r));
	return r;
}

static struct wanted_one *wanted_begin(struct wanted *w, const struct upload_record *ask,
				       struct upload_recorded *answer)
{
	struct wanted_one *o;

	answer->state = UPLOAD_RECORDED_FAILED;
	if (!wanted_is_sane(ask)) {
		snprintf(answer->text, sizeof(answer->text),
			 "the recording asked for is not possible");
		return NULL;
	}
	o = w->n < WANTED_MAX ? calloc(1, sizeof(*o)) : NULL;
	if (!o) {
		answer->state = UPLOAD_RECORDED_BUSY;
		snprintf(answer->text, sizeof(answer->text),
			 "kindlingd makes at most %d recordings at once for an OAP", WANTED_MAX);
		return NULL;
	}
	o->of = w;
	o->fd = -1;
	o->ask = *ask;
	if (wanted_record(o, answer) < 0) {
		recording_free(o->recording);
		free(o);
		return NULL;
	}
	o->begin_mono_ns = clock_mono_ns();
	o->answer = (struct upload_recorded){ .state = UPLOAD_RECORDED_RUNS };
	o->next = w->list;
	w->list = o;
	w->n++;
	log_info("recording.begin", "pid=%u seconds=%.1f for=kindling-upload", ask->pid,
		 (double)ask->length_ns / 1e9);
	return o;
}

void wanted_ask(struct wanted *w, const struct upload_record *ask)
{
	struct upload_recorded answer = { .state = UPLOAD_RECORDED_UNKNOWN };
	struct wanted_one *o = w->list;

	while (o && (o->ask.key != ask->key || o->is_forgotten))
		o = o->next;
	if (ask->wish == UPLOAD_WISH_FORGET) {
		if (o)
			wanted_forget(o);
		return;
	}
	if (!o && ask->wish == UPLOAD_WISH_BEGIN)
		o = wanted_begin(w, ask, &answer);
	if (o) {
		o->keep_mono_ns = clock_mono_ns() + UPLOAD_RECORD_KEEP_NS;
		answer = o->answer;
	}
	answer.ask = UPLOAD_RECORDED;
	answer.key = ask->key;
	w->answer(w->userdata, &answer, o ? o->fd : -1);
}

/* ---- life cycle ------------------------------------------------------------------------------ */

int wanted_new(struct host *h, wanted_answer_fn *answer, void *userdata, struct wanted **ret)
{
	struct wanted *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->host = h;
	w->answer = answer;
	w->userdata = userdata;
	*ret = w;
	return 0;
}

struct wanted *wanted_free(struct wanted *w)
{
	if (!w)
		return NULL;
	while (w->list) {
		if (w->list->writing)
			w->list->writing->one = NULL;
		w->list->writing = NULL;
		wanted_forget(w->list);
	}
	free(w);
	return NULL;
}
