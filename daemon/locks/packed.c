/*
 * See locks_priv.h: the rows of a slice to which nothing is added any more. Most rows have one
 * waiter and one method, so that they take a tenth of their size in a table.
 */
#include "daemon/locks/locks_priv.h"

#include <string.h>

#define NUMBER_MAX 10 /* bytes of one number */
#define SET_MAX	   ((2 * LOCKS_TIDS + 1) * NUMBER_MAX)
#define SITES_MAX  ((4 * LOCKS_SITES + 1) * NUMBER_MAX)
#define ROW_MAX	   (6 * NUMBER_MAX + 2 * SET_MAX + 2 * SITES_MAX)

/* what a row's first number says besides its kind of wait */
enum {
	PACKED_WAIT = 3,
	PACKED_IDLE = 4,
	PACKED_REST = 8,
	PACKED_MORE_WAITERS = 16,
	PACKED_MORE_OWNERS = 32,
};

_Static_assert(WIRE_WAIT_COUNT - 1 <= PACKED_WAIT, "a kind of wait has two bits");

/* ---- writing: seven bits a byte, the lowest first ----------------------------------------------
 */

static uint8_t *pack_number(uint8_t *at, uint64_t n)
{
	for (; n > 0x7f; n >>= 7)
		*at++ = (uint8_t)(n | 0x80);
	*at++ = (uint8_t)n;
	return at;
}

static uint8_t *pack_tids(uint8_t *at, const struct tid_set *s)
{
	at = pack_number(at, s->n);
	for (uint32_t i = 0; i < s->n; i++) {
		at = pack_number(at, s->tids[i].tid);
		at = pack_number(at, s->tids[i].ns);
	}
	return at;
}

static uint8_t *pack_sites(uint8_t *at, const struct site_set *s)
{
	const struct site *p = s->sites;
	uint32_t n = 0;

	for (uint32_t i = 0; i < LOCKS_SITES; i++)
		n += p[i].frame != 0;
	at = pack_number(at, n);
	for (uint32_t i = 0; i < LOCKS_SITES; i++) {
		if (!p[i].frame)
			continue;
		at = pack_number(at, p[i].frame);
		at = pack_number(at, p[i].node);
		at = pack_number(at, p[i].us);
		at = pack_number(at, p[i].longest_us);
	}
	return at;
}

static uint8_t *pack_row(uint8_t *at, const struct lock_row *r, unsigned flags)
{
	flags |= r->key.wait | (r->key.idle ? PACKED_IDLE : 0u) |
		 (r->waiters.more ? PACKED_MORE_WAITERS : 0u) |
		 (r->owners.more ? PACKED_MORE_OWNERS : 0u);
	at = pack_number(at, flags);
	at = pack_number(at, r->key.class_number);
	at = pack_number(at, r->key.identity);
	at = pack_number(at, r->waits);
	at = pack_number(at, r->total_ns);
	at = pack_number(at, r->longest_ns);
	at = pack_tids(at, &r->waiters);
	at = pack_tids(at, &r->owners);
	at = pack_sites(at, &r->waiting);
	return pack_sites(at, &r->holding);
}

static uint8_t *pack_rows(uint8_t *at, const struct lock_row *rows, uint32_t n, unsigned flags)
{
	for (uint32_t i = 0; i < n; i++)
		if (rows[i].waits)
			at = pack_row(at, &rows[i], flags);
	return at;
}

/* All rows of @t, one after the other, from @at on: where they end. */
static uint8_t *pack_table(uint8_t *at, const struct lock_table *t)
{
	at = pack_rows(at, t->rows, t->n, 0);
	at = pack_rows(at, &t->other[0][0], 2u * WIRE_WAIT_COUNT, 0);
	return pack_rows(at, t->rest, t->n_rest, PACKED_REST);
}

struct packed_table *packed_new(const struct lock_table *t)
{
	const size_t rows = t->n + t->n_rest + 2u * WIRE_WAIT_COUNT;
	CLEANUP(freep) uint8_t *bytes = malloc(rows * ROW_MAX);
	size_t len = bytes ? (size_t)(pack_table(bytes, t) - bytes) : 0;
	struct packed_table *p = bytes ? malloc(sizeof(*p) + len) : NULL;

	if (!p)
		return NULL;
	*p = (struct packed_table){ .folded = t->folded, .len = len, .epoch = t->epoch };
	memcpy(p->rows, bytes, len);
	return p;
}

size_t packed_bytes(const struct packed_table *p)
{
	return sizeof(*p) + p->len;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

static uint64_t unpack_number(const uint8_t **at)
{
	uint64_t n = 0;
	uint8_t byte;

	for (unsigned shift = 0;; shift += 7) {
		byte = *(*at)++;
		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return n;
	}
}

static void unpack_tids(const uint8_t **at, struct tid_set *ret)
{
	ret->n = (uint32_t)unpack_number(at);
	for (uint32_t i = 0; i < ret->n; i++) {
		ret->tids[i].tid = (uint32_t)unpack_number(at);
		ret->tids[i].ns = unpack_number(at);
	}
}

static void unpack_sites(const uint8_t **at, bool nodes, struct site_set *ret)
{
	uint32_t n = (uint32_t)unpack_number(at);

	for (uint32_t i = 0; i < n; i++) {
		struct site *s = &ret->sites[i];

		s->frame = (uint32_t)unpack_number(at);
		s->node = (uint32_t)unpack_number(at);
		s->us = (uint32_t)unpack_number(at);
		s->longest_us = (uint32_t)unpack_number(at);
		if (!nodes)
			s->node = s->longest_us = 0;
	}
}

void packed_each(const struct packed_table *p, uint32_t epoch,
		 void (*each)(void *userdata, const struct lock_row *row, bool is_rest),
		 void *userdata)
{
	const uint8_t *at = p->rows, *end = p->rows + p->len;

	while (at < end) {
		unsigned flags = (unsigned)unpack_number(&at);
		struct lock_row r = { .waiters.more = flags & PACKED_MORE_WAITERS,
				      .owners.more = flags & PACKED_MORE_OWNERS };

		r.key.wait = flags & PACKED_WAIT;
		r.key.idle = flags & PACKED_IDLE;
		r.key.class_number = (uint32_t)unpack_number(&at);
		r.key.identity = (uint32_t)unpack_number(&at);
		r.waits = unpack_number(&at);
		r.total_ns = unpack_number(&at);
		r.longest_ns = unpack_number(&at);
		unpack_tids(&at, &r.waiters);
		unpack_tids(&at, &r.owners);
		unpack_sites(&at, p->epoch == epoch, &r.waiting);
		unpack_sites(&at, p->epoch == epoch, &r.holding);
		each(userdata, &r, flags & PACKED_REST);
	}
}
