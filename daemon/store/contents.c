/*
 * The contents of one append. A window of many processes is as many records, and a query about one
 * process would have to read the header of each while the segment has no index yet. So a record in
 * front of them, the *contents*, says whose they are and how long. It only shortens the way: the
 * records are whole without it, and where it does not fit what follows it (a torn append, a segment
 * without some of its windows), the headers are read one by one. Programs from before it take it
 * for a record that they cannot decode.
 */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <string.h>

#define CONTENTS_MAX (1u << 18)

/* As much of a record's header as a scan needs. */
struct contents_entry {
	uint64_t start_time, tenant;
	uint32_t pid, samples, zstd_len;
	uint32_t header_crc;
};
_Static_assert(sizeof(struct contents_entry) == 32, "on disk");

bool contents_is(const struct header *h)
{
	return !h->pid && h->start_time == CONTENTS_START;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The entries of the records in @records; malloc'ed. *ret_n 0 = they need no contents. */
static int contents_list(const uint8_t *records, size_t len, struct contents_entry **ret,
			 uint32_t *ret_n)
{
	CLEANUP(freep) struct contents_entry *all = NULL;
	uint32_t n = 0, cap = 0;
	struct header h;

	for (size_t at = 0; at < len; at += sizeof(h) + h.zstd_len) {
		if (n == cap) {
			struct contents_entry *p;

			cap = cap ? 2 * cap : 256;
			p = cap <= CONTENTS_MAX ? realloc(all, cap * sizeof(*p)) : NULL;
			if (!p)
				return -ENOMEM;
			all = p;
		}
		memcpy(&h, records + at, sizeof(h));
		all[n++] = (struct contents_entry){ h.start_time, h.tenant,   h.pid,
						    h.samples,	  h.zstd_len, h.header_crc };
	}
	*ret = TAKE_PTR(all);
	*ret_n = n > 1 ? n : 0;
	return 0;
}

int contents_put(uint8_t **records, size_t *len)
{
	CLEANUP(freep) struct contents_entry *entries = NULL;
	CLEANUP(freep) uint8_t *contents = NULL;
	struct header h;
	size_t contents_len;
	uint8_t *both;
	uint32_t n;
	int r = contents_list(*records, *len, &entries, &n);

	if (r < 0 || !n)
		return r;
	memcpy(&h, *records, sizeof(h));
	/* without the number of the journal: this is not the window */
	h = (struct header){ .begin_real_ns = h.begin_real_ns,
			     .end_real_ns = h.end_real_ns,
			     .start_time = CONTENTS_START };
	r = record_pack(&h, (const uint8_t *)entries, n * sizeof(*entries), &contents,
			&contents_len);
	both = r == 0 ? realloc(*records, *len + contents_len) : NULL;
	if (!both)
		return r < 0 ? r : -ENOMEM;
	memmove(both + contents_len, both, *len);
	memcpy(both, contents, contents_len);
	*records = both;
	*len += contents_len;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Are the records behind the contents still those that it was made of? They were written in one
 * go, in this order: if the last one is there, all are. */
static bool contents_fits(int fd, off_t at, off_t until, const struct contents_entry *entries,
			  size_t n)
{
	off_t last = at;
	struct header h;

	for (size_t i = 0; i < n && at <= until; i++) {
		last = at;
		at += (off_t)sizeof(h) + (off_t)entries[i].zstd_len;
	}
	return n && at <= until && record_at(fd, last, &h) &&
	       h.header_crc == entries[n - 1].header_crc && h.zstd_len == entries[n - 1].zstd_len;
}

int contents_each(int fd, off_t at, const struct header *of, off_t until, contents_fn *fn,
		  void *userdata, off_t *ret_end)
{
	CLEANUP(freep) uint8_t *data = NULL;
	CLEANUP(freep) uint8_t *raw = NULL;
	const struct contents_entry *entries;
	size_t n = of->raw_len / sizeof(*entries);
	int r;

	if (of->raw_len % sizeof(*entries) || n > CONTENTS_MAX)
		return -EBADMSG;
	r = record_read(fd, at, of, &data);
	if (r == 0)
		r = record_inflate(of, data, &raw);
	at = record_end(of, at);
	entries = (const struct contents_entry *)(const void *)raw;
	if (r == 0 && !contents_fits(fd, at, until, entries, n))
		r = -EBADMSG;
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct contents_entry *e = &entries[i];
		const struct header h = { .begin_real_ns = of->begin_real_ns,
					  .end_real_ns = of->end_real_ns,
					  .zstd_len = e->zstd_len,
					  .tenant = e->tenant,
					  .start_time = e->start_time,
					  .pid = e->pid,
					  .samples = e->samples };

		r = fn(userdata, at, &h);
		at = record_end(&h, at);
	}
	if (r == 0)
		*ret_end = at;
	return r;
}
