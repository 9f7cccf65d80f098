/*
 * The tables of an OTLP request: what is put in twice is one entry, and only what is used is put
 * in. Index 0 of each is the empty entry that the protocol wants there.
 */
#pragma once

#include <stdint.h>
#include "otlp.pb-c.h"
#include "daemon/ground/hash.h"
#include "daemon/report/arena.h"

struct otlp_table {
	struct otlp_key {
		const void *bytes; /* what makes an entry the same */
		size_t len;
		uint64_t hash;
	} * keys;
	void **entries; /* messages, or strings */
	uint32_t n, cap;
	struct hash_index index; /* of keys */
};

struct otlp_tables {
	struct arena arena; /* of all entries; failed: an index may be wrong */
	struct otlp_table strings, functions, mappings, locations, attributes, stacks;
};

/* false: no memory. _deinit() frees what was half made too. */
bool otlp_tables_init(struct otlp_tables *t);
void otlp_tables_deinit(struct otlp_tables *t);
/* Index of the entry with this key; @ret_new: it has just been made, and its value is the caller's
 * to set. 0 without memory. */
int32_t otlp_table_index(struct otlp_table *table, struct arena *arena, const void *key, size_t len,
			 bool *ret_new);
/* Empty, for its first use (zeroed before) or another. */
void otlp_table_clear(struct otlp_table *table);
void otlp_table_deinit(struct otlp_table *table);

/* What is not UTF-8 is left out of it. */
int32_t otlp_string(struct otlp_tables *t, const char *s);
int32_t otlp_attribute(struct otlp_tables *t, const char *key, const char *value);
int32_t otlp_number(struct otlp_tables *t, const char *key, int64_t value, const char *unit);
int32_t otlp_mapping(struct otlp_tables *t, const char *filename);
int32_t otlp_function(struct otlp_tables *t, const char *name, const char *system_name,
		      const char *filename);
/* @attribute: index, 0 = none. */
int32_t otlp_location(struct otlp_tables *t, int32_t function, int32_t mapping, uint64_t address,
		      int64_t line, int32_t attribute);
int32_t otlp_stack(struct otlp_tables *t, const int32_t *locations, size_t n); /* leaf first */
/* @d borrows the tables. */
void otlp_dictionary(struct otlp_tables *t, Otlp__ProfilesDictionary *d);
