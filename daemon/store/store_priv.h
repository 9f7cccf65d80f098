/*
 * Inside the store: store.c (segments, appending, queries), record.c (one window of one tenant on
 * disk), shares.c (whose windows go when there are too many bytes).
 */
#pragma once

#include <pthread.h>
#include <sys/types.h>
#include "daemon/store/store.h"

#define PARTS_MAX 1000u /* of one hour */

struct header {
	uint64_t magic;
	uint64_t begin_real_ns,
		end_real_ns; /* both 0: the record was given up, its bytes are gone */
	uint32_t raw_len, zstd_len;
	uint32_t data_crc; /* of the zstd frame */
	uint32_t header_crc; /* of this header with header_crc 0 */
	uint64_t tenant; /* tenant_number(); 0 = of several, as versions before wrote them */
};
_Static_assert(sizeof(struct header) == 48, "on disk");

struct store {
	int dfd;
	uint64_t retention_ns, max_bytes;
	uint64_t part_bytes; /* a segment that has grown to this is followed by another part */
	uint64_t open_segment; /* the one being written: hour * PARTS_MAX + part */
	uint64_t open_bytes;
	int fd; /* -1 = none */
	pthread_mutex_t lock; /* counts only: they are read from the loop */
	struct store_counts counts;
};

/* store.c. Numbers of all segments, oldest first; malloc'ed, NULL without memory. */
uint64_t *store_segments(struct store *s, uint32_t *ret_n);
/* An fd, or -1; of another version's segment too. */
int store_open_segment(struct store *s, uint64_t segment, int flags);
void store_unlink_segment(struct store *s, uint64_t segment);
/* The file @temp takes its place. 0 or -errno. */
int store_replace_segment(struct store *s, uint64_t segment, const char *temp);

/* record.c. The first good header at or after *@at, which is moved there. False = there is none. */
bool record_next(int fd, off_t *at, struct header *h);
off_t record_end(const struct header *h, off_t at);
/* The zstd frame behind the header at @at (malloc'ed). 0, -EBADMSG or -ENOMEM. */
int record_read(int fd, off_t at, const struct header *h, uint8_t **ret);
/* What is in it; NULL where it is another version's or damaged. 0 or -ENOMEM. */
int record_decode(const struct header *h, const uint8_t *data, struct profile **ret);
/* A segment that another version of kindling wrote is left alone. */
bool record_is_foreign(int fd);
/* The records of a window, one a tenant, as they go to disk: malloc'ed. 0, -E2BIG or -ENOMEM. */
int record_make_all(const struct profile *window, uint8_t **ret, size_t *ret_len);

#define SHARES_TEMP "segment.tmp" /* a segment that is being written anew */

/* shares.c. Windows go until no more than @goal bytes are left: of the tenant that has the most,
 * the oldest first. Nothing happens where there are no two tenants. */
void shares_give_up(struct store *s, uint64_t goal);
