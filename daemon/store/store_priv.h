/*
 * Shared by the files of the store: store.c (segments and appending), record.c (one window of one
 * process on disk), shares.c (which windows go when there are too many bytes), index.c (what a
 * segment holds), index_write.c (its file), index_kept.c (the index of a growing segment),
 * contents.c (what one append holds), query.c (windows by process and time), journal.c (windows that
 * are not closed).
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/types.h>
#include "daemon/ground/clock.h"
#include "daemon/store/store.h"

#define HOUR_NS	   (3600 * NS_PER_S)
#define SLOT_NS	   (600 * NS_PER_S) /* the time that a segment covers */
#define SLOTS	   6u /* slots of an hour */
#define PARTS_MAX  600u /* parts of an hour */
#define SLOT_PARTS 100u /* parts of a slot */

struct header {
	uint64_t magic;
	uint64_t begin_real_ns, end_real_ns;
	uint32_t raw_len, zstd_len;
	uint32_t data_crc; /* of the zstd frame */
	uint32_t header_crc; /* of this header with 0 in its place */
	uint64_t tenant; /* tenant_number() */
	uint64_t start_time; /* ticks since boot; together with the pid it identifies the process;
				both 0 = no process */
	uint32_t pid;
	uint32_t samples; /* UINT32_MAX = that many or more */
	uint64_t journal; /* number of the window's journal; 0 = it had none */
};
_Static_assert(sizeof(struct header) == 72, "on disk");

#define JOURNALS 4

struct journal {
	uint64_t id; /* 0 = this entry is free */
	uint64_t window; /* the window's number since 1970 */
	uint64_t bytes;
	int fd;
};

struct store {
	char *dir; /* NULL = it is only read */
	int dfd;
	uint64_t retention_ns, max_bytes;
	uint64_t part_bytes; /* a segment of this size is followed by another part */
	uint64_t open_segment; /* the current one: hour * PARTS_MAX + slot and part */
	uint64_t open_bytes;
	int fd; /* -1 = none */
	struct journal journals[JOURNALS]; /* of windows that are not closed */
	bool unindexed; /* some segment may lack its index */
	struct index_kept *kept; /* NULL = scans are not kept: several threads read */
	atomic_bool hurry; /* store_hurry() */
	pthread_mutex_t lock; /* for counts, which the loop reads */
	struct store_counts counts;
};

/* store.c. Makes the directory again if somebody has removed it, as a user who wants the space. 0
 * or -errno. */
int store_revive(struct store *s);
/* Appends a window; @journal: the number of its journal, 0 = none. */
int store_append_of(struct store *s, const struct profile *window, uint64_t journal);
/* The numbers of all segments, oldest first; malloc'ed, NULL without memory. */
uint64_t *store_segments(struct store *s, uint32_t *ret_n);
/* Opens a segment, also one of another version. An fd, or -1. */
int store_open_segment(struct store *s, uint64_t segment, int flags);
/* Unlinks a segment and the files made from it. */
void store_unlink_segment(struct store *s, uint64_t segment);
/* Replaces a segment by the file @temp. 0 or -errno. */
int store_replace_segment(struct store *s, uint64_t segment, const char *temp);
/* When the earliest window that a segment may have begins; ns since 1970. */
uint64_t store_segment_begin_ns(uint64_t segment);

enum store_file { STORE_SEGMENT, STORE_INDEX, STORE_SUMS };
#define STORE_NAME_SIZE 64
/* The name of a segment's file; for STORE_SUMS of its hour's. */
void store_file_name(enum store_file kind, uint64_t segment, char buf[STORE_NAME_SIZE]);
/* The size of such a file; 0 = it does not exist. */
uint64_t store_file_bytes(struct store *s, enum store_file kind, uint64_t segment);

/* record.c. Moves *@at to the first valid header there or behind it. false = there is none. */
bool record_next(int fd, off_t *at, struct header *h);
/* Reads the header at @at; false = it is none. */
bool record_at(int fd, off_t at, struct header *h);
off_t record_end(const struct header *h, off_t at);
/* Reads the zstd frame of the record at @at; malloc'ed. 0, -EBADMSG or -ENOMEM. */
int record_read(int fd, off_t at, const struct header *h, uint8_t **ret);
/* Uncompresses @data; malloc'ed. 0, -EBADMSG or -ENOMEM. */
int record_inflate(const struct header *h, const uint8_t *data, uint8_t **ret);
/* Decodes the record's profile; *ret is NULL if it is damaged or of another version. 0 or
 * -ENOMEM. */
int record_decode(const struct header *h, const uint8_t *data, struct profile **ret);
/* Is the segment written by another version of kindling? Such a segment is left alone. */
bool record_is_foreign(int fd);
/* Encodes a window as records, one for each process; malloc'ed. 0, -E2BIG or -ENOMEM. */
int record_make_all(const struct profile *window, uint64_t journal, uint8_t **ret, size_t *ret_len);
/* Encodes @p, a profile of one process, as one record. */
int record_make(const struct profile *p, uint64_t journal, uint8_t **ret, size_t *ret_len);

/* Packs any bytes as a record, compressed fast. @h: its header, except for magic, lengths and CRCs.
 * 0, -E2BIG or -ENOMEM. */
int record_pack(const struct header *h, const uint8_t *raw, size_t raw_len, uint8_t **ret,
		size_t *ret_len);

/* contents.c. The start time of no process: "contents". */
#define CONTENTS_START 0x73746e65746e6f63ull
/* Is this the header of contents, not of a window? */
bool contents_is(const struct header *h);
/* Puts their contents in front of the records in *@records, which is malloc'ed, if there are
 * several. 0, -E2BIG or -ENOMEM; after an error the records are as before. */
int contents_put(uint8_t **records, size_t *len);
/* Calls @fn for each record that the contents @of at @at are of, with as much of its header as
 * index.c needs, until it returns an error. *ret_end: where the last of them ends. 0, @fn's error,
 * -ENOMEM, or -EBADMSG: they do not fit what is there up to @until, and @fn was not called. */
typedef int contents_fn(void *userdata, off_t at, const struct header *h);
int contents_each(int fd, off_t at, const struct header *of, off_t until, contents_fn *fn,
		  void *userdata, off_t *ret_end);

/* journal.c. The number of an open window's journal; 0 = it has none. */
uint64_t journal_of(struct store *s, uint64_t begin_real_ns);
/* Removes the journal of a window that is in the store, or lost. */
void journal_end(struct store *s, uint64_t begin_real_ns);
/* Makes windows of the journals that an earlier daemon left and returns their number. Must be
 * called before all other functions. */
uint64_t journal_recover(struct store *s);
void journal_close_all(struct store *s);

#define SHARES_TEMP "segment.tmp" /* the name of a segment while it is rewritten */
#define INDEX_TEMP  "index.tmp"

/* shares.c. Removes the oldest windows of the tenant that has the most, until at most @goal
 * bytes are left. Does nothing if there are fewer than two tenants. */
void shares_give_up(struct store *s, uint64_t goal);

/* index.c: what a segment holds, by process. */

enum index_text {
	INDEX_NAME,
	INDEX_CONTAINER_ID,
	INDEX_CONTAINER,
	INDEX_POD,
	INDEX_JDK,
	INDEX_LABELS, /* as labels.h encodes them */
	INDEX_TEXT_COUNT,
};

/* The same in the file and in memory. */
struct index_process {
	uint64_t start_time, tenant;
	uint64_t begin_real_ns, end_real_ns; /* of all its windows */
	uint64_t samples, bytes; /* of all its records */
	uint64_t sum_at; /* position of the record of its sum in the index's file; 0 = none */
	uint32_t pid, ns_pid;
	uint32_t first, n; /* its entries; n is its number of windows even without them */
	uint32_t text[INDEX_TEXT_COUNT]; /* offsets in the index's strings, which begin with "" */
	uint32_t entries_crc;
};

struct index_entry { /* one window */
	uint64_t at; /* position in the segment */
	uint64_t begin_real_ns, end_real_ns;
};

struct index {
	struct index_process *processes; /* sorted by pid and start time */
	uint32_t n_processes;
	struct index_entry *entries; /* NULL = not read from the file, see index_entries() */
	uint32_t n_entries;
	char *strings; /* NULL = unknown, see index_describe() */
	uint32_t strings_len;
	uint64_t covered; /* bytes of the segment, or of the hour's segments */
	off_t entries_at; /* position in @fd */
	int fd; /* the index's file; -1 = there is none: a scan made this */
	bool borrowed; /* processes and entries belong to an index_kept */
};
#define INDEX_NULL ((struct index){ .fd = -1 })
void index_deinit(struct index *x);

/* Does the filter want this process? NULL wants all. */
bool index_wants(const struct profile_filter *f, uint32_t pid, uint64_t start_time);
/* Reads the index from its file, or else scans the segment @fd, at least for the processes that @f
 * wants. 0 or -ENOMEM. */
int index_open(struct store *s, uint64_t segment, int fd, const struct profile_filter *f,
	       struct index *ret);
/* Reads the index of a segment or an hour, only from its file. 0, -ENOENT, -EBADMSG, or -ESTALE: it
 * belongs to another segment, or does not cover @covered bytes. */
int index_read(struct store *s, enum store_file kind, uint64_t segment, uint64_t covered,
	       struct index *ret);
/* The same from an open file, which it closes. Accepts any content (fuzzed). */
int index_read_fd(int fd, uint32_t number, uint64_t covered, struct index *ret);
/* Scans a segment for the processes that @f wants. 0 or -ENOMEM. */
int index_scan(int fd, const struct profile_filter *f, struct index *ret);
/* Likewise for all processes, only of the records that begin at @from, a record's begin, or later, and end at @until
 * or before; ret->covered is where the last of them ends. */
int index_scan_between(int fd, off_t from, off_t until, struct index *ret);
/* Finds the names of processes after a scan, which decodes one record of each. */
int index_describe(struct index *x, int segment_fd);
/* The entries of @q, sorted by time; malloc'ed. 0, -EBADMSG or -ENOMEM. */
int index_entries(const struct index *x, const struct index_process *q, struct index_entry **ret);
const struct index_process *index_find(const struct index *x, uint32_t pid, uint64_t start_time);
static inline const char *index_string(const struct index *x, const struct index_process *q,
				       enum index_text text)
{
	return x->strings ? x->strings + q->text[text] : "";
}

/*
 * index_kept.c: the index of the segment that grows, which has no file yet, from one query to the
 * next; only what was appended is scanned. For one thread.
 */
struct index_kept *index_kept_new(void); /* NULL without memory */
struct index_kept *index_kept_free(struct index_kept *k);
/* The index of a segment of @st; *ret is valid until the next call. 0 or -ENOMEM. */
int index_kept_open(struct index_kept *k, int fd, const struct stat *st, struct index *ret);

/* index_write.c. Write a segment's index, and an hour's sums. 0 or -errno; -EINTR after
 * store_hurry(). */
int index_write(struct store *s, uint64_t segment);
int index_write_hour(struct store *s, uint64_t hour);
