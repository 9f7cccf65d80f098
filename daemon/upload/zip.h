/* A zip archive of a few files that are in memory (PKWARE's APPNOTE.TXT 6.3, without its later
 * additions: no file and no archive of 4 GiB). Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct zip_file {
	const char *name;
	const void *bytes;
	size_t len;
};

/* Deflated; @real_ns: modification time of all of them. *ret is malloc'ed. 0, -ENOMEM or -EFBIG. */
int zip_write(const struct zip_file *files, size_t n, uint64_t real_ns, char **ret,
	      size_t *ret_len);
