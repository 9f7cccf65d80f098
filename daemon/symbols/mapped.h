/* The kernel's own library (vDSO), read from this process's memory, because all 64-bit processes
 * of a machine have the same one. No other process's memory is read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAPPED_VDSO "[vdso]"

/* Is it ours? It has the same build-id, or, without one, the same size. */
bool mapped_is_our_vdso(uint64_t bytes, const uint8_t *build_id, unsigned build_id_len);
/* Returns an fd with its bytes, or -1. @ret: its size and, in the place of the inode, a
 * checksum. */
int mapped_open_vdso(struct stat *ret);
