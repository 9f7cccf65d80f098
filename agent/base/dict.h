/*
 * The definitions that were sent in this epoch: strings, methods, mappings and trie nodes, each
 * found by a 128-bit key, with its id. Bounded; when it is full, the writer begins a new epoch
 * (RESET). Only the agent's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DICT_ENTRIES_MAX (1u << 17) /* per table; the memory of all is bounded by dict_budget() */

struct dict_key {
	uint64_t k0, k1;
};

struct dict {
	struct dict_key *keys; /* of id 1 and on */
	uint32_t *slots; /* ids by the hash of their keys; 0 = empty */
	uint32_t room; /* number of keys[] */
	uint32_t capacity; /* number of slots[], a power of two */
	uint32_t count; /* ids are 1..count */
};

/* Returns the id of a key; 0 = the table is full or out of memory. *ret_new: true = the key is new,
 * and the caller must send its definition. */
uint32_t dict_id(struct dict *d, uint64_t k0, uint64_t k1, bool *ret_new);
/* The memory in bytes that all tables together may use, but for the moment in which a part of one
 * is copied. */
void dict_budget(uint64_t bytes);
void dict_clear(struct dict *d); /* forgets everything and returns the memory */
uint64_t dict_bytes(const struct dict *d);
uint64_t dict_hash(const void *p, uint32_t len);
