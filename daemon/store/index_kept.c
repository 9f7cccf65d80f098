/*
 * The segment of the present ten minutes has no index in a file. A program that reads it repeatedly
 * (once for each JVM, interval and sink) keeps what a scan has found, and scans only what was
 * appended since. The segment is the same if its file is, and if the last record that was found is
 * still there: a segment is only appended to, except that a failed write is cut off its end.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <string.h>

struct index_kept {
	dev_t dev;
	ino_t ino;
	struct header last; /* the last record */
	off_t last_at;
	struct index index; /* covered 0 = nothing is kept */
};

struct index_kept *index_kept_new(void)
{
	struct index_kept *k = calloc(1, sizeof(*k));

	if (k)
		k->index = INDEX_NULL;
	return k;
}

struct index_kept *index_kept_free(struct index_kept *k)
{
	if (!k)
		return NULL;
	index_deinit(&k->index);
	free(k);
	return NULL;
}

static bool index_kept_is_of(const struct index_kept *k, int fd, const struct stat *st)
{
	struct header h;

	return k->index.covered && k->dev == st->st_dev && k->ino == st->st_ino &&
	       k->index.covered <= (uint64_t)st->st_size && record_at(fd, k->last_at, &h) &&
	       memcmp(&h, &k->last, sizeof(h)) == 0;
}

/* The order of processes in an index. */
static int index_kept_compare(const struct index_process *a, const struct index_process *b)
{
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->start_time < b->start_time ? -1 : a->start_time > b->start_time;
}

static bool index_kept_is_earlier(const struct index_entry *a, const struct index_entry *b)
{
	return a->begin_real_ns != b->begin_real_ns ? a->begin_real_ns < b->begin_real_ns
						    : a->at < b->at;
}

/* Appends to @to one process with its entries: @p from @x, merged in order with @q from @y. @q NULL
 * = only @p. */
static void index_kept_put(struct index *to, const struct index *x, const struct index_process *p,
			   const struct index *y, const struct index_process *q)
{
	struct index_process *sum = &to->processes[to->n_processes++];
	uint32_t i = 0, k = 0, n_new = q ? q->n : 0;

	*sum = *p;
	sum->first = to->n_entries;
	while (i < p->n || k < n_new) {
		const struct index_entry *a = i < p->n ? &x->entries[p->first + i] : NULL;
		const struct index_entry *b = k < n_new ? &y->entries[q->first + k] : NULL;
		bool first = a && (!b || index_kept_is_earlier(a, b));

		to->entries[to->n_entries++] = first ? *a : *b;
		i += first;
		k += !first;
	}
	if (!q)
		return;
	sum->n += q->n;
	sum->samples += q->samples;
	sum->bytes += q->bytes;
	if (q->begin_real_ns < sum->begin_real_ns)
		sum->begin_real_ns = q->begin_real_ns;
	if (q->end_real_ns > sum->end_real_ns)
		sum->end_real_ns = q->end_real_ns;
}

/* Adds @more, a scan of what follows, to @x. 0 or -ENOMEM. */
static int index_kept_add(struct index *x, const struct index *more)
{
	struct index to = INDEX_NULL;
	uint32_t i = 0, k = 0;

	if (!more->n_processes) {
		x->covered = more->covered;
		return 0;
	}
	to.processes =
		calloc((size_t)x->n_processes + more->n_processes + 1, sizeof(*to.processes));
	to.entries = calloc((size_t)x->n_entries + more->n_entries + 1, sizeof(*to.entries));
	if (!to.processes || !to.entries) {
		index_deinit(&to);
		return -ENOMEM;
	}
	while (i < x->n_processes || k < more->n_processes) {
		const struct index_process *p = i < x->n_processes ? &x->processes[i] : NULL;
		const struct index_process *q = k < more->n_processes ? &more->processes[k] : NULL;
		int order = !p ? 1 : !q ? -1 : index_kept_compare(p, q);

		if (order <= 0)
			index_kept_put(&to, x, p, more, order == 0 ? q : NULL);
		else
			index_kept_put(&to, more, q, NULL, NULL);
		i += order <= 0;
		k += order >= 0;
	}
	to.covered = more->covered;
	index_deinit(x);
	*x = to;
	return 0;
}

/* Remembers the last record, which tells whether the rest is still the same. */
static void index_kept_mark(struct index_kept *k, int fd, const struct stat *st)
{
	const struct index *x = &k->index;

	k->dev = st->st_dev;
	k->ino = st->st_ino;
	k->last_at = 0;
	for (uint32_t i = 0; i < x->n_entries; i++)
		if ((off_t)x->entries[i].at > k->last_at)
			k->last_at = (off_t)x->entries[i].at;
	if (!x->n_entries || !record_at(fd, k->last_at, &k->last))
		index_deinit(&k->index);
}

int index_kept_open(struct index_kept *k, int fd, const struct stat *st, struct index *ret)
{
	struct index more = INDEX_NULL;
	int r;

	if (!index_kept_is_of(k, fd, st))
		index_deinit(&k->index);
	if (k->index.covered < (uint64_t)st->st_size) {
		r = index_scan_between(fd, (off_t)k->index.covered, st->st_size, &more);
		if (r == 0)
			r = index_kept_add(&k->index, &more);
		index_deinit(&more);
		if (r < 0)
			return r;
		index_kept_mark(k, fd, st);
	}
	*ret = k->index;
	ret->borrowed = true;
	return 0;
}
