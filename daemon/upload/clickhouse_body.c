/* See clickhouse_body.h. */
#include "daemon/upload/clickhouse_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/ground/mem.h"

#define GZIP_WINDOW 31 /* 15 bits, with gzip's header */
#define ROWS_MAX    (1ul << 30) /* bytes of an uncompressed body */

/* ---- making ---------------------------------------------------------------------------------- */

static int clickhouse_body_room(struct clickhouse_body *b)
{
	size_t cap = b->cap ? 2 * b->cap : 16384;
	uint8_t *p;

	if (b->len < b->cap)
		return 0;
	p = realloc(b->bytes, cap);
	if (!p)
		return -ENOMEM;
	b->bytes = p;
	b->cap = cap;
	return 0;
}

static int clickhouse_body_deflate(struct clickhouse_body *b, int flush)
{
	int r;

	do {
		if (clickhouse_body_room(b) < 0)
			return -ENOMEM;
		b->z.next_out = b->bytes + b->len;
		b->z.avail_out = (uInt)(b->cap - b->len);
		r = deflate(&b->z, flush);
		b->len = b->cap - b->z.avail_out;
	} while (r == Z_OK && (b->z.avail_in || flush == Z_FINISH));
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? 0 : -ENOMEM;
}

int clickhouse_body_add(struct clickhouse_body *b, const void *rows, size_t len)
{
	if (len > UINT32_MAX)
		return -ENOMEM;
	if (!b->begun && deflateInit2(&b->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8,
				      Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	b->begun = true;
	b->z.next_in = (Bytef *)(uintptr_t)rows;
	b->z.avail_in = (uInt)len;
	b->raw += len;
	return clickhouse_body_deflate(b, Z_NO_FLUSH);
}

int clickhouse_body_end(struct clickhouse_body *b)
{
	b->z.avail_in = 0;
	return clickhouse_body_deflate(b, Z_FINISH);
}

void clickhouse_body_deinit(struct clickhouse_body *b)
{
	if (b->begun)
		deflateEnd(&b->z);
	free(b->bytes);
	memset(b, 0, sizeof(*b));
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* 1 = the end was reached, 0 = there is more, or -errno. */
static int body_inflate(z_stream *z, struct text_out *rows)
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

/* Reads all rows into @rows, whose memory is the caller's to free, also after an error. */
static int body_read(int fd, size_t len, struct text_out *rows)
{
	z_stream z = { 0 };
	uint8_t buf[16384];
	int r = 0;

	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	while (r == 0) {
		ssize_t n = read(fd, buf, len < sizeof(buf) ? len : sizeof(buf));

		if (n <= 0) {
			r = -EBADMSG;
			break;
		}
		len -= (size_t)n;
		z.next_in = buf;
		z.avail_in = (uInt)n;
		r = body_inflate(&z, rows);
	}
	inflateEnd(&z);
	return r < 0 ? r : 0;
}

/* Copies rows, from in->p up to the first one that ends at or after @until. Unless @until is the
 * end, the last row of all stays, so that neither half is empty. */
static int body_take(struct rowbinary *in, const uint8_t *until, enum clickhouse_table table,
		     struct clickhouse_body *to)
{
	const uint8_t *begin = in->p;
	int r;

	while (rowbinary_more(in) && in->p < until) {
		const uint8_t *row = in->p;
		uint64_t samples_of = clickhouse_skip_row(in, table);

		if (in->p == in->end && until != in->end) {
			in->p = row;
			break;
		}
		to->samples += samples_of;
	}
	if (in->bad)
		return -EBADMSG;
	if (in->p == begin)
		return -EMSGSIZE;
	r = clickhouse_body_add(to, begin, (size_t)(in->p - begin));
	return r < 0 ? r : clickhouse_body_end(to);
}

int clickhouse_body_cut(int fd, size_t len, enum clickhouse_table table,
			struct clickhouse_body ret[2])
{
	struct text_out rows = { 0 };
	int r = body_read(fd, len, &rows);
	struct rowbinary in = { (const uint8_t *)rows.p, (const uint8_t *)rows.p + rows.len,
				false };

	memset(ret, 0, 2 * sizeof(*ret));
	if (r == 0)
		r = body_take(&in, in.p + rows.len / 2, table, &ret[0]);
	if (r == 0)
		r = body_take(&in, in.end, table, &ret[1]);
	free(rows.p);
	return r;
}
