/*
 * Hashes, and the index that finds entries of an array by them. An index whose entries a target
 * chooses has a seed in its hashes; how many entries there may be is its owner's to bound.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits over more bytes; begins as HASH_BEGIN, or as that ^ a seed. Files hold results
 * of it: it stays as it is. */
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

/* Open addressing; the entries, numbered from 1, lie with the owner. Begins as zeros. */
struct hash_index {
	uint32_t *slots; /* number of an entry; 0 = free */
	uint32_t
		size; /* power of two and more than there are entries; 0 = nothing was put in yet */
};

typedef uint64_t hash_index_hash_fn(const void *owner, uint32_t number);
typedef bool hash_index_same_fn(const void *owner, uint32_t number, const void *key);

/*
 * Give it @size slots (a power of two) with the entries 1 to @n in them. The same size rebuilds it
 * after entries have moved, and cannot fail. false = no memory, and it is as it was.
 */
bool hash_index_resize(struct hash_index *x, uint32_t size, uint32_t n, hash_index_hash_fn *hash_of,
		       const void *owner);
void hash_index_clear(struct hash_index *x); /* keeps its memory */
void hash_index_deinit(struct hash_index *x);
static inline size_t hash_index_bytes(const struct hash_index *x)
{
	return x->size * sizeof(*x->slots);
}

/* The slot of the entry that is @same as @key, whose hash is @hash, or the free one (0) where its
 * number is to be put. @x->size must not be 0. */
static inline uint32_t *hash_index_slot(const struct hash_index *x, uint64_t hash,
					hash_index_same_fn *same, const void *owner,
					const void *key)
{
	uint32_t at = (uint32_t)hash & (x->size - 1);

	while (x->slots[at] && !same(owner, x->slots[at], key))
		at = (at + 1) & (x->size - 1);
	return &x->slots[at];
}
