/* .gnu_debugdata: Fedora and its kin keep the symbols of private functions in every library, as a
 * small ELF file compressed by xz. */
#pragma once

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#define MINI_DEBUG_BYTES_MAX (64u << 20)

/* malloc'ed. 0, -ENOENT: it has none, -EBADMSG: no xz, or larger than the maximum, -ENOMEM. */
int mini_debug_read(Elf *elf, uint8_t **ret, size_t *ret_len);
