/*
 * Replaces a file atomically: the new content is written under a temporary name in the same
 * directory and then renamed, so that a reader sees either the old content or the new one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

struct replace {
	int dfd; /* directory of both names, borrowed; AT_FDCWD if they are paths */
	const char *name;
	const char *temp; /* a file that a killed process has left there is overwritten */
	mode_t mode;
	bool exclusive; /* fail with -EEXIST if @temp exists */
	bool sync; /* fsync(2) before the rename: no short file after a crash of the host */
};

/*
 * Replaces the file by @n @parts. On failure @temp is removed and the file is unchanged. Waits for
 * the disk. Returns 0 or -errno.
 */
int replace_file(const struct replace *r, const struct iovec *parts, unsigned n);
/* The same for one part. */
int replace_with(const struct replace *r, const void *bytes, size_t len);
/*
 * The same if the caller has opened @r->temp as @fd, borrowed, and may have written to it: @parts
 * are appended. mode and exclusive are ignored.
 */
int replace_by(const struct replace *r, int fd, const struct iovec *parts, unsigned n);
/* Replaces the file @path (shorter than PATH_MAX - 4) by way of "@path.tmp". Nobody else may be
 * able to write in its directory. 0 or -errno. */
int replace_path(const char *path, mode_t mode, bool sync, const void *bytes, size_t len);
/* Writes all of @bytes to @fd, borrowed, without replacing anything. 0 or -errno. */
int replace_write_all(int fd, const void *bytes, size_t len);
