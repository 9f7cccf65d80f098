/* See clickhouse_pack.h. */
#include "daemon/upload/clickhouse_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/ground/mem.h"

#define GZIP_WINDOW 31 /* 15 bits, with gzip's header */
#define ROWS_MAX    (1ul << 30) /* bytes of an unpacked body */

#define ZSTD_LEVEL     1
#define BLOCK_BYTES    (512u << 10) /* of rows; the last block of a body has fewer */
#define BLOCK_CODEC    0x90
#define BLOCK_CHECKSUM 16
#define BLOCK_HEAD     9 /* the codec and both lengths */
#define BLOCK_HEADERS  (BLOCK_CHECKSUM + BLOCK_HEAD)

/* ---- packing --------------------------------------------------------------------------------- */

/* Room for at least @more bytes, and a quarter of all: there is a pack for each table, and twice
 * the size would leave half of it unused. */
static int pack_reserve(struct clickhouse_pack *p, size_t more)
{
	size_t cap = p->len + more + (p->len + more) / 4 + 4096;
	uint8_t *bytes;

	if (p->cap - p->len >= more)
		return 0;
	bytes = realloc(p->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	p->bytes = bytes;
	p->cap = cap;
	return 0;
}

static int pack_deflate(struct clickhouse_pack *p, int flush)
{
	int r;

	do {
		if (pack_reserve(p, 1) < 0)
			return -ENOMEM;
		p->gzip.next_out = p->bytes + p->len;
		p->gzip.avail_out = (uInt)(p->cap - p->len);
		r = deflate(&p->gzip, flush);
		p->len = p->cap - p->gzip.avail_out;
	} while (r == Z_OK && (p->gzip.avail_in || flush == Z_FINISH));
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? 0 : -ENOMEM;
}

/* Makes a block of the rows that no block has yet. */
static int pack_block(struct clickhouse_pack *p)
{
	struct text_out head = { 0 };
	size_t bound = ZSTD_compressBound(p->block_len), n;

	if (pack_reserve(p, BLOCK_HEADERS + bound) < 0)
		return -ENOMEM;
	n = ZSTD_compress2(p->zstd, p->bytes + p->len + BLOCK_HEADERS, bound, p->block,
			   p->block_len);
	if (ZSTD_isError(n))
		return -ENOMEM;
	rowbinary_put_number(&head, BLOCK_CODEC, 1);
	rowbinary_put_number(&head, BLOCK_HEAD + n, 4);
	rowbinary_put_number(&head, p->block_len, 4);
	if (head.failed)
		return -ENOMEM;
	memset(p->bytes + p->len, 0, BLOCK_CHECKSUM);
	memcpy(p->bytes + p->len + BLOCK_CHECKSUM, head.p, BLOCK_HEAD);
	free(head.p);
	p->len += BLOCK_HEADERS + n;
	p->block_len = 0;
	return 0;
}

static int pack_begin(struct clickhouse_pack *p)
{
	p->begun = true;
	if (p->form == CLICKHOUSE_GZIP)
		return deflateInit2(&p->gzip, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8,
				    Z_DEFAULT_STRATEGY) == Z_OK
			       ? 0
			       : -ENOMEM;
	p->zstd = ZSTD_createCCtx();
	p->block = malloc(BLOCK_BYTES);
	if (!p->zstd || !p->block ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1)))
		return -ENOMEM;
	return 0;
}

int clickhouse_pack_add(struct clickhouse_pack *p, const void *rows, size_t len)
{
	if (len > UINT32_MAX / 2 || (!p->begun && pack_begin(p) < 0))
		return -ENOMEM;
	if (p->form == CLICKHOUSE_GZIP) {
		p->gzip.next_in = (Bytef *)(uintptr_t)rows;
		p->gzip.avail_in = (uInt)len;
		return pack_deflate(p, Z_NO_FLUSH);
	}
	while (len) {
		size_t room = BLOCK_BYTES - p->block_len, n = len < room ? len : room;

		memcpy(p->block + p->block_len, rows, n);
		p->block_len += n;
		rows = (const uint8_t *)rows + n;
		len -= n;
		if (p->block_len == BLOCK_BYTES && pack_block(p) < 0)
			return -ENOMEM;
	}
	return 0;
}

int clickhouse_pack_end(struct clickhouse_pack *p)
{
	if (!p->begun && pack_begin(p) < 0)
		return -ENOMEM;
	if (p->form == CLICKHOUSE_ZSTD)
		return p->block_len ? pack_block(p) : 0;
	p->gzip.avail_in = 0;
	return pack_deflate(p, Z_FINISH);
}

void clickhouse_pack_deinit(struct clickhouse_pack *p)
{
	if (p->begun && p->form == CLICKHOUSE_GZIP)
		deflateEnd(&p->gzip);
	ZSTD_freeCCtx(p->zstd);
	free(p->block);
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static int unpack_read(int fd, void *to, size_t len)
{
	size_t at = 0;

	while (at < len) {
		ssize_t n = read(fd, (uint8_t *)to + at, len - at);

		if (n <= 0)
			return -EBADMSG;
		at += (size_t)n;
	}
	return 0;
}

/* 1 = the end was reached, 0 = there is more, or -errno. */
static int unpack_inflate(z_stream *z, struct text_out *rows)
{
	uint8_t buf[16384];
	int r;

	do {
		z->next_out = buf;
		z->avail_out = sizeof(buf);
		r = inflate(z, Z_NO_FLUSH);
		text_bytes(rows, buf, sizeof(buf) - z->avail_out);
		if (rows->failed || rows->len > ROWS_MAX)
			return -ENOMEM;
	} while (r == Z_OK && z->avail_out == 0);
	if (r == Z_STREAM_END)
		return 1;
	return r == Z_OK || r == Z_BUF_ERROR ? 0 : -EBADMSG;
}

static int unpack_gzip(int fd, size_t len, struct text_out *rows)
{
	z_stream z = { 0 };
	uint8_t buf[16384];
	int r = 0;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	while (r == 0) {
		size_t n = len < sizeof(buf) ? len : sizeof(buf);

		r = n ? unpack_read(fd, buf, n) : -EBADMSG;
		if (r < 0)
			break;
		len -= n;
		z.next_in = buf;
		z.avail_in = (uInt)n;
		r = unpack_inflate(&z, rows);
	}
	inflateEnd(&z);
	return r < 0 ? r : 0;
}

/* Reads the data of a block, @len bytes, which are @rows_len bytes of rows. */
static int unpack_data(int fd, size_t len, size_t rows_len, struct text_out *rows)
{
	CLEANUP(freep) uint8_t *data = malloc(len + 1);
	CLEANUP(freep) uint8_t *block = malloc(rows_len + 1);
	int r;

	if (!data || !block)
		return -ENOMEM;
	r = unpack_read(fd, data, len);
	if (r < 0)
		return r;
	if (ZSTD_decompress(block, rows_len, data, len) != rows_len)
		return -EBADMSG;
	text_bytes(rows, block, rows_len);
	return rows->failed ? -ENOMEM : 0;
}

/* Reads one block of at most @len bytes. Returns its length, or -errno. */
static int64_t unpack_block(int fd, size_t len, struct text_out *rows)
{
	uint8_t headers[BLOCK_HEADERS];
	struct rowbinary in = { headers + BLOCK_CHECKSUM, headers + BLOCK_HEADERS, false };
	uint64_t codec, n, rows_len;
	int r;

	if (len < BLOCK_HEADERS || unpack_read(fd, headers, BLOCK_HEADERS) < 0)
		return -EBADMSG;
	codec = rowbinary_number(&in, 1);
	n = rowbinary_number(&in, 4);
	rows_len = rowbinary_number(&in, 4);
	if (codec != BLOCK_CODEC || n < BLOCK_HEAD || n > len - BLOCK_CHECKSUM)
		return -EBADMSG;
	if (rows_len > ROWS_MAX - rows->len)
		return -ENOMEM;
	r = unpack_data(fd, n - BLOCK_HEAD, rows_len, rows);
	return r < 0 ? r : (int64_t)(BLOCK_CHECKSUM + n);
}

int clickhouse_unpack(int fd, size_t len, enum clickhouse_form form, struct text_out *rows)
{
	if (form == CLICKHOUSE_GZIP)
		return unpack_gzip(fd, len, rows);
	while (len) {
		int64_t n = unpack_block(fd, len, rows);

		if (n < 0)
			return (int)n;
		len -= (size_t)n;
	}
	return 0;
}
