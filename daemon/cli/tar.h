/* A tar archive (ustar, POSIX.1-1988), compressed by gzip. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tar;
/* @fd: taken. NULL: no memory. */
struct tar *tar_new(int fd, uint64_t time_s);
/* One file; @name has at most 99 bytes. */
void tar_add(struct tar *t, const char *name, const char *bytes, size_t len);
/* Ends it. 0, or -EIO if any part could not be written. */
int tar_end(struct tar *t);
