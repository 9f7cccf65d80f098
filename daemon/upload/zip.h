/* Writes a zip archive of a few files in memory (PKWARE's APPNOTE.TXT 6.3; no zip64, so neither
 * a file nor the archive may reach 4 GiB). Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct zip_file {
	const char *name;
	const void *bytes;
	size_t len;
};

/* Deflates the files; @real_ns is the modification time of all. *ret is malloc'ed. 0, -ENOMEM or
 * -EFBIG. */
int zip_write(const struct zip_file *files, size_t n, uint64_t real_ns, char **ret,
	      size_t *ret_len);
