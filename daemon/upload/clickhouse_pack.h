/*
 * The two forms in which bodies go to ClickHouse. Blocks of zstd, a server's own format, are half
 * as long as gzip and take a fifth of its CPU time. Every version reads them (`decompress=1`), but
 * a proxy may drop such parameters: gzip, an encoding of HTTP, works everywhere.
 *
 * A block: 16 bytes of checksum; 0x90 for zstd; its length from that byte on, and the length of
 * its rows (u32, little-endian); a frame of zstd
 * (https://clickhouse.com/docs/native-protocol/compression). The checksum is by a version of
 * CityHash that no library has, so it is 0, and the request asks not to look at it: each frame has
 * zstd's own checksum, which the server's decoder compares.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>
#include "daemon/report/text_out.h"

enum clickhouse_form { CLICKHOUSE_ZSTD, CLICKHOUSE_GZIP };

/* the parameters of a request whose body has blocks of zstd */
#define CLICKHOUSE_ZSTD_PARAMETERS \
	"decompress=1&http_native_compression_disable_checksumming_on_decompress=1&"

struct clickhouse_pack {
	enum clickhouse_form form; /* set by the caller before the first rows */
	bool begun;
	z_stream gzip;
	struct ZSTD_CCtx_s *zstd;
	uint8_t *block; /* owned; rows that have not been compressed yet */
	size_t block_len;
	uint8_t *bytes; /* owned */
	size_t len, cap;
};

/* Adds rows. 0, or -ENOMEM: the pack is unusable. */
int clickhouse_pack_add(struct clickhouse_pack *p, const void *rows, size_t len);
/* Ends the pack: from now on its bytes are a body. 0 or -ENOMEM. */
int clickhouse_pack_end(struct clickhouse_pack *p);
void clickhouse_pack_deinit(struct clickhouse_pack *p); /* it may be filled again */

/*
 * Unpacks the @len bytes of @fd from its offset on. 0; -EBADMSG: they are not of this form;
 * -ENOMEM, also for more than a gibibyte of rows. @rows, which the caller has set to zeros, is the
 * caller's to free in any case.
 */
int clickhouse_unpack(int fd, size_t len, enum clickhouse_form form, struct text_out *rows);
