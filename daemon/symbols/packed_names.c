/* See packed_names.h. */
#include "daemon/symbols/packed_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BLOCK_NAMES  64u
#define BLOCK_BYTES  (BLOCK_NAMES * (PACKED_NAME_MAX + 1))
#define RECENT_NAMES 2048u /* of which a host needs the same ones again and again */
/* the window is as large as a block; zlib's defaults would take five times the memory */
#define WINDOW_BITS (-12) /* negative: no header */
#define MEM_LEVEL   6
#define LEVEL	    5

struct recent_name {
	uint32_t number;
	char *name; /* NULL = this entry is free */
};

struct packed_names {
	uint8_t *bytes;
	uint32_t *ends; /* where each block ends, bytes */
	uint32_t n, len, cap;
	z_stream inflater;
	char block[BLOCK_BYTES];
	struct recent_name recent[RECENT_NAMES]; /* at the name's number modulo RECENT_NAMES */
};

static uint32_t count_blocks(const struct packed_names *p)
{
	return (p->n + BLOCK_NAMES - 1) / BLOCK_NAMES;
}

/* ---- packing --------------------------------------------------------------------------------- */

static bool packed_names_reserve(struct packed_names *p, size_t more)
{
	uint32_t want = p->cap ? p->cap : 1u << 16;
	uint8_t *bytes;

	if (more <= p->cap - p->len)
		return true;
	while (want - p->len < more) {
		if (want > UINT32_MAX / 2)
			return false;
		want *= 2;
	}
	bytes = realloc(p->bytes, want);
	if (!bytes)
		return false;
	p->bytes = bytes;
	p->cap = want;
	return true;
}

/* Packs names from @first on, each with its NUL, until p->block is full. Returns their size. */
static size_t fill_block(struct packed_names *p, packed_names_fn *name, void *userdata,
			 uint32_t first)
{
	uint32_t end = p->n - first < BLOCK_NAMES ? p->n : first + BLOCK_NAMES;
	size_t len = 0;

	for (uint32_t i = first; i < end; i++) {
		const char *s = name(userdata, i);
		size_t n = strnlen(s, PACKED_NAME_MAX);

		memcpy(p->block + len, s, n);
		p->block[len + n] = '\0';
		len += n + 1;
	}
	return len;
}

static bool deflate_block(struct packed_names *p, z_stream *z, size_t len)
{
	size_t bound = deflateBound(z, len);

	if (!packed_names_reserve(p, bound) || deflateReset(z) != Z_OK)
		return false;
	z->next_in = (Bytef *)p->block;
	z->avail_in = (uInt)len;
	z->next_out = p->bytes + p->len;
	z->avail_out = (uInt)bound;
	if (deflate(z, Z_FINISH) != Z_STREAM_END)
		return false;
	p->len += (uint32_t)z->total_out;
	return true;
}

static bool packed_names_pack(struct packed_names *p, packed_names_fn *name, void *userdata)
{
	z_stream z = { 0 };
	bool ok = deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEM_LEVEL, Z_DEFAULT_STRATEGY) ==
		  Z_OK;

	for (uint32_t b = 0; ok && b < count_blocks(p); b++) {
		ok = deflate_block(p, &z, fill_block(p, name, userdata, b * BLOCK_NAMES));
		p->ends[b] = p->len;
	}
	(void)deflateEnd(&z);
	return ok;
}

int packed_names_new(packed_names_fn *name, void *userdata, uint32_t n, struct packed_names **ret)
{
	CLEANUP(packed_names_freep) struct packed_names *p = calloc(1, sizeof(*p));
	uint8_t *bytes;

	if (!p)
		return -ENOMEM;
	p->n = n;
	p->ends = calloc((size_t)count_blocks(p) + 1, sizeof(*p->ends));
	if (!p->ends || inflateInit2(&p->inflater, WINDOW_BITS) != Z_OK ||
	    !packed_names_pack(p, name, userdata))
		return -ENOMEM;
	bytes = realloc(p->bytes, p->len + 1);
	p->bytes = bytes ? bytes : p->bytes;
	*ret = TAKE_PTR(p);
	return 0;
}

struct packed_names *packed_names_free(struct packed_names *p)
{
	if (!p)
		return NULL;
	(void)inflateEnd(&p->inflater);
	for (uint32_t i = 0; i < RECENT_NAMES; i++)
		free(p->recent[i].name);
	free(p->bytes);
	free(p->ends);
	free(p);
	return NULL;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static bool inflate_block(struct packed_names *p, uint32_t b)
{
	uint32_t begin = b ? p->ends[b - 1] : 0;

	if (inflateReset(&p->inflater) != Z_OK)
		return false;
	p->inflater.next_in = p->bytes + begin;
	p->inflater.avail_in = p->ends[b] - begin;
	p->inflater.next_out = (Bytef *)p->block;
	p->inflater.avail_out = sizeof(p->block);
	return inflate(&p->inflater, Z_FINISH) == Z_STREAM_END;
}

const char *packed_names_get(struct packed_names *p, uint32_t i)
{
	struct recent_name *recent = &p->recent[i % RECENT_NAMES];
	const char *name = p->block;
	char *copy;

	if (i >= p->n)
		return NULL;
	if (recent->name && recent->number == i)
		return recent->name;
	if (!inflate_block(p, i / BLOCK_NAMES))
		return NULL;
	for (uint32_t left = i % BLOCK_NAMES; left; left--)
		name += strlen(name) + 1;
	copy = strdup(name);
	if (!copy)
		return NULL;
	free(recent->name);
	*recent = (struct recent_name){ i, copy };
	return copy;
}
