/* The agent's library: read once, and copied under a name with a hash of its content. */
#include "injector/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include "daemon/ground/replace.h"

#define LIBRARY_BYTES_MAX (16u << 20)

/* The hash is used for the file's name only; an existing file is compared byte by byte. FNV-1a on
 * words of eight bytes takes an eighth of the time of FNV-1a on bytes; the shift spreads the upper
 * bits of each word over the whole result. */
static uint64_t library_hash_of(const uint8_t *bytes, size_t len)
{
	uint64_t h = 0xcbf29ce484222325ull, word;

	for (size_t at = 0; at < len; at += sizeof(word)) {
		word = 0;
		memcpy(&word, bytes + at, len - at < sizeof(word) ? len - at : sizeof(word));
		h = (h ^ word) * 0x100000001b3ull;
		h ^= h >> 32;
	}
	return h;
}

int library_read(int fd, struct library *ret)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > LIBRARY_BYTES_MAX)
		return -EINVAL;
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		return -ENOMEM;
	if (pread(fd, bytes, (size_t)st.st_size, 0) != st.st_size)
		return -EIO;
	ret->hash = library_hash_of(bytes, (size_t)st.st_size);
	ret->bytes = TAKE_PTR(bytes);
	ret->len = (size_t)st.st_size;
	return 0;
}

/* Is there such a file already, with the same bytes, that only root and the directory's owner can
 * change? */
static bool is_there(int dfd, const char *name, const struct library *l)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct stat dir, st;

	if (fstat(dfd, &dir) < 0)
		return false;
	fd = files_open_seen(dfd, name, O_RDONLY, S_IFREG, dir.st_uid);
	if (fd < 0 || fstat(fd, &st) < 0 || (size_t)st.st_size != l->len || st.st_nlink != 1 ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return false;
	bytes = malloc(l->len);
	return bytes && pread(fd, bytes, l->len, 0) == (ssize_t)l->len &&
	       memcmp(bytes, l->bytes, l->len) == 0;
}

int library_write(int dfd, const char *name, const struct library *l)
{
	CLEANUP(fd_closep) int fd = -1;
	uint64_t random;
	char temp[96];
	/* synced: a crash of the host must not leave a short file under this name */
	const struct replace file = { .dfd = dfd, .name = name, .temp = temp, .sync = true };
	const struct iovec all = { l->bytes, l->len };

	if (is_there(dfd, name, l))
		return 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(temp, sizeof(temp), ".%s.%016llx", name, (unsigned long long)random);
	fd = files_open(dfd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
	if (fd < 0)
		return fd;
	return replace_by(&file, fd, &all, 1);
}
