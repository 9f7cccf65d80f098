/* Makes a symbol table of an ELF file's functions. The file is hostile, and so are others that
 * have its symbols. */
#pragma once

#include "daemon/symbols/debug_file.h"
#include "daemon/symbols/table.h"

/*
 * Reads the first of these that has functions: the file's own symbols; or its exported ones
 * together with those of its debug file (@places; NULL = not searched), or else with those of its
 * .gnu_debugdata. glibc's clone3 is recognised by its code and always named.
 *
 * @ret: the table, malloc'ed. 0, -ENOEXEC if it is not an ELF file, or -errno.
 */
int read_elf(int fd, const struct debug_places *places, uint8_t **ret, size_t *ret_len);
