/* The kernel's own library, as this process has it: all 64-bit processes of a machine have the
 * same. The memory of another process is not looked at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAPPED_VDSO "[vdso]"

/* Is ours the one with the build-id (without one: of that size)? */
bool mapped_is_our_vdso(uint64_t bytes, const uint8_t *build_id, unsigned build_id_len);
/* An fd, or -1; @ret has its size and instead of the inode a sum of its bytes. */
int mapped_open_vdso(struct stat *ret);
