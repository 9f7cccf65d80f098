/* See offcpu_history.h. Two passes: rows that stay as they are are copied; the others are added to
 * the copy. */
#include "daemon/profile/offcpu_history.h"

#include <errno.h>
#include <string.h>
#include "daemon/profile/offcpu_event.h"
#include "daemon/profile/profile_priv.h"

/* A row or a thread, to be ranked among those of its process. */
struct history_rank {
	uint32_t process, at;
	uint64_t weight;
};

struct history_fold {
	const struct profile *src;
	bool *rows; /* by row: it stays as it is */
	bool *threads; /* by thread: it has rows of its own */
	struct history_rank *ranks; /* room for all rows, and for all threads */
};

static void history_fold_deinit(struct history_fold *f)
{
	free(f->rows);
	free(f->threads);
	free(f->ranks);
}

static int history_fold_init(struct history_fold *f, const struct profile *src)
{
	size_t n = src->n_rows > src->n_threads ? src->n_rows : src->n_threads;

	*f = (struct history_fold){
		.src = src,
		.rows = calloc((size_t)src->n_rows + 1, sizeof(*f->rows)),
		.threads = calloc((size_t)src->n_threads + 1, sizeof(*f->threads)),
		.ranks = calloc(n + 1, sizeof(*f->ranks)),
	};
	return f->rows && f->threads && f->ranks ? 0 : -ENOMEM;
}

/* ---- what stays ------------------------------------------------------------------------------ */

static int history_compare(const void *a, const void *b)
{
	const struct history_rank *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

/* Sets @stays of the first @max of each process. */
static void history_choose(struct history_rank *ranks, size_t n, uint64_t max, bool *stays)
{
	uint64_t of_process = 0;

	qsort(ranks, n, sizeof(*ranks), history_compare);
	for (size_t i = 0; i < n; i++) {
		if (!i || ranks[i].process != ranks[i - 1].process)
			of_process = 0;
		stays[ranks[i].at] = of_process++ < max;
	}
}

static uint32_t history_process_of(const struct profile *p, const struct profile_row *r)
{
	return p->threads[r->thread].process;
}

static bool history_is(const struct profile *p, const struct profile_frame *f,
		       enum offcpu_reason reason)
{
	return strcmp(p->strings[f->method], offcpu_reason_names[reason]) == 0;
}

/* May the stack of this row stay? */
static bool history_has_stack(const struct profile *p, const struct profile_row *r)
{
	const struct profile_frame *f = &p->frames[p->nodes[r->node].frame];

	return !r->idle && !history_is(p, f, OFFCPU_REASON_RUNQUEUE) &&
	       !history_is(p, f, OFFCPU_REASON_THROTTLED);
}

/* Rows of other events and those of "[profile full]" stay in any case. */
static bool history_always_stays(const struct profile *p, const struct profile_row *r)
{
	return r->event != WIRE_EVENT_OFFCPU || !r->node ||
	       p->frames[p->nodes[r->node].frame].kind != WIRE_KIND_CLASS ||
	       profile_is_full(p, r->thread, r->node);
}

/* Returns the number of rows that do not stay. */
static uint32_t history_choose_rows(struct history_fold *f, uint64_t stacks)
{
	const struct profile *p = f->src;
	uint32_t n = 0, left = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		f->rows[i] = history_always_stays(p, r);
		if (!f->rows[i] && history_has_stack(p, r))
			f->ranks[n++] =
				(struct history_rank){ history_process_of(p, r), i, r->weight };
	}
	history_choose(f->ranks, n, stacks, f->rows);
	for (uint32_t i = 0; i < p->n_rows; i++)
		left += !f->rows[i];
	return left;
}

/* By the time that was no waiting for work. */
static void history_choose_threads(struct history_fold *f)
{
	const struct profile *p = f->src;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->n_threads; i++)
		f->ranks[i] = (struct history_rank){ p->threads[i].process, i, 0 };
	memset(f->threads, 0, p->n_threads);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (f->rows[i])
			continue;
		f->threads[r->thread] = true;
		f->ranks[r->thread].weight += r->idle ? 0 : r->weight;
	}
	for (uint32_t i = 0; i < p->n_threads; i++)
		if (f->threads[i])
			f->ranks[n++] = f->ranks[i];
	history_choose(f->ranks, n, OFFCPU_HISTORY_THREADS, f->threads);
}

/* ---- the others ------------------------------------------------------------------------------ */

/* The thread that stands for those of the same process without rows of their own. */
static uint32_t history_other_threads(struct profile *dst, const struct profile_process *of)
{
	const struct profile_process q = {
		.pid = of->pid,
		.start_time = of->start_time,
		.tenant = of->tenant,
	};
	struct profile_thread others = { .process = profile_process(dst, &q) };

	if (others.process == UINT32_MAX)
		return UINT32_MAX;
	others.name = profile_string(dst, OFFCPU_HISTORY_OTHER_THREADS);
	return profile_thread(dst, &others);
}

/* The thread of the copy that gets the time of thread @id. */
static uint32_t history_map_thread(const struct history_fold *f, struct profile *dst,
				   struct profile_map *m, uint32_t id)
{
	const struct profile_process *q = &f->src->processes[f->src->threads[id].process];

	if (m->threads[id] == PROFILE_NOT_MAPPED)
		m->threads[id] = f->threads[id] ? profile_map_thread(dst, f->src, id, m)
						: history_other_threads(dst, q);
	return m->threads[id];
}

static void history_add(const struct history_fold *f, struct profile *dst, struct profile_map *m,
			uint32_t i)
{
	struct profile_row r = f->src->rows[i];

	profile_payer(dst, f->src->processes[history_process_of(f->src, &r)].tenant);
	r.thread = history_map_thread(f, dst, m, r.thread);
	r.node = profile_map_node(dst, f->src, r.node, 0, m);
	r.span = profile_map_span(dst, f->src, r.span, m);
	profile_add_row(dst, &r);
}

static int history_add_left(const struct history_fold *f, struct profile *dst)
{
	CLEANUP(profile_map_deinit) struct profile_map m = { 0 };
	int r = profile_map_init(&m, f->src);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < f->src->n_rows; i++)
		if (!f->rows[i])
			history_add(f, dst, &m, i);
	return 0;
}

int offcpu_history_copy(const struct profile *src, uint64_t stacks, struct profile **ret)
{
	CLEANUP(history_fold_deinit) struct history_fold f = { 0 };
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = history_fold_init(&f, src);

	if (r < 0)
		return r;
	if (!history_choose_rows(&f, stacks))
		return profile_copy(src, ret);
	history_choose_threads(&f);
	r = profile_copy_rows(src, f.rows, &p);
	if (r == 0)
		r = history_add_left(&f, p);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}
