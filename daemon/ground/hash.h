/*
 * A hash function, and an index that finds entries of an array by their hashes. If a target can
 * choose the entries, the hashes must have a random seed, against collisions on purpose. The caller
 * limits the number of entries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues the 64-bit FNV-1a hash @h with more bytes; the first @h is HASH_BEGIN, or HASH_BEGIN ^
 * seed. Files contain hashes, so the function must never change. */
#define HASH_BEGIN 0xcbf29ce484222325ull
#define HASH_PRIME 0x100000001b3ull
static inline uint64_t hash_bytes(uint64_t h, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * HASH_PRIME;
	return h;
}

static inline uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * HASH_PRIME;
	return h;
}

/* Open addressing. The caller has the entries, which are numbered from 1. Zeroed at first. */
struct hash_index {
	uint32_t *slots; /* number of an entry; 0 = free */
	uint32_t size; /* a power of two, larger than the number of entries; 0 = no slots yet */
};

typedef uint64_t hash_index_hash_fn(const void *owner, uint32_t number);
typedef bool hash_index_same_fn(const void *owner, uint32_t number, const void *key);

/*
 * Makes @size slots (a power of two) and puts the entries 1 to @n into them. With the same size as
 * before it cannot fail, and rebuilds the index after entries have moved. false = no memory, and
 * the index is unchanged.
 */
bool hash_index_resize(struct hash_index *x, uint32_t size, uint32_t n, hash_index_hash_fn *hash_of,
		       const void *owner);
void hash_index_clear(struct hash_index *x); /* keeps its memory */
void hash_index_deinit(struct hash_index *x);
static inline size_t hash_index_bytes(const struct hash_index *x)
{
	return x->size * sizeof(*x->slots);
}

/* The slot of the entry that is equal to @key by @same; if there is none, the free slot (0) into
 * which the caller may put its number. @hash: of @key. @x->size must not be 0. */
static inline uint32_t *hash_index_slot(const struct hash_index *x, uint64_t hash,
					hash_index_same_fn *same, const void *owner,
					const void *key)
{
	uint32_t at = (uint32_t)hash & (x->size - 1);

	while (x->slots[at] && !same(owner, x->slots[at], key))
		at = (at + 1) & (x->size - 1);
	return &x->slots[at];
}
