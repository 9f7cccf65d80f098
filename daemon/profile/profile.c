/*
 * See profile.h. Every table is an array for readers and an open-addressing index of array
 * positions for writers; equal entries are found by comparing with the array.
 */
#include "daemon/profile/profile.h"

#include <errno.h>
#include <string.h>
#include "proto/wire.h"

struct set {
	uint32_t *slots; /* position + 1; 0 = empty */
	uint32_t size; /* power of two */
};

struct profile_index {
	struct set strings, frames, processes, threads, nodes, rows;
	uint32_t cap_strings, cap_frames, cap_processes, cap_threads, cap_nodes, cap_rows;
	uint32_t full_node; /* "[profile full]", 0 = not made yet */
};

/* mutable views of the read-only tables */
#define STRINGS(p)   ((const char **)(uintptr_t)(p)->strings)
#define FRAMES(p)    ((struct profile_frame *)(uintptr_t)(p)->frames)
#define PROCESSES(p) ((struct profile_process *)(uintptr_t)(p)->processes)
#define THREADS(p)   ((struct profile_thread *)(uintptr_t)(p)->threads)
#define NODES(p)     ((struct profile_node *)(uintptr_t)(p)->nodes)
#define ROWS(p)      ((struct profile_row *)(uintptr_t)(p)->rows)

static uint32_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_pair(uint32_t a, uint32_t b)
{
	uint64_t h = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 32);
}

/* ---- growing ----------------------------------------------------------------------------- */

static bool reserve(void **array, uint32_t *cap, uint32_t n, uint32_t max, size_t size)
{
	uint32_t want = *cap ? 2 * *cap : 64;
	void *p;

	if (n < *cap)
		return true;
	if (n >= max)
		return false;
	p = realloc(*array, want * size);
	if (!p)
		return false;
	*array = p;
	*cap = want;
	return true;
}

/* A place for one more in @s, whose @n entries hash as @hash_of says. */
static bool set_grow(struct set *s, uint32_t n, const struct profile *p,
		     uint32_t (*hash_of)(const struct profile *p, uint32_t i))
{
	uint32_t size = s->size ? s->size : 128;
	uint32_t *slots;

	if (2 * (n + 1) <= s->size)
		return true;
	while (size < 2 * (n + 1))
		size *= 2;
	slots = calloc(size, sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = hash_of(p, i) & (size - 1);

		while (slots[at])
			at = (at + 1) & (size - 1);
		slots[at] = i + 1;
	}
	free(s->slots);
	s->slots = slots;
	s->size = size;
	return true;
}

static uint32_t hash_of_string(const struct profile *p, uint32_t i)
{
	return hash_bytes(p->strings[i], strlen(p->strings[i]));
}

static uint32_t hash_frame(const struct profile_frame *f)
{
	uint32_t h = hash_pair(f->class_name, f->method);

	h = hash_pair(h ^ f->module, (uint32_t)f->line ^ f->signature);
	return hash_pair(h ^ f->kind, (uint32_t)(f->offset ^ f->offset >> 32));
}

static uint32_t hash_of_frame(const struct profile *p, uint32_t i)
{
	return hash_frame(&p->frames[i]);
}

static uint32_t hash_of_process(const struct profile *p, uint32_t i)
{
	return hash_pair(p->processes[i].pid, (uint32_t)p->processes[i].start_time);
}

static uint32_t hash_of_thread(const struct profile *p, uint32_t i)
{
	return hash_pair(p->threads[i].process * 31 + p->threads[i].name, p->threads[i].tid);
}

static uint32_t hash_of_node(const struct profile *p, uint32_t i)
{
	return hash_pair(p->nodes[i].parent, p->nodes[i].frame);
}

static uint32_t hash_of_row(const struct profile *p, uint32_t i)
{
	return hash_pair(p->rows[i].thread, p->rows[i].node);
}

/* ---- life --------------------------------------------------------------------------------- */

int profile_new(struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->index = calloc(1, sizeof(*p->index));
	if (!p->index)
		return -ENOMEM;
	/* string 0 is "", node 0 the root */
	if (!reserve((void **)&p->strings, &p->index->cap_strings, 0, 64, sizeof(*p->strings)) ||
	    !reserve((void **)&p->nodes, &p->index->cap_nodes, 0, 64, sizeof(*p->nodes)))
		return -ENOMEM;
	STRINGS(p)[0] = strdup("");
	if (!p->strings[0])
		return -ENOMEM;
	p->n_strings = 1;
	NODES(p)[0] = (struct profile_node){ 0, UINT32_MAX };
	p->n_nodes = 1;
	*ret = TAKE_PTR(p);
	return 0;
}

struct profile *profile_free(struct profile *p)
{
	if (!p)
		return NULL;
	for (uint32_t i = 0; i < p->n_strings; i++)
		free((void *)(uintptr_t)p->strings[i]);
	free((void *)(uintptr_t)p->strings);
	free((void *)(uintptr_t)p->frames);
	free((void *)(uintptr_t)p->processes);
	free((void *)(uintptr_t)p->threads);
	free((void *)(uintptr_t)p->nodes);
	free((void *)(uintptr_t)p->rows);
	if (p->index) {
		free(p->index->strings.slots);
		free(p->index->frames.slots);
		free(p->index->processes.slots);
		free(p->index->threads.slots);
		free(p->index->nodes.slots);
		free(p->index->rows.slots);
		free(p->index);
	}
	free(p);
	return NULL;
}

/* ---- interning ----------------------------------------------------------------------------- */

/* The slot of an equal entry or the empty one where it belongs. @same compares entry @i. */
#define FIND(set, hash, i, same) \
	uint32_t at = (hash) & ((set)->size - 1); \
	for (; (set)->slots[at]; at = (at + 1) & ((set)->size - 1)) { \
		uint32_t i = (set)->slots[at] - 1; \
		if (same) \
			return i; \
	}

uint32_t profile_string(struct profile *p, const char *s)
{
	struct profile_index *x = p->index;
	char *copy;

	if (!s || !*s)
		return 0;
	if (!set_grow(&x->strings, p->n_strings, p, hash_of_string))
		return 0;
	FIND(&x->strings, hash_bytes(s, strlen(s)), i, strcmp(p->strings[i], s) == 0);
	if (!reserve((void **)&p->strings, &x->cap_strings, p->n_strings, PROFILE_STRINGS_MAX,
		     sizeof(*p->strings)))
		return 0;
	copy = strdup(s);
	if (!copy)
		return 0;
	STRINGS(p)[p->n_strings] = copy;
	x->strings.slots[at] = p->n_strings + 1;
	return p->n_strings++;
}

static bool same_frame(const struct profile_frame *a, const struct profile_frame *b)
{
	return a->kind == b->kind && a->line == b->line && a->class_name == b->class_name &&
	       a->method == b->method && a->signature == b->signature && a->file == b->file &&
	       a->module == b->module && a->offset == b->offset;
}

uint32_t profile_intern_frame(struct profile *p, const struct profile_frame *f)
{
	struct profile_index *x = p->index;

	if (!set_grow(&x->frames, p->n_frames, p, hash_of_frame))
		return UINT32_MAX;
	FIND(&x->frames, hash_frame(f), i, same_frame(&p->frames[i], f));
	if (!reserve((void **)&p->frames, &x->cap_frames, p->n_frames, PROFILE_NODES_MAX,
		     sizeof(*p->frames)))
		return UINT32_MAX;
	FRAMES(p)[p->n_frames] = *f;
	x->frames.slots[at] = p->n_frames + 1;
	return p->n_frames++;
}

uint32_t profile_process(struct profile *p, const struct profile_process *q)
{
	struct profile_index *x = p->index;

	if (!set_grow(&x->processes, p->n_processes, p, hash_of_process))
		return UINT32_MAX;
	FIND(&x->processes, hash_pair(q->pid, (uint32_t)q->start_time), i,
	     p->processes[i].pid == q->pid && p->processes[i].start_time == q->start_time);
	if (!reserve((void **)&p->processes, &x->cap_processes, p->n_processes, PROFILE_NODES_MAX,
		     sizeof(*p->processes)))
		return UINT32_MAX;
	PROCESSES(p)[p->n_processes] = *q;
	x->processes.slots[at] = p->n_processes + 1;
	return p->n_processes++;
}

uint32_t profile_thread(struct profile *p, const struct profile_thread *t)
{
	struct profile_index *x = p->index;

	if (!set_grow(&x->threads, p->n_threads, p, hash_of_thread))
		return UINT32_MAX;
	FIND(&x->threads, hash_pair(t->process * 31 + t->name, t->tid), i,
	     p->threads[i].process == t->process && p->threads[i].tid == t->tid &&
		     p->threads[i].name == t->name);
	if (!reserve((void **)&p->threads, &x->cap_threads, p->n_threads, PROFILE_NODES_MAX,
		     sizeof(*p->threads)))
		return UINT32_MAX;
	THREADS(p)[p->n_threads] = *t;
	x->threads.slots[at] = p->n_threads + 1;
	return p->n_threads++;
}

static uint32_t intern_node(struct profile *p, uint32_t parent, uint32_t frame)
{
	struct profile_index *x = p->index;

	if (!set_grow(&x->nodes, p->n_nodes, p, hash_of_node))
		return UINT32_MAX;
	FIND(&x->nodes, hash_pair(parent, frame), i,
	     i && p->nodes[i].parent == parent && p->nodes[i].frame == frame);
	if (!reserve((void **)&p->nodes, &x->cap_nodes, p->n_nodes, PROFILE_NODES_MAX,
		     sizeof(*p->nodes)))
		return UINT32_MAX;
	NODES(p)[p->n_nodes] = (struct profile_node){ parent, frame };
	x->nodes.slots[at] = p->n_nodes + 1;
	return p->n_nodes++;
}

/* Where weights go whose stack does not fit: never lost, but said. */
static uint32_t full_node(struct profile *p)
{
	struct profile_frame f = { .kind = WIRE_KIND_SYNTHETIC, .line = -1 };
	uint32_t frame;

	p->overflow++;
	if (!p->index->full_node) {
		f.method = profile_string(p, "[profile full]");
		frame = profile_intern_frame(p, &f);
		if (frame != UINT32_MAX)
			p->index->full_node = intern_node(p, 0, frame);
		if (p->index->full_node == UINT32_MAX)
			p->index->full_node = 0;
	}
	return p->index->full_node;
}

uint32_t profile_node(struct profile *p, uint32_t parent, uint32_t frame)
{
	uint32_t node = frame == UINT32_MAX ? UINT32_MAX : intern_node(p, parent, frame);

	return node == UINT32_MAX ? full_node(p) : node;
}

static uint32_t intern_row(struct profile *p, uint32_t thread, uint32_t node)
{
	struct profile_index *x = p->index;

	if (!set_grow(&x->rows, p->n_rows, p, hash_of_row))
		return UINT32_MAX;
	FIND(&x->rows, hash_pair(thread, node), i,
	     p->rows[i].thread == thread && p->rows[i].node == node);
	if (!reserve((void **)&p->rows, &x->cap_rows, p->n_rows, PROFILE_ROWS_MAX, sizeof(*p->rows)))
		return UINT32_MAX;
	ROWS(p)[p->n_rows] = (struct profile_row){ thread, node, 0, 0 };
	x->rows.slots[at] = p->n_rows + 1;
	return p->n_rows++;
}

void profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t samples,
		 uint64_t weight_ns)
{
	uint32_t row = intern_row(p, thread, node);

	if (row == UINT32_MAX && p->n_rows) {
		p->overflow += samples;
		row = p->n_rows - 1;
	}
	if (row == UINT32_MAX)
		return;
	ROWS(p)[row].samples += samples;
	ROWS(p)[row].weight_ns += weight_ns;
}

/* ---- merging -------------------------------------------------------------------------------- */

static bool process_passes(const struct profile_process *q, const struct profile_filter *f)
{
	if (!f || !f->n_pids)
		return true;
	for (uint32_t i = 0; i < f->n_pids; i++)
		if (f->pids[i] == q->pid && (!f->start_times || f->start_times[i] == q->start_time))
			return true;
	return false;
}

struct mapping {
	uint32_t *threads, *nodes, *frames; /* src id -> dst id + 1; 0 = not mapped yet */
};

static uint32_t map_string(struct profile *dst, const struct profile *src, uint32_t id)
{
	return profile_string(dst, src->strings[id]);
}

static uint32_t map_thread(struct profile *dst, const struct profile *src, uint32_t id)
{
	const struct profile_thread *t = &src->threads[id];
	struct profile_process q = src->processes[t->process];
	struct profile_thread copy = { .tid = t->tid };

	q.name = map_string(dst, src, q.name);
	q.container_id = map_string(dst, src, q.container_id);
	q.container = map_string(dst, src, q.container);
	q.pod = map_string(dst, src, q.pod);
	q.jdk = map_string(dst, src, q.jdk);
	copy.process = profile_process(dst, &q);
	copy.name = map_string(dst, src, t->name);
	return copy.process == UINT32_MAX ? UINT32_MAX : profile_thread(dst, &copy);
}

static uint32_t map_frame(struct profile *dst, const struct profile *src, struct mapping *m,
			  uint32_t id)
{
	struct profile_frame f = src->frames[id];
	uint32_t to;

	if (m->frames[id])
		return m->frames[id] - 1;
	f.class_name = map_string(dst, src, f.class_name);
	f.method = map_string(dst, src, f.method);
	f.signature = map_string(dst, src, f.signature);
	f.file = map_string(dst, src, f.file);
	f.module = map_string(dst, src, f.module);
	to = profile_intern_frame(dst, &f);
	if (to != UINT32_MAX)
		m->frames[id] = to + 1;
	return to;
}

/* Iterative: a stack may be thousands of frames deep. */
static uint32_t map_node(struct profile *dst, const struct profile *src, struct mapping *m,
			 uint32_t leaf)
{
	uint32_t chain[4096], n = 0, id = leaf, to;

	while (id && !m->nodes[id] && n < ARRAY_SIZE(chain)) {
		chain[n++] = id;
		id = src->nodes[id].parent;
	}
	to = id && m->nodes[id] ? m->nodes[id] - 1 : 0;
	while (n > 0) {
		id = chain[--n];
		to = profile_node(dst, to, map_frame(dst, src, m, src->nodes[id].frame));
		m->nodes[id] = to + 1;
	}
	return to;
}

static void add_losses(struct profile_losses *a, const struct profile_losses *b)
{
	a->taken += b->taken;
	a->taken_ns += b->taken_ns;
	a->delivered += b->delivered;
	a->delivered_ns += b->delivered_ns;
	a->dropped += b->dropped;
	a->dropped_ns += b->dropped_ns;
}

int profile_merge(struct profile *dst, const struct profile *src, const struct profile_filter *f)
{
	CLEANUP(freep) uint32_t *threads = calloc(src->n_threads + 1, sizeof(*threads));
	CLEANUP(freep) uint32_t *nodes = calloc(src->n_nodes + 1, sizeof(*nodes));
	CLEANUP(freep) uint32_t *frames = calloc(src->n_frames + 1, sizeof(*frames));
	struct mapping m = { threads, nodes, frames };

	if (!threads || !nodes || !frames)
		return -ENOMEM;
	if (!dst->begin_real_ns || (src->begin_real_ns && src->begin_real_ns < dst->begin_real_ns))
		dst->begin_real_ns = src->begin_real_ns;
	if (src->end_real_ns > dst->end_real_ns)
		dst->end_real_ns = src->end_real_ns;
	if (src->interval_ns > dst->interval_ns)
		dst->interval_ns = src->interval_ns;
	dst->no_budget |= src->no_budget;
	dst->overflow += src->overflow;
	add_losses(&dst->losses, &src->losses);
	for (uint32_t i = 0; i < src->n_rows; i++) {
		const struct profile_row *r = &src->rows[i];
		const struct profile_thread *t = &src->threads[r->thread];

		if (!process_passes(&src->processes[t->process], f) ||
		    (f && f->thread && !strstr(src->strings[t->name], f->thread)))
			continue;
		if (!threads[r->thread])
			threads[r->thread] = map_thread(dst, src, r->thread) + 1;
		if (!threads[r->thread])
			return -ENOMEM;
		profile_add(dst, threads[r->thread] - 1, map_node(dst, src, &m, r->node), r->samples,
			    r->weight_ns);
	}
	return 0;
}

void profile_symbolize(struct profile *p,
		       const char *(*lookup)(void *userdata, const char *module, uint64_t offset),
		       void *userdata)
{
	for (uint32_t i = 0; i < p->n_frames; i++) {
		struct profile_frame *f = &FRAMES(p)[i];
		const char *name;

		if (f->kind != WIRE_KIND_NATIVE || f->method)
			continue;
		name = lookup(userdata, p->strings[f->module], f->offset);
		if (name)
			f->method = profile_string(p, name);
	}
	/* frames are found by their content, which changed */
	free(p->index->frames.slots);
	p->index->frames = (struct set){ 0 };
	(void)set_grow(&p->index->frames, p->n_frames, p, hash_of_frame);
}
