/* Sections of an ELF file that are known by their names. */
#pragma once

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 64

/* The bytes of the first section with this name, as the file has them; NULL = none. */
const Elf_Data *section_named(Elf *elf, const char *name);
/* The GNU build-id; returns its length, 0 = there is none, or one of an impossible length. */
size_t section_build_id(Elf *elf, uint8_t ret[BUILD_ID_MAX]);
