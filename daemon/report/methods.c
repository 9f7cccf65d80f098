/* Methods by cost. Frames whose names print the same are one method. */
#include "daemon/report/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int methods_by_total(const void *a, const void *b)
{
	const struct report_method *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return strcmp(x->name, y->name);
}

static int by_self(const void *a, const void *b)
{
	const struct report_method *x = a, *y = b;

	if (x->self != y->self)
		return x->self < y->self ? 1 : -1;
	return methods_by_total(a, b);
}

/* Numbers the different names of frames: ids[frame] = number. Returns how many there are. */
static uint32_t number_names(const struct profile *p, char **names, uint32_t *ids)
{
	char **sorted = calloc(p->n_frames + 1, sizeof(*sorted));
	uint32_t n = 0;
	char buf[1024];

	if (!sorted)
		return 0;
	for (uint32_t i = 0; i < p->n_frames; i++) {
		report_frame_name(p, &p->frames[i], buf, sizeof(buf));
		names[i] = strdup(buf);
		sorted[i] = names[i] ? names[i] : (char *)(uintptr_t) "";
	}
	qsort(sorted, p->n_frames, sizeof(*sorted), by_name);
	for (uint32_t i = 0; i < p->n_frames; i++)
		if (n == 0 || strcmp(sorted[n - 1], sorted[i]) != 0)
			sorted[n++] = sorted[i];
	for (uint32_t i = 0; i < p->n_frames && names[i]; i++) {
		char **at = bsearch(&names[i], sorted, n, sizeof(*sorted), by_name);

		ids[i] = at ? (uint32_t)(at - sorted) : 0;
	}
	free(sorted);
	return n;
}

/* Links nodes to their children, which are listed in the order of their numbers. Parents precede
 * children. */
static void link_nodes(const struct profile *p, struct report_index *x)
{
	for (uint32_t i = p->n_nodes; i-- > 1;) {
		uint32_t parent = p->nodes[i].parent;

		x->next[i] = x->first[parent];
		x->first[parent] = i;
	}
}

int report_index_new(const struct profile *p, struct report_index **ret)
{
	CLEANUP(report_index_freep) struct report_index *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->n_frames = p->n_frames;
	x->names = calloc(p->n_frames + 1, sizeof(*x->names));
	x->ids = calloc(p->n_frames + 1, sizeof(*x->ids));
	x->first = calloc(p->n_nodes + 1, sizeof(*x->first));
	x->next = calloc(p->n_nodes + 1, sizeof(*x->next));
	if (!x->names || !x->ids || !x->first || !x->next)
		return -ENOMEM;
	x->n = number_names(p, x->names, x->ids);
	link_nodes(p, x);
	*ret = TAKE_PTR(x);
	return 0;
}

struct report_index *report_index_free(struct report_index *x)
{
	if (!x)
		return NULL;
	for (uint32_t i = 0; x->names && i < x->n_frames; i++)
		free(x->names[i]);
	free(x->names);
	free(x->ids);
	free(x->first);
	free(x->next);
	free(x);
	return NULL;
}

struct sum {
	uint64_t samples, weight;
};

static void methods_add(struct sum *to, uint64_t samples, uint64_t weight)
{
	to->samples += samples;
	to->weight += weight;
}

/* Adds up for each node the weight of the stacks that end in it or pass through it; sums[0] is for
 * samples without a stack. */
static void sum_up(const struct profile *p, const struct report_index *x, uint32_t process,
		   struct sum *sums, struct report_method *methods)
{
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (process != UINT32_MAX && p->threads[r->thread].process != process)
			continue;
		methods_add(&sums[r->node], r->samples, r->weight);
		if (r->node)
			methods[x->ids[p->nodes[r->node].frame]].self += r->weight;
	}
	for (uint32_t i = p->n_nodes; i-- > 1;)
		if (p->nodes[i].parent)
			methods_add(&sums[p->nodes[i].parent], sums[i].samples, sums[i].weight);
}

/*
 * Walks the nodes depth first, without recursion. A method gets the weight of each of its nodes,
 * except below another node of the same method (recursion in Java), which has it already.
 */
static void count_methods(const struct profile *p, const struct report_index *x,
			  const struct sum *sums, struct report_method *methods)
{
	uint32_t node = x->first[0];

	while (node) {
		uint32_t frame = p->nodes[node].frame;
		struct report_method *m = &methods[x->ids[frame]];
		bool empty = !sums[node].samples && !sums[node].weight;

		if (!empty) {
			m->name = x->names[frame];
			if (!m->below) {
				m->samples += sums[node].samples;
				m->total += sums[node].weight;
			}
		}
		m->below++;
		if (!empty && x->first[node]) {
			node = x->first[node];
			continue;
		}
		while (node) {
			methods[x->ids[p->nodes[node].frame]].below--;
			if (x->next[node])
				break;
			node = p->nodes[node].parent;
		}
		node = x->next[node];
	}
}

static void no_stack(struct report_method *to, const struct sum *sum)
{
	if (!sum->samples && !sum->weight)
		return;
	to->name = "[no stack]";
	to->samples = sum->samples;
	to->total = to->self = sum->weight;
}

int report_methods(const struct profile *p, const struct report_index *x, uint32_t process,
		   enum report_order order, struct report_methods *ret)
{
	CLEANUP(freep) struct sum *sums = calloc(p->n_nodes + 1, sizeof(*sums));

	ret->methods = calloc(x->n + 1, sizeof(*ret->methods)); /* the last one is [no stack] */
	ret->n = 0;
	if (!sums || !ret->methods) {
		report_methods_free(ret);
		return -ENOMEM;
	}
	sum_up(p, x, process, sums, ret->methods);
	count_methods(p, x, sums, ret->methods);
	no_stack(&ret->methods[x->n], &sums[0]);
	for (uint32_t i = 0; i <= x->n; i++)
		if (ret->methods[i].name)
			ret->methods[ret->n++] = ret->methods[i];
	qsort(ret->methods, ret->n, sizeof(*ret->methods),
	      order == REPORT_BY_SELF ? by_self : methods_by_total);
	return 0;
}

void report_methods_free(struct report_methods *m)
{
	free(m->methods);
	memset(m, 0, sizeof(*m));
}
