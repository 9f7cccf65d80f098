/*
 * The functions of one file, collected from several symbol tables, and the sorted table made of
 * them. Places are offsets in the file that is mapped, as samples have them. All input is hostile.
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
	const char *name; /* borrowed: lives as long as the file it is from */
};

struct functions {
	GElf_Phdr loads[SEGMENTS_MAX]; /* of the mapped file */
	int n_loads;
	struct function *all;
	size_t n, cap;
};

/* The segments of the mapped file, by which addresses become offsets. First of all. */
void functions_segments(struct functions *f, Elf *elf);
void functions_deinit(struct functions *f);

/* Adds what the sections of the type @wanted (SHT_SYMTAB, SHT_DYNSYM) name; @elf: the mapped file,
 * or another one with the symbols of the same addresses. 0 or -ENOMEM. */
int functions_read(struct functions *f, Elf *elf, uint32_t wanted);
/* One that no table has; nothing is added where a function is known. 0 or -ENOMEM. */
int functions_add_known(struct functions *f, uint64_t offset, uint64_t size, const char *name);
/* The function of that name, NULL = none. */
const struct function *functions_named(const struct functions *f, const char *name);

/* malloc'ed bytes of the table; @flags as in table.h. 0, -ENOMEM, -EFBIG. */
int functions_table(struct functions *f, uint32_t flags, uint8_t **ret, size_t *ret_len);
