/* Adds up profiles, whole or filtered, by mapping the ids of each table in turn. */
#include "daemon/profile/profile_priv.h"

#include <errno.h>
#include <string.h>

#define NOT_MAPPED PROFILE_NOT_MAPPED

static bool process_passes(const struct profile_process *q, const struct profile_filter *f)
{
	if (!f || !f->n_pids)
		return true;
	for (uint32_t i = 0; i < f->n_pids; i++)
		if (f->pids[i] == q->pid && (!f->start_times || f->start_times[i] == q->start_time))
			return true;
	return false;
}

enum pass {
	PASS_NOT,
	PASS_PROCESS,
	PASS_THREAD
}; /* what passes of a thread: nothing, only its process's counters, or all */

static uint8_t thread_passes(const struct profile *src, const struct profile_thread *t,
			     const struct profile_filter *f)
{
	if (!process_passes(&src->processes[t->process], f))
		return PASS_NOT;
	return !f || !f->thread || strstr(src->strings[t->name], f->thread) ? PASS_THREAD
									    : PASS_PROCESS;
}

static uint32_t *merge_unmapped(uint32_t n)
{
	uint32_t *p = malloc(((size_t)n + 1) * sizeof(*p));

	if (p)
		memset(p, 0xff, ((size_t)n + 1) * sizeof(*p)); /* NOT_MAPPED */
	return p;
}

int profile_map_init(struct profile_map *m, const struct profile *src)
{
	*m = (struct profile_map){
		merge_unmapped(src->n_threads), merge_unmapped(src->n_strings),
		merge_unmapped(src->n_frames),	merge_unmapped(src->n_nodes),
		merge_unmapped(src->n_spans),	merge_unmapped(src->n_processes)
	};
	if (m->threads && m->strings && m->frames && m->nodes && m->spans && m->processes)
		return 0;
	profile_map_deinit(m);
	return -ENOMEM;
}

void profile_map_deinit(struct profile_map *m)
{
	free(m->threads);
	free(m->strings);
	free(m->frames);
	free(m->nodes);
	free(m->spans);
	free(m->processes);
	*m = (struct profile_map){ 0 };
}

/* If a string finds no room, the next process tries again: it may belong to another tenant. */
static uint32_t map_text(struct profile *dst, const struct profile *src,
			 const struct profile_map *m, uint32_t id, bool *full)
{
	bool no_room = false;

	if (m->strings[id] != NOT_MAPPED)
		return m->strings[id];
	m->strings[id] = profile_text(dst, src->strings[id], &no_room);
	if (no_room)
		m->strings[id] = NOT_MAPPED;
	*full |= no_room;
	return no_room ? 0 : m->strings[id];
}

static uint32_t map_string(struct profile *dst, const struct profile *src,
			   const struct profile_map *m, uint32_t id)
{
	bool full = false;

	return map_text(dst, src, m, id, &full);
}

static uint32_t map_process(struct profile *dst, const struct profile *src,
			    const struct profile_map *m, uint32_t id)
{
	struct profile_process q = src->processes[id];

	if (m->processes[id] != NOT_MAPPED)
		return m->processes[id];
	q.name = map_string(dst, src, m, q.name);
	q.container_id = map_string(dst, src, m, q.container_id);
	q.container = map_string(dst, src, m, q.container);
	q.pod = map_string(dst, src, m, q.pod);
	q.jdk = map_string(dst, src, m, q.jdk);
	q.labels = map_string(dst, src, m, q.labels);
	q.note = map_string(dst, src, m, q.note);
	m->processes[id] = profile_process(dst, &q); /* UINT32_MAX is NOT_MAPPED */
	return m->processes[id];
}

uint32_t profile_map_thread(struct profile *dst, const struct profile *src, uint32_t id,
			    const struct profile_map *m)
{
	const struct profile_thread *t = &src->threads[id];
	struct profile_thread copy = { .tid = t->tid };

	copy.process = map_process(dst, src, m, t->process);
	if (copy.process == UINT32_MAX)
		return UINT32_MAX;
	if (src->index->full_name && t->name == src->index->full_name)
		return profile_full_thread(dst, copy.process);
	copy.name = map_string(dst, src, m, t->name);
	return profile_thread(dst, &copy);
}

/* Is string @id the same as @to, a string of @dst? If it is, the map has it. */
static bool map_is_text(const struct profile *dst, const struct profile *src,
			const struct profile_map *m, uint32_t id, uint32_t to)
{
	if (m->strings[id] != NOT_MAPPED)
		return m->strings[id] == to;
	if (strcmp(src->strings[id], dst->strings[to]) != 0)
		return false;
	m->strings[id] = to;
	return true;
}

/* Is @f the frame that follows the last one that was found? The windows of a process have much the
 * same frames in much the same order: so most need no lookup of their names. */
static bool map_is_next_frame(const struct profile *dst, const struct profile *src,
			      const struct profile_map *m, const struct profile_frame *f)
{
	const struct profile_frame *to;

	if (dst->index->next_frame >= dst->n_frames)
		return false;
	to = &dst->frames[dst->index->next_frame];
	return to->kind == f->kind && to->line == f->line && to->offset == f->offset &&
	       !to->scope && !f->scope && map_is_text(dst, src, m, f->method, to->method) &&
	       map_is_text(dst, src, m, f->class_name, to->class_name) &&
	       map_is_text(dst, src, m, f->signature, to->signature) &&
	       map_is_text(dst, src, m, f->file, to->file) &&
	       map_is_text(dst, src, m, f->module, to->module);
}

static uint32_t map_frame(struct profile *dst, const struct profile *src,
			  const struct profile_map *m, uint32_t id)
{
	struct profile_frame f = src->frames[id];
	bool full = false;

	if (m->frames[id] != NOT_MAPPED)
		return m->frames[id];
	if (!dst->index->distinct && map_is_next_frame(dst, src, m, &f))
		return m->frames[id] = dst->index->next_frame++;
	f.class_name = map_text(dst, src, m, f.class_name, &full);
	f.method = map_text(dst, src, m, f.method, &full);
	f.signature = map_text(dst, src, m, f.signature, &full);
	f.file = map_text(dst, src, m, f.file, &full);
	f.module = map_text(dst, src, m, f.module, &full);
	if (f.scope)
		f.scope = map_process(dst, src, m, f.scope - 1) +
			  1; /* 0 if the process found no room */
	if (!full)
		m->frames[id] = profile_intern_frame(dst, &f);
	dst->index->next_frame = m->frames[id] + 1; /* UINT32_MAX + 1 is 0 */
	return m->frames[id];
}

uint32_t profile_map_node(struct profile *dst, const struct profile *src, uint32_t id,
			  uint32_t parent, const struct profile_map *m)
{
	return id == src->index->full_node
		       ? profile_full_node(dst)
		       : profile_node(dst, parent, map_frame(dst, src, m, src->nodes[id].frame));
}

uint32_t profile_map_span(struct profile *dst, const struct profile *src, uint32_t span,
			  const struct profile_map *m)
{
	uint32_t *to = span ? &m->spans[span - 1] : NULL;
	struct profile_span s;
	bool full = false;

	if (!span)
		return 0;
	if (*to != NOT_MAPPED)
		return *to;
	s.trace_id = map_text(dst, src, m, src->spans[span - 1].trace_id, &full);
	s.span_id = map_text(dst, src, m, src->spans[span - 1].span_id, &full);
	/* without room UINT32_MAX + 1, which is 0 */
	*to = full || !s.trace_id ? 0 : profile_intern_span(dst, &s) + 1;
	if (*to)
		return *to;
	*to = NOT_MAPPED; /* likewise */
	return 0;
}

/* Marks a node as needed. If it is new, the tenant that has used least among those that need it
 * pays: a tenant that has used its share up cannot keep another from its nodes by sharing their
 * roots. */
static void need_node(struct profile *dst, uint32_t *nodes, uint32_t *payers, uint32_t node,
		      uint32_t payer)
{
	const struct profile_account *a = dst->index->accounts;

	if (nodes[node] != NOT_MAPPED || a[payer].bytes < a[payers[node]].bytes)
		payers[node] = payer;
	nodes[node] = NOT_MAPPED;
}

/* The node that follows its parent in @dst, as most nodes of a stack do, if it is node @id of @src;
 * else NOT_MAPPED. */
static uint32_t map_next_node(const struct profile *dst, const struct profile *src, uint32_t id,
			      const struct profile_map *m)
{
	uint32_t parent = m->nodes[src->nodes[id].parent], frame = m->frames[src->nodes[id].frame];
	uint32_t next = parent + 1;

	return frame != NOT_MAPPED && next < dst->n_nodes && dst->nodes[next].parent == parent &&
			       dst->nodes[next].frame == frame && id != src->index->full_node
		       ? next
		       : NOT_MAPPED;
}

/* Replaces each NOT_MAPPED, which marks a needed node, by the node's id in @dst. Parents come
 * first. */
static void map_nodes(struct profile *dst, const struct profile *src, uint32_t *payers,
		      const struct profile_map *m)
{
	uint32_t *nodes = m->nodes;

	for (uint32_t i = src->n_nodes; i-- > 1;)
		if (nodes[i] == NOT_MAPPED)
			need_node(dst, nodes, payers, src->nodes[i].parent, payers[i]);
	nodes[0] = 0;
	for (uint32_t i = 1; i < src->n_nodes; i++) {
		if (nodes[i] != NOT_MAPPED)
			continue;
		dst->index->payer = payers[i];
		nodes[i] = map_next_node(dst, src, i, m);
		if (nodes[i] == NOT_MAPPED)
			nodes[i] = profile_map_node(dst, src, i, nodes[src->nodes[i].parent], m);
	}
}

static void add_left_out(struct profile_left_out *a, uint64_t samples, uint64_t weight)
{
	a->samples += samples;
	a->weight += weight;
}

/* Merges the spans, the intervals, and what earlier filters left out. */
static void merge_span(struct profile *dst, const struct profile *src,
		       const struct profile_filter *f)
{
	if (!dst->begin_real_ns || (src->begin_real_ns && src->begin_real_ns < dst->begin_real_ns))
		dst->begin_real_ns = src->begin_real_ns;
	if (src->end_real_ns > dst->end_real_ns)
		dst->end_real_ns = src->end_real_ns;
	dst->no_budget |= src->no_budget;
	dst->cpu_unknown |= src->cpu_unknown;
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (!profile_wants(f, e))
			continue;
		if (src->interval[e] > dst->interval[e])
			dst->interval[e] = src->interval[e];
		add_left_out(&dst->idle_left_out[e], src->idle_left_out[e].samples,
			     src->idle_left_out[e].weight);
		add_left_out(&dst->threads_left_out[e], src->threads_left_out[e].samples,
			     src->threads_left_out[e].weight);
		add_left_out(&dst->rows_left_out[e], src->rows_left_out[e].samples,
			     src->rows_left_out[e].weight);
	}
}

static bool has_accounts(const struct profile_accounts *b)
{
	static const struct profile_accounts none;

	return memcmp(b, &none, sizeof(none)) != 0;
}

void profile_map_head(struct profile *dst, const struct profile *src, uint32_t process,
		      const struct profile_map *m)
{
	const struct profile_process *q = &src->processes[process];
	uint32_t to = map_process(dst, src, m, process);

	merge_span(dst, src, NULL);
	profile_add_accounts(dst, to, &q->accounts);
	profile_add_cpu(dst, to, q->cpu_ns);
}

static void merge_head(struct profile *dst, const struct profile *src,
		       const struct profile_filter *f, const struct profile_map *m)
{
	merge_span(dst, src, f);
	for (uint32_t i = 0; i < src->n_processes; i++) {
		const struct profile_process *q = &src->processes[i];
		uint32_t to;

		if (!process_passes(q, f) || (!has_accounts(&q->accounts) && !q->cpu_ns))
			continue;
		profile_payer(dst, q->tenant);
		to = map_process(dst, src, m, i);
		if (to != UINT32_MAX)
			profile_sum_accounts(&PROCESSES(dst)[to].accounts, &q->accounts, f);
		profile_add_cpu(dst, to, q->cpu_ns);
		if (f && f->n_pids)
			profile_sum_accounts(&dst->accounts, &q->accounts, f);
	}
	if (!f || !f->n_pids) {
		profile_sum_accounts(&dst->accounts, &src->accounts,
				     f); /* also what belongs to no process */
	}
}

static bool row_passes(const struct profile *src, uint32_t row, const uint8_t *passes,
		       const struct profile_filter *f)
{
	const struct profile_row *r = &src->rows[row];

	return passes[r->thread] == PASS_THREAD && profile_wants(f, r->event) &&
	       !(r->idle && f && f->no_idle) && !(f && f->rows && !f->rows[row]);
}

/* Counts a row that does not pass as left out. */
static void merge_leave_out(struct profile *dst, const struct profile_row *r, enum pass pass,
			    const struct profile_filter *f)
{
	struct profile_left_out *to;

	if (pass == PASS_NOT || !profile_wants(f, r->event))
		return;
	if (pass == PASS_PROCESS)
		to = &dst->threads_left_out[r->event];
	else if (r->idle && f && f->no_idle)
		to = &dst->idle_left_out[r->event];
	else
		to = &dst->rows_left_out[r->event];
	add_left_out(to, r->samples, r->weight);
}

static uint64_t merge_tenant_of(const struct profile *src, uint32_t thread)
{
	return src->processes[src->threads[thread].process].tenant;
}

/* @r: with the ids of @dst, except for its span. */
static void merge_row(struct profile *dst, const struct profile *src, struct profile_row r,
		      const struct profile_map *m, bool no_spans)
{
	uint32_t span = no_spans ? 0 : r.span;

	r.span = profile_map_span(dst, src, span, m);
	if (span && !r.span && r.thread < dst->n_threads)
		profile_book_no_ids(dst, dst->threads[r.thread].process, r.event, r.samples);
	profile_add_row(dst, &r);
}

/* @passes: enum pass, by thread */
static int merge_rows(struct profile *dst, const struct profile *src, const struct profile_map *m,
		      const uint8_t *passes, const struct profile_filter *f)
{
	for (uint32_t i = 0; i < src->n_rows; i++) {
		struct profile_row r = src->rows[i];
		uint32_t *thread = &m->threads[r.thread];

		if (!row_passes(src, i, passes, f)) {
			merge_leave_out(dst, &r, (enum pass)passes[r.thread], f);
			continue;
		}
		profile_payer(dst, merge_tenant_of(src, r.thread));
		if (*thread == NOT_MAPPED)
			*thread = profile_map_thread(dst, src, r.thread, m);
		if (*thread == NOT_MAPPED)
			return -ENOMEM;
		r.thread = *thread;
		r.node = m->nodes[r.node];
		merge_row(dst, src, r, m, f && f->no_spans);
	}
	return 0;
}

int profile_copy_rows(const struct profile *src, const bool *rows, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	const struct profile_filter filter = { .rows = rows };
	int r = profile_new(&p);

	if (r < 0)
		return r;
	p->index->distinct = true;
	r = profile_merge(p, src, rows ? &filter : NULL);
	p->index->distinct = false;
	if (r < 0)
		return r;
	memcpy(p->rows_left_out, src->rows_left_out, sizeof(p->rows_left_out));
	*ret = TAKE_PTR(p);
	return 0;
}

int profile_copy(const struct profile *src, struct profile **ret)
{
	return profile_copy_rows(src, NULL, ret);
}

static int merge_profile(struct profile *dst, const struct profile *src,
			 const struct profile_filter *f)
{
	CLEANUP(freep) uint32_t *payers = calloc((size_t)src->n_nodes + 1, sizeof(*payers));
	CLEANUP(freep) uint8_t *passes = calloc((size_t)src->n_threads + 1, sizeof(*passes));
	CLEANUP(profile_map_deinit) struct profile_map m = { 0 };
	uint32_t payer = dst->index->payer;
	int r = payers && passes ? profile_map_init(&m, src) : -ENOMEM;

	if (r < 0)
		return r;
	memset(m.nodes, 0,
	       src->n_nodes * sizeof(*m.nodes)); /* 0 = not needed; rows mark those that are */
	for (uint32_t i = 0; i < src->n_threads; i++)
		passes[i] = thread_passes(src, &src->threads[i], f);
	for (uint32_t i = 0; i < src->n_rows; i++)
		if (row_passes(src, i, passes, f))
			need_node(dst, m.nodes, payers, src->rows[i].node,
				  profile_account(dst, merge_tenant_of(src, src->rows[i].thread)));
	merge_head(dst, src, f, &m);
	map_nodes(dst, src, payers, &m);
	r = merge_rows(dst, src, &m, passes, f);
	dst->index->payer = payer;
	return r;
}

int profile_merge(struct profile *dst, const struct profile *src, const struct profile_filter *f)
{
	profile_names_refresh(src);
	return merge_profile(dst, src, f);
}
