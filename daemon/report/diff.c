/* See diff.h: merges two profiles into one whose rows have two weights. */
#include "daemon/report/diff.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/report/against.h"
#include "daemon/report/methods.h"

struct diff {
	struct profile *all; /* the stacks of both, with the weights of the current one */
	struct against against;
	char title[600], base_title[512];
};

bool report_diffs(enum report_format format, char *why, size_t why_size)
{
	if (format == REPORT_HTML || format == REPORT_TXT || format == REPORT_JSON)
		return true;
	snprintf(why, why_size, "html, txt and json can show what changed; %s cannot",
		 report_format_name(format));
	return false;
}

bool report_diff_by_name(const char *name, enum report_diff_by *ret)
{
	*ret = strcmp(name, "total") == 0 ? REPORT_DIFF_TOTAL : REPORT_DIFF_TIME;
	return *ret == REPORT_DIFF_TOTAL || strcmp(name, "time") == 0;
}

/* ---- combining both -------------------------------------------------------------------------- */

/* A method as a frame without kind and line, so that it is the same however it ran. */
static struct profile_frame diff_frame(struct profile *to, const struct profile *from,
				       const struct profile_frame *f)
{
	struct profile_frame g = { .kind = f->kind, .line = -1 };

	if (wire_kind_is_method(f->kind) && f->kind != WIRE_KIND_NATIVE_METHOD)
		g.kind = WIRE_KIND_JAVA;
	g.class_name = profile_string(to, from->strings[f->class_name]);
	g.method = profile_string(to, from->strings[f->method]);
	g.file = profile_string(to, from->strings[f->file]);
	if (!f->method)
		g.module = profile_string(to, from->strings[f->module]);
	return g;
}

static uint32_t diff_thread(struct profile *to, const struct profile *from, uint32_t thread,
			    bool threads)
{
	/* one process stands for both; the title names them */
	const struct profile_process q = { .name = profile_string(to, "both") };
	struct profile_thread t = { .process = profile_process(to, &q), .tid = WIRE_VIRTUAL_TID };

	t.name = profile_string(to, threads ? from->strings[from->threads[thread].name]
					    : "all threads");
	return profile_thread(to, &t);
}

static int diff_add(struct profile *to, const struct profile *from, bool threads)
{
	CLEANUP(freep) uint32_t *frames = calloc((size_t)from->n_frames + 1, sizeof(*frames));
	CLEANUP(freep) uint32_t *nodes = calloc((size_t)from->n_nodes + 1, sizeof(*nodes));

	if (!frames || !nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < from->n_frames; i++) {
		const struct profile_frame f = diff_frame(to, from, &from->frames[i]);

		frames[i] = profile_intern_frame(to, &f);
	}
	for (uint32_t i = 1; i < from->n_nodes; i++)
		nodes[i] = profile_node(to, nodes[from->nodes[i].parent],
					frames[from->nodes[i].frame]);
	for (uint32_t i = 0; i < from->n_rows; i++) {
		struct profile_row r = from->rows[i];

		r.thread = diff_thread(to, from, r.thread, threads);
		r.node = nodes[r.node];
		r.span = 0;
		r.wait = 0;
		r.idle = false;
		profile_add_row(to, &r);
	}
	return 0;
}

/* The head of the merged profile is the current one's. */
static void diff_head(struct profile *all, const struct profile *now)
{
	all->begin_real_ns = now->begin_real_ns;
	all->end_real_ns = now->end_real_ns;
	all->no_budget = now->no_budget;
	all->cpu_unknown = now->cpu_unknown;
	all->overflow = now->overflow;
	memcpy(all->interval, now->interval, sizeof(all->interval));
	memcpy(all->idle_left_out, now->idle_left_out, sizeof(all->idle_left_out));
	memcpy(all->threads_left_out, now->threads_left_out, sizeof(all->threads_left_out));
	memcpy(all->rows_left_out, now->rows_left_out, sizeof(all->rows_left_out));
	if (all->n_processes) {
		profile_add_accounts(all, 0, &now->accounts);
		profile_add_cpu(all, 0, profile_cpu_ns(now));
	}
}

/* Adds the rows of the current profile, then those that only the baseline has. */
static int diff_rows(struct diff *d, const struct profile *base, const struct profile *now,
		     bool threads)
{
	struct profile_row *rows;
	uint32_t n;
	int r = diff_add(d->all, now, threads);

	if (r < 0)
		return r;
	n = d->all->n_rows;
	d->against.row_samples = calloc((size_t)n + base->n_rows + 1, sizeof(uint64_t));
	d->against.row_weights = calloc((size_t)n + base->n_rows + 1, sizeof(uint64_t));
	if (!d->against.row_samples || !d->against.row_weights)
		return -ENOMEM;
	rows = (struct profile_row *)(uintptr_t)d->all->rows;
	for (uint32_t i = 0; i < n; i++) {
		d->against.row_samples[i] = rows[i].samples;
		d->against.row_weights[i] = rows[i].weight;
	}
	r = diff_add(d->all, base, threads);
	rows = (struct profile_row *)(uintptr_t)d->all->rows;
	for (uint32_t i = 0; i < d->all->n_rows; i++) {
		struct profile_row both = rows[i];

		rows[i].samples = i < n ? d->against.row_samples[i] : 0;
		rows[i].weight = i < n ? d->against.row_weights[i] : 0;
		d->against.row_samples[i] = both.samples - rows[i].samples;
		d->against.row_weights[i] = both.weight - rows[i].weight;
		d->against.samples += d->against.row_samples[i];
		d->against.weight += d->against.row_weights[i];
	}
	return r;
}

/* ---- scaling the baseline -------------------------------------------------------------------- */

static void diff_scale(struct diff *d, const struct profile *base, const struct profile *now,
		       enum report_diff_by by)
{
	uint64_t weight = 0, length = now->end_real_ns - now->begin_real_ns;
	uint64_t base_length = base->end_real_ns - base->begin_real_ns;
	struct against *a = &d->against;

	for (uint32_t i = 0; i < d->all->n_rows; i++)
		weight += d->all->rows[i].weight;
	a->factor = 1;
	a->by = "total";
	if (by == REPORT_DIFF_TIME && length && base_length) {
		a->by = "time";
		a->factor = (double)length / (double)base_length;
	} else if (weight && a->weight) {
		a->factor = (double)weight / (double)a->weight;
	}
	a->begin_real_ns = base->begin_real_ns;
	a->end_real_ns = base->end_real_ns;
}

static void diff_titles(struct diff *d, const struct profile *base, const struct profile *now,
			const struct report_options *o)
{
	char title[512];

	report_title(now, o, title, sizeof(title));
	report_title(base, o, d->base_title, sizeof(d->base_title));
	if (strcmp(title, d->base_title) == 0)
		snprintf(d->title, sizeof(d->title), "%s, against before", title);
	else
		snprintf(d->title, sizeof(d->title), "%.280s, against %.280s", title,
			 d->base_title);
	d->against.title = d->base_title;
}

/* ---- methods --------------------------------------------------------------------------------- */

static int by_method_name(const void *a, const void *b)
{
	return strcmp(((const struct report_method *)a)->name,
		      ((const struct report_method *)b)->name);
}

static const struct against *sorted_against; /* for by_growth(); there is only one thread */

static int by_growth(const void *a, const void *b)
{
	const struct against_method *x = a, *y = b;
	double p = fabs(against_grown(sorted_against, x->self, x->base_self));
	double q = fabs(against_grown(sorted_against, y->self, y->base_self));

	if (p == q) {
		p = fabs(against_grown(sorted_against, x->total, x->base_total));
		q = fabs(against_grown(sorted_against, y->total, y->base_total));
	}
	return p < q ? 1 : p > q ? -1 : strcmp(x->name, y->name);
}

/* Brings two tables of methods together by name. */
static void diff_join(struct against *a, struct report_methods *now, struct report_methods *base)
{
	uint32_t i = 0, k = 0;

	qsort(now->methods, now->n, sizeof(*now->methods), by_method_name);
	qsort(base->methods, base->n, sizeof(*base->methods), by_method_name);
	while (i < now->n || k < base->n) {
		int order = i == now->n	   ? 1
			    : k == base->n ? -1
					   : by_method_name(&now->methods[i], &base->methods[k]);
		struct against_method *m = &a->methods[a->n_methods++];

		if (order <= 0) {
			m->name = now->methods[i].name;
			m->self = now->methods[i].self;
			m->total = now->methods[i++].total;
		}
		if (order >= 0) {
			m->name = base->methods[k].name;
			m->base_self = base->methods[k].self;
			m->base_total = base->methods[k++].total;
		}
	}
	sorted_against = a;
	qsort(a->methods, a->n_methods, sizeof(*a->methods), by_growth);
}

/* Exchanges the rows' weights and the baseline's; a second call undoes it. */
static void diff_swap(struct diff *d)
{
	struct profile_row *rows = (struct profile_row *)(uintptr_t)d->all->rows;

	for (uint32_t i = 0; i < d->all->n_rows; i++) {
		struct profile_row now = rows[i];

		rows[i].samples = d->against.row_samples[i];
		rows[i].weight = d->against.row_weights[i];
		d->against.row_samples[i] = now.samples;
		d->against.row_weights[i] = now.weight;
	}
}

/* Fills in the methods; @index owns their names. */
static int diff_methods(struct diff *d, const struct report_index *index)
{
	struct report_methods now = { 0 }, base = { 0 };
	int r = report_methods(d->all, index, UINT32_MAX, REPORT_BY_SELF, &now);

	diff_swap(d);
	if (r == 0)
		r = report_methods(d->all, index, UINT32_MAX, REPORT_BY_SELF, &base);
	diff_swap(d);
	if (r == 0) {
		d->against.methods =
			calloc((size_t)now.n + base.n + 1, sizeof(*d->against.methods));
		r = d->against.methods ? 0 : -ENOMEM;
	}
	if (r == 0)
		diff_join(&d->against, &now, &base);
	report_methods_free(&now);
	report_methods_free(&base);
	return r;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int diff_write(struct diff *d, enum report_format format, const struct report_options *o,
		      char **ret, size_t *ret_len)
{
	CLEANUP(report_index_freep) struct report_index *index = NULL;
	struct report_options options = *o;
	struct text_out t = { 0 };
	int r = report_index_new(d->all, &index);

	if (r == 0)
		r = diff_methods(d, index);
	if (r < 0)
		return r;
	options.title = d->title;
	if (format == REPORT_HTML)
		write_html_against(&t, d->all, &options, &d->against);
	else if (format == REPORT_JSON)
		write_json_against(&t, d->all, &options, &d->against);
	else
		write_txt_against(&t, d->all, &options, &d->against);
	return text_take(&t, ret, ret_len);
}

static int diff_build(struct diff *d, const struct profile *base, const struct profile *now,
		      const struct report_options *o, enum report_diff_by by)
{
	int r = profile_new(&d->all);

	if (r == 0)
		r = diff_rows(d, base, now, o->threads);
	if (r < 0)
		return r;
	diff_head(d->all, now);
	diff_scale(d, base, now, by);
	diff_titles(d, base, now, o);
	return 0;
}

int report_diff(const struct profile *baseline, const struct profile *now,
		enum report_format format, const struct report_options *o, enum report_diff_by by,
		char **ret, size_t *ret_len)
{
	CLEANUP(profile_freep) struct profile *base_part = NULL, *now_part = NULL;
	struct diff d = { 0 };
	char why[128];
	int r;

	if (!report_diffs(format, why, sizeof(why)) ||
	    !report_takes(format, o->events, why, sizeof(why)))
		return -EINVAL;
	r = report_part(baseline, o, &base_part);
	if (r == 0)
		r = report_part(now, o, &now_part);
	if (r == 0)
		r = diff_build(&d, base_part ? base_part : baseline, now_part ? now_part : now, o,
			       by);
	if (r == 0)
		r = diff_write(&d, format, o, ret, ret_len);
	profile_free(d.all);
	free(d.against.row_samples);
	free(d.against.row_weights);
	free(d.against.methods);
	return r;
}
