/* See tar.h. */
#include "daemon/cli/tar.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define TAR_BLOCK 512

struct tar {
	gzFile gz;
	uint64_t time_s;
	bool failed;
};

/* pax(1), "ustar Interchange Format" */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linked[100], magic[6], version[2], user[32], group[32], major[8], minor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a block");

struct tar *tar_new(int fd, uint64_t time_s)
{
	struct tar *t = calloc(1, sizeof(*t));

	if (t)
		t->gz = gzdopen(fd, "wb9");
	if (!t || !t->gz) {
		close(fd);
		free(t);
		return NULL;
	}
	t->time_s = time_s;
	return t;
}

static void tar_put(struct tar *t, const void *bytes, size_t len)
{
	if (len && gzwrite(t->gz, bytes, (unsigned)len) != (int)len)
		t->failed = true;
}

void tar_add(struct tar *t, const char *name, const char *bytes, size_t len)
{
	static const char zeros[TAR_BLOCK];
	struct tar_header h = { .type = '0', .magic = "ustar", .version = { '0', '0' } };
	unsigned sum = 0;

	snprintf(h.name, sizeof(h.name), "%s", name);
	strcpy(h.mode, "0000644");
	strcpy(h.uid, "0000000");
	strcpy(h.gid, "0000000");
	snprintf(h.size, sizeof(h.size), "%011zo", len);
	snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)t->time_s);
	memset(h.checksum, ' ',
	       sizeof(h.checksum)); /* the checksum is that of a header with spaces in its place */
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((unsigned char *)&h)[i];
	snprintf(h.checksum, sizeof(h.checksum), "%06o", sum);
	tar_put(t, &h, sizeof(h));
	tar_put(t, bytes, len);
	tar_put(t, zeros, (TAR_BLOCK - len % TAR_BLOCK) % TAR_BLOCK);
}

int tar_end(struct tar *t)
{
	static const char zeros[2 * TAR_BLOCK];
	bool failed;

	tar_put(t, zeros, sizeof(zeros));
	failed = gzclose(t->gz) != Z_OK || t->failed;
	free(t);
	return failed ? -EIO : 0;
}
