/* The bytes behind a mapping of another process, for kindling-symbols to read. Nothing is parsed
 * here that a container wrote. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#define MAPPED_VDSO "[vdso]"

/* The file as the process has it mapped; deleted ones too. An fd and its stat, or -1. */
int mapped_open(int pid, uint64_t begin, uint64_t end, const char *path, struct stat *ret);
/* The kernel's own library, as this process has it, if that is the one with the build-id (without
 * one: of that size). All 64-bit processes of a machine have the same. An fd, or -1; @ret has its
 * size and instead of the inode a sum of its bytes. */
int mapped_open_vdso(uint64_t bytes, const uint8_t *build_id, unsigned build_id_len,
		     struct stat *ret);
/* Root directory of a process, to look up names in and no more (O_PATH); -1 if it is gone. */
int mapped_root(int pid);
