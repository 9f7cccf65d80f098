/* See dict.h. An id is the place of its key, and open addressing finds the place, so an entry takes
 * 16 bytes and its share of the slots, 5 to 11. Memory comes from mmap, so that it can be returned.
 * A part that grows is copied: mremap is a system call that a seccomp filter may not allow. */
#include "agent/base/dict.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define ROOM_STEP      1024u /* keys */
#define CAPACITY_FIRST 2048u

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

/* The slot of a key, or the empty one that it would get. */
static uint32_t *dict_find(const struct dict *d, uint64_t k0, uint64_t k1)
{
	uint64_t h = (k0 ^ (k1 * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
	uint32_t i = (uint32_t)(h >> 32) & (d->capacity - 1);

	while (d->slots[i] &&
	       (d->keys[d->slots[i] - 1].k0 != k0 || d->keys[d->slots[i] - 1].k1 != k1))
		i = (i + 1) & (d->capacity - 1);
	return &d->slots[i];
}

/* NULL = no memory. */
static void *dict_map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void dict_unmap(void *p, uint64_t bytes)
{
	if (p)
		munmap(p, bytes);
}

/* By a quarter, so that each key is copied some four times. */
static bool dict_more_keys(struct dict *d)
{
	uint32_t room = d->room + ROOM_STEP * (1 + d->room / (4 * ROOM_STEP));
	uint64_t old_bytes = (uint64_t)d->room * sizeof(d->keys[0]);
	uint64_t bytes = (uint64_t)room * sizeof(d->keys[0]);
	struct dict_key *keys;

	if (held_bytes - old_bytes + bytes > budget_bytes)
		return false;
	keys = dict_map(bytes);
	if (!keys)
		return false;
	if (d->keys)
		memcpy(keys, d->keys, old_bytes);
	dict_unmap(d->keys, old_bytes);
	held_bytes += bytes - old_bytes;
	d->keys = keys;
	d->room = room;
	return true;
}

static bool dict_more_slots(struct dict *d)
{
	struct dict bigger = *d;
	uint64_t old_bytes = (uint64_t)d->capacity * sizeof(d->slots[0]), bytes;

	bigger.capacity = d->capacity ? 2 * d->capacity : CAPACITY_FIRST;
	bytes = (uint64_t)bigger.capacity * sizeof(d->slots[0]);
	if (held_bytes - old_bytes + bytes > budget_bytes)
		return false;
	bigger.slots = dict_map(bytes);
	if (!bigger.slots)
		return false;
	for (uint32_t i = 0; i < d->count; i++)
		*dict_find(&bigger, d->keys[i].k0, d->keys[i].k1) = i + 1;
	dict_unmap(d->slots, old_bytes);
	held_bytes += bytes - old_bytes;
	*d = bigger;
	return true;
}

uint32_t dict_id(struct dict *d, uint64_t k0, uint64_t k1, bool *ret_new)
{
	uint32_t *slot;

	*ret_new = false;
	if (d->capacity) {
		slot = dict_find(d, k0, k1);
		if (*slot)
			return *slot;
	}
	if (d->count >= DICT_ENTRIES_MAX)
		return 0;
	if (d->count == d->room && !dict_more_keys(d))
		return 0;
	/* at most three quarters of the slots are in use */
	if (d->count + d->count / 3 >= d->capacity && !dict_more_slots(d))
		return 0;
	d->keys[d->count] = (struct dict_key){ k0, k1 };
	*dict_find(d, k0, k1) = ++d->count;
	*ret_new = true;
	return d->count;
}

void dict_clear(struct dict *d)
{
	held_bytes -= dict_bytes(d);
	dict_unmap(d->keys, (uint64_t)d->room * sizeof(d->keys[0]));
	dict_unmap(d->slots, (uint64_t)d->capacity * sizeof(d->slots[0]));
	*d = (struct dict){ 0 };
}

uint64_t dict_bytes(const struct dict *d)
{
	return (uint64_t)d->room * sizeof(d->keys[0]) + (uint64_t)d->capacity * sizeof(d->slots[0]);
}
