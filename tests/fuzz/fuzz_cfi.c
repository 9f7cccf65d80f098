/* Takes any bytes as .eh_frame_hdr (the first two bytes are its length) followed by .eh_frame:
 * no crash, and the resulting rows are sorted and can be found. */
#include <stdlib.h>
#include <string.h>
#include "agent/walker/native/cfi.h"

#define ADDRESS 0x10000u
#define ROOM	(64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct cfi_table *t)
{
	const uint32_t *blocks = t->words + t->blocks_at, *rows = t->words;
	uint32_t n = blocks[t->n_blocks];

	if (t->bytes > ROOM || !n || n != t->blocks_at || !t->n_blocks)
		abort();
	for (uint32_t block = 0; block < t->n_blocks; block++) {
		if (blocks[block] > blocks[block + 1])
			abort();
		for (uint32_t i = blocks[block]; i < blocks[block + 1]; i++) {
			uint32_t pc = (t->first_block + block) << 16 | (rows[i] & 0xffff);

			if (i > blocks[block] && (rows[i] & 0xffff) <= (rows[i - 1] & 0xffff))
				abort();
			if (cfi_find(t, pc) != t->words[t->rules_at + (rows[i] >> 16)])
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfi_bytes header = { .address = ADDRESS }, frame;
	struct cfi_table *table = malloc(ROOM);
	uint64_t where;
	uint16_t len;

	if (!table || size < sizeof(len)) {
		free(table);
		return 0;
	}
	memcpy(&len, data, sizeof(len));
	header.bytes = data + sizeof(len);
	header.len = len < size - sizeof(len) ? len : size - sizeof(len);
	frame = (struct cfi_bytes){ .bytes = header.bytes + header.len,
				    .len = size - sizeof(len) - header.len,
				    .address = ADDRESS + header.len };
	(void)cfi_frame_address(&header, &where);
	if (cfi_build(&header, &frame, 0, table, ROOM) > 0)
		check(table);
	free(table);
	return 0;
}
