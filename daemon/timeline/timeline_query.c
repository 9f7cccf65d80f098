/*
 * Answers: the events of a span of time. Each chunk becomes a part of the answer, with its own
 * strings; stacks that are still nodes of the stream get a profile of the answer's; threads are
 * merged, by number and name. An event that arrived before its
 * thread's name goes to the named thread of that number.
 */
#include "daemon/timeline/timeline_priv.h"

#include <errno.h>
#include <string.h>

#define THREADS_BYTES (16ul << 20)
#define STACKS_BYTES  (32ul << 20)

struct querying {
	const struct timeline *timeline;
	const struct timeline_question *q;
	struct timeline_answer *answer;
	struct profile *threads; /* the answer's threads, each once */
	uint32_t process; /* the process to which all these threads belong */
	uint32_t *map; /* the chunk's threads in the answer, + 1; 0 = not wanted */
	uint32_t cap_rows;
	uint32_t part;
};

/* A thread of this number that has a name; 0 = none. Not for virtual threads: there are too
 * many, and each has a number of its own. */
static uint32_t named_thread(const struct profile *p, uint32_t tid)
{
	if (tid >= WIRE_VIRTUAL_TID)
		return 0;
	for (uint32_t i = p->n_threads; i-- > 0;)
		if (p->threads[i].tid == tid)
			return i + 1;
	return 0;
}

static uint32_t query_thread(struct querying *x, const struct profile *from, uint32_t i)
{
	const struct profile_thread *t = &from->threads[i];
	struct profile_thread to = { .process = x->process, .tid = t->tid };
	uint32_t n = t->name ? 0 : named_thread(x->threads, t->tid);

	if (n)
		return n;
	to.name = profile_string(x->threads, from->strings[t->name]);
	n = profile_thread(x->threads, &to);
	return n == UINT32_MAX ? 0 : n + 1;
}

/* Adds all threads with names first: a name may come in a later chunk than the thread's first
 * events. */
static void number_named(struct querying *x, const struct profile *p)
{
	for (uint32_t i = 0; i < p->n_threads; i++)
		if (p->threads[i].name)
			(void)query_thread(x, p, i);
}

static int query_map_threads(struct querying *x, const struct profile *p)
{
	free(x->map);
	x->map = calloc(p->n_threads + 1, sizeof(*x->map));
	if (!x->map)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_threads; i++)
		x->map[i] = query_thread(x, p, i);
	return 0;
}

static uint32_t query_mapped(const struct querying *x, uint32_t thread)
{
	return thread ? x->map[thread - 1] : 0;
}

static void sum_add(struct timeline_sum *s, const struct timeline_row *r, uint64_t inside_ns)
{
	s->events += r->n;
	s->ns += r->length_ns;
	s->inside_ns += inside_ns;
}

/* Does any part of the row lie in the span? *ret_inside is the length of that part. */
static bool row_is_inside(const struct timeline_question *q, const struct timeline_row *r,
			  uint64_t *ret_inside)
{
	uint64_t begin = r->length_ns < r->end_ns ? r->end_ns - r->length_ns : 0;
	uint64_t end = r->end_ns < q->to_ns ? r->end_ns : q->to_ns;

	*ret_inside = 0;
	if (timeline_is_moment(r->kind))
		return r->end_ns >= q->from_ns && r->end_ns < q->to_ns;
	if (begin < q->from_ns)
		begin = q->from_ns;
	if (begin >= end)
		return false;
	*ret_inside = end - begin;
	return true;
}

static bool row_is_asked_for(const struct querying *x, const struct profile *p,
			     const struct timeline_row *r)
{
	const char *name = "";

	if (r->kind == TIMELINE_BAND)
		return true;
	if (r->thread)
		name = x->threads->strings[x->threads->threads[r->thread - 1].name];
	if (x->q->thread && !strstr(name, x->q->thread))
		return false;
	if (x->answer->around)
		return x->answer->around[r->thread];
	return !x->q->trace || strcmp(p->strings[r->trace], x->q->trace) == 0;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static int query_begin_stacks(struct querying *x)
{
	const struct live_process process = timeline_process_of(x->timeline);
	struct timeline_answer *a = x->answer;

	if (profile_new(&a->own_stacks) < 0)
		return -ENOMEM;
	profile_limit(a->own_stacks, STACKS_BYTES, 1);
	(void)live_ids_process(&a->ids, a->own_stacks, &process);
	return 0;
}

uint32_t timeline_answer_stack(struct timeline_answer *a, const struct stream *stream,
			       uint32_t node)
{
	if (!a->own_stacks || !stream || !node)
		return 0;
	return live_ids_stack(&a->ids, a->own_stacks, stream, node);
}

/* @node: of an event of @c. The node in stacks[] of the chunk's part. */
static uint32_t query_stack(struct querying *x, const struct timeline_chunk *c, uint32_t node)
{
	if (!x->q->stacks || !node)
		return 0;
	if (c->stacks)
		return node;
	return timeline_answer_stack(x->answer, x->timeline->stream, node);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* @r: with the stacks of the chunk's events, which are looked up if it is asked for. */
static int query_put_row(struct querying *x, const struct timeline_chunk *c,
			 const struct timeline_row *r)
{
	const struct profile *p = c->profile;
	struct timeline_answer *a = x->answer;
	uint64_t inside;

	if (!row_is_inside(x->q, r, &inside))
		return 0;
	if (!row_is_asked_for(x, p, r)) {
		sum_add(&a->left_out[r->kind], r, inside);
		return 0;
	}
	if (a->n_rows == x->cap_rows) {
		uint32_t want = x->cap_rows ? 2 * x->cap_rows : 4096;
		struct timeline_row *rows = realloc(a->rows, want * sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		a->rows = rows;
		x->cap_rows = want;
	}
	sum_add(&a->sums[r->kind], r, inside);
	a->rows[a->n_rows] = *r;
	a->rows[a->n_rows].stack = query_stack(x, c, r->stack);
	a->rows[a->n_rows++].owner_stack = query_stack(x, c, r->owner_stack);
	return 0;
}

static int query_put_ticks(struct querying *x, const struct timeline_chunk *c)
{
	int r = 0;

	for (uint32_t i = 0; i < c->n_ticks && r == 0; i++) {
		const struct timeline_tick *k = &c->ticks[i];
		const struct timeline_row row = {
			.end_ns = k->at_ns,
			.length_ns = k->weight_ns,
			.thread = query_mapped(x, k->thread),
			.stack = k->stack,
			.trace = k->trace,
			.span = k->span,
			.n = 1,
			.syscall = -1,
			.part = x->part,
			.kind = (uint8_t)k->kind,
		};

		r = query_put_row(x, c, &row);
	}
	return r;
}

static int query_put_intervals(struct querying *x, const struct timeline_chunk *c)
{
	int r = 0;

	for (uint32_t i = 0; i < c->n_intervals && r == 0; i++) {
		const struct timeline_interval *v = &c->intervals[i];
		const struct timeline_row row = {
			.end_ns = v->end_ns,
			.length_ns = v->length_ns,
			.runqueue_ns = v->runqueue_ns,
			.thread = query_mapped(x, v->thread),
			.owner = query_mapped(x, v->owner),
			.waker = query_mapped(x, v->waker),
			.stack = v->stack,
			.owner_stack = v->owner_stack,
			.class_name = v->class_name,
			.trace = v->trace,
			.span = v->span,
			.identity = v->identity,
			.n = v->n,
			.syscall = v->syscall,
			.part = x->part,
			.kind = v->kind,
			.reason = v->reason,
			.flags = v->flags,
		};

		r = query_put_row(x, c, &row);
	}
	return r;
}

static int query_put_chunk(struct querying *x, const struct timeline_chunk *c)
{
	struct timeline_answer *a = x->answer;
	int r;

	for (int k = 0; k < TIMELINE_KIND_COUNT; k++) {
		a->no_room[k].events += c->no_room[k].events;
		a->no_room[k].ns += c->no_room[k].ns;
	}
	x->part = a->n_parts;
	a->stacks[a->n_parts] = c->stacks && x->q->stacks ? c->stacks->profile : a->own_stacks;
	a->parts[a->n_parts++] = c->profile;
	r = query_map_threads(x, c->profile);
	if (r == 0)
		r = query_put_ticks(x, c);
	return r < 0 ? r : query_put_intervals(x, c);
}

/* Copies the names, which outlive @x. */
static int take_threads(struct querying *x)
{
	struct timeline_answer *a = x->answer;
	const struct profile *p = x->threads;

	a->threads = calloc(p->n_threads + 1, sizeof(*a->threads));
	if (!a->threads)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_threads; i++) {
		const char *name = strdup(p->strings[p->threads[i].name]);

		if (!name)
			return -ENOMEM;
		a->threads[a->n_threads++] =
			(struct timeline_thread){ .tid = p->threads[i].tid, .name = name };
	}
	return 0;
}

/* ---- the threads of a trace ------------------------------------------------------------------ */

static void query_put_around(struct querying *x, const struct profile *p, uint32_t trace,
			     uint32_t thread, uint32_t owner)
{
	bool *around = x->answer->around;

	if (!trace || strcmp(p->strings[trace], x->q->trace) != 0)
		return;
	around[query_mapped(x, thread)] = true;
	around[query_mapped(x, owner)] = true;
	around[0] = false;
}

static void query_look_around(struct querying *x, const struct timeline_chunk *c)
{
	const struct timeline_question *q = x->q;

	for (uint32_t i = 0; i < c->n_ticks; i++) {
		const struct timeline_tick *k = &c->ticks[i];

		if (k->at_ns >= q->from_ns && k->at_ns < q->to_ns)
			query_put_around(x, c->profile, k->trace, k->thread, 0);
	}
	for (uint32_t i = 0; i < c->n_intervals; i++) {
		const struct timeline_interval *v = &c->intervals[i];

		if (v->end_ns > q->from_ns && v->end_ns - v->length_ns < q->to_ns)
			query_put_around(x, c->profile, v->trace, v->thread, v->owner);
	}
}

static bool chunk_is_inside(const struct timeline_chunk *c, const struct timeline_question *q)
{
	return c->last_ns >= q->from_ns && c->first_ns < q->to_ns;
}

/* Before any row: a thread's first event of the trace may come after its others. */
static int query_find_around(struct querying *x, const struct timeline *t)
{
	size_t n = 1;
	int r = 0;

	for (const struct timeline_chunk *c = t->oldest; c; c = c->next)
		n += c->profile->n_threads;
	x->answer->around = calloc(n, sizeof(*x->answer->around));
	if (!x->answer->around)
		return -ENOMEM;
	for (const struct timeline_chunk *c = t->oldest; c && r == 0; c = c->next) {
		if (!chunk_is_inside(c, x->q))
			continue;
		r = query_map_threads(x, c->profile);
		if (r == 0)
			query_look_around(x, c);
	}
	return r;
}

int timeline_query(const struct timeline *t, const struct timeline_question *q,
		   struct timeline_answer *ret)
{
	struct querying x = { .timeline = t, .q = q, .answer = ret };
	uint32_t n = 0;
	int r;

	*ret = (struct timeline_answer){ .since_ns = t->begin_ns ? t->begin_ns : UINT64_MAX,
					 .forgotten = t->forgot,
					 .ids.process = UINT32_MAX };
	for (const struct timeline_chunk *c = t->oldest; c; c = c->next)
		n++;
	ret->parts = calloc(n + 1, sizeof(*ret->parts));
	ret->stacks = calloc(n + 1, sizeof(*ret->stacks));
	r = ret->parts && ret->stacks ? profile_new(&x.threads) : -ENOMEM;
	if (r == 0 && q->stacks)
		r = query_begin_stacks(&x);
	if (r == 0) {
		profile_limit(x.threads, THREADS_BYTES, 1);
		x.process =
			profile_process(x.threads, &(struct profile_process){ .pid = t->of.pid });
	}
	for (const struct timeline_chunk *c = t->oldest; c && r == 0; c = c->next)
		if (chunk_is_inside(c, q))
			number_named(&x, c->profile);
	if (r == 0 && q->trace && q->around)
		r = query_find_around(&x, t);
	for (const struct timeline_chunk *c = t->oldest; c && r == 0; c = c->next)
		if (chunk_is_inside(c, q))
			r = query_put_chunk(&x, c);
	if (r == 0)
		ret->stacks[ret->n_parts] = ret->own_stacks;
	if (r == 0)
		r = take_threads(&x);
	free(x.map);
	profile_free(x.threads);
	if (r < 0)
		timeline_answer_free(ret);
	return r;
}

void timeline_answer_free(struct timeline_answer *a)
{
	for (uint32_t i = 0; i < a->n_threads; i++)
		free((void *)(uintptr_t)a->threads[i].name);
	free(a->threads);
	free(a->around);
	free(a->parts);
	free(a->stacks);
	profile_free(a->own_stacks);
	live_ids_forget(&a->ids);
	free(a->rows);
	*a = (struct timeline_answer){ 0 };
}
