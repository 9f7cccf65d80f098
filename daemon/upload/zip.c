/* See zip.h. */
#include "daemon/upload/zip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

#define LOCAL_SIZE   30
#define CENTRAL_SIZE 46
#define END_SIZE     22
#define VERSION	     20 /* "version needed to extract" 2.0: deflate */
#define DEFLATED     8
#define FILES_MAX    16
#define TOTAL_MAX    (1u << 30)

struct zip_writer {
	uint8_t *p;
	size_t len;
	uint32_t when; /* date << 16 | time, as MS-DOS has them */
};

static void zip_put(struct zip_writer *w, uint32_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		w->p[w->len++] = (uint8_t)(value >> (8 * i));
}

static void zip_put_name(struct zip_writer *w, const char *name)
{
	memcpy(w->p + w->len, name, strlen(name));
	w->len += strlen(name);
}

static uint32_t zip_dos_time(uint64_t real_ns)
{
	time_t seconds = (time_t)(real_ns / NS_PER_S);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return (uint32_t)(tm.tm_year - 80) << 25 | (uint32_t)(tm.tm_mon + 1) << 21 |
	       (uint32_t)tm.tm_mday << 16 | (uint32_t)tm.tm_hour << 11 | (uint32_t)tm.tm_min << 5 |
	       (uint32_t)tm.tm_sec / 2;
}

struct zip_entry {
	uint32_t crc, packed, len, at;
};

/* The fields that a file has in both of its headers. */
static void zip_put_entry(struct zip_writer *w, const struct zip_entry *e, const char *name)
{
	zip_put(w, VERSION, 2);
	zip_put(w, 0, 2);
	zip_put(w, DEFLATED, 2);
	zip_put(w, w->when, 4);
	zip_put(w, e->crc, 4);
	zip_put(w, e->packed, 4);
	zip_put(w, e->len, 4);
	zip_put(w, (uint32_t)strlen(name), 2);
	zip_put(w, 0, 2);
}

static int zip_deflate(struct zip_writer *w, const struct zip_file *f, size_t room,
		       uint32_t *ret_packed)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)f->bytes,
		       .avail_in = (uInt)f->len,
		       .next_out = w->p + w->len,
		       .avail_out = (uInt)room };
	int r;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	r = deflate(&z, Z_FINISH);
	*ret_packed = (uint32_t)z.total_out;
	w->len += z.total_out;
	deflateEnd(&z);
	return r == Z_STREAM_END ? 0 : -ENOMEM;
}

/* Writes a file: first its header, which is filled in once the packed size is known. */
static int zip_put_file(struct zip_writer *w, const struct zip_file *f, struct zip_entry *e)
{
	size_t head = w->len, end;
	int r;

	e->at = (uint32_t)head;
	e->len = (uint32_t)f->len;
	e->crc = (uint32_t)crc32(0, f->bytes, (uInt)f->len);
	w->len += LOCAL_SIZE + strlen(f->name);
	r = zip_deflate(w, f, compressBound((uLong)f->len), &e->packed);
	end = w->len;
	w->len = head;
	zip_put(w, 0x04034b50, 4);
	zip_put_entry(w, e, f->name);
	zip_put_name(w, f->name);
	w->len = end;
	return r;
}

static void zip_put_directory(struct zip_writer *w, const struct zip_file *files,
			      const struct zip_entry *entries, size_t n)
{
	size_t begin = w->len, size;

	for (size_t i = 0; i < n; i++) {
		zip_put(w, 0x02014b50, 4);
		zip_put(w, VERSION, 2);
		zip_put_entry(w, &entries[i], files[i].name);
		zip_put(w, 0, 2); /* comment */
		zip_put(w, 0, 2); /* disk */
		zip_put(w, 0, 2);
		zip_put(w, 0, 4);
		zip_put(w, entries[i].at, 4);
		zip_put_name(w, files[i].name);
	}
	size = w->len - begin;
	zip_put(w, 0x06054b50, 4);
	zip_put(w, 0, 4);
	zip_put(w, (uint32_t)n, 2);
	zip_put(w, (uint32_t)n, 2);
	zip_put(w, (uint32_t)size, 4);
	zip_put(w, (uint32_t)begin, 4);
	zip_put(w, 0, 2);
}

int zip_write(const struct zip_file *files, size_t n, uint64_t real_ns, char **ret, size_t *ret_len)
{
	struct zip_writer w = { .when = zip_dos_time(real_ns) };
	struct zip_entry entries[FILES_MAX];
	size_t room = END_SIZE;
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		if (i == FILES_MAX || files[i].len > TOTAL_MAX || room > TOTAL_MAX)
			return -EFBIG;
		/* more than compressBound() says: that is for zlib's own format, not for raw
		 * deflate */
		room += LOCAL_SIZE + CENTRAL_SIZE + 2 * strlen(files[i].name) + 64 +
			compressBound((uLong)files[i].len);
	}
	w.p = malloc(room);
	if (!w.p)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++)
		r = zip_put_file(&w, &files[i], &entries[i]);
	if (r < 0) {
		free(w.p);
		return r;
	}
	zip_put_directory(&w, files, entries, n);
	*ret = (char *)w.p;
	*ret_len = w.len;
	return 0;
}
