/* See spool.h. */
#include "daemon/upload/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include "daemon/ground/mem.h"
#include "daemon/ground/replace.h"

#define SPOOL_MAGIC 0x3170756c444e4b00ull
#define SPOOL_TEMP  "body.tmp"

static void spool_name(uint64_t seq, char buf[40])
{
	snprintf(buf, 40, "%llu.up", (unsigned long long)seq);
}

static uint32_t spool_header_crc(const struct spool_header *h)
{
	struct spool_header copy = *h;

	copy.header_crc = 0;
	return (uint32_t)crc32(0, (const Bytef *)&copy, sizeof(copy));
}

int spool_write(int dfd, uint64_t seq, struct spool_header *h, const void *body, size_t len)
{
	char name[40];
	const struct replace file = {
		.dfd = dfd, .name = name, .temp = SPOOL_TEMP, .mode = 0640, .sync = true
	};
	const struct iovec parts[] = { { h, sizeof(*h) }, { (void *)(uintptr_t)body, len } };

	if (len > SPOOL_BODY_MAX)
		return -EFBIG;
	h->magic = SPOOL_MAGIC;
	h->body_len = len;
	h->body_crc = (uint32_t)crc32(0, body, (uInt)len);
	h->header_crc = spool_header_crc(h);
	spool_name(seq, name);
	return replace_file(&file, parts, ARRAY_SIZE(parts));
}

static bool spool_header_is_fine(int fd, const struct spool_header *h)
{
	struct stat st;

	return h->magic == SPOOL_MAGIC && h->header_crc == spool_header_crc(h) &&
	       fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == sizeof(*h) + h->body_len && h->body_len <= SPOOL_BODY_MAX &&
	       memchr(h->key, '\0', sizeof(h->key)) &&
	       memchr(h->content_type, '\0', sizeof(h->content_type)) &&
	       memchr(h->target, '\0', sizeof(h->target));
}

static bool spool_body_is_fine(int fd, const struct spool_header *h)
{
	uint8_t buf[65536];
	off_t at = (off_t)sizeof(*h);
	uLong crc = 0;
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		crc = crc32(crc, buf, (uInt)n);
		at += n;
	}
	return n == 0 && (uint32_t)crc == h->body_crc;
}

int spool_open(int dfd, uint64_t seq, bool check, struct spool_header *ret)
{
	CLEANUP(fd_closep) int fd = -1;
	char name[40];

	spool_name(seq, name);
	fd = openat(dfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	if (read(fd, ret, sizeof(*ret)) != (ssize_t)sizeof(*ret) ||
	    !spool_header_is_fine(fd, ret) || (check && !spool_body_is_fine(fd, ret)))
		return -EBADMSG;
	return TAKE_FD(fd);
}

void spool_remove(int dfd, uint64_t seq)
{
	char name[40];

	spool_name(seq, name);
	(void)unlinkat(dfd, name, 0);
}

static int spool_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static bool spool_number(const char *name, uint64_t *ret)
{
	char *end;

	if (*name < '1' || *name > '9')
		return false;
	*ret = strtoull(name, &end, 10);
	return strcmp(end, ".up") == 0;
}

uint64_t *spool_list(int dfd, size_t *ret_n)
{
	int fd = openat(dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	uint64_t *list = NULL, seq;
	size_t n = 0, cap = 0;
	const struct dirent *e;

	(void)unlinkat(dfd, SPOOL_TEMP, 0);
	while (dir && (e = readdir(dir))) {
		if (!spool_number(e->d_name, &seq))
			continue;
		if (n == cap) {
			uint64_t *p = realloc(list, (cap = cap ? 2 * cap : 256) * sizeof(*p));

			if (!p) {
				free(list);
				list = NULL;
				break;
			}
			list = p;
		}
		list[n++] = seq;
	}
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
	if (list)
		qsort(list, n, sizeof(*list), spool_compare);
	else if (n == 0)
		list = calloc(1, sizeof(*list));
	*ret_n = n;
	return list;
}
