/*
 * The seconds of a window: what each second added to each row and process. A second has no names of
 * its own; it is presented as a profile whose rows are its parts and whose tables are the window's.
 * Without room for another part, an increase goes to the row's last part: the window stays right,
 * and single seconds become inaccurate.
 */
#include "daemon/profile/live_priv.h"

#include <errno.h>
#include <string.h>

/* ---- adding ---------------------------------------------------------------------------------- */

/* Makes room for entry @i of an array; false = the window's bytes are used up, or no memory. */
static bool second_reserve(struct live_recent *w, void **array, uint32_t *cap, uint32_t i,
			   size_t size)
{
	uint32_t want = *cap ? 2 * *cap : 64;
	void *p;

	if (i < *cap)
		return true;
	while (want <= i)
		want *= 2;
	if ((want - *cap) * size > w->bytes_max - w->bytes)
		return false;
	p = calloc(want, size); /* pages of a large array take memory only once they are written */
	if (!p)
		return false;
	if (*cap)
		memcpy(p, *array, *cap * size);
	free(*array);
	w->bytes += (want - *cap) * size;
	*array = p;
	*cap = want;
	return true;
}

static void part_add(struct live_part *p, uint64_t samples, uint64_t weight)
{
	p->samples +=
		samples < UINT32_MAX - p->samples ? (uint32_t)samples : UINT32_MAX - p->samples;
	p->weight += weight < UINT64_MAX - p->weight ? weight : UINT64_MAX - p->weight;
}

void live_second_add_row(struct live_place at, uint32_t row, uint64_t samples, uint64_t weight)
{
	struct live_recent *w = at.window;
	struct live_second *s = at.second;
	uint32_t number = (uint32_t)(s - w->seconds) + 1;
	struct live_last *last;

	if (row == UINT32_MAX ||
	    !second_reserve(w, (void **)&w->last, &w->n_last, row, sizeof(*w->last)))
		return;
	last = &w->last[row];
	if (last->second != number &&
	    second_reserve(w, (void **)&s->parts, &s->cap_parts, s->n_parts, sizeof(*s->parts))) {
		*last = (struct live_last){ number, s->n_parts };
		s->parts[s->n_parts++] = (struct live_part){ .row = row };
	}
	if (last->second)
		part_add(&w->seconds[last->second - 1].parts[last->part], samples, weight);
}

static struct live_head *live_seconds_head_of(struct live_place at, uint32_t process)
{
	struct live_second *s = at.second;

	if (process >= at.window->profile->n_processes ||
	    !second_reserve(at.window, (void **)&s->heads, &s->n_heads, process, sizeof(*s->heads)))
		return NULL;
	return &s->heads[process];
}

static void losses_add_came(struct profile_losses *l, const struct profile_row *r)
{
	l->taken += r->samples;
	l->taken_weight += r->weight;
	l->delivered += r->samples;
	l->delivered_weight += r->weight;
}

void live_second_add_came(struct live_place at, uint32_t process, const struct profile_row *row)
{
	struct live_head *h = live_seconds_head_of(at, process);

	losses_add_came(&at.second->accounts.of[row->event], row);
	if (h)
		losses_add_came(&h->accounts.of[row->event], row);
}

void live_second_add_accounts(struct live_place at, uint32_t process,
			      const struct profile_accounts *d)
{
	struct live_head *h = live_seconds_head_of(at, process);

	profile_sum_accounts(&at.second->accounts, d, NULL);
	if (h)
		profile_sum_accounts(&h->accounts, d, NULL);
}

void live_second_add_cpu(struct live_place at, uint32_t process, uint64_t ns)
{
	struct live_head *h = live_seconds_head_of(at, process);

	if (h)
		h->cpu_ns += ns;
}

/* ---- seconds as a profile -------------------------------------------------------------------- */

static uint64_t second_begin(const struct live_recent *w, unsigned i)
{
	return w->begin_real_ns + i * LIVE_SLICE_NS;
}

static bool second_is_in(const struct live_recent *w, unsigned i, uint64_t from, uint64_t to)
{
	uint64_t begin = second_begin(w, i);

	return w->seconds[i].changes && begin < to && begin + LIVE_SLICE_NS > from;
}

static void view_add(struct profile *view, const struct live_recent *w, unsigned i)
{
	const struct live_second *s = &w->seconds[i];

	if (!view->begin_real_ns)
		view->begin_real_ns = second_begin(w, i);
	view->end_real_ns = second_begin(w, i) + LIVE_SLICE_NS;
	profile_sum_accounts(&view->accounts, &s->accounts, NULL);
	for (uint32_t k = 0; k < s->n_parts; k++) {
		const struct live_part *part = &s->parts[k];
		struct profile_row *row = &ROWS(view)[view->n_rows++];

		*row = w->profile->rows[part->row];
		row->samples = part->samples;
		row->weight = part->weight;
	}
	for (uint32_t k = 0; k < s->n_heads && k < view->n_processes; k++) {
		profile_sum_accounts(&PROCESSES(view)[k].accounts, &s->heads[k].accounts, NULL);
		PROCESSES(view)[k].cpu_ns += s->heads[k].cpu_ns;
	}
}

int live_view(const struct live_recent *w, uint64_t from, uint64_t to, struct profile *ret)
{
	const struct profile *p = w->profile;
	struct profile_process *processes = NULL;
	struct profile_row *rows = NULL;
	size_t n = 0, seconds = 0;

	profile_names_refresh(p);
	for (unsigned i = 0; i < LIVE_SECONDS; i++)
		if (second_is_in(w, i, from, to)) {
			n += w->seconds[i].n_parts;
			seconds++;
		}
	if (!seconds)
		return 0;
	rows = calloc(n + 1, sizeof(*rows));
	processes = calloc((size_t)p->n_processes + 1, sizeof(*processes));
	if (!rows || !processes) {
		free(rows);
		free(processes);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->n_processes; i++) {
		processes[i] = p->processes[i];
		processes[i].accounts = (struct profile_accounts){ 0 };
		processes[i].cpu_ns = 0;
	}
	*ret = *p;
	ret->rows = rows;
	ret->processes = processes;
	ret->n_rows = 0;
	ret->accounts = (struct profile_accounts){ 0 };
	ret->begin_real_ns = ret->end_real_ns = ret->overflow = 0;
	for (unsigned i = 0; i < LIVE_SECONDS; i++)
		if (second_is_in(w, i, from, to))
			view_add(ret, w, i);
	return 1;
}

void live_view_free(struct profile *view)
{
	free((void *)(uintptr_t)view->rows);
	free((void *)(uintptr_t)view->processes);
}

struct profile *live_recent_end(struct live_recent *w)
{
	struct profile *p = w->profile;

	for (unsigned i = 0; i < LIVE_SECONDS; i++) {
		free(w->seconds[i].parts);
		free(w->seconds[i].heads);
	}
	free(w->last);
	*w = (struct live_recent){ 0 };
	return p;
}
