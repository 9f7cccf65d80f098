/*
 * Bodies of rows of one ClickHouse table, in gzip: filled JVM by JVM, and split in two between rows
 * if a server does not take such a large one. They need memory for the compressed bytes and for one
 * JVM's rows.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include "daemon/clickhouse/schema.h"

struct clickhouse_body {
	z_stream z;
	bool begun;
	uint8_t *bytes; /* owned */
	size_t len, cap;
	uint64_t raw; /* uncompressed bytes so far */
	uint64_t samples; /* in it; counted by the caller */
};

/* Adds rows in RowBinary. 0, or -ENOMEM: the body is unusable. */
int clickhouse_body_add(struct clickhouse_body *b, const void *rows, size_t len);
/* Ends the body: from now on bytes and len are valid. 0 or -ENOMEM. */
int clickhouse_body_end(struct clickhouse_body *b);
void clickhouse_body_deinit(struct clickhouse_body *b); /* the body may be filled again */

/*
 * Splits a body of @table, the @len bytes of @fd from its offset on, into two complete bodies with
 * their numbers of samples. 0; -EMSGSIZE: it has fewer than two rows; -EBADMSG: it is not such a
 * body; -ENOMEM. The caller frees both in any case.
 */
int clickhouse_body_cut(int fd, size_t len, enum clickhouse_table table,
			struct clickhouse_body ret[2]);
