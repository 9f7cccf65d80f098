/* .gnu_debugdata: a small ELF file, compressed by xz, in which Fedora and its relatives keep the
 * symbols of each library's private functions. */
#pragma once

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#define MINI_DEBUG_BYTES_MAX (64u << 20)

/* Reads it into malloc'ed memory. 0, -ENOENT: the library has none; -EBADMSG: not xz, or too
 * large; -ENOMEM. */
int mini_debug_read(Elf *elf, uint8_t **ret, size_t *ret_len);
