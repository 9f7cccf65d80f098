/*
 * Chooses which windows go when the history takes too much disk: the oldest of the tenant that has
 * the most. So a tenant that fills the disk shortens its own history, and each of the others keeps
 * at least an equal share. A segment's index says what each tenant has in it; a segment that loses
 * windows is rewritten.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <fcntl.h>

#define SLICES_MAX (1u << 22)

/* What one tenant has in one segment. */
struct slice {
	uint64_t tenant;
	uint32_t segment; /* its position in shares.segments */
	uint64_t bytes, go; /* bytes of its records; how many bytes of the oldest are removed */
};

struct share { /* what one tenant has */
	uint32_t first, end; /* its slices, oldest first */
	uint64_t bytes;
};

struct shares {
	uint64_t *segments; /* numbers, oldest first */
	uint32_t n_segments;
	struct slice *slices;
	uint32_t n, cap;
	struct share *tenants;
	uint32_t n_tenants;
	uint64_t bytes;
};

static int by_tenant_and_segment(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->tenant != y->tenant)
		return x->tenant < y->tenant ? -1 : 1;
	return x->segment < y->segment ? -1 : x->segment > y->segment;
}

static int by_segment_and_tenant(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return x->tenant < y->tenant ? -1 : x->tenant > y->tenant;
}

static bool add_slice(struct shares *s, const struct slice *slice)
{
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 1024;
		struct slice *p = s->n < SLICES_MAX ? realloc(s->slices, cap * sizeof(*p)) : NULL;

		if (!p)
			return false;
		s->slices = p;
		s->cap = cap;
	}
	s->slices[s->n++] = *slice;
	return true;
}

/* Merges the slices from @first on, which are one for each process, to one for each tenant. */
static void add_up_slices(struct shares *s, uint32_t first)
{
	uint32_t n = first;

	if (s->n == first)
		return;
	qsort(s->slices + first, s->n - first, sizeof(*s->slices), by_segment_and_tenant);
	for (uint32_t i = first + 1; i < s->n; i++) {
		if (s->slices[i].tenant == s->slices[n].tenant)
			s->slices[n].bytes += s->slices[i].bytes;
		else
			s->slices[++n] = s->slices[i];
	}
	s->n = n + 1;
}

/* false = no memory. From a segment of another version nothing can be removed. */
static bool read_segment(struct store *store, struct shares *s, uint32_t index)
{
	CLEANUP(fd_closep)
	int fd = store_open_segment(store, s->segments[index], O_RDONLY);
	struct index x = INDEX_NULL;
	uint32_t first = s->n;
	bool r = true;

	if (fd < 0 || record_is_foreign(fd))
		return true;
	if (index_open(store, s->segments[index], fd, NULL, &x) < 0)
		return false;
	for (uint32_t i = 0; i < x.n_processes && r; i++)
		r = add_slice(s, &(struct slice){ .tenant = x.processes[i].tenant,
						  .segment = index,
						  .bytes = x.processes[i].bytes });
	index_deinit(&x);
	add_up_slices(s, first);
	return r;
}

static bool shares_count_tenants(struct shares *s)
{
	qsort(s->slices, s->n, sizeof(*s->slices), by_tenant_and_segment);
	s->tenants = calloc((size_t)s->n + 1, sizeof(*s->tenants));
	for (uint32_t i = 0; s->tenants && i < s->n; i++) {
		if (i == 0 || s->slices[i - 1].tenant != s->slices[i].tenant)
			s->tenants[s->n_tenants++].first = i;
		s->tenants[s->n_tenants - 1].end = i + 1;
		s->tenants[s->n_tenants - 1].bytes += s->slices[i].bytes;
		s->bytes += s->slices[i].bytes;
	}
	return s->n_tenants > 1;
}

/* ---- choosing -------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* How many bytes each tenant may keep so that all together have @goal: a tenant that has fewer
 * keeps them all and leaves the rest of its share to the others. */
static uint64_t level_of(struct shares *s, uint64_t goal)
{
	qsort(s->tenants, s->n_tenants, sizeof(*s->tenants), by_bytes);
	for (uint32_t i = 0; i < s->n_tenants; i++) {
		uint64_t equal = goal / (s->n_tenants - i);

		if (s->tenants[i].bytes > equal)
			return equal;
		goal -= s->tenants[i].bytes;
	}
	return UINT64_MAX;
}

static void shares_choose(struct shares *s, uint64_t goal)
{
	uint64_t level = level_of(s, goal);

	for (uint32_t i = 0; i < s->n_tenants; i++) {
		const struct share *t = &s->tenants[i];
		uint64_t go = t->bytes > level ? t->bytes - level : 0;

		for (uint32_t k = t->first; k < t->end && go; k++) {
			struct slice *slice = &s->slices[k];

			slice->go = slice->bytes < go ? slice->bytes : go;
			go -= slice->go;
		}
	}
}

/* ---- rewriting segments ---------------------------------------------------------------------- */

static struct slice *find_slice(struct slice *slices, uint32_t n, uint64_t tenant)
{
	const struct slice key = { .tenant = tenant, .segment = slices->segment };

	return bsearch(&key, slices, n, sizeof(*slices), by_segment_and_tenant);
}

/* Is the record among the oldest of its tenant, which are to go? */
static bool shares_goes(struct slice *slices, uint32_t n, const struct header *h)
{
	struct slice *slice = find_slice(slices, n, h->tenant);
	uint64_t bytes = sizeof(*h) + h->zstd_len;

	if (!slice || !slice->go)
		return false;
	slice->go -= bytes < slice->go ? bytes : slice->go;
	return true;
}

static int shares_copy(int from, int to, off_t at, uint64_t len)
{
	while (len) {
		ssize_t n = copy_file_range(from, &at, to, NULL, len, 0);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Copies the records that stay, without contents, from one segment file to another. Returns their bytes, or -errno. */
static int64_t copy_rest(int from, int to, struct slice *slices, uint32_t n)
{
	int64_t bytes = 0;
	struct header h;
	int e = 0;

	for (off_t at = 0; e == 0 && record_next(from, &at, &h); at = record_end(&h, at)) {
		if (contents_is(&h) || shares_goes(slices, n, &h))
			continue;
		e = shares_copy(from, to, at, sizeof(h) + h.zstd_len);
		bytes += (int64_t)(sizeof(h) + h.zstd_len);
	}
	return e < 0 ? e : bytes;
}

static int shares_write_anew(struct store *store, uint64_t number, struct slice *slices, uint32_t n)
{
	CLEANUP(fd_closep) int to = -1;
	CLEANUP(fd_closep)
	int from = store_open_segment(store, number, O_RDONLY);
	int64_t rest;

	(void)unlinkat(store->dfd, SHARES_TEMP, 0);
	to = openat(store->dfd, SHARES_TEMP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0640);
	if (from < 0 || to < 0)
		return -errno;
	rest = copy_rest(from, to, slices, n);
	if (rest > 0 && fdatasync(to) < 0)
		rest = -errno;
	if (rest > 0)
		return store_replace_segment(store, number, SHARES_TEMP);
	(void)unlinkat(store->dfd, SHARES_TEMP, 0);
	if (rest == 0)
		store_unlink_segment(store, number);
	return (int)rest;
}

/* @slices: all @n of one segment */
static int shares_rewrite_segment(struct store *store, const struct shares *s, struct slice *slices,
				  uint32_t n)
{
	uint64_t number = s->segments[slices->segment], bytes = 0, go = 0;

	for (uint32_t i = 0; i < n; i++) {
		bytes += slices[i].bytes;
		go += slices[i].go;
	}
	if (!go)
		return 0;
	/* the next window opens the current segment again */
	if (store->fd >= 0 && number == store->open_segment)
		store->fd = fd_close(store->fd);
	if (go < bytes)
		return shares_write_anew(store, number, slices, n);
	store_unlink_segment(store, number);
	return 0;
}

/* Rewrites segments until one fails; then store.c removes whole segments. */
static void shares_rewrite_all(struct store *store, struct shares *s)
{
	int e = 0;

	qsort(s->slices, s->n, sizeof(*s->slices), by_segment_and_tenant);
	for (uint32_t i = 0, n; i < s->n && e == 0; i += n) {
		for (n = 1; i + n < s->n && s->slices[i + n].segment == s->slices[i].segment;)
			n++;
		e = shares_rewrite_segment(store, s, s->slices + i, n);
	}
}

void shares_give_up(struct store *store, uint64_t goal)
{
	struct shares s = { 0 };
	bool r = true;

	s.segments = store_segments(store, &s.n_segments);
	for (uint32_t i = 0; s.segments && i < s.n_segments && r; i++)
		r = read_segment(store, &s, i);
	if (r && s.n && shares_count_tenants(&s)) {
		shares_choose(&s, goal);
		shares_rewrite_all(store, &s);
	}
	free(s.segments);
	free(s.slices);
	free(s.tenants);
}
