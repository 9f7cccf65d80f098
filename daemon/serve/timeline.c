/*
 * /v1/timeline: the last minutes of one JVM, event by event. Made in a child (apart.c), and written
 * as text, because there may be hundreds of thousands of events. docs/api.md describes the answer.
 */
#include <errno.h>
#include <inttypes.h>
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
	const struct profile *p = d->answer.stacks[part];
	uint32_t *known = timeline_known_nodes(d, part), n = 0, to = 0;

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
static long long timeline_at(const struct drawing *d, uint64_t ns)
{
	return (long long)(ns - d->question.from_ns);
}

static void moment_text(struct drawing *d, const struct timeline_row *r)
{
	text_printf(&d->out, "[%u,%lld,%" PRIu64 ",%u,%u]", r->thread, timeline_at(d, r->end_ns),
		    r->length_ns, timeline_stack(d, r->part, r->stack),
		    timeline_trace(d, d->answer.parts[r->part], r));
}

static void interval_text(struct drawing *d, const struct timeline_row *r)
{
	const struct profile *p = d->answer.parts[r->part];

	text_printf(&d->out, "[%u,%lld,%" PRIu64 ",%u,%u,%u,%u,%u,%u,%u,%u,%u,%" PRIu64 ",%d]",
		    r->thread, timeline_at(d, r->end_ns - r->length_ns), r->length_ns,
		    timeline_stack(d, r->part, r->stack), timeline_trace(d, p, r), r->reason,
		    r->flags, timeline_lock(d, p->strings[r->class_name], r->identity), r->owner,
		    timeline_stack(d, r->part, r->owner_stack), r->waker, r->n, r->runqueue_ns,
		    r->syscall);
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

/* The name in the answer, or the one that waits for locks have; "" = unknown. */
static const char *timeline_name(const struct drawing *d, uint32_t tid)
{
	const struct timeline_answer *a = &d->answer;
	const struct locks *l = host_locks(d->target);

	for (uint32_t i = a->n_threads; i-- > 0;)
		if (a->threads[i].tid == tid)
			return a->threads[i].name;
	return l ? locks_thread_name(l, tid) : "";
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
static bool timeline_open_text(struct drawing *d, const struct timeline_open *o, bool first)
{
	const struct timeline_question *q = &d->question;
	struct timeline_sum *sum = &d->open[o->kind];
	uint64_t ns = q->to_ns - o->begin_ns;

	if (o->begin_ns >= q->to_ns ||
	    (q->thread && !strstr(timeline_name(d, o->tid), q->thread)) ||
	    (d->answer.around && !timeline_is_around(d, o->tid)) || timeline_has_ended(d, o))
		return false;
	sum->events++;
	sum->ns += ns;
	sum->inside_ns += q->to_ns - (o->begin_ns < q->from_ns ? q->from_ns : o->begin_ns);
	text_printf(&d->out, "%s[%u,%lld,%" PRIu64 ",0,0,%u,%u,%u,%u,0,0,1,0,%d]", first ? "" : ",",
		    timeline_thread(d, o->tid), timeline_at(d, o->begin_ns), ns, o->reason,
		    o->flags, timeline_lock(d, o->class_name, o->identity),
		    timeline_thread(d, o->owner_tid), o->syscall_nr);
	return true;
}

static void timeline_opens_text(struct drawing *d, enum timeline_kind kind, bool first)
{
	for (uint32_t i = 0; i < d->opens.n; i++)
		if (d->opens.list[i].kind == kind &&
		    timeline_open_text(d, &d->opens.list[i], first))
			first = false;
}

static void events_text(struct drawing *d, enum timeline_kind kind)
{
	bool first = true;

	text_printf(&d->out, ",\"%s\":[", timeline_kind_names[kind]);
	for (uint32_t i = 0; i < d->answer.n_rows; i++) {
		const struct timeline_row *r = &d->answer.rows[i];

		if (r->kind != kind)
			continue;
		text_put(&d->out, first ? "" : ",");
		first = false;
		if (timeline_is_moment(kind))
			moment_text(d, r);
		else
			interval_text(d, r);
	}
	timeline_opens_text(d, kind, first);
	text_put(&d->out, "]");
}

/* ---- what the events refer to ---------------------------------------------------------------- */

static void timeline_thread_text(struct drawing *d, uint32_t i, uint32_t tid, const char *name)
{
	text_put(&d->out, i ? ",{" : "{");
	thread_text(&d->out, d->target, tid, name);
	text_put(&d->out, "}");
}

static void timeline_threads_text(struct drawing *d)
{
	uint32_t n = d->answer.n_threads;

	text_put(&d->out, ",\"threads\":[");
	for (uint32_t i = 0; i < n; i++)
		timeline_thread_text(d, i, d->answer.threads[i].tid, d->answer.threads[i].name);
	for (uint32_t i = 0; i < d->n_open_threads; i++)
		timeline_thread_text(d, n + i, d->open_threads[i],
				     timeline_name(d, d->open_threads[i]));
	text_put(&d->out, "]");
}

static void tables_text(struct drawing *d)
{
	const struct profile *s = d->stacks, *l = d->locks, *t = d->traces;
	struct text_out *to = &d->out;
	char buf[CLASS_TEXT_MAX];

	text_put(to, ",\"frames\":[");
	for (uint32_t i = 0; i < s->n_frames; i++) {
		text_put(to, i ? ",[" : "[");
		text_json(to, s->strings[s->frames[i].method]);
		text_printf(to, ",\"%s\",%d]", wire_kind_names[s->frames[i].kind],
			    s->frames[i].line);
	}
	text_put(to, "],\"nodes\":[[0,0]");
	for (uint32_t i = 1; i < s->n_nodes; i++)
		text_printf(to, ",[%u,%u]", s->nodes[i].parent, s->nodes[i].frame);
	text_put(to, "],\"locks\":[");
	for (uint32_t i = 0; i < l->n_frames; i++) {
		text_put(to, i ? ",[" : "[");
		text_json(to, class_text(l->strings[l->frames[i].class_name], buf));
		text_printf(to, ",\"%" PRIx64 "\"]", l->frames[i].offset);
	}
	text_put(to, "],\"traces\":[");
	for (uint32_t i = 0; i < t->n_frames; i++) {
		text_put(to, i ? ",[" : "[");
		text_json(to, t->strings[t->frames[i].class_name]);
		text_put(to, ",");
		text_json(to, t->strings[t->frames[i].method]);
		text_put(to, "]");
	}
	text_put(to, "]");
}

static void sum_text(struct text_out *to, const char *name, const struct timeline_sum *s,
		     bool first)
{
	text_printf(to,
		    "%s\"%s\":{\"events\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"inside_ns\":%" PRIu64
		    "}",
		    first ? "" : ",", name, s->events, s->ns, s->inside_ns);
}

static void sums_text(struct text_out *to, const char *name, const struct timeline_sum *sums)
{
	text_printf(to, ",\"%s\":{", name);
	for (int k = 0; k < TIMELINE_KIND_COUNT; k++)
		sum_text(to, timeline_kind_names[k], &sums[k], k == 0);
	text_put(to, "}");
}

static void names_text(struct text_out *to, const char *name, const char *const *names, int n)
{
	text_printf(to, "\"%s\":[", name);
	for (int i = 0; i < n; i++)
		text_printf(to, "%s\"%s\"", i ? "," : "", names[i]);
	text_put(to, "]");
}

/* Writes what the bands lack: all of them, or the number of safepoints that the agent missed. */
static void timeline_pauses_text(struct drawing *d)
{
	const struct pauses *p = host_pauses(d->target);
	uint64_t shift_ns = (uint64_t)d->target->real_minus_mono_ns;

	text_printf(
		&d->out, ",\"pauses\":{\"known\":%s,\"unseen\":%" PRIu64 "}",
		p && p->known ? "true" : "false",
		p ? pauses_unseen(p, d->question.from_ns - shift_ns, d->question.to_ns - shift_ns)
		  : 0);
}

static void timeline_text(struct drawing *d)
{
	const struct timeline_question *q = &d->question;
	struct text_out *to = &d->out;

	text_printf(to,
		    "{\"format\":\"kindling timeline 1\",\"pid\":%d,\"name\":", d->target->jvm.pid);
	text_json(to, d->target->jvm.name);
	text_printf(to, ",\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"since_ns\":", q->from_ns,
		    q->to_ns);
	if (d->answer.since_ns == UINT64_MAX)
		text_put(to, "null");
	else
		text_printf(to, "%" PRIu64, d->answer.since_ns);
	text_put(to, d->answer.forgotten ? ",\"forgotten\":true" : ",\"forgotten\":false");
	text_put(to, ",\"asked\":{\"thread\":");
	text_json(to, q->thread ? q->thread : "");
	text_put(to, ",\"trace\":");
	text_json(to, q->trace ? q->trace : "");
	text_put(to, "},\"reasons\":{");
	names_text(to, "lock", wire_wait_names, WIRE_WAIT_COUNT);
	text_put(to, ",");
	names_text(to, "offcpu", offcpu_reason_names, OFFCPU_REASON_COUNT);
	text_put(to, ",");
	names_text(to, "band", timeline_band_names, TIMELINE_BAND_COUNT);
	text_put(to, "}");
	timeline_pauses_text(d);
	for (int k = 0; k < TIMELINE_KIND_COUNT; k++)
		events_text(d, (enum timeline_kind)k);
	timeline_threads_text(d);
	tables_text(d);
	sums_text(to, "sums", d->answer.sums);
	text_put(to, ",");
	sum_text(to, "open", &d->open[TIMELINE_LOCK], true);
	sum_text(to, "open_offcpu", &d->open[TIMELINE_OFFCPU], false);
	sums_text(to, "left_out", d->answer.left_out);
	sums_text(to, "no_room", d->answer.no_room);
	text_put(to, "}");
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
	timeline_text(d);
	return r;
}

enum MHD_Result serve_timeline(struct request *r)
{
	struct drawing d = { .host = r->serve->host };
	struct timeline_question *q = &d.question;
	size_t len;
	char *body;

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
	if (timeline_draw(&d) < 0 || text_take(&d.out, &body, &len) < 0)
		return answer_error(r, 503, "no memory");
	return answer_bytes(r, 200, "application/json", body, len);
}
