/*
 * See timeline.h: puts events into chunks, and drops chunks when there is no room. A stack costs
 * nothing until somebody asks for it: an event has its node in the stream, until the stream forgets
 * its nodes. Then the stacks of all events are copied.
 */
#include "daemon/timeline/timeline_priv.h"

#include <errno.h>
#include <string.h>
#include "proto/wire.h"

#define NAME_BYTES_MAX (1ul << 20) /* of a chunk's names; further threads are "[profile full]" */
/* Limit of the stacks that are copied at once; further ones are "[profile full]". */
#define STACK_BYTES_MAX (3ul << 20)
#define LOOK_EVERY	256u /* events between two measurements of a chunk's size */

const char *const timeline_kind_names[TIMELINE_KIND_COUNT] = { "cpu", "wall", "lock", "offcpu",
							       "band" };
const char *const timeline_band_names[TIMELINE_BAND_COUNT] = { "safepoint", "gc" };

struct timelines {
	size_t bytes_max;
	struct timeline *list;
};

int timelines_new(struct timelines **ret)
{
	struct timelines *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->bytes_max = TIMELINES_BYTES;
	*ret = p;
	return 0;
}

struct timelines *timelines_free(struct timelines *p)
{
	free(p);
	return NULL;
}

void timelines_limit(struct timelines *p, size_t bytes)
{
	p->bytes_max = bytes;
}

size_t timelines_bytes(const struct timelines *p)
{
	size_t bytes = 0;

	for (const struct timeline *t = p->list; t; t = t->next)
		bytes += t->bytes;
	return bytes;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

size_t timeline_chunk_bytes(const struct timeline_chunk *c)
{
	return sizeof(*c) + profile_bytes(c->profile) + c->cap_ticks * sizeof(*c->ticks) +
	       c->cap_intervals * sizeof(*c->intervals);
}

static void chunk_drop_stacks(struct timeline_chunk *c)
{
	if (!c->stacks || --c->stacks->chunks)
		return;
	profile_free(c->stacks->profile);
	free(c->stacks);
}

static struct timeline_chunk *chunk_free(struct timeline_chunk *c)
{
	profile_free(c->profile);
	chunk_drop_stacks(c);
	free(c->ticks);
	free(c->intervals);
	free(c);
	return NULL;
}

static struct timeline_chunk *chunk_new(struct timeline *t, uint64_t now_ns)
{
	struct timeline_chunk *c = calloc(1, sizeof(*c));

	if (!c || profile_new(&c->profile) < 0) {
		free(c);
		return NULL;
	}
	profile_limit(c->profile, NAME_BYTES_MAX, 1);
	if (t->newest)
		profile_expect(c->profile, t->newest->profile);
	c->begin_ns = c->end_ns = now_ns;
	c->first_ns = UINT64_MAX;
	c->serial = ++t->serial;
	if (t->newest)
		t->newest->next = c;
	else
		t->oldest = c;
	t->newest = c;
	return c;
}

/* Nothing is added to an ended chunk: gives back the memory that its arrays do not use. */
static void chunk_end(struct timeline_chunk *c)
{
	void *p;

	profile_settle(c->profile);
	if (c->n_ticks && (p = realloc(c->ticks, c->n_ticks * sizeof(*c->ticks)))) {
		c->ticks = p;
		c->cap_ticks = c->n_ticks;
	}
	if (c->n_intervals && (p = realloc(c->intervals, c->n_intervals * sizeof(*c->intervals)))) {
		c->intervals = p;
		c->cap_intervals = c->n_intervals;
	}
}

static void timeline_weigh(struct timeline *t)
{
	const struct timeline_stacks *stacks = NULL;

	t->bytes = sizeof(*t);
	for (const struct timeline_chunk *c = t->oldest; c; c = c->next) {
		t->bytes += timeline_chunk_bytes(c);
		if (c->stacks && c->stacks != stacks) /* chunks that share stacks are neighbours */
			t->bytes += sizeof(*stacks) + profile_bytes(c->stacks->profile);
		stacks = c->stacks;
	}
}

/* false = the target has no chunk to drop. */
static bool drop_oldest(struct timeline *t)
{
	struct timeline_chunk *c = t->oldest;

	if (!c)
		return false;
	t->oldest = c->next;
	if (!t->oldest) {
		t->newest = NULL;
		live_ids_forget(&t->ids);
	}
	t->begin_ns = c->end_ns;
	t->forgot = true;
	chunk_free(c);
	timeline_weigh(t);
	return true;
}

int timeline_new(struct timelines *p, const struct timeline_process *of, struct timeline **ret)
{
	struct timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->pool = p;
	t->of = *of;
	t->ids.process = UINT32_MAX;
	t->bytes = sizeof(*t);
	t->next = p->list;
	p->list = t;
	*ret = t;
	return 0;
}

struct timeline *timeline_free(struct timeline *t)
{
	struct timeline **link;

	if (!t)
		return NULL;
	for (link = &t->pool->list; *link != t; link = &(*link)->next)
		;
	*link = t->next;
	while (drop_oldest(t))
		;
	live_ids_forget(&t->ids);
	free(t);
	return NULL;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

struct live_process timeline_process_of(const struct timeline *t)
{
	return (struct live_process){ .pid = t->of.pid,
				      .start_time = t->of.start_time,
				      .tenant = t->of.tenant };
}

static struct timeline_stacks *stacks_new(const struct timeline *t, struct live_ids *ids)
{
	const struct live_process process = timeline_process_of(t);
	struct timeline_stacks *s = calloc(1, sizeof(*s));

	if (!s || profile_new(&s->profile) < 0) {
		free(s);
		return NULL;
	}
	profile_limit(s->profile, STACK_BYTES_MAX, 1);
	(void)live_ids_process(ids, s->profile, &process);
	return s;
}

/* Copies the stacks of a chunk's events to @s, to which @ids belongs. */
static void chunk_keep_stacks(struct timeline_chunk *c, const struct stream *stream,
			      struct timeline_stacks *s, struct live_ids *ids)
{
	for (uint32_t i = 0; i < c->n_ticks; i++) {
		struct timeline_tick *k = &c->ticks[i];

		k->stack = live_ids_stack(ids, s->profile, stream, k->stack);
	}
	for (uint32_t i = 0; i < c->n_intervals; i++) {
		struct timeline_interval *v = &c->intervals[i];

		v->stack = live_ids_stack(ids, s->profile, stream, v->stack);
		v->owner_stack = live_ids_stack(ids, s->profile, stream, v->owner_stack);
	}
	c->stacks = s;
	s->chunks++;
}

/* Without memory for a copy the events have no stacks. */
static void chunk_lose_stacks(struct timeline_chunk *c)
{
	for (uint32_t i = 0; i < c->n_ticks; i++)
		c->ticks[i].stack = 0;
	for (uint32_t i = 0; i < c->n_intervals; i++)
		c->intervals[i].stack = c->intervals[i].owner_stack = 0;
}

void timeline_reset(struct timeline *t)
{
	struct live_ids ids = { .process = UINT32_MAX };
	struct timeline_stacks *s = NULL;

	if (!t->stream)
		return; /* no event has a stack of it */
	for (struct timeline_chunk *c = t->oldest; c; c = c->next) {
		if (c->stacks || !(c->n_ticks + c->n_intervals))
			continue;
		if (!s)
			s = stacks_new(t, &ids);
		if (s)
			chunk_keep_stacks(c, t->stream, s, &ids);
		else
			chunk_lose_stacks(c);
	}
	if (s)
		profile_settle(s->profile);
	live_ids_forget(&ids);
	t->stream = NULL;
	timeline_weigh(t);
}

/* ---- the budget ------------------------------------------------------------------------------ */

static size_t tenant_bytes(const struct timelines *p, uint64_t tenant)
{
	size_t bytes = 0;

	for (const struct timeline *t = p->list; t; t = t->next)
		if (t->of.tenant == tenant)
			bytes += t->bytes;
	return bytes;
}

/* The timeline that must drop a chunk: the largest one of the tenant that takes the most memory. */
static struct timeline *timeline_largest(const struct timelines *p)
{
	struct timeline *most = NULL;

	for (struct timeline *t = p->list; t; t = t->next)
		if (t->oldest &&
		    (!most || t->tenant_bytes > most->tenant_bytes ||
		     (t->tenant_bytes == most->tenant_bytes && t->bytes > most->bytes)))
			most = t;
	return most;
}

static void timelines_drop(struct timelines *p, struct timeline *from)
{
	size_t before = from->bytes;

	(void)drop_oldest(from);
	for (struct timeline *t = p->list; t; t = t->next)
		if (t->of.tenant == from->of.tenant)
			t->tenant_bytes -= before - from->bytes;
}

void timelines_tick(struct timelines *p, uint64_t now_ns)
{
	struct timeline *most;

	for (struct timeline *t = p->list; t; t = t->next) {
		while (t->oldest && t->oldest->end_ns + TIMELINE_KEEP_NS < now_ns)
			(void)drop_oldest(t);
		timeline_weigh(t);
	}
	if (timelines_bytes(p) <= p->bytes_max)
		return;
	for (struct timeline *t = p->list; t; t = t->next)
		t->tenant_bytes = tenant_bytes(p, t->of.tenant);
	while (timelines_bytes(p) > p->bytes_max && (most = timeline_largest(p)))
		timelines_drop(p, most);
}

/* ---- adding ---------------------------------------------------------------------------------- */

static struct timeline_chunk *chunk_at(struct timeline *t, uint64_t now_ns)
{
	struct timeline_chunk *c = t->newest;

	/* a new chunk also when the clock was set back, and after timeline_reset() */
	if (c && now_ns >= c->begin_ns && now_ns - c->begin_ns < TIMELINE_CHUNK_NS && !c->stacks)
		return c;
	if (c) {
		chunk_end(c);
		timeline_weigh(t);
	}
	c = chunk_new(t, now_ns);
	if (c)
		live_ids_turn(&t->ids, c->serial);
	if (!t->begin_ns)
		t->begin_ns = now_ns;
	return c;
}

static void refuse(struct timeline_chunk *c, const struct timeline_event *e)
{
	struct timeline_sum *s = &c->no_room[e->kind];

	s->events += e->n ? e->n : 1;
	s->ns += e->length_ns;
}

static bool timeline_grow(void **array, uint32_t *cap, uint32_t n, size_t size)
{
	uint32_t want = *cap ? *cap + *cap / 2 : 64;
	void *p;

	if (n < *cap)
		return true;
	p = realloc(*array, want * size);
	if (!p)
		return false;
	*array = p;
	*cap = want;
	return true;
}

/* Keeps within the target's part of the budget: drops older chunks, and if that is not enough
 * refuses the event. */
static bool timeline_has_room(struct timeline *t, const struct timeline_chunk *c)
{
	if ((c->n_ticks + c->n_intervals) % LOOK_EVERY == 0)
		timeline_weigh(t);
	while (t->bytes > t->pool->bytes_max / 2 && t->oldest != t->newest)
		(void)drop_oldest(t);
	return t->bytes <= t->pool->bytes_max / 2;
}

/* The thread's position in the chunk, + 1; 0 = there is no thread, or no room. */
static uint32_t thread_in(struct timeline *t, struct timeline_chunk *c, uint32_t tid,
			  const char *name, uint32_t number)
{
	uint32_t n;

	if (!tid)
		return 0;
	n = live_ids_thread(&t->ids, c->profile, t->ids.process, tid, name, number);
	return n == UINT32_MAX ? 0 : n + 1;
}

static void add_tick(struct timeline *t, struct timeline_chunk *c, const struct timeline_event *e)
{
	if (!timeline_grow((void **)&c->ticks, &c->cap_ticks, c->n_ticks, sizeof(*c->ticks))) {
		refuse(c, e);
		return;
	}
	c->ticks[c->n_ticks++] = (struct timeline_tick){
		.at_ns = e->end_ns,
		.weight_ns = e->length_ns,
		.thread = thread_in(t, c, e->tid, e->thread, e->thread_number),
		.stack = e->node,
		.trace = profile_string(c->profile, e->trace_id),
		.span = profile_string(c->profile, e->span_id),
		.kind = (unsigned)e->kind & 15,
	};
}

static void add_interval(struct timeline *t, struct timeline_chunk *c,
			 const struct timeline_event *e)
{
	if (!timeline_grow((void **)&c->intervals, &c->cap_intervals, c->n_intervals,
			   sizeof(*c->intervals))) {
		refuse(c, e);
		return;
	}
	c->intervals[c->n_intervals++] = (struct timeline_interval){
		.end_ns = e->end_ns,
		.length_ns = e->length_ns,
		.runqueue_ns = e->runqueue_ns < e->length_ns ? e->runqueue_ns : e->length_ns,
		.thread = thread_in(t, c, e->tid, e->thread, e->thread_number),
		.owner = thread_in(t, c, e->owner_tid, e->owner, 0),
		.waker = thread_in(t, c, e->waker_tid, e->waker, 0),
		.stack = e->node,
		.owner_stack = e->owner_node,
		.class_name = profile_string(c->profile, e->class_name),
		.trace = profile_string(c->profile, e->trace_id),
		.span = profile_string(c->profile, e->span_id),
		.identity = e->identity,
		.n = e->n ? e->n : 1,
		.syscall = e->syscall,
		.kind = e->kind,
		.reason = e->reason,
		.flags = e->flags,
	};
}

void timeline_add(struct timeline *t, const struct stream *stream, const struct timeline_event *e,
		  uint64_t now_ns)
{
	const struct live_process process = timeline_process_of(t);
	struct timeline_chunk *c = chunk_at(t, now_ns);
	struct timeline_event event = *e;
	uint64_t begin_ns;

	if (!c)
		return; /* no memory at all */
	if (event.end_ns > now_ns)
		event.end_ns = now_ns;
	if (event.end_ns + TIMELINE_KEEP_NS < now_ns)
		event.end_ns = now_ns - TIMELINE_KEEP_NS;
	if (event.length_ns > event.end_ns)
		event.length_ns = event.end_ns; /* not before 1970 */
	if (stream)
		t->stream = stream;
	else
		event.node = event.owner_node = 0;
	c->end_ns = now_ns;
	if (!timeline_has_room(t, c)) {
		refuse(c, &event);
		return;
	}
	(void)live_ids_process(&t->ids, c->profile, &process);
	begin_ns = event.end_ns - (timeline_is_moment(event.kind) ? 0 : event.length_ns);
	if (timeline_is_moment(event.kind))
		add_tick(t, c, &event);
	else
		add_interval(t, c, &event);
	if (begin_ns < c->first_ns)
		c->first_ns = begin_ns;
	if (event.end_ns > c->last_ns)
		c->last_ns = event.end_ns;
}
