/*
 * See profile.h. Every table is an array for readers and an open-addressing index of array
 * positions for writers; equal entries are found by comparing with the array.
 */
#include "daemon/profile/profile_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK_BYTES 32 /* what malloc takes beside a string, at most */
#define NOT_MAPPED  UINT32_MAX

/* mutable views of the read-only tables */
#define STRINGS(p)   ((const char **)(uintptr_t)(p)->strings)
#define FRAMES(p)    ((struct profile_frame *)(uintptr_t)(p)->frames)
#define PROCESSES(p) ((struct profile_process *)(uintptr_t)(p)->processes)
#define THREADS(p)   ((struct profile_thread *)(uintptr_t)(p)->threads)
#define NODES(p)     ((struct profile_node *)(uintptr_t)(p)->nodes)
#define ROWS(p)	     ((struct profile_row *)(uintptr_t)(p)->rows)

static uint64_t add_capped(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* ---- hashes ------------------------------------------------------------------------------ */

static uint32_t hash_bytes(const struct profile *p, const char *s, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull ^ p->index->seed;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3ull;
	return (uint32_t)(h ^ h >> 32);
}

static uint32_t hash_pair(const struct profile *p, uint32_t a, uint32_t b)
{
	uint64_t h = (((uint64_t)a << 32 | b) ^ p->index->seed) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 29) * 0xff51afd7ed558ccdull;
	return (uint32_t)(h >> 32);
}

static uint32_t hash_string(const struct profile *p, const char *s)
{
	return hash_bytes(p, s, strlen(s));
}

static uint32_t hash_frame(const struct profile *p, const struct profile_frame *f)
{
	uint32_t h = hash_pair(p, f->class_name, f->method);

	h = hash_pair(p, h ^ f->module, (uint32_t)f->line ^ f->signature);
	return hash_pair(p, h ^ f->kind, (uint32_t)(f->offset ^ f->offset >> 32));
}

static uint32_t hash_process(const struct profile *p, const struct profile_process *q)
{
	return hash_pair(p, q->pid, (uint32_t)q->start_time);
}

static uint32_t hash_thread(const struct profile *p, const struct profile_thread *t)
{
	return hash_pair(p, t->process * 31 + t->name, t->tid);
}

static uint32_t hash_of_string(const struct profile *p, uint32_t i)
{
	return hash_string(p, p->strings[i]);
}

static uint32_t hash_of_frame(const struct profile *p, uint32_t i)
{
	return hash_frame(p, &p->frames[i]);
}

static uint32_t hash_of_process(const struct profile *p, uint32_t i)
{
	return hash_process(p, &p->processes[i]);
}

static uint32_t hash_of_thread(const struct profile *p, uint32_t i)
{
	return hash_thread(p, &p->threads[i]);
}

static uint32_t hash_of_node(const struct profile *p, uint32_t i)
{
	return hash_pair(p, p->nodes[i].parent, p->nodes[i].frame);
}

static uint32_t hash_row(const struct profile *p, const struct profile_row *r)
{
	uint32_t what = (uint32_t)(r->event << 16 | r->wait << 8 | r->idle);

	return hash_pair(p, r->thread ^ what << 8, r->node);
}

static uint32_t hash_of_row(const struct profile *p, uint32_t i)
{
	return hash_row(p, &p->rows[i]);
}

/* ---- growing ----------------------------------------------------------------------------- */

void profile_limit(struct profile *p, size_t bytes)
{
	p->index->bytes_max = bytes;
}

uint64_t profile_samples(const struct profile *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		n += p->rows[i].samples;
	return n;
}

unsigned profile_events(const struct profile *p)
{
	unsigned events = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		events |= 1u << p->rows[i].event;
	return events;
}

size_t profile_bytes(const struct profile *p)
{
	return p->index->bytes;
}

static bool charge(struct profile *p, size_t bytes)
{
	if (!p->index->spare && p->index->bytes + bytes > p->index->bytes_max)
		return false;
	p->index->bytes += bytes;
	return true;
}

static bool reserve(struct profile *p, void **array, uint32_t *cap, uint32_t n, uint32_t max,
		    size_t size)
{
	uint32_t want = *cap ? 2 * *cap : 64;
	void *q;

	if (n >= (p->index->spare ? max : max - PROFILE_SPARE))
		return false;
	if (n < *cap)
		return true;
	if (!charge(p, (want - *cap) * size))
		return false;
	q = realloc(*array, want * size);
	if (!q)
		return false;
	*array = q;
	*cap = want;
	return true;
}

/* A place for one more in @s, whose @n entries hash as @hash_of says. */
static bool set_grow(struct profile *p, struct profile_set *s, uint32_t n,
		     uint32_t (*hash_of)(const struct profile *p, uint32_t i))
{
	uint32_t size = s->size ? s->size : 128;
	uint32_t *slots;

	if (2 * (n + 1) <= s->size)
		return true;
	while (size < 2 * (n + 1))
		size *= 2;
	if (!charge(p, (size - s->size) * sizeof(*slots)))
		return false;
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

static void set_add(struct profile_set *s, uint32_t hash, uint32_t i)
{
	uint32_t at = hash & (s->size - 1);

	while (s->slots[at])
		at = (at + 1) & (s->size - 1);
	s->slots[at] = i + 1;
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
	p->index->bytes_max = PROFILE_BYTES_MAX;
	(void)!getrandom(&p->index->seed, sizeof(p->index->seed), GRND_NONBLOCK);
	/* string 0 is "", node 0 the root */
	if (!reserve(p, (void **)&p->strings, &p->index->cap_strings, 0, PROFILE_STRINGS_MAX,
		     sizeof(*p->strings)) ||
	    !reserve(p, (void **)&p->nodes, &p->index->cap_nodes, 0, PROFILE_NODES_MAX,
		     sizeof(*p->nodes)))
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

/* Returns the position of an equal entry from the function around it; @same compares entry @i. */
#define RETURN_IF_FOUND(set, hash, i, same)                                               \
	for (uint32_t at_ = (hash) & ((set)->size - 1); (set)->size && (set)->slots[at_]; \
	     at_ = (at_ + 1) & ((set)->size - 1)) {                                       \
		uint32_t i = (set)->slots[at_] - 1;                                       \
		if (same)                                                                 \
			return i;                                                         \
	}

/* Room for one more in a table and in its index. */
#define RESERVE(p, table, max, hash_of)                                                  \
	(set_grow(p, &(p)->index->table, (p)->n_##table, hash_of) &&                     \
	 reserve(p, (void **)&(p)->table, &(p)->index->cap_##table, (p)->n_##table, max, \
		 sizeof(*(p)->table)))

/* Cut to PROFILE_STRING_MAX, not inside a character. */
static size_t string_length(const char *s)
{
	size_t len = strnlen(s, PROFILE_STRING_MAX + 1);

	if (len <= PROFILE_STRING_MAX)
		return len;
	for (len = PROFILE_STRING_MAX; len > 0 && ((uint8_t)s[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

uint32_t profile_string(struct profile *p, const char *s)
{
	struct profile_set *set = &p->index->strings;
	size_t len = s ? string_length(s) : 0;
	uint32_t hash;
	char *copy;

	if (!len)
		return 0;
	hash = hash_bytes(p, s, len);
	RETURN_IF_FOUND(set, hash, i, strncmp(p->strings[i], s, len) == 0 && !p->strings[i][len]);
	if (!RESERVE(p, strings, PROFILE_STRINGS_MAX, hash_of_string) ||
	    !charge(p, len + BLOCK_BYTES))
		return 0;
	copy = strndup(s, len);
	if (!copy)
		return 0;
	STRINGS(p)[p->n_strings] = copy;
	set_add(set, hash, p->n_strings);
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
	struct profile_set *set = &p->index->frames;
	uint32_t hash = hash_frame(p, f);

	RETURN_IF_FOUND(set, hash, i, same_frame(&p->frames[i], f));
	if (!RESERVE(p, frames, PROFILE_NODES_MAX, hash_of_frame))
		return UINT32_MAX;
	FRAMES(p)[p->n_frames] = *f;
	set_add(set, hash, p->n_frames);
	return p->n_frames++;
}

static uint32_t intern_process(struct profile *p, const struct profile_process *q)
{
	struct profile_set *set = &p->index->processes;
	uint32_t hash = hash_process(p, q);

	RETURN_IF_FOUND(set, hash, i,
			p->processes[i].pid == q->pid &&
				p->processes[i].start_time == q->start_time);
	if (!RESERVE(p, processes, PROFILE_NODES_MAX, hash_of_process))
		return UINT32_MAX;
	PROCESSES(p)[p->n_processes] = *q;
	PROCESSES(p)[p->n_processes].books = (struct profile_books){ 0 };
	set_add(set, hash, p->n_processes);
	return p->n_processes++;
}

uint32_t profile_process(struct profile *p, const struct profile_process *q)
{
	uint32_t id = intern_process(p, q);
	struct profile_process *known;

	if (id == UINT32_MAX)
		return id;
	/* the JDK is known only after HELLO, a pod's name only when its files were read */
	known = &PROCESSES(p)[id];
	known->ns_pid = known->ns_pid ? known->ns_pid : q->ns_pid;
	known->name = known->name ? known->name : q->name;
	known->container_id = known->container_id ? known->container_id : q->container_id;
	known->container = known->container ? known->container : q->container;
	known->pod = known->pod ? known->pod : q->pod;
	known->jdk = known->jdk ? known->jdk : q->jdk;
	return id;
}

static uint32_t intern_thread(struct profile *p, const struct profile_thread *t)
{
	struct profile_set *set = &p->index->threads;
	uint32_t hash = hash_thread(p, t);

	RETURN_IF_FOUND(set, hash, i,
			p->threads[i].process == t->process && p->threads[i].tid == t->tid &&
				p->threads[i].name == t->name);
	if (!RESERVE(p, threads, PROFILE_NODES_MAX, hash_of_thread))
		return UINT32_MAX;
	THREADS(p)[p->n_threads] = *t;
	set_add(set, hash, p->n_threads);
	return p->n_threads++;
}

static uint32_t intern_node(struct profile *p, uint32_t parent, uint32_t frame)
{
	struct profile_set *set = &p->index->nodes;
	uint32_t hash = hash_pair(p, parent, frame);

	RETURN_IF_FOUND(set, hash, i,
			i && p->nodes[i].parent == parent && p->nodes[i].frame == frame);
	if (!RESERVE(p, nodes, PROFILE_NODES_MAX, hash_of_node))
		return UINT32_MAX;
	NODES(p)[p->n_nodes] = (struct profile_node){ parent, frame };
	set_add(set, hash, p->n_nodes);
	return p->n_nodes++;
}

static bool same_row(const struct profile_row *a, const struct profile_row *b)
{
	return a->thread == b->thread && a->node == b->node && a->event == b->event &&
	       a->wait == b->wait && a->idle == b->idle;
}

static uint32_t intern_row(struct profile *p, const struct profile_row *r)
{
	struct profile_set *set = &p->index->rows;
	uint32_t hash = hash_row(p, r);

	RETURN_IF_FOUND(set, hash, i, same_row(&p->rows[i], r));
	if (!RESERVE(p, rows, PROFILE_ROWS_MAX, hash_of_row))
		return UINT32_MAX;
	ROWS(p)[p->n_rows] = *r;
	ROWS(p)[p->n_rows].samples = ROWS(p)[p->n_rows].weight = 0;
	set_add(set, hash, p->n_rows);
	return p->n_rows++;
}

/* ---- full ------------------------------------------------------------------------------------ */

#define FULL "[profile full]"

static uint32_t full_name(struct profile *p)
{
	if (!p->index->full_name)
		p->index->full_name = profile_string(p, FULL);
	return p->index->full_name;
}

/* Where weights go whose stack does not fit: never lost, but said. 0 only without any memory. */
static uint32_t full_node(struct profile *p)
{
	struct profile_frame f = { .kind = WIRE_KIND_SYNTHETIC, .line = -1 };
	struct profile_index *x = p->index;
	bool spare = x->spare;
	uint32_t frame, node;

	if (x->full_node)
		return x->full_node;
	x->spare = true;
	f.method = full_name(p);
	frame = profile_intern_frame(p, &f);
	node = frame == UINT32_MAX ? UINT32_MAX : intern_node(p, 0, frame);
	x->full_node = node == UINT32_MAX ? 0 : node;
	x->spare = spare;
	return x->full_node;
}

/* The thread for those of @process that have no room of their own. */
static uint32_t full_thread(struct profile *p, uint32_t process)
{
	struct profile_thread t = { .process = process };
	bool spare = p->index->spare;
	uint32_t id;

	p->index->spare = true;
	t.name = full_name(p);
	id = intern_thread(p, &t);
	p->index->spare = spare;
	return id;
}

void profile_adopt_full(struct profile *p)
{
	for (uint32_t i = 1; i < p->n_strings && !p->index->full_name; i++)
		if (strcmp(p->strings[i], FULL) == 0)
			p->index->full_name = i;
	for (uint32_t i = 1; i < p->n_nodes && p->index->full_name; i++) {
		const struct profile_frame *f = &p->frames[p->nodes[i].frame];

		if (p->nodes[i].parent == 0 && f->kind == WIRE_KIND_SYNTHETIC &&
		    f->method == p->index->full_name)
			p->index->full_node = i;
	}
}

uint32_t profile_thread(struct profile *p, const struct profile_thread *t)
{
	uint32_t id;

	if (t->process >= p->n_processes)
		return UINT32_MAX;
	id = intern_thread(p, t);
	return id == UINT32_MAX ? full_thread(p, t->process) : id;
}

uint32_t profile_node(struct profile *p, uint32_t parent, uint32_t frame)
{
	uint32_t node;

	if (parent && parent == p->index->full_node)
		return parent; /* nothing stands above it */
	node = frame == UINT32_MAX ? UINT32_MAX : intern_node(p, parent, frame);
	return node == UINT32_MAX ? full_node(p) : node;
}

/* ---- weights --------------------------------------------------------------------------------- */

static bool is_full(const struct profile *p, uint32_t thread, uint32_t node)
{
	const struct profile_index *x = p->index;

	return (x->full_node && node == x->full_node) ||
	       (x->full_name && p->threads[thread].name == x->full_name);
}

/* The row "[profile full]" for one that has no room: of its thread's process and its kind. */
static uint32_t full_row(struct profile *p, struct profile_row r)
{
	bool spare = p->index->spare;
	uint32_t row;

	r.thread = full_thread(p, p->threads[r.thread].process);
	p->index->spare = true;
	r.node = full_node(p);
	row = r.thread == UINT32_MAX ? UINT32_MAX : intern_row(p, &r);
	p->index->spare = spare;
	return row;
}

void profile_add_row(struct profile *p, const struct profile_row *r)
{
	bool known = r->thread < p->n_threads && r->node < p->n_nodes;
	bool full = !known || is_full(p, r->thread, r->node);
	uint32_t row = known ? intern_row(p, r) : UINT32_MAX;

	if (known && row == UINT32_MAX) {
		full = true;
		row = full_row(p, *r);
	}
	if (full)
		p->overflow = add_capped(p->overflow, r->samples);
	if (row == UINT32_MAX)
		return; /* not even memory for a word about it: it is in `overflow` */
	ROWS(p)[row].samples = add_capped(p->rows[row].samples, r->samples);
	ROWS(p)[row].weight = add_capped(p->rows[row].weight, r->weight);
}

void profile_add(struct profile *p, uint32_t thread, uint32_t node, uint64_t samples,
		 uint64_t weight_ns)
{
	const struct profile_row row = {
		.thread = thread,
		.node = node,
		.event = WIRE_EVENT_CPU,
		.samples = samples,
		.weight = weight_ns,
	};

	profile_add_row(p, &row);
}

static void add_losses(struct profile_losses *a, const struct profile_losses *b)
{
	a->taken = add_capped(a->taken, b->taken);
	a->taken_weight = add_capped(a->taken_weight, b->taken_weight);
	a->delivered = add_capped(a->delivered, b->delivered);
	a->delivered_weight = add_capped(a->delivered_weight, b->delivered_weight);
	a->dropped = add_capped(a->dropped, b->dropped);
	a->dropped_weight = add_capped(a->dropped_weight, b->dropped_weight);
}

static bool is_wanted(const struct profile_filter *f, unsigned event)
{
	return !f || !f->events || f->events & 1u << event;
}

static void add_books(struct profile_books *a, const struct profile_books *b,
		      const struct profile_filter *f)
{
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (is_wanted(f, e))
			add_losses(&a->of[e], &b->of[e]);
	if (!is_wanted(f, WIRE_EVENT_LOCK))
		return;
	a->short_waits = add_capped(a->short_waits, b->short_waits);
	a->short_waits_ns = add_capped(a->short_waits_ns, b->short_waits_ns);
}

void profile_add_books(struct profile *p, uint32_t process, const struct profile_books *d)
{
	add_books(&p->books, d, NULL);
	if (process < p->n_processes)
		add_books(&PROCESSES(p)[process].books, d, NULL);
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

static bool thread_passes(const struct profile *src, const struct profile_thread *t,
			  const struct profile_filter *f)
{
	return process_passes(&src->processes[t->process], f) &&
	       (!f || !f->thread || strstr(src->strings[t->name], f->thread));
}

static uint32_t map_string(struct profile *dst, const struct profile *src, uint32_t id)
{
	return profile_string(dst, src->strings[id]);
}

static uint32_t map_process(struct profile *dst, const struct profile *src, uint32_t id)
{
	struct profile_process q = src->processes[id];

	q.name = map_string(dst, src, q.name);
	q.container_id = map_string(dst, src, q.container_id);
	q.container = map_string(dst, src, q.container);
	q.pod = map_string(dst, src, q.pod);
	q.jdk = map_string(dst, src, q.jdk);
	return profile_process(dst, &q);
}

static uint32_t map_thread(struct profile *dst, const struct profile *src, uint32_t id)
{
	const struct profile_thread *t = &src->threads[id];
	struct profile_thread copy = { .tid = t->tid };

	copy.process = map_process(dst, src, t->process);
	if (copy.process == UINT32_MAX)
		return UINT32_MAX;
	if (src->index->full_name && t->name == src->index->full_name)
		return full_thread(dst, copy.process);
	copy.name = map_string(dst, src, t->name);
	return profile_thread(dst, &copy);
}

static uint32_t map_frame(struct profile *dst, const struct profile *src, uint32_t *frames,
			  uint32_t id)
{
	struct profile_frame f = src->frames[id];
	bool full = false;

	if (frames[id] != NOT_MAPPED)
		return frames[id];
	f.class_name = profile_text(dst, src->strings[f.class_name], &full);
	f.method = profile_text(dst, src->strings[f.method], &full);
	f.signature = profile_text(dst, src->strings[f.signature], &full);
	f.file = profile_text(dst, src->strings[f.file], &full);
	f.module = profile_text(dst, src->strings[f.module], &full);
	if (!full)
		frames[id] = profile_intern_frame(dst, &f);
	return frames[id];
}

/* @nodes: NOT_MAPPED where a node is needed, else 0; becomes the ids in @dst. Parents come first.
 */
static void map_nodes(struct profile *dst, const struct profile *src, uint32_t *nodes,
		      uint32_t *frames)
{
	for (uint32_t i = src->n_nodes; i-- > 1;)
		if (nodes[i] == NOT_MAPPED)
			nodes[src->nodes[i].parent] = NOT_MAPPED;
	nodes[0] = 0;
	for (uint32_t i = 1; i < src->n_nodes; i++) {
		const struct profile_node *n = &src->nodes[i];

		if (nodes[i] != NOT_MAPPED)
			continue;
		if (i == src->index->full_node)
			nodes[i] = full_node(dst);
		else
			nodes[i] = profile_node(dst, nodes[n->parent],
						map_frame(dst, src, frames, n->frame));
	}
}

/* The span, the intervals, what a filter left out before. */
static void merge_span(struct profile *dst, const struct profile *src,
		       const struct profile_filter *f)
{
	if (!dst->begin_real_ns || (src->begin_real_ns && src->begin_real_ns < dst->begin_real_ns))
		dst->begin_real_ns = src->begin_real_ns;
	if (src->end_real_ns > dst->end_real_ns)
		dst->end_real_ns = src->end_real_ns;
	dst->no_budget |= src->no_budget;
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (!is_wanted(f, e))
			continue;
		if (src->interval[e] > dst->interval[e])
			dst->interval[e] = src->interval[e];
		dst->idle_left_out[e].samples += src->idle_left_out[e].samples;
		dst->idle_left_out[e].weight += src->idle_left_out[e].weight;
	}
}

static bool has_books(const struct profile_books *b)
{
	static const struct profile_books none;

	return memcmp(b, &none, sizeof(none)) != 0;
}

static void merge_head(struct profile *dst, const struct profile *src,
		       const struct profile_filter *f)
{
	merge_span(dst, src, f);
	for (uint32_t i = 0; i < src->n_processes; i++) {
		const struct profile_process *q = &src->processes[i];
		uint32_t to;

		if (!process_passes(q, f) || !has_books(&q->books))
			continue;
		to = map_process(dst, src, i);
		if (to != UINT32_MAX)
			add_books(&PROCESSES(dst)[to].books, &q->books, f);
		if (f && f->n_pids)
			add_books(&dst->books, &q->books, f);
	}
	if (!f || !f->n_pids) {
		add_books(&dst->books, &src->books, f); /* nobody's too */
	}
}

static bool row_passes(const struct profile_row *r, const bool *passes,
		       const struct profile_filter *f)
{
	return passes[r->thread] && is_wanted(f, r->event) && !(r->idle && f && f->no_idle);
}

static void leave_out_idle(struct profile *dst, const struct profile_row *r)
{
	dst->idle_left_out[r->event].samples += r->samples;
	dst->idle_left_out[r->event].weight += r->weight;
}

/* @passes: by thread */
static int merge_rows(struct profile *dst, const struct profile *src, uint32_t *threads,
		      const bool *passes, const uint32_t *nodes, const struct profile_filter *f)
{
	for (uint32_t i = 0; i < src->n_rows; i++) {
		struct profile_row r = src->rows[i];
		uint32_t *thread = &threads[r.thread];

		if (!row_passes(&r, passes, f)) {
			if (r.idle && passes[r.thread] && is_wanted(f, r.event))
				leave_out_idle(dst, &r);
			continue;
		}
		if (*thread == NOT_MAPPED)
			*thread = map_thread(dst, src, r.thread);
		if (*thread == NOT_MAPPED)
			return -ENOMEM;
		r.thread = *thread;
		r.node = nodes[r.node];
		profile_add_row(dst, &r);
	}
	return 0;
}

int profile_merge(struct profile *dst, const struct profile *src, const struct profile_filter *f)
{
	CLEANUP(freep) uint32_t *threads = malloc((src->n_threads + 1) * sizeof(*threads));
	CLEANUP(freep) uint32_t *frames = malloc((src->n_frames + 1) * sizeof(*frames));
	CLEANUP(freep) uint32_t *nodes = calloc(src->n_nodes + 1, sizeof(*nodes));
	CLEANUP(freep) bool *passes = calloc(src->n_threads + 1, sizeof(*passes));

	if (!threads || !frames || !nodes || !passes)
		return -ENOMEM;
	memset(threads, 0xff, src->n_threads * sizeof(*threads)); /* NOT_MAPPED */
	memset(frames, 0xff, src->n_frames * sizeof(*frames));
	for (uint32_t i = 0; i < src->n_threads; i++)
		passes[i] = thread_passes(src, &src->threads[i], f);
	for (uint32_t i = 0; i < src->n_rows; i++)
		if (row_passes(&src->rows[i], passes, f))
			nodes[src->rows[i].node] = NOT_MAPPED;
	merge_head(dst, src, f);
	map_nodes(dst, src, nodes, frames);
	return merge_rows(dst, src, threads, passes, nodes, f);
}

/* Index the frames anew; false = two of them are equal. */
static bool index_frames(struct profile *p)
{
	struct profile_set *set = &p->index->frames;
	bool distinct = true;

	p->index->bytes -= set->size * sizeof(*set->slots);
	free(set->slots);
	*set = (struct profile_set){ 0 };
	p->index->spare = true;
	(void)set_grow(p, set, p->n_frames, hash_of_frame);
	p->index->spare = false;
	for (uint32_t i = 0; i < p->n_frames && set->size; i++) {
		uint32_t at = hash_of_frame(p, i) & (set->size - 1);

		for (; set->slots[at]; at = (at + 1) & (set->size - 1))
			distinct &= set->slots[at] == i + 1 ||
				    !same_frame(&p->frames[i], &p->frames[set->slots[at] - 1]);
	}
	return distinct;
}

/* A frame that had its name met one that got it now: what became equal is merged. */
static void merge_equal(struct profile *p)
{
	struct profile *merged, old;

	if (profile_new(&merged) < 0)
		return;
	profile_limit(merged, SIZE_MAX);
	if (profile_merge(merged, p, NULL) == 0) {
		merged->index->bytes_max = p->index->bytes_max;
		old = *p;
		*p = *merged;
		*merged = old;
	}
	profile_free(merged);
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
	if (!index_frames(p))
		merge_equal(p);
}
