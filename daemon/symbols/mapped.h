/* The kernel's own library (vDSO), from this process: all 64-bit processes of a machine have the
 * same one. The memory of other processes is not read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAPPED_VDSO "[vdso]"

/* Does ours have this build-id (without one: this size)? */
bool mapped_is_our_vdso(uint64_t bytes, const uint8_t *build_id, unsigned build_id_len);
/* An fd, or -1; @ret has its size and, instead of the inode, a checksum of its bytes. */
int mapped_open_vdso(struct stat *ret);
