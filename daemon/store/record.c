/* See store_priv.h: headers, CRCs, zstd. Nothing that is read is trusted. */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define MAGIC	      0x3367657347444e4bull /* "KNDGseg3", little-endian; the 3 is the version */
#define MAGIC_MASK    0x00ffffffffffffffull /* all but the version */
#define RAW_BYTES_MAX (256u << 20)
#define ZSTD_LEVEL    3
#define ZSTD_FAST     (-5)

static uint32_t header_crc(struct header h)
{
	h.header_crc = 0;
	return (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The next position from @at on at which a record may begin; -1 = there is none. */
static off_t find_magic(int fd, off_t at)
{
	const uint64_t magic = MAGIC;
	uint8_t buf[16384];
	ssize_t n;

	while ((n = pread(fd, buf, sizeof(buf), at)) >= (ssize_t)sizeof(magic)) {
		const uint8_t *hit = memmem(buf, (size_t)n, &magic, sizeof(magic));

		if (hit)
			return at + (hit - buf);
		at += n - (ssize_t)sizeof(magic) + 1;
	}
	return -1;
}

static bool is_good(const struct header *h)
{
	return h->magic == MAGIC && h->header_crc == header_crc(*h) &&
	       h->raw_len <= RAW_BYTES_MAX && h->zstd_len <= RAW_BYTES_MAX;
}

bool record_at(int fd, off_t at, struct header *h)
{
	return pread(fd, h, sizeof(*h), at) == (ssize_t)sizeof(*h) && is_good(h);
}

bool record_next(int fd, off_t *at, struct header *h)
{
	while (*at >= 0 && pread(fd, h, sizeof(*h), *at) == (ssize_t)sizeof(*h)) {
		if (is_good(h))
			return true;
		*at = find_magic(fd, *at + 1);
	}
	return false;
}

off_t record_end(const struct header *h, off_t at)
{
	return at + (off_t)sizeof(*h) + (off_t)h->zstd_len;
}

int record_read(int fd, off_t at, const struct header *h, uint8_t **ret)
{
	CLEANUP(freep) uint8_t *data = malloc((size_t)h->zstd_len + 1);

	if (!data)
		return -ENOMEM;
	if (pread(fd, data, h->zstd_len, at + (off_t)sizeof(*h)) != (ssize_t)h->zstd_len ||
	    (uint32_t)crc32(0, data, h->zstd_len) != h->data_crc)
		return -EBADMSG;
	*ret = TAKE_PTR(data);
	return 0;
}

int record_inflate(const struct header *h, const uint8_t *data, uint8_t **ret)
{
	CLEANUP(freep) uint8_t *raw = malloc((size_t)h->raw_len + 1);

	if (!raw)
		return -ENOMEM;
	if (ZSTD_decompress(raw, h->raw_len, data, h->zstd_len) != h->raw_len)
		return -EBADMSG;
	*ret = TAKE_PTR(raw);
	return 0;
}

int record_decode(const struct header *h, const uint8_t *data, struct profile **ret)
{
	CLEANUP(freep) uint8_t *raw = NULL;
	int r = record_inflate(h, data, &raw);

	*ret = NULL;
	if (r == 0)
		r = profile_decode(raw, h->raw_len, ret);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* another version's window is skipped */
	profile_set_tenant(*ret, h->tenant);
	return 0;
}

bool record_is_foreign(int fd)
{
	uint64_t magic = 0;

	return pread(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && magic != MAGIC &&
	       (magic & MAGIC_MASK) == (MAGIC & MAGIC_MASK);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct records {
	uint8_t *p;
	size_t len;
	struct profile_bytes raw; /* of the record at hand */
	ZSTD_CCtx *zstd; /* used for all records, because it takes a mebibyte */
};

/* Appends a record. @h: its header, except for the fields that are filled in here. */
static int add_bytes(struct records *to, struct header h, const uint8_t *raw, size_t raw_len,
		     int level)
{
	uint8_t *p;
	size_t n;

	if (raw_len > RAW_BYTES_MAX)
		return -E2BIG;
	p = realloc(to->p, to->len + sizeof(h) + ZSTD_compressBound(raw_len));
	if (!p)
		return -ENOMEM;
	to->p = p;
	p += to->len;
	if (!to->zstd)
		to->zstd = ZSTD_createCCtx();
	if (!to->zstd)
		return -ENOMEM;
	n = ZSTD_compressCCtx(to->zstd, p + sizeof(h), ZSTD_compressBound(raw_len), raw, raw_len,
			      level);
	if (ZSTD_isError(n))
		return -ENOMEM;
	h.magic = MAGIC;
	h.raw_len = (uint32_t)raw_len;
	h.zstd_len = (uint32_t)n;
	h.data_crc = (uint32_t)crc32(0, p + sizeof(h), h.zstd_len);
	h.header_crc = header_crc(h);
	memcpy(p, &h, sizeof(h));
	to->len += sizeof(h) + n;
	return 0;
}

static int record_add_record(struct records *to, const struct profile *part, uint64_t journal)
{
	const struct profile_process *q = part->n_processes ? &part->processes[0] : NULL;
	uint64_t samples = profile_samples(part);
	struct header h = {
		.begin_real_ns = part->begin_real_ns,
		.end_real_ns = part->end_real_ns,
		.tenant = q ? q->tenant : 0,
		.pid = q ? q->pid : 0,
		.start_time = q ? q->start_time : 0,
		.samples = samples < UINT32_MAX ? (uint32_t)samples : UINT32_MAX,
		.journal = journal,
	};
	int r = profile_encode_again(part, &to->raw);

	return r < 0 ? r : add_bytes(to, h, to->raw.p, to->raw.len, ZSTD_LEVEL);
}

static int give_records(struct records *from, int r, uint8_t **ret, size_t *ret_len)
{
	ZSTD_freeCCtx(from->zstd);
	free(from->raw.p);
	if (r < 0) {
		free(from->p);
		return r;
	}
	*ret = from->p;
	*ret_len = from->len;
	return 0;
}

int record_make(const struct profile *p, uint64_t journal, uint8_t **ret, size_t *ret_len)
{
	struct records to = { 0 };
	int r = record_add_record(&to, p, journal);

	return give_records(&to, r, ret, ret_len);
}

int record_make_all(const struct profile *w, uint64_t journal, uint8_t **ret, size_t *ret_len)
{
	CLEANUP(profile_parts_freep) struct profile_parts *parts = NULL;
	struct records to = { 0 };
	int r = 0;

	if (w->n_processes < 2)
		return record_make(w, journal, ret, ret_len);
	r = profile_parts_new(w, &parts);
	for (uint32_t i = 0; r == 0 && i < w->n_processes; i++) {
		CLEANUP(profile_freep) struct profile *part = NULL;

		r = profile_parts_get(parts, i, &part);
		if (r == 0)
			r = record_add_record(&to, part, journal);
	}
	if (r == 0)
		r = contents_put(&to.p, &to.len);
	return give_records(&to, r, ret, ret_len);
}

int record_pack(const struct header *h, const uint8_t *raw, size_t raw_len, uint8_t **ret,
		size_t *ret_len)
{
	struct records to = { 0 };
	int r = add_bytes(&to, *h, raw, raw_len, ZSTD_FAST);

	return give_records(&to, r, ret, ret_len);
}
