/*
 * Inside the store: store.c (segments and appending), record.c (one window of one process on disk),
 * shares.c (which windows are removed when there are too many bytes), index.c (the content of a
 * segment), index_write.c (its file), query.c (windows by process and time), journal.c (windows
 * that are not closed).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include "daemon/ground/clock.h"
#include "daemon/store/store.h"

#define HOUR_NS	   (3600 * NS_PER_S)
#define SLOT_NS	   (600 * NS_PER_S) /* a segment's */
#define SLOTS	   6u /* in an hour */
#define PARTS_MAX  600u /* of one hour: */
#define SLOT_PARTS 100u /* of one slot */

struct header {
	uint64_t magic;
	uint64_t begin_real_ns, end_real_ns;
	uint32_t raw_len, zstd_len;
	uint32_t data_crc; /* of the zstd frame */
	uint32_t header_crc; /* of this header with header_crc 0 */
	uint64_t tenant; /* tenant_number() */
	uint64_t start_time; /* with pid: the process; 0 and 0 = of none */
	uint32_t pid;
	uint32_t samples; /* UINT32_MAX = this many or more */
	uint64_t journal; /* the number of the window's journal, 0 = it had none */
};
_Static_assert(sizeof(struct header) == 72, "on disk");

#define JOURNALS 4

struct journal {
	uint64_t id; /* 0 = none here */
	uint64_t window; /* its number since 1970 */
	uint64_t bytes;
	int fd;
};

struct store {
	int dfd;
	uint64_t retention_ns, max_bytes;
	uint64_t part_bytes; /* a segment that has reached this size is followed by another part */
	uint64_t open_segment; /* the current one: hour * PARTS_MAX + slot and part */
	uint64_t open_bytes;
	int fd; /* -1 = none */
	struct journal journals[JOURNALS]; /* journals of windows that are not closed */
	bool unindexed; /* a segment may lack its index */
	atomic_bool hurry; /* store_hurry() */
	pthread_mutex_t lock; /* protects the counts, which the loop reads */
	struct store_counts counts;
};

/* store.c. Writes a window from the journal @journal, 0 = from none. */
int store_append_of(struct store *s, const struct profile *window, uint64_t journal);
/* Numbers of all segments, oldest first; malloc'ed, NULL without memory. */
uint64_t *store_segments(struct store *s, uint32_t *ret_n);
/* An fd, or -1; also for a segment of another version. */
int store_open_segment(struct store *s, uint64_t segment, int flags);
/* With the files derived from it. */
void store_unlink_segment(struct store *s, uint64_t segment);
/* Replaces it by the file @temp. 0 or -errno. */
int store_replace_segment(struct store *s, uint64_t segment, const char *temp);
/* The begin of the earliest window that may be in it. */
uint64_t store_segment_begin_ns(uint64_t segment);

enum store_file { STORE_SEGMENT, STORE_INDEX, STORE_SUMS };
#define STORE_NAME_SIZE 64
/* There is one file of sums for each hour. */
void store_file_name(enum store_file kind, uint64_t segment, char buf[STORE_NAME_SIZE]);
/* Bytes of it; 0 = there is none. */
uint64_t store_file_bytes(struct store *s, enum store_file kind, uint64_t segment);

/* record.c. The first valid header at or after *@at, which is moved there. False = there is
 * none. */
bool record_next(int fd, off_t *at, struct header *h);
/* The header at @at; false = there is none. */
bool record_at(int fd, off_t at, struct header *h);
off_t record_end(const struct header *h, off_t at);
/* The zstd frame after the header at @at (malloc'ed). 0, -EBADMSG or -ENOMEM. */
int record_read(int fd, off_t at, const struct header *h, uint8_t **ret);
/* What was compressed, malloc'ed. 0, -EBADMSG or -ENOMEM. */
int record_inflate(const struct header *h, const uint8_t *data, uint8_t **ret);
/* The profile in it; NULL if it is of another version or damaged. 0 or -ENOMEM. */
int record_decode(const struct header *h, const uint8_t *data, struct profile **ret);
/* A segment written by another version of kindling is left alone. */
bool record_is_foreign(int fd);
/* The records of a window, one for each process, in their format on disk: malloc'ed. 0, -E2BIG or
 * -ENOMEM. */
int record_make_all(const struct profile *window, uint64_t journal, uint8_t **ret, size_t *ret_len);
/* One record for all of @p, of one process. */
int record_make(const struct profile *p, uint64_t journal, uint8_t **ret, size_t *ret_len);

/* Any bytes as a record of a journal, compressed fast. 0, -E2BIG or -ENOMEM. */
int record_pack(uint64_t begin_real_ns, uint64_t journal, const uint8_t *raw, size_t raw_len,
		uint8_t **ret, size_t *ret_len);

/* journal.c: the number of the journal while its window is open, 0 = it has none. */
uint64_t journal_of(struct store *s, uint64_t begin_real_ns);
/* The window is in the store, or lost: its journal is no longer needed. */
void journal_end(struct store *s, uint64_t begin_real_ns);
/* Makes windows of journals that an earlier daemon left; returns their number. Called before
 * anything else. */
uint64_t journal_recover(struct store *s);
void journal_close_all(struct store *s);

#define SHARES_TEMP "segment.tmp" /* a segment that is being rewritten */
#define INDEX_TEMP  "index.tmp"

/* shares.c. Removes windows until at most @goal bytes are left: of the tenant that has the most,
 * the oldest first. Does nothing with fewer than two tenants. */
void shares_give_up(struct store *s, uint64_t goal);

/* index.c: the content of a segment, by process. */

enum index_text {
	INDEX_NAME,
	INDEX_CONTAINER_ID,
	INDEX_CONTAINER,
	INDEX_POD,
	INDEX_JDK,
	INDEX_LABELS, /* of labels.h */
	INDEX_TEXT_COUNT,
};

/* On disk as in memory. */
struct index_process {
	uint64_t start_time, tenant;
	uint64_t begin_real_ns, end_real_ns; /* of all its windows */
	uint64_t samples, bytes; /* of all its records */
	uint64_t sum_at; /* where the index's file has the record of their sum; 0 = none */
	uint32_t pid, ns_pid;
	uint32_t first, n; /* its entries; n without them too: windows */
	uint32_t text[INDEX_TEXT_COUNT]; /* offsets in the index's strings; [0] is "" */
	uint32_t entries_crc;
};

struct index_entry { /* a window */
	uint64_t at; /* in the segment */
	uint64_t begin_real_ns, end_real_ns;
};

struct index {
	struct index_process *processes; /* by pid and start time */
	uint32_t n_processes;
	struct index_entry *entries; /* NULL = in the file: index_entries() */
	uint32_t n_entries;
	char *strings; /* NULL = nobody looked: index_describe() */
	uint32_t strings_len;
	uint64_t covered; /* bytes of the segment, or of the hour's */
	off_t entries_at; /* in @fd */
	int fd; /* of the file; -1 = it was made by a scan */
};
#define INDEX_NULL ((struct index){ .fd = -1 })
void index_deinit(struct index *x);

/* Of the file, else by a scan of the segment @fd. 0, or -ENOMEM. */
int index_open(struct store *s, uint64_t segment, int fd, struct index *ret);
/* The file alone, of a segment or an hour: -ENOENT, -EBADMSG, -ESTALE when it is about another
 * length than @covered, or about another segment. */
int index_read(struct store *s, enum store_file kind, uint64_t segment, uint64_t covered,
	       struct index *ret);
/* The same of an open file, which is taken; trusts nothing (fuzzed). */
int index_read_fd(int fd, uint32_t number, uint64_t covered, struct index *ret);
int index_scan(int fd, struct index *ret);
/* Names to processes that a scan found: one record of each is decoded. */
int index_describe(struct index *x, int segment_fd);
/* The entries of @q, malloc'ed, by time. 0, -EBADMSG or -ENOMEM. */
int index_entries(const struct index *x, const struct index_process *q, struct index_entry **ret);
const struct index_process *index_find(const struct index *x, uint32_t pid, uint64_t start_time);
static inline const char *index_string(const struct index *x, const struct index_process *q,
				       enum index_text text)
{
	return x->strings ? x->strings + q->text[text] : "";
}

/* index_write.c. The file for a segment, the sums of an hour; 0 or -errno, -EINTR in a hurry. */
int index_write(struct store *s, uint64_t segment);
int index_write_hour(struct store *s, uint64_t hour);
