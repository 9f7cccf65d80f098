/*
 * /v1/timeline: the last minutes of one JVM, event by event. Made in a child (apart.c), and written
 * as text, because there may be hundreds of thousands of events. docs/api.md describes the answer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/profile/class_text.h"
#include "daemon/serve/timeline_open.h"
#include "daemon/timeline/pauses.h"

#define LAST_NS	     (30 * NS_PER_S)
#define TABLES_BYTES (48ul << 20) /* for the names and stacks of one answer */
#define FRAME_MAX    1024

struct drawing {
	struct host *host;
	const struct target *target;
	struct timeline_question question;
	struct timeline_answer answer;
	struct profile *stacks, *locks, *traces; /* the answer's tables of unique entries */
	uint32_t **nodes; /* for each part of the timeline: its nodes' numbers in @stacks, + 1 */
	uint32_t *open_threads; /* threads that wait now and have no event in the answer */
	uint32_t n_open_threads;
	struct timeline_opens opens;
	uint64_t *last_end_ns; /* by thread: the end of its last time off the CPU; 0 = none */
	struct timeline_sum open[TIMELINE_KIND_COUNT]; /* what has not ended */
	struct text_out out;
};

/* ---- tables ---------------------------------------------------------------------------------- */

static uint32_t timeline_frame(struct drawing *d, const struct profile *p, uint32_t i)
{
	const struct profile_frame *f = &p->frames[i];
	const struct stream_frame frame = {
		.kind = f->kind,
		.class_name = p->strings[f->class_name],
		.method = p->strings[f->method],
		.module = p->strings[f->module],
		.offset = f->offset,
	};
	struct profile_frame to = { .kind = f->kind, .line = f->line };
	char buf[FRAME_MAX];

	to.method = profile_string(d->stacks,
				   event_frame_name(d->host, d->target, &frame, buf, sizeof(buf)));
	return profile_intern_frame(d->stacks, &to);
}

/* What is known of the part's nodes; NULL = no memory. Parts with the same stacks share it. */
static uint32_t *timeline_known_nodes(struct drawing *d, uint32_t part)
{
	const struct profile *const *stacks = d->answer.stacks;

	for (uint32_t i = 0; i < d->answer.n_parts && !d->nodes[part]; i++)
		if (stacks[i] == stacks[part])
			d->nodes[part] = d->nodes[i];
	if (!d->nodes[part])
		d->nodes[part] = calloc(stacks[part]->n_nodes + 1, sizeof(**d->nodes));
	return d->nodes[part];
}

/* Adds the node's stack to the answer's table. A loop suffices: parents precede their children. */
static uint32_t timeline_stack(struct drawing *d, uint32_t part, uint32_t node)
{
	static uint32_t chain[STREAM_DEPTH_MAX + 64];
	const struct profile *p = node ? d->answer.stacks[part] : NULL;
	uint32_t *known = node ? timeline_known_nodes(d, part) : NULL, n = 0, to = 0;

	if (!known)
		return 0;
	for (; node && !known[node] && n < ARRAY_SIZE(chain); node = p->nodes[node].parent)
		chain[n++] = node;
	if (node && known[node])
		to = known[node] - 1;
	while (n > 0) {
		node = chain[--n];
		to = profile_node(d->stacks, to, timeline_frame(d, p, p->nodes[node].frame));
		known[node] = to + 1;
	}
	return to;
}

/* The lock's number in the answer, + 1; 0 = nothing is known of it. */
static uint32_t timeline_lock(struct drawing *d, const char *class_name, uint32_t identity)
{
	struct profile_frame f = { .offset = identity };

	if (!*class_name && !identity)
		return 0;
	f.class_name = profile_string(d->locks, class_name);
	return profile_intern_frame(d->locks, &f) + 1; /* also 0 without room */
}

static uint32_t timeline_trace(struct drawing *d, const struct profile *p,
			       const struct timeline_row *r)
{
	struct profile_frame f = { 0 };

	if (!r->trace && !r->span)
		return 0;
	f.class_name = profile_string(d->traces, p->strings[r->trace]);
	f.method = profile_string(d->traces, p->strings[r->span]);
	return profile_intern_frame(d->traces, &f) + 1;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* A moment relative to the beginning of the span; negative for an earlier one. */
static int64_t timeline_at(const struct drawing *d, uint64_t ns)
{
	return (int64_t)(ns - d->question.from_ns);
}

static void moment_text(struct drawing *d, const struct timeline_row *r)
{
	struct text_out *to = &d->out;

	json_begin_list(to, NULL);
	json_add_u64(to, NULL, r->thread);
	json_add_i64(to, NULL, timeline_at(d, r->end_ns));
	json_add_u64(to, NULL, r->length_ns);
	json_add_u64(to, NULL, timeline_stack(d, r->part, r->stack));
	json_add_u64(to, NULL, timeline_trace(d, d->answer.parts[r->part], r));
	json_end_list(to);
}

/* An interval as docs/api.md describes it; stacks, threads, traces and locks are numbers in the
 * answer's tables, 0 = none. */
struct timeline_interval {
	uint64_t begin_ns, length_ns, runqueue_ns;
	uint32_t thread, stack, trace, reason, flags, lock, owner, owner_stack, waker, n;
	int syscall_nr; /* -1 = none */
};

static void timeline_put_interval(struct drawing *d, const struct timeline_interval *i)
{
	struct text_out *to = &d->out;

	json_begin_list(to, NULL);
	json_add_u64(to, NULL, i->thread);
	json_add_i64(to, NULL, timeline_at(d, i->begin_ns));
	json_add_u64(to, NULL, i->length_ns);
	json_add_u64(to, NULL, i->stack);
	json_add_u64(to, NULL, i->trace);
	json_add_u64(to, NULL, i->reason);
	json_add_u64(to, NULL, i->flags);
	json_add_u64(to, NULL, i->lock);
	json_add_u64(to, NULL, i->owner);
	json_add_u64(to, NULL, i->owner_stack);
	json_add_u64(to, NULL, i->waker);
	json_add_u64(to, NULL, i->n);
	json_add_u64(to, NULL, i->runqueue_ns);
	json_add_i64(to, NULL, i->syscall_nr);
	json_end_list(to);
}

static void interval_text(struct drawing *d, const struct timeline_row *r)
{
	const struct profile *p = d->answer.parts[r->part];

	timeline_put_interval(
		d, &(struct timeline_interval){
			   .thread = r->thread,
			   .begin_ns = r->end_ns - r->length_ns,
			   .length_ns = r->length_ns,
			   .stack = timeline_stack(d, r->part, r->stack),
			   .trace = timeline_trace(d, p, r),
			   .reason = r->reason,
			   .flags = r->flags,
			   .lock = timeline_lock(d, p->strings[r->class_name], r->identity),
			   .owner = r->owner,
			   .owner_stack = timeline_stack(d, r->part, r->owner_stack),
			   .waker = r->waker,
			   .n = r->n,
			   .runqueue_ns = r->runqueue_ns,
			   .syscall_nr = r->syscall });
}

static uint32_t timeline_thread(struct drawing *d, uint32_t tid)
{
	struct timeline_answer *a = &d->answer;

	if (!tid)
		return 0;
	for (uint32_t i = a->n_threads; i-- > 0;)
		if (a->threads[i].tid == tid)
			return i + 1;
	for (uint32_t i = 0; i < d->n_open_threads; i++)
		if (d->open_threads[i] == tid)
			return a->n_threads + i + 1;
	d->open_threads[d->n_open_threads++] = tid;
	return a->n_threads + d->n_open_threads;
}

/* Does the thread belong to the trace that was asked for? */
static bool timeline_is_around(const struct drawing *d, uint32_t tid)
{
	for (uint32_t i = 0; i < d->answer.n_threads; i++)
		if (d->answer.threads[i].tid == tid && d->answer.around[i + 1])
			return true;
	return false;
}

/* The name in the answer, or the newest one; "" = unknown. */
static const char *timeline_name(const struct drawing *d, uint32_t tid)
{
	const struct timeline_answer *a = &d->answer;

	for (uint32_t i = a->n_threads; i-- > 0;)
		if (a->threads[i].tid == tid)
			return a->threads[i].name;
	return host_thread_name(d->target, tid);
}

/* Finds the last time off the CPU of each thread: what goes on now began after it. */
static void timeline_find_ends(struct drawing *d)
{
	const struct timeline_answer *a = &d->answer;

	d->last_end_ns = calloc((size_t)a->n_threads + 1, sizeof(*d->last_end_ns));
	for (uint32_t i = 0; d->last_end_ns && i < a->n_rows; i++) {
		const struct timeline_row *r = &a->rows[i];

		if (r->kind == TIMELINE_OFFCPU && r->end_ns > d->last_end_ns[r->thread])
			d->last_end_ns[r->thread] = r->end_ns;
	}
}

/* Makes the stacks of what goes on the answer's; to be done before the first of them is drawn. */
static void timeline_take_stacks(struct drawing *d)
{
	for (uint32_t i = 0; i < d->opens.n; i++) {
		struct timeline_open *o = &d->opens.list[i];

		o->node = timeline_answer_stack(&d->answer, d->target->stream, o->node);
		o->owner_node = timeline_answer_stack(&d->answer, d->target->stream, o->owner_node);
	}
}

/* Has it ended since the kernel's table was read? Then it is an event already. */
static bool timeline_has_ended(const struct drawing *d, const struct timeline_open *o)
{
	for (uint32_t i = 0; o->kind == TIMELINE_OFFCPU && i < d->answer.n_threads; i++)
		if (d->answer.threads[i].tid == o->tid && d->last_end_ns &&
		    d->last_end_ns[i + 1] > o->begin_ns + NS_PER_MS)
			return true;
	return false;
}

/* Something that goes on, drawn until the end of the span. */
static void timeline_open_text(struct drawing *d, const struct timeline_open *o)
{
	const struct timeline_question *q = &d->question;
	struct timeline_sum *sum = &d->open[o->kind];
	uint32_t part = d->answer.n_parts;
	uint64_t ns = q->to_ns - o->begin_ns;

	if (o->begin_ns >= q->to_ns ||
	    (q->thread && !strstr(timeline_name(d, o->tid), q->thread)) ||
	    (d->answer.around && !timeline_is_around(d, o->tid)) || timeline_has_ended(d, o))
		return;
	sum->events++;
	sum->ns += ns;
	sum->inside_ns += q->to_ns - (o->begin_ns < q->from_ns ? q->from_ns : o->begin_ns);
	timeline_put_interval(d, &(struct timeline_interval){
					 .thread = timeline_thread(d, o->tid),
					 .begin_ns = o->begin_ns,
					 .length_ns = ns,
					 .stack = timeline_stack(d, part, o->node),
					 .reason = o->reason,
					 .flags = o->flags,
					 .lock = timeline_lock(d, o->class_name, o->identity),
					 .owner = timeline_thread(d, o->owner_tid),
					 .owner_stack = timeline_stack(d, part, o->owner_node),
					 .n = 1,
					 .syscall_nr = o->syscall_nr });
}

static void events_text(struct drawing *d, enum timeline_kind kind)
{
	json_begin_list(&d->out, timeline_kind_names[kind]);
	for (uint32_t i = 0; i < d->answer.n_rows; i++) {
		const struct timeline_row *r = &d->answer.rows[i];

		if (r->kind != kind)
			continue;
		if (timeline_is_moment(kind))
			moment_text(d, r);
		else
			interval_text(d, r);
	}
	for (uint32_t i = 0; i < d->opens.n; i++)
		if (d->opens.list[i].kind == kind)
			timeline_open_text(d, &d->opens.list[i]);
	json_end_list(&d->out);
}

/* ---- what the events refer to ---------------------------------------------------------------- */

static void timeline_thread_text(struct drawing *d, uint32_t tid, const char *name)
{
	json_begin_object(&d->out, NULL);
	thread_text(&d->out, d->target, tid, name);
	json_end_object(&d->out);
}

static void timeline_threads_text(struct drawing *d)
{
	json_begin_list(&d->out, "threads");
	for (uint32_t i = 0; i < d->answer.n_threads; i++)
		timeline_thread_text(d, d->answer.threads[i].tid, d->answer.threads[i].name);
	for (uint32_t i = 0; i < d->n_open_threads; i++)
		timeline_thread_text(d, d->open_threads[i], timeline_name(d, d->open_threads[i]));
	json_end_list(&d->out);
}

static void timeline_frames_text(struct text_out *to, const struct profile *s)
{
	json_begin_list(to, "frames");
	for (uint32_t i = 0; i < s->n_frames; i++) {
		json_begin_list(to, NULL);
		json_add_string(to, NULL, s->strings[s->frames[i].method]);
		json_add_string(to, NULL, wire_kind_names[s->frames[i].kind]);
		json_add_i64(to, NULL, s->frames[i].line);
		json_end_list(to);
	}
	json_end_list(to);
	json_begin_list(to, "nodes");
	for (uint32_t i = 0; i == 0 || i < s->n_nodes; i++) {
		json_begin_list(to, NULL);
		json_add_u64(to, NULL, i ? s->nodes[i].parent : 0);
		json_add_u64(to, NULL, i ? s->nodes[i].frame : 0);
		json_end_list(to);
	}
	json_end_list(to);
}

static void tables_text(struct drawing *d)
{
	const struct profile *l = d->locks, *t = d->traces;
	char buf[CLASS_TEXT_MAX], id[24];
	struct text_out *to = &d->out;

	timeline_frames_text(to, d->stacks);
	json_begin_list(to, "locks");
	for (uint32_t i = 0; i < l->n_frames; i++) {
		snprintf(id, sizeof(id), "%" PRIx64, l->frames[i].offset);
		json_begin_list(to, NULL);
		json_add_string(to, NULL, class_text(l->strings[l->frames[i].class_name], buf));
		json_add_string(to, NULL, id);
		json_end_list(to);
	}
	json_end_list(to);
	json_begin_list(to, "traces");
	for (uint32_t i = 0; i < t->n_frames; i++) {
		json_begin_list(to, NULL);
		json_add_string(to, NULL, t->strings[t->frames[i].class_name]);
		json_add_string(to, NULL, t->strings[t->frames[i].method]);
		json_end_list(to);
	}
	json_end_list(to);
}

static void sum_text(struct text_out *to, const char *name, const struct timeline_sum *s)
{
	json_begin_object(to, name);
	json_add_u64(to, "events", s->events);
	json_add_u64(to, "ns", s->ns);
	json_add_u64(to, "inside_ns", s->inside_ns);
	json_end_object(to);
}

static void sums_text(struct text_out *to, const char *name, const struct timeline_sum *sums)
{
	json_begin_object(to, name);
	for (int k = 0; k < TIMELINE_KIND_COUNT; k++)
		sum_text(to, timeline_kind_names[k], &sums[k]);
	json_end_object(to);
}

static void names_text(struct text_out *to, const char *name, const char *const *names, int n)
{
	json_begin_list(to, name);
	for (int i = 0; i < n; i++)
		json_add_string(to, NULL, names[i]);
	json_end_list(to);
}

/* Writes what the bands lack: all of them, or the number of safepoints that the agent missed. */
static void timeline_pauses_text(struct drawing *d)
{
	const struct pauses *p = host_pauses(d->target);
	uint64_t shift_ns = (uint64_t)d->target->real_minus_mono_ns;

	json_begin_object(&d->out, "pauses");
	json_add_bool(&d->out, "known", p && p->known);
	json_add_u64(
		&d->out, "unseen",
		p ? pauses_unseen(p, d->question.from_ns - shift_ns, d->question.to_ns - shift_ns)
		  : 0);
	json_end_object(&d->out);
}

/* What was asked for, and the words that the events' reasons are numbers of. */
static void timeline_head_text(struct drawing *d)
{
	const struct timeline_question *q = &d->question;
	struct text_out *to = &d->out;

	json_add_string(to, "format", "kindling timeline 1");
	json_add_i64(to, "pid", d->target->jvm.pid);
	json_add_string(to, "name", d->target->jvm.name);
	json_add_u64(to, "from_ns", q->from_ns);
	json_add_u64(to, "to_ns", q->to_ns);
	if (d->answer.since_ns == UINT64_MAX)
		json_add_null(to, "since_ns");
	else
		json_add_u64(to, "since_ns", d->answer.since_ns);
	json_add_bool(to, "forgotten", d->answer.forgotten);
	json_begin_object(to, "asked");
	json_add_string(to, "thread", q->thread ? q->thread : "");
	json_add_string(to, "trace", q->trace ? q->trace : "");
	json_end_object(to);
	json_begin_object(to, "reasons");
	names_text(to, "lock", wire_wait_names, WIRE_WAIT_COUNT);
	names_text(to, "offcpu", offcpu_reason_names, OFFCPU_REASON_COUNT);
	names_text(to, "band", timeline_band_names, TIMELINE_BAND_COUNT);
	json_end_object(to);
}

static void timeline_text(struct drawing *d)
{
	struct text_out *to = &d->out;

	json_begin_object(to, NULL);
	timeline_head_text(d);
	timeline_pauses_text(d);
	for (int k = 0; k < TIMELINE_KIND_COUNT; k++)
		events_text(d, (enum timeline_kind)k);
	timeline_threads_text(d);
	tables_text(d);
	sums_text(to, "sums", d->answer.sums);
	sum_text(to, "open", &d->open[TIMELINE_LOCK]);
	sum_text(to, "open_offcpu", &d->open[TIMELINE_OFFCPU]);
	sums_text(to, "left_out", d->answer.left_out);
	sums_text(to, "no_room", d->answer.no_room);
	json_end_object(to);
}

/* ---- the request ----------------------------------------------------------------------------- */

static int tables_new(struct drawing *d)
{
	struct profile **tables[] = { &d->stacks, &d->locks, &d->traces };

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (profile_new(tables[i]) < 0)
			return -ENOMEM;
		profile_limit(*tables[i], TABLES_BYTES, 1);
	}
	d->nodes = calloc(d->answer.n_parts + 1, sizeof(*d->nodes));
	d->open_threads = calloc(2 * (size_t)d->opens.n + 1, sizeof(*d->open_threads));
	return d->nodes && d->open_threads ? 0 : -ENOMEM;
}

/* Frees nothing: this child exits after the answer. */
static int timeline_draw(struct drawing *d)
{
	const struct timeline *timeline = host_timeline(d->target);
	int r = 0;

	if (timeline)
		r = timeline_query(timeline, &d->question, &d->answer);
	else
		d->answer.since_ns = UINT64_MAX;
	if (r == 0)
		r = timeline_opens_of(d->host, d->target, &d->opens);
	if (r == 0)
		r = tables_new(d);
	if (r < 0)
		return r;
	timeline_find_ends(d);
	timeline_take_stacks(d);
	timeline_text(d);
	return r;
}

enum MHD_Result serve_timeline(struct request *r)
{
	struct drawing d = { .host = r->serve->host };
	struct timeline_question *q = &d.question;

	if (!is_apart(r)) {
		host_take_times(r->serve->host);
		return answer_apart(r, APART_LIVE);
	}
	d.target = api_one_target(r, argument(r, "target"));
	if (!d.target)
		return MHD_YES;
	if (argument(r, "last") || argument(r, "from") || argument(r, "to")) {
		if (!api_time_range(r, &q->from_ns, &q->to_ns))
			return answer_error(
				r, 400,
				"last must be a duration such as 30s; from and to are ns since 1970");
	} else {
		q->to_ns = clock_real_ns();
		q->from_ns = q->to_ns - LAST_NS;
	}
	/* readers use doubles for numbers, which hold ns since 1970 only to 256 ns */
	q->from_ns &= ~1023ull;
	q->to_ns &= ~1023ull;
	q->thread = argument(r, "thread");
	q->trace = argument(r, "trace");
	q->around = q->stacks = true;
	if (timeline_draw(&d) < 0)
		return answer_error(r, 503, "no memory");
	return answer_json(r, 200, &d.out);
}
