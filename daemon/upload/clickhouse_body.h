/*
 * Bodies of rows of one ClickHouse table: filled JVM by JVM, split in two between rows if a server
 * does not take such a large one, and packed anew if it does not take their form. They need memory
 * for the packed bytes, one JVM's rows, and half a mebibyte.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "daemon/clickhouse/schema.h"
#include "daemon/upload/clickhouse_pack.h"

struct clickhouse_body {
	struct clickhouse_pack pack;
	uint64_t raw; /* bytes of rows so far */
	uint64_t samples; /* in it; counted by the caller */
};

/* Adds rows in RowBinary. 0, or -ENOMEM: the body is unusable. */
int clickhouse_body_add(struct clickhouse_body *b, const void *rows, size_t len);
/* Ends the body: from now on the bytes of its pack are valid. 0 or -ENOMEM. */
int clickhouse_body_end(struct clickhouse_body *b);
void clickhouse_body_deinit(struct clickhouse_body *b); /* the body may be filled again */

/*
 * Splits a body of @table, the @len bytes of @fd from its offset on, into two complete bodies with
 * their numbers of samples. 0; -EMSGSIZE: it has fewer than two rows; -EBADMSG: it is not such a
 * body; -ENOMEM. The caller frees both in any case.
 */
int clickhouse_body_cut(int fd, size_t len, enum clickhouse_form form, enum clickhouse_table table,
			struct clickhouse_body ret[2]);
/* Packs a body in zstd, the @len bytes of @fd from its offset on, in gzip. Returns a file with the
 * result, whose length is @ret_len, at offset 0; or -errno. */
int clickhouse_body_to_gzip(int fd, size_t len, size_t *ret_len);
