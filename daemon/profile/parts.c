/*
 * Splits a profile by process. The results are those of profile_merge() with a filter for each
 * process, at the cost of one pass over everything: after each process only its own entries of the
 * map are cleared.
 */
#include "daemon/profile/profile_priv.h"

#include <errno.h>
#include <string.h>

struct profile_parts {
	const struct profile *src;
	uint32_t *rows; /* by process */
	uint32_t *first; /* where a process's part of @rows begins; one more for the end */
	struct profile_map map;
	uint32_t *path; /* nodes from a leaf upwards */
	uint32_t *mapped; /* the nodes, frames and strings that have an id in the part: to be
			     cleared after it */
	uint32_t n_mapped;
};

struct profile_parts *profile_parts_free(struct profile_parts *s)
{
	if (!s)
		return NULL;
	free(s->rows);
	free(s->first);
	profile_map_deinit(&s->map);
	free(s->path);
	free(s->mapped);
	free(s);
	return NULL;
}

static uint32_t parts_process_of(const struct profile *p, uint32_t row)
{
	return p->threads[p->rows[row].thread].process;
}

/* Sorts the rows by process: counts, then places them. */
static void sort_rows(struct profile_parts *s)
{
	const struct profile *p = s->src;

	for (uint32_t i = 0; i < p->n_rows; i++)
		s->first[parts_process_of(p, i) + 1]++;
	for (uint32_t i = 0; i < p->n_processes; i++)
		s->first[i + 1] += s->first[i];
	for (uint32_t i = 0; i < p->n_rows; i++)
		s->rows[s->first[parts_process_of(p, i)]++] = i;
	/* each entry has moved on to where the next process begins */
	for (uint32_t i = p->n_processes; i > 0; i--)
		s->first[i] = s->first[i - 1];
	s->first[0] = 0;
}

int profile_parts_new(const struct profile *src, struct profile_parts **ret)
{
	CLEANUP(profile_parts_freep) struct profile_parts *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->src = src;
	s->rows = calloc((size_t)src->n_rows + 1, sizeof(*s->rows));
	s->first = calloc((size_t)src->n_processes + 2, sizeof(*s->first));
	s->path = calloc((size_t)src->n_nodes + 1, sizeof(*s->path));
	s->mapped = calloc((size_t)src->n_nodes + 1, sizeof(*s->mapped));
	if (!s->rows || !s->first || !s->path || !s->mapped || profile_map_init(&s->map, src) < 0)
		return -ENOMEM;
	s->map.nodes[0] = 0;
	sort_rows(s);
	*ret = TAKE_PTR(s);
	return 0;
}

static uint32_t map_node(struct profile_parts *s, struct profile *dst, uint32_t node)
{
	const struct profile *src = s->src;
	uint32_t n = 0;

	for (uint32_t at = node; s->map.nodes[at] == PROFILE_NOT_MAPPED; at = src->nodes[at].parent)
		s->path[n++] = at;
	while (n > 0) {
		uint32_t at = s->path[--n];

		s->map.nodes[at] = profile_map_node(dst, src, at,
						    s->map.nodes[src->nodes[at].parent], &s->map);
		s->mapped[s->n_mapped++] = at;
	}
	return s->map.nodes[node];
}

static void parts_forget_process(struct profile_parts *s, uint32_t process)
{
	const struct profile_process *q = &s->src->processes[process];
	uint32_t *strings = s->map.strings;

	s->map.processes[process] = PROFILE_NOT_MAPPED;
	strings[q->name] = strings[q->container_id] = strings[q->container] = strings[q->pod] =
		strings[q->jdk] = strings[q->labels] = strings[q->note] = PROFILE_NOT_MAPPED;
}

static void forget_frame(struct profile_parts *s, uint32_t frame)
{
	const struct profile_frame *f = &s->src->frames[frame];
	uint32_t *strings = s->map.strings;

	s->map.frames[frame] = PROFILE_NOT_MAPPED;
	strings[f->class_name] = strings[f->method] = strings[f->signature] = strings[f->file] =
		strings[f->module] = PROFILE_NOT_MAPPED;
	if (f->scope)
		parts_forget_process(s, f->scope - 1);
}

static void parts_forget_span(struct profile_parts *s, uint32_t span)
{
	const struct profile_span *of = &s->src->spans[span];

	s->map.spans[span] = PROFILE_NOT_MAPPED;
	s->map.strings[of->trace_id] = s->map.strings[of->span_id] = PROFILE_NOT_MAPPED;
}

static void parts_forget(struct profile_parts *s, uint32_t process)
{
	for (uint32_t i = 0; i < s->n_mapped; i++) {
		uint32_t at = s->mapped[i];

		s->map.nodes[at] = PROFILE_NOT_MAPPED;
		forget_frame(s, s->src->nodes[at].frame);
	}
	s->n_mapped = 0;
	parts_forget_process(s, process);
	for (uint32_t i = s->first[process]; i < s->first[process + 1]; i++) {
		const struct profile_row *r = &s->src->rows[s->rows[i]];

		s->map.threads[r->thread] = PROFILE_NOT_MAPPED;
		s->map.strings[s->src->threads[r->thread].name] = PROFILE_NOT_MAPPED;
		if (r->span)
			parts_forget_span(s, r->span - 1);
	}
}

int profile_parts_get(struct profile_parts *s, uint32_t process, struct profile **ret)
{
	const struct profile *src = s->src;
	CLEANUP(profile_freep) struct profile *dst = NULL;
	int r = profile_new(&dst);

	if (r < 0)
		return r;
	profile_payer(dst, src->processes[process].tenant);
	dst->index->distinct = dst->index->borrows = true;
	profile_map_head(dst, src, process, &s->map);
	for (uint32_t i = s->first[process]; r == 0 && i < s->first[process + 1]; i++) {
		struct profile_row row = src->rows[s->rows[i]];
		uint32_t *thread = &s->map.threads[row.thread];

		if (*thread == PROFILE_NOT_MAPPED)
			*thread = profile_map_thread(dst, src, row.thread, &s->map);
		if (*thread == PROFILE_NOT_MAPPED)
			r = -ENOMEM;
		row.thread = *thread;
		row.node = map_node(s, dst, row.node);
		row.span = profile_map_span(dst, src, row.span, &s->map);
		if (r == 0)
			profile_add_row(dst, &row);
	}
	dst->index->distinct = false;
	parts_forget(s, process);
	if (r == 0)
		*ret = TAKE_PTR(dst);
	return r;
}
