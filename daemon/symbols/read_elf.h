/* Functions of an ELF file into a symbol table. The file is hostile, and so are those with its
 * symbols. */
#pragma once

#include "daemon/symbols/debug_file.h"
#include "daemon/symbols/table.h"

/*
 * Reads the first of these that has functions: the file's own symbols; its exported ones together
 * with those of its debug file (@places, NULL = not looked for), or else of its .gnu_debugdata.
 * glibc's clone3 is recognised by its code and always named.
 *
 * @ret: malloc'ed bytes of the table. 0, -ENOEXEC if it is not an ELF file, or -errno.
 */
int read_elf(int fd, const struct debug_places *places, uint8_t **ret, size_t *ret_len);
