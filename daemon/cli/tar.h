/* Writes a tar archive (ustar, POSIX.1-1988) compressed by gzip. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tar;
/* Takes @fd, also on failure. NULL: no memory. */
struct tar *tar_new(int fd, uint64_t time_s);
/* Adds a file; @name has at most 99 bytes. */
void tar_add(struct tar *t, const char *name, const char *bytes, size_t len);
/* Ends the archive and frees @t. 0, or -EIO: some part could not be written. */
int tar_end(struct tar *t);
