/* See mini_debug.h. */
#include "daemon/symbols/mini_debug.h"

#include <errno.h>
#include <gelf.h>
#include <lzma.h>
#include <stdlib.h>
#include "daemon/ground/mem.h"
#include "daemon/symbols/sections.h"

#define DECODER_BYTES_MAX (128u << 20)
#define FIRST_BYTES	  (1u << 20)

/* Decompresses everything, growing @ret: the length that the file states is not trusted. */
static int mini_debug_decompress(lzma_stream *s, uint8_t **ret, size_t *ret_len)
{
	size_t cap = 0;
	lzma_ret r = LZMA_OK;

	while (r == LZMA_OK) {
		if (s->total_out == cap) {
			uint8_t *p;

			cap = cap ? 2 * cap : FIRST_BYTES;
			p = cap > MINI_DEBUG_BYTES_MAX ? NULL : realloc(*ret, cap);
			if (!p)
				return -EBADMSG;
			*ret = p;
		}
		s->next_out = *ret + s->total_out;
		s->avail_out = cap - s->total_out;
		r = lzma_code(s, LZMA_FINISH);
	}
	*ret_len = s->total_out;
	return r == LZMA_STREAM_END ? 0 : -EBADMSG;
}

int mini_debug_read(Elf *elf, uint8_t **ret, size_t *ret_len)
{
	CLEANUP(freep) uint8_t *bytes = NULL;
	lzma_stream s = LZMA_STREAM_INIT;
	const Elf_Data *data = section_named(elf, ".gnu_debugdata");
	int e;

	if (!data || !data->d_buf || !data->d_size)
		return -ENOENT;
	if (lzma_stream_decoder(&s, DECODER_BYTES_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	s.next_in = data->d_buf;
	s.avail_in = data->d_size;
	e = mini_debug_decompress(&s, &bytes, ret_len);
	lzma_end(&s);
	if (e == 0)
		*ret = TAKE_PTR(bytes);
	return e;
}
