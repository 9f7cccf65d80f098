/*
 * Bodies of rows of one table of ClickHouse, gzip: filled JVM by JVM, and cut in two between rows
 * where a server takes no such large one. Memory for what is compressed, and for one JVM's rows.
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
	uint64_t raw; /* bytes that were put in */
	uint64_t samples; /* in it; the caller's */
};

/* Rows, RowBinary. 0 or -ENOMEM: then the body is unusable. */
int clickhouse_body_add(struct clickhouse_body *b, const void *rows, size_t len);
/* No rows come any more: bytes and len are the body. 0 or -ENOMEM. */
int clickhouse_body_end(struct clickhouse_body *b);
void clickhouse_body_deinit(struct clickhouse_body *b); /* may be used anew */

/*
 * Splits the @len bytes of @fd from its offset on, a body of @table, into two complete bodies, with
 * their samples. 0, -EMSGSIZE: it has fewer than two rows, -EBADMSG: it is not such a body,
 * -ENOMEM; deinit is the caller's in any case.
 */
int clickhouse_body_cut(int fd, size_t len, enum clickhouse_table table,
			struct clickhouse_body ret[2]);
