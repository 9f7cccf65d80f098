/* Functions of an ELF file into a symbol table. The file is hostile. */
#pragma once

#include "daemon/symbols/table.h"

/* malloc'ed bytes of the table. 0, -ENOEXEC if it is no ELF file, or -errno. */
int read_elf(int fd, uint8_t **ret, size_t *ret_len);
