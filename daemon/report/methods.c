/* Methods by what they cost. Frames that print the same are one method. */
#include "daemon/report/methods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int by_total(const void *a, const void *b)
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
	return by_total(a, b);
}

/* Frames print by name: number the different names. Returns how many; ids[frame] = number. */
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

static void count_methods(const struct profile *p, uint32_t process, char *const *names,
			  const uint32_t *ids, struct report_method *methods,
			  struct report_method *none)
{
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (process != UINT32_MAX && p->threads[r->thread].process != process)
			continue;
		for (uint32_t node = r->node; node; node = p->nodes[node].parent) {
			uint32_t frame = p->nodes[node].frame;
			struct report_method *m = &methods[ids[frame]];

			m->name = names[frame];
			if (m->last_row == i + 1)
				continue;
			m->last_row = i + 1;
			m->samples += r->samples;
			m->total += r->weight;
		}
		if (r->node) {
			methods[ids[p->nodes[r->node].frame]].self += r->weight;
			continue;
		}
		none->name = "[no stack]";
		none->samples += r->samples;
		none->total += r->weight;
		none->self += r->weight;
	}
}

int report_methods(const struct profile *p, uint32_t process, enum report_order order,
		   struct report_methods *ret)
{
	uint32_t *ids = calloc(p->n_frames + 1, sizeof(*ids));
	uint32_t n;

	ret->names = calloc(p->n_frames + 1, sizeof(*ret->names));
	ret->methods = calloc(p->n_frames + 2, sizeof(*ret->methods)); /* the last: [no stack] */
	ret->n_names = p->n_frames;
	ret->n = 0;
	if (!ids || !ret->names || !ret->methods) {
		free(ids);
		report_methods_free(ret);
		return -ENOMEM;
	}
	n = number_names(p, ret->names, ids);
	count_methods(p, process, ret->names, ids, ret->methods, &ret->methods[n]);
	for (uint32_t i = 0; i <= n; i++)
		if (ret->methods[i].name)
			ret->methods[ret->n++] = ret->methods[i];
	qsort(ret->methods, ret->n, sizeof(*ret->methods),
	      order == REPORT_BY_SELF ? by_self : by_total);
	free(ids);
	return 0;
}

void report_methods_free(struct report_methods *m)
{
	for (uint32_t i = 0; m->names && i < m->n_names; i++)
		free(m->names[i]);
	free(m->names);
	free(m->methods);
	memset(m, 0, sizeof(*m));
}
