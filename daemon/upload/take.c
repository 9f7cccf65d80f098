/*
 * From the history into the spool: one interval of one sink, JVM by JVM, one in each round of the
 * loop, so that sending continues meanwhile and sinks that take the same interval keep pace. One
 * write of the ledger moves its cursor past the interval and so counts all of it. After any failure
 * before that, the interval is taken again.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/upload/cloud.h"
#include "daemon/upload/upload.h"

#define CLOCK_SLACK_NS (5 * NS_PER_S)

struct take_file {
	uint64_t seq;
	struct spool_header header;
};

struct sink_take {
	struct sink *sink;
	struct loop_timer *timer;
	uint64_t begin_ns, end_ns;
	struct source_process *processes;
	uint32_t n_processes, next;
	struct take_file *files;
	size_t n_files, files_cap;
	uint64_t taken, spooled, dropped[LEDGER_CAUSE_COUNT];
	uint64_t held; /* samples, see sink_hold() */
};

/* ---- bodies ---------------------------------------------------------------------------------- */

static struct take_file *take_file_new(struct sink_take *t)
{
	if (t->n_files == t->files_cap) {
		size_t cap = t->files_cap ? 2 * t->files_cap : 16;
		struct take_file *p = realloc(t->files, cap * sizeof(*p));

		if (!p)
			return NULL;
		t->files = p;
		t->files_cap = cap;
	}
	return &t->files[t->n_files];
}

int sink_put(struct sink *s, const struct sink_interval *in, const char *key,
	     const char *content_type, const void *body, size_t len, uint64_t samples)
{
	struct sink_take *t = s->take;
	struct take_file *f;
	struct spool_header h;
	int r;

	if (s->test_encodes)
		return sink_spool(s, SINK_TEST_SEQ, in, key, content_type, body, len, samples, &h);
	f = take_file_new(t);
	if (f)
		f->seq = s->ledger.next_seq + t->n_files;
	r = f ? sink_spool(s, f->seq, in, key, content_type, body, len, samples, &f->header)
	      : -ENOMEM;
	t->taken += samples;
	if (r == 0) {
		t->n_files++;
		t->spooled += samples;
	} else {
		s->lost_bodies++;
		t->dropped[r == -ENOMEM ? LEDGER_NO_MEMORY : LEDGER_DISK_FULL] += samples;
		snprintf(s->error, sizeof(s->error), "the spool: %s", strerror(-r));
	}
	return r;
}

void sink_hold(struct sink *s, uint64_t samples)
{
	s->take->held += samples;
}

void sink_unhold(struct sink *s, uint64_t samples)
{
	s->take->held -= samples;
}

/* ---- which JVMs ------------------------------------------------------------------------------ */

static bool take_fits(const char *pattern, const char *text)
{
	return strpbrk(pattern, "*?[") ? fnmatch(pattern, text, 0) == 0
				       : strcmp(pattern, text) == 0;
}

/* The namespace in "namespace/pod". */
static const char *take_namespace(const char *pod, char *buf, size_t size)
{
	size_t len = strcspn(pod, "/");

	snprintf(buf, size, "%.*s", pod[len] ? (int)len : 0, pod);
	return buf;
}

struct take_jvm {
	const char *name, *container, *pod, *labels;
};

static bool take_holds(const struct config_pair *c, const struct take_jvm *j)
{
	char namespace[128], label[LABEL_VALUE_SIZE];

	if (strcmp(c->name, "name") == 0)
		return take_fits(c->value, j->name);
	if (strcmp(c->name, "container") == 0)
		return take_fits(c->value, j->container);
	if (strcmp(c->name, "namespace") == 0)
		return take_fits(c->value, take_namespace(j->pod, namespace, sizeof(namespace)));
	if (strcmp(c->name, "pod") == 0)
		return take_fits(c->value, j->pod) ||
		       (strchr(j->pod, '/') && take_fits(c->value, strchr(j->pod, '/') + 1));
	/* service, image, node, label.team and other labels */
	return take_fits(c->value,
			 labels_get(j->labels,
				    strncmp(c->name, "label.", 6) == 0 ? c->name + 6 : c->name,
				    label));
}

bool sink_takes_jvm(const struct sink *s, const char *name, const char *container, const char *pod,
		    const char *labels)
{
	const struct take_jvm j = { name, container, pod, labels };

	for (unsigned i = 0; i < s->config->n_targets; i++)
		if (!take_holds(&s->config->targets[i], &j))
			return false;
	return true;
}

static bool take_wants(const struct sink *s, const struct profile *p)
{
	const struct profile_process *q = &p->processes[0];

	return sink_takes_jvm(s, p->strings[q->name], p->strings[q->container], p->strings[q->pod],
			      p->strings[q->labels]);
}

/* Removes threads' names. Rows that become equal stay apart: no format tells them from two
 * threads without names. */
static void take_forget_threads(struct profile *p)
{
	struct profile_thread *threads = (struct profile_thread *)(uintptr_t)p->threads;

	for (uint32_t i = 0; i < p->n_threads; i++)
		threads[i].tid = threads[i].name = 0;
}

/* Adds the labels of the host's cloud, except those that the JVM has itself. */
static void take_add_labels(struct profile *p, const char *more)
{
	struct profile_process *q = (struct profile_process *)(uintptr_t)&p->processes[0];
	struct labels labels = { 0 };

	if (!*more)
		return;
	labels_add(&labels, more);
	labels_add(&labels, p->strings[q->labels]);
	q->labels = profile_string(p, labels.text);
}

/* ---- one interval ---------------------------------------------------------------------------- */

/* Makes the profile of one JVM with what the sink takes: its events, with or without threads. */
static int take_profile(struct sink *s, uint64_t begin_ns, uint64_t end_ns,
			const struct source_process *who, unsigned events, struct profile **ret)
{
	int r = source_profile(s->upload->source, begin_ns, end_ns, who, events, ret);

	if (r < 0 || (*ret)->n_processes == 0)
		return r;
	take_add_labels(*ret, cloud_labels(s->upload->cloud));
	if (!s->config->threads || !s->upload->config->label_threads)
		take_forget_threads(*ret);
	return 0;
}

static void take_forget_shared(struct upload *u)
{
	profile_free(u->shared.profile);
	u->shared = (struct upload_shared){ 0 };
}

/* The profile of one JVM, valid until the next call or the end of the take: another sink may have
 * needed the same one a moment ago. */
static int take_shared_profile(struct sink_take *t, const struct source_process *who,
			       const struct profile **ret)
{
	struct sink *s = t->sink;
	struct upload_shared *last = &s->upload->shared;
	bool threads = s->config->threads && s->upload->config->label_threads;
	int r = 0;

	if (!last->profile || last->begin_ns != t->begin_ns || last->end_ns != t->end_ns ||
	    last->who.pid != who->pid || last->who.start_time != who->start_time ||
	    last->events != s->events || last->threads != threads) {
		take_forget_shared(s->upload);
		r = take_profile(s, t->begin_ns, t->end_ns, who, s->events, &last->profile);
		last->begin_ns = t->begin_ns;
		last->end_ns = t->end_ns;
		last->who = *who;
		last->events = s->events;
		last->threads = threads;
	}
	*ret = last->profile;
	return r;
}

static void take_lose(struct sink_take *t, uint64_t samples)
{
	t->dropped[LEDGER_NO_MEMORY] += samples;
	t->taken += samples;
}

static void take_note_history(struct sink *s, int r)
{
	snprintf(s->error, sizeof(s->error), "the history: %s%s", strerror(-r),
		 r == -EACCES || r == -ENOENT ? "; if its directory was removed, restart kindlingd"
					      : "");
}

static void take_one(struct sink_take *t, const struct source_process *who)
{
	const struct profile *p = NULL;
	struct sink *s = t->sink;
	struct sink_interval in = { .begin_real_ns = t->begin_ns,
				    .end_real_ns = t->end_ns,
				    .node = s->upload->config->node };
	uint64_t before = t->taken + t->held, samples;
	int r = take_shared_profile(t, who, &p);

	if (r < 0) {
		take_note_history(s, r);
		return;
	}
	samples = profile_samples(p);
	if (p->n_processes == 0 || samples == 0 || !take_wants(s, p))
		return;
	in.profile = p;
	in.process = &p->processes[0];
	r = s->type->encode(s, &in);
	/* counts samples that have become part of no body as lost */
	if (t->taken + t->held - before < samples)
		take_lose(t, samples - (t->taken + t->held - before));
	if (r < 0 && !s->error[0])
		snprintf(s->error, sizeof(s->error), "%s", strerror(-r));
}

/* Lets the type put what it still holds, and drops what remains. */
static void take_flush(struct sink_take *t)
{
	const struct sink_interval in = { .begin_real_ns = t->begin_ns,
					  .end_real_ns = t->end_ns,
					  .node = t->sink->upload->config->node };

	if (!t->sink->type->flush)
		return;
	t->sink->type->flush(t->sink, &in);
	take_lose(t, t->held);
	t->held = 0;
}

static void take_free(struct sink_take *t)
{
	if (t->sink->type->flush)
		t->sink->type->flush(t->sink, NULL);
	t->sink->take = NULL;
	take_forget_shared(t->sink->upload);
	loop_timer_free(t->timer);
	free(t->processes);
	free(t->files);
	free(t);
}

static void take_undo(struct sink_take *t)
{
	t->sink->lost_bodies++;
	for (size_t i = 0; i < t->n_files; i++)
		spool_remove(t->sink->dfd, t->files[i].seq);
}

/* Queues the interval's files for sending. */
static void take_files_in(struct sink_take *t, bool unknown)
{
	struct sink *s = t->sink;

	for (size_t i = 0; i < t->n_files; i++)
		if (sink_take_in(s, t->files[i].seq, &t->files[i].header, unknown) < 0) {
			s->lost_bodies++;
			s->ledger.in_spool -= t->files[i].header.samples;
			s->ledger.dropped[LEDGER_NO_MEMORY] += t->files[i].header.samples;
			spool_remove(s->dfd, t->files[i].seq);
		}
}

/* Counts the interval in the ledger and queues its files. */
static int take_commit(struct sink_take *t)
{
	struct sink *s = t->sink;
	struct ledger l = s->ledger;
	int r;

	l.cursor_ns = t->end_ns;
	l.next_seq += t->n_files;
	l.taken += t->taken;
	l.in_spool += t->spooled;
	for (int i = 0; i < LEDGER_CAUSE_COUNT; i++)
		l.dropped[i] += t->dropped[i];
	if (t->n_files && fsync(s->dfd) < 0)
		return -errno;
	r = ledger_write(s->ledger_fd, &l, true);
	if (r < 0)
		return r;
	s->ledger = l;
	take_files_in(t, false);
	return 0;
}

static void take_end(struct sink_take *t)
{
	struct sink *s = t->sink;
	int r;

	take_flush(t);
	r = take_commit(t);
	if (r < 0) {
		log_err("sink.take", "sink=%s error=%s", s->config->name, log_str(strerror(-r)));
		take_undo(t);
	}
	log_debug("sink.taken", "sink=%s samples=%llu bodies=%zu", s->config->name,
		  (unsigned long long)t->taken, t->n_files);
	take_free(t);
	sink_run(s);
	if (r == 0) /* after hours without this program there are many intervals to take */
		take_run(s, s->upload->settled_real_ns);
}

static void take_on_timer(void *userdata)
{
	struct sink_take *t = userdata;

	if (t->next < t->n_processes)
		take_one(t, &t->processes[t->next++]);
	if (t->next < t->n_processes)
		loop_timer_set(t->timer, 1, 0);
	else
		take_end(t);
}

/* The history goes on at times that were taken already if the wall clock is set back. They are
 * taken again: otherwise nothing would be until the clock reaches the old time. */
static void take_follow_clock(struct sink *s, uint64_t settled_real_ns)
{
	uint64_t interval = s->config->interval_ns, cursor = s->ledger.cursor_ns;

	if (s->take || !settled_real_ns || cursor <= settled_real_ns ||
	    cursor <= clock_real_ns() + CLOCK_SLACK_NS)
		return;
	s->ledger.cursor_ns = settled_real_ns / interval * interval;
	log_warn("sink.clock_set_back", "sink=%s by_s=%llu", s->config->name,
		 (unsigned long long)((cursor - s->ledger.cursor_ns) / NS_PER_S));
}

/* The end of an interval without JVMs: intervals that follow and have none belong to it, as when
 * the wall clock was set forward by years. */
static uint64_t take_end_of_nothing(const struct sink *s, uint64_t end, uint64_t settled_real_ns)
{
	uint64_t interval = s->config->interval_ns, next;

	if (settled_real_ns - end < interval)
		return end;
	next = source_next(s->upload->source, end, settled_real_ns) / interval * interval;
	return next > end ? next : end;
}

void take_run(struct sink *s, uint64_t settled_real_ns)
{
	uint64_t begin, end;
	struct sink_take *t;
	int r;

	take_follow_clock(s, settled_real_ns);
	begin = s->ledger.cursor_ns;
	end = begin + s->config->interval_ns;
	if (s->dead[0] || s->take || end > settled_real_ns ||
	    !cloud_is_known(s->upload->cloud)) /* `targets` may name labels of the cloud */
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return;
	*t = (struct sink_take){ .sink = s, .begin_ns = begin, .end_ns = end };
	s->take = t;
	r = source_list(s->upload->source, begin, end, &t->processes, &t->n_processes);
	if (r < 0) {
		if (!strstr(s->error, strerror(-r)))
			log_err("sink.history", "sink=%s error=%s", s->config->name,
				log_str(strerror(-r)));
		take_note_history(s, r);
	}
	if (r == 0 && !t->n_processes)
		t->end_ns = take_end_of_nothing(s, end, settled_real_ns);
	if (r < 0 || loop_timer_add(s->upload->loop, 1, 0, take_on_timer, t, &t->timer) < 0)
		take_free(t); /* the next tick tries again */
}

void take_cancel(struct sink *s)
{
	if (!s->take)
		return;
	take_undo(s->take);
	take_free(s->take);
}

/* ---- halves ---------------------------------------------------------------------------------- */

/* Counts the halves and removes the whole, in one write of the ledger. */
static int take_commit_split(struct sink_take *t, struct sink_file *f)
{
	struct sink *s = t->sink;
	struct ledger l = s->ledger;
	int r;

	l.next_seq += t->n_files;
	l.done_seq = f->seq;
	if (fsync(s->dfd) < 0)
		return -errno;
	r = ledger_write(s->ledger_fd, &l, true);
	if (r < 0)
		return r;
	s->ledger = l;
	log_info("sink.split", "sink=%s samples=%llu bytes=%llu parts=%zu", s->config->name,
		 (unsigned long long)f->samples, (unsigned long long)f->bytes, t->n_files);
	take_files_in(t, f->unknown);
	sink_forget(s, f);
	return 0;
}

/* Makes the halves from the history, which may have lost windows since. */
static int take_encode_halves(struct sink_take *t, const struct spool_header *h)
{
	const struct source_process who = { h->pid, h->start_time };
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct sink *s = t->sink;
	struct sink_interval in = { .begin_real_ns = t->begin_ns,
				    .end_real_ns = t->end_ns,
				    .node = s->upload->config->node,
				    .events = h->events,
				    .word = h->word,
				    .part = h->part };
	int r = take_profile(s, t->begin_ns, t->end_ns, &who, h->events, &p);

	if (r < 0)
		return r;
	in.profile = p;
	r = sink_encode_halves(s, &in, s->type->part);
	if (t->dropped[LEDGER_DISK_FULL])
		return -ENOSPC;
	return r == 0 && t->spooled != h->samples ? -ESTALE : r;
}

/* For types that split a body's own bytes. */
static int take_halve(struct sink_take *t, const struct spool_header *h, int fd)
{
	struct sink *s = t->sink;
	const struct sink_interval in = { .begin_real_ns = t->begin_ns,
					  .end_real_ns = t->end_ns,
					  .node = s->upload->config->node };
	int r = s->type->halve(s, &in, h, fd);

	if (t->dropped[LEDGER_DISK_FULL])
		return -ENOSPC;
	return r == 0 && t->spooled != h->samples ? -ESTALE : r;
}

int take_split(struct sink *s, struct sink_file *f)
{
	struct sink_take t = { .sink = s };
	struct spool_header h;
	CLEANUP(fd_closep) int fd = spool_open(s->dfd, f->seq, s->type->halve, &h);
	int r;

	if (fd < 0)
		return fd;
	if (!h.part && !s->type->halve)
		return -EMSGSIZE;
	t.begin_ns = h.begin_real_ns;
	t.end_ns = h.end_real_ns;
	s->take = &t;
	r = s->type->halve ? take_halve(&t, &h, fd) : take_encode_halves(&t, &h);
	s->take = NULL;
	if (r == 0)
		r = take_commit_split(&t, f);
	if (r < 0)
		take_undo(&t);
	free(t.files);
	return r;
}
