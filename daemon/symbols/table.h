/*
 * A symbol table, the same on disk and in memory: header, entries sorted by offset, names.
 * kindling-symbols makes it from an untrusted ELF file, so it is checked before use.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_MAGIC	  0x3262617453444e4bull /* "KNDStab2" */
#define TABLE_BYTES_MAX	  (32u << 20)
#define TABLE_ENTRIES_MAX (1u << 20)
/* flag: the private symbols were stripped, and not found elsewhere */
#define TABLE_EXPORTED_ONLY 1u

struct table_header {
	uint64_t magic;
	uint32_t n_entries;
	uint32_t names_bytes;
	uint32_t flags, reserved;
};

struct table_entry {
	uint64_t offset; /* in the mapped file */
	uint32_t size;
	uint32_t name; /* position in the names */
};

struct symbol_table {
	const struct table_entry *entries;
	const char *names;
	uint32_t n_entries, flags;
};

/* Checks that entries are sorted and every name is inside and terminated. 0 or -EBADMSG. */
int table_check(const void *bytes, size_t len, struct symbol_table *ret);
const char *table_find(const struct symbol_table *t, uint64_t offset);
