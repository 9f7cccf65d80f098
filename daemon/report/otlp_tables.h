/*
 * The tables of an OTLP request: equal entries are stored once, and only used entries are stored.
 * Index 0 of each is the empty entry that the protocol requires.
 */
#pragma once

#include <stdint.h>
#include "otlp.pb-c.h"
#include "daemon/ground/hash.h"
#include "daemon/report/arena.h"

struct otlp_table {
	struct otlp_key {
		const void *bytes; /* the part of an entry that is compared */
		size_t len;
		uint64_t hash;
	} * keys;
	void **entries; /* messages, or strings */
	uint32_t n, cap;
	struct hash_index index; /* of keys */
};

struct otlp_tables {
	struct arena arena; /* of all entries; failed: an index may be wrong */
	struct otlp_table strings, functions, mappings, locations, attributes, stacks, links;
};

/* false: no memory. _deinit() also frees a half-made table. */
bool otlp_tables_init(struct otlp_tables *t);
void otlp_tables_deinit(struct otlp_tables *t);
/* Index of the entry with this key; @ret_new: it was just created, and the caller sets its value. 0
 * without memory. */
int32_t otlp_table_index(struct otlp_table *table, struct arena *arena, const void *key, size_t len,
			 bool *ret_new);
/* Empties it, for the first use (zeroed before) or another one. */
void otlp_table_clear(struct otlp_table *table);
void otlp_table_deinit(struct otlp_table *table);

/* Bytes that are not UTF-8 are left out. */
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
/* For ids in hex, 16 or 32 digits and 16 digits; 0 = they are no such ids, which a link cannot
 * have. */
int32_t otlp_link(struct otlp_tables *t, const char *trace_id, const char *span_id);
/* @d borrows the tables. */
void otlp_dictionary(struct otlp_tables *t, Otlp__ProfilesDictionary *d);
