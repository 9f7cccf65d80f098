/*
 * Traces: events of the last minutes (daemon/timeline) that carry a trace id, added up by trace for
 * /v1/traces, or as a profile of one trace for /v1/profile?trace=. Made in a child (apart.c). Only
 * the time between a trace's first and last event is known; the trace itself may have begun earlier
 * and ended later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"
#include "daemon/profile/class_text.h"
#include "daemon/profile/offcpu_event.h"
#include "daemon/serve/serve_priv.h"

#define LAST_NS	       (300 * NS_PER_S)
#define SHOWN_DEFAULT  20
#define SHOWN_MAX      1000
#define LISTED_MAX     64u /* threads, and locks, of a trace that are listed */
#define TRACES_REASONS OFFCPU_REASON_COUNT
#define TRACES_BYTES   (32ul << 20) /* for ids */
#define PROFILE_BYTES  (64ul << 20)
#define FRAME_MAX      1024

struct trace_seen {
	uint32_t text; /* its id in the table of texts */
	uint64_t begin_ns, end_ns; /* of its first and last event */
	uint64_t cpu_ns, lock_ns, offcpu_ns;
	uint64_t off_ns[TRACES_REASONS]; /* by reason */
	uint64_t events;
};

struct traces_sum {
	uint32_t key; /* a position in the answer's list of threads + 1, or a text */
	uint64_t n, ns;
};

struct traces {
	const struct target *target;
	struct timeline_question question;
	struct timeline_answer answer;
	struct profile *texts;
	struct trace_seen *seen;
	uint32_t n_seen, cap;
	uint32_t **known; /* for each part and string: the trace's number + 1 */
	uint32_t *of_text; /* for each text: the trace's number + 1 */
	uint32_t n_of_text;
	uint32_t shown;
	struct text_out out;
};

/* The name of the reason why a thread was off the CPU. */
static const char *traces_reason(unsigned reason)
{
	return reason < OFFCPU_REASON_COUNT ? offcpu_reason_names[reason] : "other";
}

/* ---- adding up ------------------------------------------------------------------------------- */

static bool traces_grow(void **array, uint32_t *cap, uint32_t need, size_t each)
{
	uint32_t want = *cap ? *cap : 256;
	void *p;

	if (need < *cap)
		return true;
	while (want <= need)
		want *= 2;
	p = realloc(*array, want * each);
	if (!p)
		return false;
	memset((char *)p + *cap * each, 0, (want - *cap) * each);
	*array = p;
	*cap = want;
	return true;
}

/* The trace of an event; NULL = none, or no room for another. */
static struct trace_seen *traces_of(struct traces *x, const struct timeline_row *r)
{
	const struct profile *p = x->answer.parts[r->part];
	uint32_t *known, text;

	if (!r->trace || r->kind == TIMELINE_BAND || r->flags & TIMELINE_SUM)
		return NULL;
	if (!x->known[r->part])
		x->known[r->part] = calloc(p->n_strings + 1, sizeof(**x->known));
	known = x->known[r->part];
	if (!known)
		return NULL;
	if (known[r->trace])
		return &x->seen[known[r->trace] - 1];
	text = profile_string(x->texts, p->strings[r->trace]);
	if (!text || !traces_grow((void **)&x->of_text, &x->n_of_text, text, sizeof(*x->of_text)))
		return NULL;
	if (!x->of_text[text]) {
		if (!traces_grow((void **)&x->seen, &x->cap, x->n_seen, sizeof(*x->seen)))
			return NULL;
		x->seen[x->n_seen] = (struct trace_seen){ .text = text, .begin_ns = UINT64_MAX };
		x->of_text[text] = ++x->n_seen;
	}
	known[r->trace] = x->of_text[text];
	return &x->seen[known[r->trace] - 1];
}

/* Waits and time off the CPU are separate sums: a wait that the kernel measured is in both. */
static void traces_add(struct traces *x, const struct timeline_row *r)
{
	struct trace_seen *t = traces_of(x, r);
	uint64_t begin = timeline_is_moment(r->kind) ? r->end_ns : r->end_ns - r->length_ns;

	if (!t)
		return;
	t->begin_ns = begin < t->begin_ns ? begin : t->begin_ns;
	t->end_ns = r->end_ns > t->end_ns ? r->end_ns : t->end_ns;
	t->events += r->n;
	if (r->kind == TIMELINE_CPU)
		t->cpu_ns += r->length_ns;
	if (r->kind == TIMELINE_LOCK)
		t->lock_ns += r->length_ns;
	if (r->kind == TIMELINE_OFFCPU) {
		t->offcpu_ns += r->length_ns;
		if (r->reason < TRACES_REASONS)
			t->off_ns[r->reason] += r->length_ns;
	}
}

static int traces_slowest_first(const void *a, const void *b)
{
	const struct trace_seen *x = a, *y = b;
	uint64_t p = x->end_ns - x->begin_ns, q = y->end_ns - y->begin_ns;

	if (p != q)
		return p < q ? 1 : -1;
	return x->text < y->text ? -1 : x->text > y->text;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void traces_list_add(struct traces_sum *list, uint32_t *n, uint32_t key, uint64_t ns)
{
	uint32_t i = 0;

	while (i < *n && list[i].key != key)
		i++;
	if (!key || i == LISTED_MAX)
		return;
	if (i == *n)
		list[(*n)++] = (struct traces_sum){ .key = key };
	list[i].n++;
	list[i].ns += ns;
}

static void traces_put_threads(struct traces *x, const struct traces_sum *list, uint32_t n)
{
	json_begin_list(&x->out, "threads");
	for (uint32_t i = 0; i < n; i++) {
		const struct timeline_thread *t = &x->answer.threads[list[i].key - 1];

		json_begin_object(&x->out, NULL);
		thread_text(&x->out, x->target, t->tid, t->name);
		json_end_object(&x->out);
	}
	json_end_list(&x->out);
}

static void traces_put_locks(struct traces *x, const struct traces_sum *list, uint32_t n)
{
	char buf[CLASS_TEXT_MAX];

	json_begin_list(&x->out, "locks");
	for (uint32_t i = 0; i < n; i++) {
		json_begin_object(&x->out, NULL);
		json_add_string(&x->out, "class", class_text(x->texts->strings[list[i].key], buf));
		json_add_u64(&x->out, "waits", list[i].n);
		json_add_u64(&x->out, "ns", list[i].ns);
		json_end_object(&x->out);
	}
	json_end_list(&x->out);
}

/* Writes the trace's threads, spans and locks, which it collects from its events. */
static void traces_put_lists(struct traces *x, const struct trace_seen *t)
{
	static struct traces_sum threads[LISTED_MAX], locks[LISTED_MAX], spans[LISTED_MAX];
	uint32_t n_threads = 0, n_locks = 0, n_spans = 0;

	for (uint32_t i = 0; i < x->answer.n_rows; i++) {
		const struct timeline_row *r = &x->answer.rows[i];
		const struct profile *p = x->answer.parts[r->part];

		if (!r->trace || r->flags & TIMELINE_SUM || !x->known[r->part] ||
		    !x->known[r->part][r->trace] ||
		    x->seen[x->known[r->part][r->trace] - 1].text != t->text)
			continue;
		traces_list_add(threads, &n_threads, r->thread, 0);
		if (r->span)
			traces_list_add(spans, &n_spans,
					profile_string(x->texts, p->strings[r->span]), 0);
		if (r->kind == TIMELINE_LOCK)
			traces_list_add(locks, &n_locks,
					profile_string(x->texts, p->strings[r->class_name]),
					r->length_ns);
	}
	json_add_u64(&x->out, "spans", n_spans);
	traces_put_threads(x, threads, n_threads);
	traces_put_locks(x, locks, n_locks);
}

static void traces_put_one(struct traces *x, const struct trace_seen *t)
{
	struct text_out *to = &x->out;

	json_begin_object(to, NULL);
	json_add_string(to, "trace_id", x->texts->strings[t->text]);
	json_add_u64(to, "begin_ns", t->begin_ns);
	json_add_u64(to, "end_ns", t->end_ns);
	json_add_u64(to, "duration_ns", t->end_ns - t->begin_ns);
	json_add_u64(to, "events", t->events);
	json_add_u64(to, "cpu_ns", t->cpu_ns);
	json_add_u64(to, "lock_ns", t->lock_ns);
	json_begin_object(to, "offcpu_ns");
	for (unsigned i = 0; i < TRACES_REASONS; i++)
		if (t->off_ns[i])
			json_add_u64(to, traces_reason(i), t->off_ns[i]);
	json_end_object(to);
	traces_put_lists(x, t);
	json_end_object(to);
}

/* The slowest traces first. */
static void traces_put_list(struct traces *x)
{
	struct trace_seen *sorted = calloc(x->n_seen + 1, sizeof(*sorted));

	if (sorted) {
		memcpy(sorted, x->seen, x->n_seen * sizeof(*sorted));
		qsort(sorted, x->n_seen, sizeof(*sorted), traces_slowest_first);
	}
	json_begin_list(&x->out, "traces");
	for (uint32_t i = 0; sorted && i < x->n_seen && i < x->shown; i++)
		traces_put_one(x, &sorted[i]);
	json_end_list(&x->out);
	free(sorted);
}

static void traces_put(struct traces *x)
{
	struct text_out *to = &x->out;
	uint64_t no_room = 0;

	json_begin_object(to, NULL);
	json_add_i64(to, "pid", x->target->jvm.pid);
	json_add_string(to, "name", x->target->jvm.name);
	json_add_u64(to, "from_ns", x->question.from_ns);
	json_add_u64(to, "to_ns", x->question.to_ns);
	if (x->answer.since_ns == UINT64_MAX)
		json_add_null(to, "since_ns");
	else
		json_add_u64(to, "since_ns", x->answer.since_ns);
	for (int k = 0; k < TIMELINE_KIND_COUNT; k++)
		no_room += x->answer.no_room[k].events;
	json_add_u64(to, "no_room", no_room);
	json_add_u64(to, "n_traces", x->n_seen);
	traces_put_list(x);
	json_end_object(to);
}

static int traces_ask(struct traces *x)
{
	const struct timeline *timeline = host_timeline(x->target);

	x->answer.since_ns = UINT64_MAX;
	return timeline ? timeline_query(timeline, &x->question, &x->answer) : 0;
}

/* Frees nothing: this child exits after the answer. */
static int traces_collect(struct traces *x)
{
	int r = traces_ask(x);

	if (r == 0)
		r = profile_new(&x->texts);
	if (r < 0)
		return r;
	profile_limit(x->texts, TRACES_BYTES, 1);
	x->known = calloc(x->answer.n_parts + 1, sizeof(*x->known));
	if (!x->known)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->answer.n_rows; i++)
		traces_add(x, &x->answer.rows[i]);
	traces_put(x);
	return 0;
}

enum MHD_Result serve_traces(struct request *r)
{
	struct traces x = { .shown = SHOWN_DEFAULT };
	const char *n = argument(r, "n");

	if (!is_apart(r))
		return answer_apart(r, APART_LIVE);
	x.target = api_one_target(r, argument(r, "target"));
	if (!x.target)
		return MHD_YES;
	if (argument(r, "last") || argument(r, "from") || argument(r, "to")) {
		if (!api_time_range(r, &x.question.from_ns, &x.question.to_ns))
			return answer_error(
				r, 400,
				"last must be a duration such as 60s; from and to are ns since 1970");
	} else {
		x.question.to_ns = clock_real_ns();
		x.question.from_ns = x.question.to_ns - LAST_NS;
	}
	if (n) {
		unsigned long wanted = strtoul(n, NULL, 10);

		x.shown = wanted && wanted < SHOWN_MAX ? (uint32_t)wanted : SHOWN_MAX;
	}
	if (traces_collect(&x) < 0)
		return answer_error(r, 503, "no memory");
	return answer_json(r, 200, &x.out);
}

/* ---- the profile of one trace ---------------------------------------------------------------- */

struct trace_profile {
	struct host *host;
	const struct target *target;
	struct timeline_answer answer;
	struct profile *to;
	uint32_t process;
	uint32_t **nodes; /* for each part of the timeline: its nodes' numbers in @to, + 1 */
};

static uint32_t trace_profile_frame(struct trace_profile *x, const struct profile *p, uint32_t i)
{
	struct profile_frame f = p->frames[i];
	const struct stream_frame native = {
		.kind = f.kind,
		.class_name = p->strings[f.class_name],
		.method = p->strings[f.method],
		.module = p->strings[f.module],
		.offset = f.offset,
	};
	char buf[FRAME_MAX];

	f.method = profile_string(
		x->to, f.kind == WIRE_KIND_NATIVE
			       ? event_frame_name(x->host, x->target, &native, buf, sizeof(buf))
			       : p->strings[f.method]);
	f.class_name = profile_string(x->to, p->strings[f.class_name]);
	f.signature = profile_string(x->to, p->strings[f.signature]);
	f.file = profile_string(x->to, p->strings[f.file]);
	f.module = profile_string(x->to, p->strings[f.module]);
	f.scope = 0;
	return profile_intern_frame(x->to, &f);
}

/* Adds all nodes of a part to the profile, in their order: parents precede their children. */
static const uint32_t *trace_profile_nodes(struct trace_profile *x, uint32_t part)
{
	const struct profile *p = x->answer.stacks[part];
	uint32_t *nodes = x->nodes[part];

	for (uint32_t i = 0; i < x->answer.n_parts && !nodes; i++)
		if (x->answer.stacks[i] == p)
			nodes = x->nodes[i];
	if (nodes)
		return x->nodes[part] = nodes;
	nodes = x->nodes[part] = calloc(p->n_nodes + 1, sizeof(*nodes));
	for (uint32_t i = 1; nodes && i < p->n_nodes; i++)
		nodes[i] = profile_node(x->to, nodes[p->nodes[i].parent],
					trace_profile_frame(x, p, p->nodes[i].frame));
	return nodes;
}

static uint32_t trace_profile_class(struct trace_profile *x, uint32_t node, const char *name)
{
	struct profile_frame f = { .kind = WIRE_KIND_CLASS, .line = -1 };
	char text[CLASS_TEXT_MAX];

	if (!*name)
		return node;
	f.method = profile_string(x->to, class_text(name, text));
	return profile_node(x->to, node, profile_intern_frame(x->to, &f));
}

static void trace_profile_add(struct trace_profile *x, const struct timeline_row *r)
{
	static const enum wire_event events[TIMELINE_KIND_COUNT] = {
		[TIMELINE_CPU] = WIRE_EVENT_CPU,
		[TIMELINE_WALL] = WIRE_EVENT_WALL,
		[TIMELINE_LOCK] = WIRE_EVENT_LOCK,
		[TIMELINE_OFFCPU] = WIRE_EVENT_OFFCPU,
	};
	const uint32_t *nodes = trace_profile_nodes(x, r->part);
	const struct profile *p = x->answer.parts[r->part];
	struct profile_thread thread = { .process = x->process };
	struct profile_row row = {
		.event = (uint8_t)events[r->kind],
		.wait = r->kind == TIMELINE_LOCK ? r->reason : 0,
		.idle = r->flags & TIMELINE_IDLE,
		.samples = r->n,
		.weight = r->length_ns,
	};

	if (!nodes || r->kind == TIMELINE_BAND || r->flags & TIMELINE_SUM)
		return;
	if (r->thread) {
		thread.tid = x->answer.threads[r->thread - 1].tid;
		thread.name = profile_string(x->to, x->answer.threads[r->thread - 1].name);
	}
	row.thread = profile_thread(x->to, &thread);
	row.node = nodes[r->stack];
	row.span = profile_span(x->to, p->strings[r->trace], p->strings[r->span]);
	if (r->kind == TIMELINE_LOCK)
		row.node = trace_profile_class(x, row.node, p->strings[r->class_name]);
	if (r->kind == TIMELINE_OFFCPU)
		row.node = trace_profile_class(x, row.node, traces_reason(r->reason));
	profile_add_row(x->to, &row);
}

static int trace_profile_of(struct host *h, const struct target *t,
			    const struct timeline_question *q, struct profile *to)
{
	struct trace_profile x = { .host = h, .target = t, .to = to };
	const struct timeline *timeline = host_timeline(t);
	struct profile_process process = {
		.pid = (uint32_t)t->jvm.pid,
		.start_time = t->jvm.start_time,
		.name = profile_string(to, t->jvm.name),
		.container_id = profile_string(to, t->jvm.container_id),
	};
	int r = timeline ? timeline_query(timeline, q, &x.answer) : 0;

	if (r < 0 || !x.answer.n_rows)
		return r;
	x.process = profile_process(to, &process);
	x.nodes = calloc(x.answer.n_parts + 1, sizeof(*x.nodes));
	if (!x.nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < x.answer.n_rows; i++)
		trace_profile_add(&x, &x.answer.rows[i]);
	return 0;
}

int serve_trace_profile(struct request *r, const char *trace, const struct selection *selected,
			uint64_t from_ns, uint64_t to_ns, unsigned events, struct profile **ret)
{
	const struct timeline_question q = {
		.from_ns = from_ns, .to_ns = to_ns, .trace = trace, .stacks = true
	};
	CLEANUP(profile_freep) struct profile *all = NULL, *wanted = NULL;
	struct target *t = NULL;
	int e = profile_new(&all);

	if (e < 0)
		return e;
	profile_limit(all, PROFILE_BYTES, 1);
	while ((t = targets_next(host_targets(r->serve->host), t)))
		if (is_selected(selected, t)) {
			e = trace_profile_of(r->serve->host, t, &q, all);
			if (e < 0)
				return e;
		}
	profile_book_rows(all);
	e = profile_new(&wanted);
	if (e == 0)
		e = profile_merge(wanted, all, &(struct profile_filter){ .events = events });
	if (e < 0)
		return e;
	if (!wanted->n_rows)
		return -ENODATA;
	wanted->begin_real_ns = from_ns;
	wanted->end_real_ns = to_ns;
	*ret = TAKE_PTR(wanted);
	return 0;
}
