/*
 * See store.h. A segment <dir>/<unix hour>.seg (or <unix hour>-<part>.seg, when the hour's first
 * one is large or another version's) is a sequence of records: a header of 48 bytes and a zstd
 * frame, each with its own CRC, so that a query walks from header to header and reads what it
 * needs. Records are appended with one write and synced. What a crash tore off the end is cut away
 * when the segment is opened for writing; damage in the middle is skipped to the next good header.
 */
#include "daemon/store/store_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/core/clock.h"

#define HOUR_NS	       (3600 * NS_PER_S)
#define SEGMENTS_MAX   4096
#define PART_BYTES_MIN (64u << 10)
#define PART_BYTES_MAX (256u << 20)

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

int store_dir_fd(const struct store *s)
{
	return s->dfd;
}

#define COUNT(s, statement)                       \
	do {                                      \
		pthread_mutex_lock(&(s)->lock);   \
		statement;                        \
		pthread_mutex_unlock(&(s)->lock); \
	} while (0)

/* ---- segments -------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* "HOUR.seg", "HOUR-PART.seg" */
static bool segment_number(const char *name, uint64_t *ret)
{
	unsigned long long hour, part = 0;
	char *end;

	if (*name < '0' || *name > '9')
		return false;
	hour = strtoull(name, &end, 10);
	if (*end == '-' && end[1] >= '1' && end[1] <= '9')
		part = strtoull(end + 1, &end, 10);
	*ret = hour * PARTS_MAX + part;
	return strcmp(end, ".seg") == 0 && part < PARTS_MAX && hour < UINT64_MAX / HOUR_NS;
}

static void segment_name(uint64_t segment, char *buf, size_t size)
{
	unsigned long long hour = segment / PARTS_MAX, part = segment % PARTS_MAX;

	if (part)
		snprintf(buf, size, "%llu-%llu.seg", hour, part);
	else
		snprintf(buf, size, "%llu.seg", hour);
}

uint64_t *store_segments(struct store *s, uint32_t *ret_n)
{
	uint64_t *segments = malloc(SEGMENTS_MAX * sizeof(*segments));
	int fd = openat(s->dfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	uint32_t n = 0;

	while (segments && dir && n < SEGMENTS_MAX && (e = readdir(dir)))
		n += segment_number(e->d_name, &segments[n]);
	if (dir)
		closedir(dir);
	else
		fd_close(fd);
	if (segments)
		qsort(segments, n, sizeof(*segments), by_number);
	*ret_n = n;
	return segments;
}

int store_open_segment(struct store *s, uint64_t segment, int flags)
{
	char name[64];

	segment_name(segment, name, sizeof(name));
	return openat(s->dfd, name, flags | O_CLOEXEC | O_NOFOLLOW);
}

void store_unlink_segment(struct store *s, uint64_t segment)
{
	char name[64];

	segment_name(segment, name, sizeof(name));
	(void)unlinkat(s->dfd, name, 0);
}

int store_replace_segment(struct store *s, uint64_t segment, const char *temp)
{
	char name[64];

	segment_name(segment, name, sizeof(name));
	return renameat(s->dfd, temp, s->dfd, name) < 0 ? -errno : 0;
}

static uint64_t segment_bytes(struct store *s, uint64_t segment)
{
	char name[64];
	struct stat st;

	segment_name(segment, name, sizeof(name));
	return fstatat(s->dfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* The segments' number and bytes go to the counts. */
static uint64_t count_bytes(struct store *s)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint64_t total = 0;
	uint32_t n;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n; i++)
		total += segment_bytes(s, segments[i]);
	COUNT(s, s->counts.segments = segments ? n : 0; s->counts.bytes = total);
	return total;
}

/* Unlink segments from the oldest on that are past the retention, or as long as there are more than
 * @max bytes; what another version wrote ages like the rest. */
static void unlink_oldest(struct store *s, uint64_t max)
{
	uint64_t total = 0, now = clock_real_ns();
	CLEANUP(freep) uint64_t *segments = NULL;
	uint32_t n;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n; i++)
		total += segment_bytes(s, segments[i]);
	for (uint32_t i = 0; segments && i < n; i++) {
		uint64_t end = (segments[i] / PARTS_MAX + 1) * HOUR_NS;
		bool old = end < now && now - end > s->retention_ns;
		uint64_t bytes;

		if (!old && total <= max)
			break;
		if (s->fd >= 0 && segments[i] == s->open_segment)
			continue;
		bytes = segment_bytes(s, segments[i]);
		store_unlink_segment(s, segments[i]);
		total -= bytes < total ? bytes : total;
	}
}

/* What is past the retention goes, and what is too much. */
static void expire(struct store *s)
{
	unlink_oldest(s, UINT64_MAX);
	if (count_bytes(s) <= s->max_bytes)
		return;
	shares_give_up(s, s->max_bytes - s->max_bytes / 8);
	unlink_oldest(s, s->max_bytes);
	(void)count_bytes(s);
}

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
	/* what retention unlinks at once is a part: an eighth of all */
	s->part_bytes = max_bytes / 8 < PART_BYTES_MIN ? PART_BYTES_MIN : max_bytes / 8;
	if (s->part_bytes > PART_BYTES_MAX)
		s->part_bytes = PART_BYTES_MAX;
	pthread_mutex_init(&s->lock, NULL);
	(void)unlinkat(s->dfd, SHARES_TEMP, 0);
	expire(s);
	*ret = s;
	return 0;
}

/* Cut away what stands behind the last good record. Returns the size, or -errno. */
static off_t trim(struct store *s, int fd)
{
	off_t at = 0, good = 0, size = lseek(fd, 0, SEEK_END);
	struct header h;

	while (record_next(fd, &at, &h)) {
		uint8_t *data;
		int r = record_read(fd, at, &h, &data);

		if (r == -ENOMEM)
			return r;
		if (r == 0) {
			free(data);
			good = record_end(&h, at);
		}
		at = r == 0 ? good : at + (off_t)sizeof(h);
	}
	if (size == good)
		return size;
	COUNT(s, s->counts.torn++);
	return ftruncate(fd, good) < 0 ? -errno : good;
}

/* Open one part of an hour for writing. 1, 0 if it is full or not ours, or -errno. */
static int open_part(struct store *s, uint64_t segment)
{
	CLEANUP(fd_closep) int fd = -1;
	char name[64];
	off_t size;

	segment_name(segment, name, sizeof(name));
	fd = openat(s->dfd, name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return -errno;
	if (record_is_foreign(fd) || lseek(fd, 0, SEEK_END) >= (off_t)s->part_bytes)
		return 0;
	size = trim(s, fd);
	if (size < 0)
		return (int)size;
	if (size == 0)
		(void)fsync(s->dfd); /* its name lasts too */
	s->fd = TAKE_FD(fd);
	s->open_segment = segment;
	s->open_bytes = (uint64_t)size;
	return 1;
}

static int open_segment(struct store *s, uint64_t hour)
{
	int r = 0;

	if (s->fd >= 0 && s->open_segment / PARTS_MAX == hour && s->open_bytes < s->part_bytes)
		return 0;
	s->fd = fd_close(s->fd);
	for (uint64_t part = 0; part < PARTS_MAX && r == 0; part++)
		r = open_part(s, hour * PARTS_MAX + part);
	expire(s);
	return r < 0 ? r : r == 0 ? -EFBIG : 0;
}

/* ---- writing and reading --------------------------------------------------------------------- */

static int append(struct store *s, const uint8_t *record, size_t len)
{
	ssize_t n = write(s->fd, record, len);
	int r = n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;

	if (r == 0 && fdatasync(s->fd) < 0)
		r = -errno;
	if (r == 0)
		s->open_bytes += len;
	else if (ftruncate(s->fd, (off_t)s->open_bytes) < 0)
		s->fd = fd_close(s->fd); /* the next append trims it */
	return r;
}

int store_append(struct store *s, const struct profile *window)
{
	CLEANUP(freep) uint8_t *record = NULL;
	bool over = false;
	size_t len;
	int r = record_make_all(window, &record, &len);

	if (r == 0)
		r = open_segment(s, window->begin_real_ns / HOUR_NS);
	if (r == 0)
		r = append(s, record, len);
	if (r < 0)
		COUNT(s, s->counts.dropped_windows++);
	else
		COUNT(s, s->counts.windows++; s->counts.bytes += len;
		      over = s->counts.bytes > s->max_bytes);
	if (over)
		expire(s);
	return r;
}

static int merge_record(const struct header *h, const uint8_t *data,
			const struct profile_filter *filter, struct profile *dst)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	int r = record_decode(h, data, &p);

	return r < 0 || !p ? r : profile_merge(dst, p, filter);
}

static int query_segment(int fd, uint64_t from, uint64_t to, const struct profile_filter *filter,
			 struct profile *dst)
{
	struct header h;
	off_t at = 0;
	int r = 0;

	while (r >= 0 && record_next(fd, &at, &h)) {
		CLEANUP(freep) uint8_t *data = NULL;

		if (h.begin_real_ns >= to || h.end_real_ns <= from) {
			at = record_end(&h, at);
			continue;
		}
		r = record_read(fd, at, &h, &data);
		if (r == -EBADMSG) {
			at += (off_t)sizeof(h); /* the next good header, wherever it is */
			r = 0;
			continue;
		}
		if (r == 0)
			r = merge_record(&h, data, filter, dst);
		at = record_end(&h, at);
	}
	return r;
}

/* Whoever comes first must not take the room of who comes later. */
static int note_tenants(int fd, uint64_t from, uint64_t to, const struct profile_filter *filter,
			struct profile *dst)
{
	struct header h;

	(void)filter;
	for (off_t at = 0; record_next(fd, &at, &h); at = record_end(&h, at))
		if (h.begin_real_ns < to && h.end_real_ns > from)
			profile_payer(dst, h.tenant);
	return 0;
}

typedef int segment_fn(int fd, uint64_t from, uint64_t to, const struct profile_filter *filter,
		       struct profile *dst);

static int each_segment(struct store *s, uint64_t from, uint64_t to,
			const struct profile_filter *filter, struct profile *dst, segment_fn *fn)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint32_t n;
	int r = 0;

	segments = store_segments(s, &n);
	if (!segments)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && r >= 0; i++) {
		uint64_t hour = segments[i] / PARTS_MAX;
		CLEANUP(fd_closep) int fd = -1;

		/* a window belongs to the hour of its begin: one hour more on the left */
		if ((hour + 2) * HOUR_NS < from || hour * HOUR_NS >= to)
			continue;
		fd = store_open_segment(s, segments[i], O_RDONLY);
		if (fd >= 0 && !record_is_foreign(fd))
			r = fn(fd, from, to, filter, dst);
	}
	return r;
}

int store_query(struct store *s, uint64_t from, uint64_t to, const struct profile_filter *filter,
		struct profile *dst)
{
	int r = 0;

	/* one process shares with nobody */
	if (!filter || filter->n_pids != 1)
		r = each_segment(s, from, to, filter, dst, note_tenants);
	return r < 0 ? r : each_segment(s, from, to, filter, dst, query_segment);
}
