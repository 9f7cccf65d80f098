/*
 * Collects the functions of one file from several symbol tables and makes a sorted table of them.
 * Positions are offsets in the mapped file, as samples have them. All input is hostile.
 */
#pragma once

#include <gelf.h>
#include <stdbool.h>
#include "daemon/symbols/table.h"

#define SEGMENTS_MAX 64

struct function {
	uint64_t offset;
	uint32_t size;
	bool global, sized;
	const char *name; /* borrowed from the file that it was read from */
};

struct functions {
	GElf_Phdr loads[SEGMENTS_MAX]; /* of the mapped file */
	int n_loads;
	struct function *all;
	size_t n, cap;
};

/* Reads the mapped file's segments, which map addresses to offsets. To be called first. */
void functions_segments(struct functions *f, Elf *elf);
void functions_deinit(struct functions *f);

/* Adds the symbols in sections of the type @wanted (SHT_SYMTAB, SHT_DYNSYM). @elf: the mapped
 * file, or another one with the same addresses. 0 or -ENOMEM. */
int functions_read(struct functions *f, Elf *elf, uint32_t wanted);
/* Adds a function that no table has, unless one is known at this offset. 0 or -ENOMEM. */
int functions_add_known(struct functions *f, uint64_t offset, uint64_t size, const char *name);
/* The function with this name; NULL = none. */
const struct function *functions_named(const struct functions *f, const char *name);

/* Makes the table, malloc'ed; @flags: see table.h. 0, -ENOMEM or -EFBIG. */
int functions_table(struct functions *f, uint32_t flags, uint8_t **ret, size_t *ret_len);
