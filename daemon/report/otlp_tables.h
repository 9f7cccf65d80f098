/*
 * The tables of an OTLP request. They contain only entries that are used, each once. Entry 0 of
 * each is the empty one that the protocol requires.
 */
#pragma once

#include <stdint.h>
#include "otlp.pb-c.h"
#include "daemon/ground/hash.h"
#include "daemon/report/arena.h"

struct otlp_table {
	struct otlp_key {
		const void *bytes; /* what identifies the entry */
		size_t len;
		uint64_t hash;
	} * keys;
	void **entries; /* messages, or strings */
	uint32_t n, cap;
	struct hash_index index; /* of keys */
};

struct otlp_tables {
	struct arena arena; /* of all entries; if it has failed, indexes may be wrong */
	struct otlp_table strings, functions, mappings, locations, attributes, stacks, links;
};

/* false: no memory. _deinit() also frees half-made tables. */
bool otlp_tables_init(struct otlp_tables *t);
void otlp_tables_deinit(struct otlp_tables *t);
/* The index of the entry with this key, 0 without memory. *ret_new: it is new, and the caller
 * must set its value. */
int32_t otlp_table_index(struct otlp_table *table, struct arena *arena, const void *key, size_t len,
			 bool *ret_new);
/* Empties a table, to use it for the first time (it must be zeroed) or again. */
void otlp_table_clear(struct otlp_table *table);
void otlp_table_deinit(struct otlp_table *table);

/* The index of a string without its invalid UTF-8. */
int32_t otlp_string(struct otlp_tables *t, const char *s);
int32_t otlp_attribute(struct otlp_tables *t, const char *key, const char *value);
int32_t otlp_number(struct otlp_tables *t, const char *key, int64_t value, const char *unit);
int32_t otlp_mapping(struct otlp_tables *t, const char *filename);
int32_t otlp_function(struct otlp_tables *t, const char *name, const char *system_name,
		      const char *filename);
/* @attribute: an index; 0 = none. */
int32_t otlp_location(struct otlp_tables *t, int32_t function, int32_t mapping, uint64_t address,
		      int64_t line, int32_t attribute);
int32_t otlp_stack(struct otlp_tables *t, const int32_t *locations, size_t n); /* leaf first */
/* The index of a link. The ids are hexadecimal: 16 or 32 digits, and 16 digits; 0 = a link cannot
 * have these ids. */
int32_t otlp_link(struct otlp_tables *t, const char *trace_id, const char *span_id);
/* Fills in @d, which borrows the tables' entries. */
void otlp_dictionary(struct otlp_tables *t, Otlp__ProfilesDictionary *d);
