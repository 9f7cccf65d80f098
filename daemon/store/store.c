/*
 * See store.h. A segment <dir>/<unix hour>[-<part>].seg has the windows that begin in ten minutes:
 * parts 100 to 199 of an hour are of its second ten minutes, and so on. Another part is begun when
 * one is large or another version's. A segment is a sequence of records, each a header of 72 bytes
 * and a zstd frame, both with a CRC; so a scan can walk from header to header, or faster by
 * contents (contents.c). The records of a window are appended by one write, and synced. When a
 * segment is opened for writing, what a crash has torn off its end is cut away; damage in the
 * middle is skipped up to the next valid header. When a segment is complete store_upkeep() writes
 * <unix hour>[-<part>].idx, and when an hour is complete <unix hour>.sum: index_write.c.
 */
#include "daemon/store/store_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "daemon/ground/clock.h"

#define SEGMENTS_MAX   65536
#define PART_BYTES_MIN (64u << 10)
#define PART_BYTES_MAX (256u << 20)

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	journal_close_all(s);
	index_kept_free(s->kept);
	fd_close(s->fd);
	fd_close(s->dfd);
	free(s->dir);
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

void store_note(const struct store_counts *c, char ret[STORE_NOTE_MAX])
{
	bool full = c->failing_error == ENOSPC || c->failing_error == EDQUOT;
	bool slow = c->failing_error == EBUSY, gone = c->failing_error == ENOENT;
	time_t since = (time_t)(c->failing_since_ns / NS_PER_S);
	char when[32];
	struct tm tm;

	ret[0] = '\0';
	if (!c->failing_since_ns) {
		if (c->foreign)
			snprintf(
				ret, STORE_NOTE_MAX,
				"%llu of %llu files of the history were written by another version of kindling: they are kept, but reports lack them",
				(unsigned long long)c->foreign, (unsigned long long)c->segments);
		return;
	}
	strftime(when, sizeof(when), "%F %H:%M:%S", localtime_r(&since, &tm));
	snprintf(ret, STORE_NOTE_MAX,
		 "the history stopped at %s (%s); profiling goes on, and the history continues "
		 "when %s",
		 when,
		 slow	? "the disk is too slow for it"
		 : gone ? "its directory was removed"
			: strerror(c->failing_error),
		 full	? "there is room on the disk"
		 : gone ? "kindlingd is restarted"
			: "it can be written again");
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

static int store_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Parses "HOUR.seg" and "HOUR-PART.seg". */
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

void store_file_name(enum store_file kind, uint64_t segment, char buf[STORE_NAME_SIZE])
{
	static const char *const suffixes[] = { "seg", "idx", "sum" };
	unsigned long long hour = segment / PARTS_MAX, part = segment % PARTS_MAX;

	if (part && kind != STORE_SUMS)
		snprintf(buf, STORE_NAME_SIZE, "%llu-%llu.%s", hour, part, suffixes[kind]);
	else
		snprintf(buf, STORE_NAME_SIZE, "%llu.%s", hour, suffixes[kind]);
}

uint64_t store_segment_begin_ns(uint64_t segment)
{
	return segment / PARTS_MAX * HOUR_NS + segment % PARTS_MAX / SLOT_PARTS * SLOT_NS;
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
		qsort(segments, n, sizeof(*segments), store_by_number);
	*ret_n = n;
	return segments;
}

int store_open_segment(struct store *s, uint64_t segment, int flags)
{
	char name[STORE_NAME_SIZE];

	store_file_name(STORE_SEGMENT, segment, name);
	return openat(s->dfd, name, flags | O_CLOEXEC | O_NOFOLLOW);
}

/* Removes the index and the sums before a segment changes. */
static void unlink_index(struct store *s, uint64_t segment)
{
	char name[STORE_NAME_SIZE];

	store_file_name(STORE_SUMS, segment, name);
	(void)unlinkat(s->dfd, name, 0);
	store_file_name(STORE_INDEX, segment, name);
	(void)unlinkat(s->dfd, name, 0);
	s->unindexed = true;
}

void store_unlink_segment(struct store *s, uint64_t segment)
{
	char name[STORE_NAME_SIZE];

	unlink_index(s, segment);
	store_file_name(STORE_SEGMENT, segment, name);
	(void)unlinkat(s->dfd, name, 0);
}

int store_replace_segment(struct store *s, uint64_t segment, const char *temp)
{
	char name[STORE_NAME_SIZE];

	unlink_index(s, segment);
	store_file_name(STORE_SEGMENT, segment, name);
	return renameat(s->dfd, temp, s->dfd, name) < 0 ? -errno : 0;
}

uint64_t store_file_bytes(struct store *s, enum store_file kind, uint64_t segment)
{
	char name[STORE_NAME_SIZE];
	struct stat st;

	store_file_name(kind, segment, name);
	return fstatat(s->dfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* The bytes of segment @i and its index; the hour's sums count with the first segment of the
 * hour. */
static uint64_t bytes_with_index(struct store *s, const uint64_t *segments, uint32_t i)
{
	bool first = i == 0 || segments[i - 1] / PARTS_MAX != segments[i] / PARTS_MAX;

	return store_file_bytes(s, STORE_SEGMENT, segments[i]) +
	       store_file_bytes(s, STORE_INDEX, segments[i]) +
	       (first ? store_file_bytes(s, STORE_SUMS, segments[i]) : 0);
}

/* Updates the number and the bytes of segments in the counts. */
static uint64_t count_bytes(struct store *s)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint64_t total = 0;
	uint32_t n;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n; i++)
		total += bytes_with_index(s, segments, i);
	COUNT(s, s->counts.segments = segments ? n : 0; s->counts.bytes = total);
	return total;
}

uint64_t store_disk_bytes(struct store *s)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint64_t total = 0;
	uint32_t n;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n; i++)
		total += bytes_with_index(s, segments, i);
	return total;
}

/* Unlinks the oldest segments: all beyond the retention, and as many as are needed to have at
 * most @max bytes. Segments of other versions age like the others. */
static void unlink_oldest(struct store *s, uint64_t max)
{
	uint64_t total = 0, now = clock_real_ns();
	CLEANUP(freep) uint64_t *segments = NULL;
	uint32_t n;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n; i++)
		total += bytes_with_index(s, segments, i);
	for (uint32_t i = 0; segments && i < n; i++) {
		uint64_t end = (segments[i] / PARTS_MAX + 1) * HOUR_NS;
		bool old = end < now && now - end > s->retention_ns;
		uint64_t bytes;

		if (!old && total <= max)
			break;
		if (s->fd >= 0 && segments[i] == s->open_segment)
			continue;
		bytes = bytes_with_index(s, segments, i);
		store_unlink_segment(s, segments[i]);
		total -= bytes < total ? bytes : total;
	}
}

/* Counts the segments that other versions have written. This daemon writes none, so their number
 * does not grow while it runs. */
static void count_foreign(struct store *s)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint64_t foreign = 0;
	uint32_t n;

	segments = store_segments(s, &n);
	for (uint32_t i = 0; segments && i < n; i++) {
		CLEANUP(fd_closep) int fd = store_open_segment(s, segments[i], O_RDONLY);

		foreign += fd >= 0 && record_is_foreign(fd);
	}
	COUNT(s, s->counts.foreign = foreign);
}

/* Removes what is beyond the retention, and what exceeds the limit if @more bytes are added. */
static void store_expire(struct store *s, uint64_t more)
{
	uint64_t most = more < s->max_bytes ? s->max_bytes - more : 0;

	unlink_oldest(s, UINT64_MAX);
	if (count_bytes(s) <= most)
		return;
	shares_give_up(s, most - most / 8);
	unlink_oldest(s, most);
	(void)count_bytes(s);
	if (s->counts.foreign)
		count_foreign(s);
}

static int store_open_dir(const char *dir, struct store **ret)
{
	struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->fd = -1;
	for (int i = 0; i < JOURNALS; i++)
		s->journals[i].fd = -1;
	s->dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dfd < 0) {
		r = -errno;
		free(s);
		return r;
	}
	pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return 0;
}

int store_open(const char *dir, struct store **ret)
{
	int r = store_open_dir(dir, ret);

	if (r == 0)
		(*ret)->kept = index_kept_new();
	return r;
}

int store_new(const char *dir, uint64_t retention_ns, uint64_t max_bytes, struct store **ret)
{
	struct store *s = NULL;
	int r;

	if (mkdir(dir, 0750) < 0 && errno != EEXIST)
		return -errno;
	r = store_open_dir(dir, &s);
	if (r < 0)
		return r;
	s->dir = strdup(dir);
	if (!s->dir) {
		store_free(s);
		return -ENOMEM;
	}
	s->retention_ns = retention_ns;
	s->max_bytes = max_bytes;
	/* what is removed at once: an eighth of the whole */
	s->part_bytes = max_bytes / 8 < PART_BYTES_MIN ? PART_BYTES_MIN : max_bytes / 8;
	if (s->part_bytes > PART_BYTES_MAX)
		s->part_bytes = PART_BYTES_MAX;
	s->unindexed = true;
	(void)unlinkat(s->dfd, SHARES_TEMP, 0);
	(void)unlinkat(s->dfd, INDEX_TEMP, 0);
	store_expire(s, 0);
	count_foreign(s);
	s->counts.recovered_windows = journal_recover(s);
	*ret = s;
	return 0;
}

/* A removed file or directory can be written to and read by whoever has it open, and is lost. */
static bool store_is_removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

bool store_is_gone(const struct store *s)
{
	return store_is_removed(s->dfd);
}

int store_revive(struct store *s)
{
	CLEANUP(fd_closep) int fd = -1;

	if (!store_is_gone(s))
		return 0;
	if (mkdir(s->dir, 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* keeps its number, which other threads use */
	return fd < 0 || dup3(fd, s->dfd, O_CLOEXEC) < 0 ? -errno : 0;
}

/* Cuts the segment after its last valid record. Returns its size, or -errno. */
static off_t store_trim(struct store *s, int fd)
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

/* Opens a part for writing. 1; 0 = it is full or of another version; or -errno. */
static int open_part(struct store *s, uint64_t segment)
{
	CLEANUP(fd_closep) int fd = -1;
	char name[STORE_NAME_SIZE];
	off_t size;

	store_file_name(STORE_SEGMENT, segment, name);
	fd = openat(s->dfd, name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (fd < 0)
		return -errno;
	if (record_is_foreign(fd) || lseek(fd, 0, SEEK_END) >= (off_t)s->part_bytes)
		return 0;
	size = store_trim(s, fd);
	if (size < 0)
		return (int)size;
	if (size == 0)
		(void)fsync(s->dfd); /* syncs the new name */
	s->fd = TAKE_FD(fd);
	s->open_segment = segment;
	s->open_bytes = (uint64_t)size;
	return 1;
}

/* The newest part of a slot. Earlier ones stay closed, though one that shares.c has rewritten has
 * room again: the windows of a tenant would no longer lie in the order of time, in which they are
 * removed. */
static uint64_t newest_part(struct store *s, uint64_t first)
{
	uint64_t part = SLOT_PARTS - 1;

	while (part && !store_file_bytes(s, STORE_SEGMENT, first + part))
		part--;
	return part;
}

/* @slot: the number of the ten minutes since 1970 */
static int open_segment(struct store *s, uint64_t slot)
{
	uint64_t first = slot / SLOTS * PARTS_MAX + slot % SLOTS * SLOT_PARTS, newest;
	int r = store_revive(s);

	if (s->fd >= 0 && store_is_removed(s->fd))
		s->fd = fd_close(s->fd);
	if (s->fd >= 0 && s->open_segment / SLOT_PARTS == first / SLOT_PARTS &&
	    s->open_bytes < s->part_bytes)
		return 0;
	s->fd = fd_close(s->fd);
	s->unindexed = true;
	newest = newest_part(s, first);
	/* earlier ones only when the numbers are used up */
	for (uint64_t i = 0; i < SLOT_PARTS && r == 0; i++)
		r = open_part(s, first + (newest + i) % SLOT_PARTS);
	store_expire(s, 0);
	return r < 0 ? r : r == 0 ? -EFBIG : 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int store_append_bytes(struct store *s, const uint8_t *record, size_t len)
{
	ssize_t n = write(s->fd, record, len);
	int r = n < 0 ? -errno : (size_t)n < len ? -ENOSPC : 0;

	if (r == 0 && fdatasync(s->fd) < 0)
		r = -errno;
	if (r == 0)
		s->open_bytes += len;
	else if (ftruncate(s->fd, (off_t)s->open_bytes) < 0)
		s->fd = fd_close(s->fd); /* the next append cuts the torn record away */
	return r;
}

static void note_result(struct store *s, int r)
{
	struct store_counts *c = &s->counts;

	if (r == 0)
		c->failing_since_ns = 0;
	else if (!c->failing_since_ns)
		c->failing_since_ns = clock_real_ns();
	c->failing_error = -r;
}

void store_missed(struct store *s)
{
	COUNT(s, note_result(s, -EBUSY));
}

int store_append_of(struct store *s, const struct profile *window, uint64_t journal)
{
	CLEANUP(freep) uint8_t *record = NULL;
	bool over = false;
	size_t len;
	int r = record_make_all(window, journal, &record, &len);

	/* before the write, so that the limit is never exceeded */
	if (r == 0 && s->counts.bytes + len > s->max_bytes)
		store_expire(s, len);
	if (r == 0)
		r = open_segment(s, window->begin_real_ns / SLOT_NS);
	if (r == 0)
		r = store_append_bytes(s, record, len);
	if (r < 0)
		COUNT(s, s->counts.dropped_windows++; note_result(s, r));
	else
		COUNT(s, s->counts.windows++; note_result(s, r); s->counts.bytes += len;
		      over = s->counts.bytes > s->max_bytes);
	if (over) /* the current segment cannot be removed */
		store_expire(s, 0);
	return r;
}

int store_append(struct store *s, const struct profile *window)
{
	int r = store_append_of(s, window, journal_of(s, window->begin_real_ns));

	/* a window that cannot be written is counted as dropped, and is not tried again */
	journal_end(s, window->begin_real_ns);
	return r;
}

/* ---- upkeep ---------------------------------------------------------------------------------- */

static bool needs_index(struct store *s, uint64_t segment)
{
	CLEANUP(fd_closep) int fd = -1;
	struct index x = INDEX_NULL;
	int r;

	if (s->fd >= 0 && segment == s->open_segment)
		return false;
	fd = store_open_segment(s, segment, O_RDONLY);
	if (fd < 0 || record_is_foreign(fd))
		return false;
	r = index_read(s, STORE_INDEX, segment, store_file_bytes(s, STORE_SEGMENT, segment), &x);
	index_deinit(&x);
	return r < 0;
}

/* Is the hour complete, with an index for each of its segments and without sums? */
static bool needs_sums(struct store *s, const uint64_t *segments, uint32_t first, uint32_t n)
{
	struct index x = INDEX_NULL;
	uint64_t bytes = 0;
	int r;

	if ((segments[first] / PARTS_MAX + 1) * HOUR_NS > clock_real_ns())
		return false;
	for (uint32_t i = first; i < first + n; i++) {
		if (s->fd >= 0 && segments[i] == s->open_segment)
			return false;
		bytes += store_file_bytes(s, STORE_SEGMENT, segments[i]);
	}
	r = index_read(s, STORE_SUMS, segments[first], bytes, &x);
	index_deinit(&x);
	return r < 0;
}

static uint32_t count_of_hour(const uint64_t *segments, uint32_t first, uint32_t n)
{
	uint32_t i = first;

	while (i < n && segments[i] / PARTS_MAX == segments[first] / PARTS_MAX)
		i++;
	return i - first;
}

void store_upkeep(struct store *s)
{
	CLEANUP(freep) uint64_t *segments = NULL;
	uint32_t n;
	int r = 0;

	if (!s->unindexed || !(segments = store_segments(s, &n)))
		return;
	/* is set again if a segment loses its index meanwhile */
	s->unindexed = false;
	for (uint32_t i = 0, of_hour; i < n && r == 0; i += of_hour) {
		of_hour = count_of_hour(segments, i, n);
		for (uint32_t k = i; k < i + of_hour && r == 0; k++)
			if (needs_index(s, segments[k]))
				r = index_write(s, segments[k]);
		if (r == 0 && needs_sums(s, segments, i, of_hour))
			r = index_write_hour(s, segments[i] / PARTS_MAX);
	}
	(void)unlinkat(s->dfd, INDEX_TEMP, 0);
	(void)count_bytes(s);
}

void store_hurry(struct store *s)
{
	atomic_store(&s->hurry, true);
}
