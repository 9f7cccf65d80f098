/*
 * A file that is replaced whole: its new content is written under a temporary name in the same
 * directory and then renamed, so that a reader sees the old content or the new one, never a part.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct replace {
	int dfd; /* directory of both names, borrowed; AT_FDCWD where they are paths */
	const char *name;
	const char *temp; /* taken over when it is left from a killed process */
	mode_t mode;
	bool exclusive; /* fail with -EEXIST when @temp is there already */
	bool sync; /* on disk before it is renamed: a crash of the host leaves no short file */
};

/*
 * Replace the file by @n @parts. On failure @temp is gone and the file is as it was. Blocks for the
 * disk. Returns 0 or -errno.
 */
int replace_file(const struct replace *r, const struct iovec *parts, unsigned n);
/* The same for one part. */
int replace_with(const struct replace *r, const void *bytes, size_t len);
/*
 * The same where the caller has opened @r->temp as @fd, and may have written to it: @parts follow
 * what is there. @fd stays the caller's; mode and exclusive are not looked at.
 */
int replace_by(const struct replace *r, int fd, const struct iovec *parts, unsigned n);
/* The file at @path (shorter than PATH_MAX - 4) by way of "@path.tmp", in a directory that is only
 * ours. */
int replace_path(const char *path, mode_t mode, bool sync, const void *bytes, size_t len);
