/* See replace.h. */
#include "daemon/ground/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include "daemon/ground/mem.h"

int replace_write_all(int fd, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

int replace_by(const struct replace *r, int fd, const struct iovec *parts, unsigned n)
{
	int result = 0;

	for (unsigned i = 0; i < n && result == 0; i++)
		result = replace_write_all(fd, parts[i].iov_base, parts[i].iov_len);
	if (result == 0 && r->sync && fdatasync(fd) < 0)
		result = -errno;
	if (result == 0 && renameat(r->dfd, r->temp, r->dfd, r->name) < 0)
		result = -errno;
	if (result < 0)
		(void)unlinkat(r->dfd, r->temp, 0);
	return result;
}

int replace_file(const struct replace *r, const struct iovec *parts, unsigned n)
{
	CLEANUP(fd_closep) int fd = -1;

	fd = openat(r->dfd, r->temp,
		    O_WRONLY | O_CREAT | (r->exclusive ? O_EXCL : O_TRUNC) | O_CLOEXEC | O_NOFOLLOW,
		    r->mode);
	return fd < 0 ? -errno : replace_by(r, fd, parts, n);
}

int replace_with(const struct replace *r, const void *bytes, size_t len)
{
	const struct iovec part = { (void *)(uintptr_t)bytes, len };

	return replace_file(r, &part, 1);
}

int replace_path(const char *path, mode_t mode, bool sync, const void *bytes, size_t len)
{
	char temp[PATH_MAX];
	const struct replace r = {
		.dfd = AT_FDCWD, .name = path, .temp = temp, .mode = mode, .sync = sync
	};

	if (snprintf(temp, sizeof(temp), "%s.tmp", path) >= (int)sizeof(temp))
		return -ENAMETOOLONG;
	return replace_with(&r, bytes, len);
}
