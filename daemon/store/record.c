/* See store_priv.h: headers, CRCs, zstd. Trusts nothing that it reads. */
#include "daemon/store/store_priv.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define MAGIC	      0x3267657347444e4bull /* "KNDGseg2", little-endian; the '2' is the version */
#define MAGIC_MASK    0x00ffffffffffffffull /* all but the version */
#define RAW_BYTES_MAX (256u << 20)

static uint32_t header_crc(struct header h)
{
	h.header_crc = 0;
	return (uint32_t)crc32(0, (const Bytef *)&h, sizeof(h));
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The next place at or after @at where a record may begin, -1 if there is none. */
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

bool record_next(int fd, off_t *at, struct header *h)
{
	while (*at >= 0 && pread(fd, h, sizeof(*h), *at) == (ssize_t)sizeof(*h)) {
		if (h->magic == MAGIC && h->header_crc == header_crc(*h) &&
		    h->raw_len <= RAW_BYTES_MAX && h->zstd_len <= RAW_BYTES_MAX)
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

int record_decode(const struct header *h, const uint8_t *data, struct profile **ret)
{
	CLEANUP(freep) uint8_t *raw = malloc((size_t)h->raw_len + 1);
	int r;

	*ret = NULL;
	if (!raw)
		return -ENOMEM;
	if (ZSTD_decompress(raw, h->raw_len, data, h->zstd_len) != h->raw_len)
		return 0;
	r = profile_decode(raw, h->raw_len, ret);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* a window of another version: skipped */
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
};

/* One record behind the others. */
static int add_record(struct records *to, const struct profile *part, uint64_t tenant)
{
	struct header h = {
		.magic = MAGIC,
		.begin_real_ns = part->begin_real_ns,
		.end_real_ns = part->end_real_ns,
		.tenant = tenant,
	};
	CLEANUP(freep) uint8_t *raw = NULL;
	size_t raw_len, n;
	uint8_t *p;
	int r = profile_encode(part, &raw, &raw_len);

	if (r < 0)
		return r;
	if (raw_len > RAW_BYTES_MAX)
		return -E2BIG;
	p = realloc(to->p, to->len + sizeof(h) + ZSTD_compressBound(raw_len));
	if (!p)
		return -ENOMEM;
	to->p = p;
	p += to->len;
	n = ZSTD_compress(p + sizeof(h), ZSTD_compressBound(raw_len), raw, raw_len, 3);
	if (ZSTD_isError(n))
		return -ENOMEM;
	h.raw_len = (uint32_t)raw_len;
	h.zstd_len = (uint32_t)n;
	h.data_crc = (uint32_t)crc32(0, p + sizeof(h), h.zstd_len);
	h.header_crc = header_crc(h);
	memcpy(p, &h, sizeof(h));
	to->len += sizeof(h) + n;
	return 0;
}

static bool is_first_of_tenant(const struct profile *w, uint32_t process)
{
	uint32_t i = 0;

	while (w->processes[i].tenant != w->processes[process].tenant)
		i++;
	return i == process;
}

/* What of @window is @tenant's; @pids and @start_times have room for all its processes. */
static int add_part(struct records *to, const struct profile *window, uint64_t tenant,
		    uint32_t *pids, uint64_t *start_times)
{
	struct profile_filter f = { .pids = pids, .start_times = start_times };
	CLEANUP(profile_freep) struct profile *part = NULL;
	int r = profile_new(&part);

	for (uint32_t i = 0; i < window->n_processes; i++)
		if (window->processes[i].tenant == tenant) {
			pids[f.n_pids] = window->processes[i].pid;
			start_times[f.n_pids++] = window->processes[i].start_time;
		}
	if (r == 0)
		r = profile_merge(part, window, &f);
	return r < 0 ? r : add_record(to, part, tenant);
}

int record_make_all(const struct profile *w, uint8_t **ret, size_t *ret_len)
{
	CLEANUP(freep) uint32_t *pids = calloc(w->n_processes + 1, sizeof(*pids));
	CLEANUP(freep) uint64_t *times = calloc(w->n_processes + 1, sizeof(*times));
	struct records to = { 0 };
	uint32_t tenants = 0;
	int r = pids && times ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < w->n_processes; i++)
		tenants += is_first_of_tenant(w, i);
	if (r == 0 && tenants < 2)
		r = add_record(&to, w, w->n_processes ? w->processes[0].tenant : 0);
	for (uint32_t i = 0; tenants >= 2 && r == 0 && i < w->n_processes; i++)
		if (is_first_of_tenant(w, i))
			r = add_part(&to, w, w->processes[i].tenant, pids, times);
	if (r < 0) {
		free(to.p);
		return r;
	}
	*ret = to.p;
	*ret_len = to.len;
	return 0;
}
