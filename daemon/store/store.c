/*
 * See store.h. A segment <dir>/<unix hour>.seg is a sequence of records: a header of 48 bytes and a
 * zstd frame. Records are appended with one write and synced; what a crash or a full disk tore off
 * is found by its CRC and cut away at the next append.
 */
#include "daemon/store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>
#include "daemon/core/clock.h"

#define MAGIC         0x3167657347444e4bull /* "KNDGseg1", little-endian */
#define HOUR_NS       (3600 * NS_PER_S)
#define RAW_BYTES_MAX (256u << 20)
#define SEGMENTS_MAX  4096

struct header {
	uint64_t magic;
	uint64_t begin_real_ns, end_real_ns;
	uint32_t raw_len, zstd_len;
	uint32_t crc; /* of header with crc 0, then the zstd frame */
	uint32_t reserved[3];
};
_Static_assert(sizeof(struct header) == 48, "on disk");

struct store {
	int dfd;
	uint64_t retention_ns, max_bytes;
	uint64_t open_hour; /* of the segment being written */
	int fd;
	pthread_mutex_t lock; /* counts only: they are read from the loop */
	struct store_counts counts;
};

int store_new(const char *dir, uint64_t retention_ns, uint64_t max_bytes, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->fd = -1;
	if (mkdir(dir, 0750) < 0 && errno != EEXIST) {
		int r = -errno;

		free(s);
		return r;
	}
	s->dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dfd < 0) {
		int r = -errno;

		free(s);
		return r;
	}
	s->retention_ns = retention_ns;
	s->max_bytes = max_bytes;
	pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	fd_close(s->fd);
	fd_close(s->dfd);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

void store_counts(const struct store *s, struct store_counts *ret)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&s->lock;

	pthread_mutex_lock(lock);
	*ret = s->counts;
	pthread_mutex_unlock(lock);
}

#define COUNT(s, statement) \
	do { \
		pthread_mutex_lock(&(s)->lock); \
		statement; \
		pthread_mutex_unlock(&(s)->lock); \
	} while (0)

static uint32_t checksum(struct header h, const void *data)
{
	uLong crc;

	h.crc = 0;
	crc = crc32(0, (const Bytef *)&h, sizeof(h));
	return (uint32_t)crc32(crc, data, h.zstd_len);
}

/* The next record of a segment at @at: its header and its bytes (malloc'ed). 1, 0 at the end, or
 * -EBADMSG where the rest cannot be trusted. */
static int read_record(int fd, off_t at, struct header *h, uint8_t **ret)
{
	ssize_t n = pread(fd, h, sizeof(*h), at);
	uint8_t *data;

	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(*h) || h->magic != MAGIC || h->raw_len > RAW_BYTES_MAX ||
	    h->zstd_len > RAW_BYTES_MAX)
		return -EBADMSG;
	data = malloc(h->zstd_len + 1);
	if (!data)
		return -ENOMEM;
	if (pread(fd, data, h->zstd_len, at + (off_t)sizeof(*h)) != (ssize_t)h->zstd_len ||
	    checksum(*h, data) != h->crc) {
		free(data);
		return -EBADMSG;
	}
	*ret = data;
	return 1;
}

/* ---- segments --------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Hours of all segments, oldest first. */
static uint32_t list_segments(struct store *s, uint64_t *hours)
{
	int fd = openat(s->dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	uint32_t n = 0;

	while (dir && n < SEGMENTS_MAX && (e = readdir(dir))) {
		char *end;
		uint64_t hour = strtoull(e->d_name, &end, 10);

		if (end != e->d_name && strcmp(end, ".seg") == 0)
			hours[n++] = hour;
	}
	if (dir)
		closedir(dir);
	qsort(hours, n, sizeof(*hours), by_number);
	return n;
}

static void segment_name(uint64_t hour, char *buf, size_t size)
{
	snprintf(buf, size, "%llu.seg", (unsigned long long)hour);
}

static void expire(struct store *s)
{
	static uint64_t hours[SEGMENTS_MAX];
	uint64_t bytes[SEGMENTS_MAX], total = 0, now = clock_real_ns();
	uint32_t n = list_segments(s, hours);
	char name[32];

	for (uint32_t i = 0; i < n; i++) {
		struct stat st;

		segment_name(hours[i], name, sizeof(name));
		bytes[i] = fstatat(s->dfd, name, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
		total += bytes[i];
	}
	/* the newest stays: it is being written */
	for (uint32_t i = 0; i + 1 < n; i++) {
		bool old = (hours[i] + 1) * HOUR_NS + s->retention_ns < now;

		if (!old && total <= s->max_bytes)
			break;
		segment_name(hours[i], name, sizeof(name));
		(void)unlinkat(s->dfd, name, 0);
		total -= bytes[i];
	}
	COUNT(s, s->counts.segments = n; s->counts.bytes = total);
}

/* Where the good records end; a torn tail is cut away. */
static int trim(struct store *s, int fd)
{
	struct header h;
	uint8_t *data;
	off_t at = 0;
	int r;

	while ((r = read_record(fd, at, &h, &data)) > 0) {
		free(data);
		at += (off_t)(sizeof(h) + h.zstd_len);
	}
	if (r == -EBADMSG) {
		COUNT(s, s->counts.torn++);
		if (ftruncate(fd, at) < 0)
			return -errno;
	}
	return r == -ENOMEM ? r : 0;
}

static int open_segment(struct store *s, uint64_t hour)
{
	char name[32];
	int r;

	if (s->fd >= 0 && s->open_hour == hour)
		return 0;
	s->fd = fd_close(s->fd);
	expire(s);
	segment_name(hour, name, sizeof(name));
	s->fd = openat(s->dfd, name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (s->fd < 0)
		return -errno;
	s->open_hour = hour;
	r = trim(s, s->fd);
	if (r < 0)
		s->fd = fd_close(s->fd);
	return r;
}

/* ---- writing and reading ------------------------------------------------------------------------ */

static int append(struct store *s, const uint8_t *record, size_t len)
{
	off_t end = lseek(s->fd, 0, SEEK_END);
	ssize_t n = write(s->fd, record, len);
	int r = n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;

	if (r == 0 && fdatasync(s->fd) < 0)
		r = -errno;
	if (r < 0 && ftruncate(s->fd, end) < 0)
		s->fd = fd_close(s->fd); /* the next append trims it */
	return r;
}

int store_append(struct store *s, const struct profile *window)
{
	struct header h = {
		.magic = MAGIC,
		.begin_real_ns = window->begin_real_ns,
		.end_real_ns = window->end_real_ns,
	};
	CLEANUP(freep) uint8_t *raw = NULL;
	CLEANUP(freep) uint8_t *record = NULL;
	size_t raw_len, n;
	int r = profile_encode(window, &raw, &raw_len);

	if (r < 0)
		return r;
	record = malloc(sizeof(h) + ZSTD_compressBound(raw_len));
	if (!record)
		return -ENOMEM;
	n = ZSTD_compress(record + sizeof(h), ZSTD_compressBound(raw_len), raw, raw_len, 3);
	if (ZSTD_isError(n) || raw_len > RAW_BYTES_MAX)
		return -E2BIG;
	h.raw_len = (uint32_t)raw_len;
	h.zstd_len = (uint32_t)n;
	h.crc = checksum(h, record + sizeof(h));
	memcpy(record, &h, sizeof(h));
	r = open_segment(s, window->begin_real_ns / HOUR_NS);
	if (r == 0)
		r = append(s, record, sizeof(h) + n);
	if (r < 0)
		COUNT(s, s->counts.dropped_windows++);
	else
		COUNT(s, s->counts.windows++; s->counts.bytes += sizeof(h) + n);
	return r;
}

static int merge_record(const struct header *h, const uint8_t *data,
			const struct profile_filter *filter, struct profile *dst)
{
	CLEANUP(freep) uint8_t *raw = malloc(h->raw_len + 1);
	CLEANUP(profile_freep) struct profile *p = NULL;

	if (!raw)
		return -ENOMEM;
	if (ZSTD_decompress(raw, h->raw_len, data, h->zstd_len) != h->raw_len ||
	    profile_decode(raw, h->raw_len, &p) < 0)
		return 0; /* a window of another version: skipped */
	return profile_merge(dst, p, filter);
}

int store_query(struct store *s, uint64_t from, uint64_t to, const struct profile_filter *filter,
		struct profile *dst)
{
	static uint64_t hours[SEGMENTS_MAX];
	uint32_t n = list_segments(s, hours);
	int r = 0;

	for (uint32_t i = 0; i < n && r >= 0; i++) {
		CLEANUP(fd_closep) int fd = -1;
		struct header h;
		uint8_t *data;
		char name[32];
		off_t at = 0;

		/* a window belongs to the hour of its begin: one hour more on the left */
		if ((hours[i] + 2) * HOUR_NS < from || hours[i] * HOUR_NS >= to)
			continue;
		segment_name(hours[i], name, sizeof(name));
		fd = openat(s->dfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		while (fd >= 0 && r >= 0 && read_record(fd, at, &h, &data) > 0) {
			if (h.begin_real_ns < to && h.end_real_ns > from)
				r = merge_record(&h, data, filter, dst);
			free(data);
			at += (off_t)(sizeof(h) + h.zstd_len);
		}
	}
	return r;
}
