/*
 * The definitions that were sent in this epoch: strings, methods, mappings and trie nodes, each
 * found by a 128-bit key, with its id. Bounded; when it is full, the writer begins a new epoch
 * (RESET). Only the agent's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DICT_ENTRIES_MAX (1u << 17) /* per table; the memory of all is bounded by dict_budget() */

struct dict_entry {
	uint64_t k0, k1;
	uint32_t id; /* 0 = empty */
};

struct dict {
	struct dict_entry *entries;
	uint32_t capacity; /* power of two */
	uint32_t count; /* ids are 1..count */
};

/* The id of a key, 0 = full or out of memory. *ret_new: the key is new, and the caller sends its
 * definition. */
uint32_t dict_id(struct dict *d, uint64_t k0, uint64_t k1, bool *ret_new);
/* Bytes that all tables together may take, also while one of them is being moved. */
void dict_budget(uint64_t bytes);
void dict_clear(struct dict *d); /* forget all, give the memory back */
uint64_t dict_bytes(const struct dict *d);
uint64_t dict_hash(const void *p, uint32_t len);
