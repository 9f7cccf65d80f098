/*
 * Whose windows go when the history takes too much disk: those of the tenant that has the most, the
 * oldest first. So a tenant that fills its windows shortens its own history; what others keep is at
 * least an equal share of the bytes. A segment that loses windows is written anew.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <fcntl.h>

#define RECORDS_MAX (1u << 20)

struct record {
	struct header header;
	off_t at;
	uint32_t segment; /* index */
	bool goes;
};

struct segment {
	uint64_t number;
	uint32_t stay, go; /* records */
	bool foreign; /* or could not be read: stays */
};

/* All records, tenant by tenant, oldest first, and whose they are. */
struct shares {
	struct record *records;
	uint32_t n, cap;
	struct segment *segments;
	uint32_t n_segments;
	struct share {
		uint32_t next, end;
		uint64_t bytes;
	} * tenants;
	uint32_t n_tenants;
	uint64_t bytes;
};

static uint64_t bytes_of(const struct record *r)
{
	return sizeof(r->header) + r->header.zstd_len;
}

static bool add(struct shares *s, const struct record *r)
{
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 1024;
		struct record *p =
			s->n < RECORDS_MAX ? realloc(s->records, cap * sizeof(*p)) : NULL;

		if (!p)
			return false;
		s->records = p;
		s->cap = cap;
	}
	s->records[s->n++] = *r;
	return true;
}

static void read_segment(struct store *store, struct shares *s, uint32_t index)
{
	struct segment *segment = &s->segments[index];
	struct record r = { .segment = index };
	CLEANUP(fd_closep)
	int fd = store_open_segment(store, segment->number, O_RDONLY);

	segment->foreign = fd < 0 || record_is_foreign(fd);
	while (!segment->foreign && record_next(fd, &r.at, &r.header)) {
		if (!add(s, &r)) {
			segment->foreign = true;
			return;
		}
		segment->stay++;
		r.at = record_end(&r.header, r.at);
	}
}

static int by_tenant_and_age(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->header.tenant != y->header.tenant)
		return x->header.tenant < y->header.tenant ? -1 : 1;
	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static bool count_tenants(struct shares *s)
{
	qsort(s->records, s->n, sizeof(*s->records), by_tenant_and_age);
	s->tenants = calloc(s->n, sizeof(*s->tenants));
	for (uint32_t i = 0; s->tenants && i < s->n; i++) {
		if (i == 0 || s->records[i - 1].header.tenant != s->records[i].header.tenant)
			s->tenants[s->n_tenants++].next = i;
		s->tenants[s->n_tenants - 1].end = i + 1;
		s->tenants[s->n_tenants - 1].bytes += bytes_of(&s->records[i]);
		s->bytes += bytes_of(&s->records[i]);
	}
	return s->n_tenants > 1;
}

/* ---- who gives up ---------------------------------------------------------------------------- */

static struct share *largest(struct shares *s)
{
	struct share *most = &s->tenants[0];

	for (uint32_t i = 1; i < s->n_tenants; i++)
		if (s->tenants[i].bytes > most->bytes)
			most = &s->tenants[i];
	return most->next < most->end ? most : NULL;
}

static void choose(struct shares *s, uint64_t goal)
{
	struct share *most;

	while (s->bytes > goal && (most = largest(s))) {
		struct record *r = &s->records[most->next++];
		struct segment *segment = &s->segments[r->segment];

		most->bytes -= bytes_of(r);
		s->bytes -= bytes_of(r);
		r->goes = true;
		segment->stay--;
		segment->go++;
	}
}

/* ---- segments written anew ------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int copy(int from, int to, off_t at, uint64_t len)
{
	while (len) {
		ssize_t n = copy_file_range(from, &at, to, NULL, len, 0);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		len -= (uint64_t)n;
	}
	return 0;
}

/* @r: its first record, by place. */
static int write_anew(struct store *store, const struct shares *s, const struct record *r)
{
	const struct segment *segment = &s->segments[r->segment];
	CLEANUP(fd_closep) int to = -1;
	CLEANUP(fd_closep)
	int from = store_open_segment(store, segment->number, O_RDONLY);
	int e = 0;

	(void)unlinkat(store->dfd, SHARES_TEMP, 0);
	to = openat(store->dfd, SHARES_TEMP, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0640);
	if (from < 0 || to < 0)
		return -errno;
	for (; e == 0 && r < s->records + s->n && &s->segments[r->segment] == segment; r++)
		if (!r->goes)
			e = copy(from, to, r->at, bytes_of(r));
	if (e == 0 && fdatasync(to) < 0)
		e = -errno;
	return e < 0 ? e : store_replace_segment(store, segment->number, SHARES_TEMP);
}

static int rid(struct store *store, const struct shares *s, const struct record *first)
{
	const struct segment *segment = &s->segments[first->segment];

	if (!segment->go || segment->foreign)
		return 0;
	/* the one being written is opened again by the next window */
	if (store->fd >= 0 && segment->number == store->open_segment)
		store->fd = fd_close(store->fd);
	if (segment->stay)
		return write_anew(store, s, first);
	store_unlink_segment(store, segment->number);
	return 0;
}

static void rid_all(struct store *store, struct shares *s)
{
	int e = 0;

	qsort(s->records, s->n, sizeof(*s->records), by_place);
	for (uint32_t i = 0; i < s->n && e == 0; i++)
		if (i == 0 || s->records[i - 1].segment != s->records[i].segment)
			e = rid(store, s, &s->records[i]);
	if (e < 0) /* whole segments go */
		(void)unlinkat(store->dfd, SHARES_TEMP, 0);
}

void shares_give_up(struct store *store, uint64_t goal)
{
	CLEANUP(freep) uint64_t *numbers = NULL;
	struct shares s = { 0 };

	numbers = store_segments(store, &s.n_segments);
	s.segments = numbers ? calloc(s.n_segments + 1, sizeof(*s.segments)) : NULL;
	for (uint32_t i = 0; s.segments && i < s.n_segments; i++) {
		s.segments[i].number = numbers[i];
		read_segment(store, &s, i);
	}
	if (s.n && count_tenants(&s)) {
		choose(&s, goal);
		rid_all(store, &s);
	}
	free(s.records);
	free(s.segments);
	free(s.tenants);
}
