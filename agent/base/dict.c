/* See dict.h: open addressing, grown by doubling. Memory comes from mmap, so that it can be
 * returned. */
#include "agent/base/dict.h"

#include <stddef.h>
#include <sys/mman.h>

#define CAPACITY_FIRST 1024u

static uint64_t budget_bytes = 4u << 20;
static uint64_t held_bytes; /* memory of all tables */

void dict_budget(uint64_t bytes)
{
	budget_bytes = bytes;
}

uint64_t dict_hash(const void *p, uint32_t len)
{
	/* FNV-1a, then mixed: 64 bits are enough for the few thousand strings of an epoch */
	const uint8_t *bytes = p;
	uint64_t h = 0xcbf29ce484222325ull;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ bytes[i]) * 0x100000001b3ull;
	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15ull;
}

static uint32_t dict_slot(uint64_t k0, uint64_t k1, uint32_t capacity)
{
	uint64_t h = (k0 ^ (k1 * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;

	return (uint32_t)(h >> 32) & (capacity - 1);
}

static struct dict_entry *dict_find(struct dict_entry *entries, uint32_t capacity, uint64_t k0,
				    uint64_t k1)
{
	uint32_t i = dict_slot(k0, k1, capacity);

	while (entries[i].id && (entries[i].k0 != k0 || entries[i].k1 != k1))
		i = (i + 1) & (capacity - 1);
	return &entries[i];
}

static struct dict_entry *dict_allocate(uint32_t capacity)
{
	uint64_t bytes = capacity * sizeof(struct dict_entry);
	void *p;

	if (held_bytes + bytes > budget_bytes)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	held_bytes += bytes;
	return p;
}

static void dict_release(struct dict *d)
{
	if (!d->entries)
		return;
	munmap(d->entries, dict_bytes(d));
	held_bytes -= dict_bytes(d);
}

static bool dict_grow(struct dict *d)
{
	uint32_t capacity = d->capacity ? 2 * d->capacity : CAPACITY_FIRST;
	struct dict_entry *entries;

	entries = dict_allocate(capacity);
	if (!entries)
		return false;
	for (uint32_t i = 0; i < d->capacity; i++)
		if (d->entries[i].id)
			*dict_find(entries, capacity, d->entries[i].k0, d->entries[i].k1) =
				d->entries[i];
	dict_release(d);
	d->entries = entries;
	d->capacity = capacity;
	return true;
}

uint32_t dict_id(struct dict *d, uint64_t k0, uint64_t k1, bool *ret_new)
{
	struct dict_entry *e;

	*ret_new = false;
	if (d->capacity) {
		e = dict_find(d->entries, d->capacity, k0, k1);
		if (e->id)
			return e->id;
	}
	if (d->count >= DICT_ENTRIES_MAX)
		return 0;
	if (d->count * 2 >= d->capacity && !dict_grow(d))
		return 0;
	e = dict_find(d->entries, d->capacity, k0, k1);
	e->k0 = k0;
	e->k1 = k1;
	e->id = ++d->count;
	*ret_new = true;
	return e->id;
}

void dict_clear(struct dict *d)
{
	dict_release(d);
	d->entries = NULL;
	d->capacity = 0;
	d->count = 0;
}

uint64_t dict_bytes(const struct dict *d)
{
	return (uint64_t)d->capacity * sizeof(struct dict_entry);
}
