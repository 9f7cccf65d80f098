/*
 * Bodies that wait to be sent: <state_dir>/spool/SINK/<number>.up. Each file begins with a header
 * that describes it, is written under another name first, and never changes. Files that the ledger
 * does not know are removed at the next start.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "proto/wire.h"

#define SPOOL_FILES_MAX 16384 /* of one sink */
#define SPOOL_BODY_MAX	(256u << 20)

struct spool_header {
	uint64_t magic;
	uint64_t begin_real_ns, end_real_ns; /* of the interval */
	uint64_t samples; /* of all events */
	uint64_t body_len;
	uint32_t body_crc, header_crc; /* header_crc: of this header with 0 in its place */
	char key[480]; /* identifies JVM, interval and event: the same when the body is made again
			*/
	char content_type[64];
	char target[100]; /* the key, for the sink */
	/* for splitting, see sink_encode_parts(); part 0 = it cannot be split */
	uint32_t pid;
	uint64_t start_time;
	uint32_t events, word, part, reserved;
};
_Static_assert(sizeof(struct spool_header) == 720, "on disk");

/* Writes file @seq and fills in lengths, CRCs and the magic. 0, or -errno: there is no such
 * file. */
int spool_write(int dfd, uint64_t seq, struct spool_header *h, const void *body, size_t len);
/* Opens file @seq. Returns an fd whose offset is at the body, or -errno; -EBADMSG: it is
 * damaged. @check: the body's CRC is checked, too. */
int spool_open(int dfd, uint64_t seq, bool check, struct spool_header *ret);
void spool_remove(int dfd, uint64_t seq);
/* Lists the numbers of all files, ascending, in malloc'ed memory; NULL without memory. Removes
 * incomplete files. */
uint64_t *spool_list(int dfd, size_t *ret_n);
