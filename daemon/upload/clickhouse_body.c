/* See clickhouse_body.h. */
#include "daemon/upload/clickhouse_body.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/ground/mem.h"

/* ---- making ---------------------------------------------------------------------------------- */

int clickhouse_body_add(struct clickhouse_body *b, const void *rows, size_t len)
{
	b->raw += len;
	return clickhouse_pack_add(&b->pack, rows, len);
}

int clickhouse_body_end(struct clickhouse_body *b)
{
	return clickhouse_pack_end(&b->pack);
}

void clickhouse_body_deinit(struct clickhouse_body *b)
{
	clickhouse_pack_deinit(&b->pack);
	memset(b, 0, sizeof(*b));
}

/* ---- cutting --------------------------------------------------------------------------------- */

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

int clickhouse_body_cut(int fd, size_t len, enum clickhouse_form form, enum clickhouse_table table,
			struct clickhouse_body ret[2])
{
	struct text_out rows = { 0 };
	int r = clickhouse_unpack(fd, len, form, &rows);
	struct rowbinary in = { (const uint8_t *)rows.p, (const uint8_t *)rows.p + rows.len,
				false };

	memset(ret, 0, 2 * sizeof(*ret));
	ret[0].pack.form = ret[1].pack.form = form;
	if (r == 0)
		r = body_take(&in, in.p + rows.len / 2, table, &ret[0]);
	if (r == 0)
		r = body_take(&in, in.end, table, &ret[1]);
	free(rows.p);
	return r;
}

/* ---- another form ---------------------------------------------------------------------------- */

/* Returns a file with @len bytes, at offset 0, or -errno. */
static int body_file(const void *bytes, size_t len)
{
	int fd = memfd_create("body", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (write(fd, bytes, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	fd_close(fd);
	return -ENOMEM;
}

int clickhouse_body_to_gzip(int fd, size_t len, size_t *ret_len)
{
	struct clickhouse_pack pack = { .form = CLICKHOUSE_GZIP };
	struct text_out rows = { 0 };
	int r = clickhouse_unpack(fd, len, CLICKHOUSE_ZSTD, &rows);

	if (r == 0)
		r = clickhouse_pack_add(&pack, rows.p, rows.len);
	if (r == 0)
		r = clickhouse_pack_end(&pack);
	free(rows.p);
	if (r == 0)
		r = body_file(pack.bytes, pack.len);
	*ret_len = pack.len;
	clickhouse_pack_deinit(&pack);
	return r;
}
