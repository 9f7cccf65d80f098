/*
 * A table of symbols in its format on disk and in memory: header, entries sorted by offset, names.
 * kindling-symbols writes it from an untrusted ELF file, so it is checked before it is used.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_MAGIC	  0x3262617453444e4bull /* "KNDStab2" */
#define TABLE_BYTES_MAX	  (32u << 20)
#define TABLE_ENTRIES_MAX (1u << 20)
/* flag: its private symbols were stripped and not found elsewhere */
#define TABLE_EXPORTED_ONLY 1u

struct table_header {
	uint64_t magic;
	uint32_t n_entries;
	uint32_t names_bytes;
	uint32_t flags, reserved;
};

struct table_entry {
	uint64_t offset; /* in the file */
	uint32_t size;
	uint32_t name; /* in the names */
};

struct table {
	const struct table_entry *entries;
	const char *names;
	uint32_t n_entries, flags;
};

/* 0, or -EBADMSG: every name must be inside and terminated, entries must be sorted. */
int table_check(const void *bytes, size_t len, struct table *ret);
const char *table_find(const struct table *t, uint64_t offset);
