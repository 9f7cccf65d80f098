/*
 * The functions of one file, collected from several symbol tables, and the sorted table made from
 * them. Positions are offsets in the mapped file, as in samples. All input is hostile.
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
	const char *name; /* borrowed: valid as long as its file */
};

struct functions {
	GElf_Phdr loads[SEGMENTS_MAX]; /* of the mapped file */
	int n_loads;
	struct function *all;
	size_t n, cap;
};

/* The segments of the mapped file, which map addresses to offsets. Called before anything else. */
void functions_segments(struct functions *f, Elf *elf);
void functions_deinit(struct functions *f);

/* Adds the symbols of the sections of the type @wanted (SHT_SYMTAB, SHT_DYNSYM); @elf: the mapped
 * file, or another one with the same addresses. 0 or -ENOMEM. */
int functions_read(struct functions *f, Elf *elf, uint32_t wanted);
/* Adds one that is in no table, unless a function is known there. 0 or -ENOMEM. */
int functions_add_known(struct functions *f, uint64_t offset, uint64_t size, const char *name);
/* The function of that name, NULL = none. */
const struct function *functions_named(const struct functions *f, const char *name);

/* malloc'ed bytes of the table; @flags as in table.h. 0, -ENOMEM, -EFBIG. */
int functions_table(struct functions *f, uint32_t flags, uint8_t **ret, size_t *ret_len);
