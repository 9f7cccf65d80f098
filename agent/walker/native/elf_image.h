/*
 * Reads an ELF file as it is loaded in memory: its segments and its build-id. All reads go through
 * safe_copy(), because the library may be unloaded meanwhile.
 */
#pragma once

#include <elf.h>
#include <stdint.h>
#include "agent/walker/native/safe_copy.h"
#include "proto/wire.h"

#define ELF_IMAGE_SEGMENTS_MAX 32

struct elf_image {
	uint64_t base; /* address of the ELF header */
	uint64_t bias; /* address in memory = bias + p_vaddr */
	Elf64_Phdr segments[ELF_IMAGE_SEGMENTS_MAX];
	uint32_t n;
	uint8_t build_id[WIRE_BUILD_ID_MAX];
	uint8_t build_id_len;
};

/* 0; -ENOEXEC if there is no ELF header for this processor at @base; -EFAULT if the memory is not
 * mapped any more. */
int elf_image_read(struct safe_copy *copy, uint64_t base, struct elf_image *ret);
/* The first segment of a type, or NULL. */
const Elf64_Phdr *elf_image_segment(const struct elf_image *image, uint32_t type);
/* End of the loaded segment that contains @address; 0 = none does. */
uint64_t elf_image_segment_end(const struct elf_image *image, uint64_t address);
