/*
 * See ring.h. A record is a header word and the sample, contiguous: at the end of the memory a
 * padding record fills up. The header stays 0 until the record is whole (release), so the reader
 * stops at a claim that is not committed yet; what it has read it sets to 0 again.
 */
#include "agent/ring.h"

#include <string.h>
#include <sys/mman.h>

#define HDR_BYTES  8u
#define HDR_SAMPLE 1ull
#define HDR_PAD    2ull

static uint64_t *header_at(const struct ring *r, uint64_t pos)
{
	return (uint64_t *)(r->mem + (pos & (r->size - 1)));
}

uint64_t ring_head_sig(const struct ring *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_SEQ_CST);
}

/* Claim @len bytes without wrapping; *ret_pad = bytes of padding in front. */
static bool claim_sig(struct ring *r, uint32_t len, uint64_t *ret_pos, uint32_t *ret_pad)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);

	for (;;) {
		uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
		uint32_t room_at_end = r->size - (uint32_t)(head & (r->size - 1));
		uint32_t pad = room_at_end < len ? room_at_end : 0;

		if (head + pad + len - tail > r->size)
			return false;
		if (__atomic_compare_exchange_n(&r->head, &head, head + pad + len, true,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			*ret_pos = head;
			*ret_pad = pad;
			return true;
		}
	}
}

bool ring_push_sig(struct ring *r, const struct ring_sample *head, const struct walk_frame *frames)
{
	uint32_t frame_bytes = head->n_frames * (uint32_t)sizeof(*frames);
	uint32_t len = HDR_BYTES + (uint32_t)sizeof(*head) + frame_bytes;
	struct ring_sample *sample;
	uint64_t pos;
	uint32_t pad;

	if (!claim_sig(r, len, &pos, &pad))
		return false;
	if (pad) {
		__atomic_store_n(header_at(r, pos), (uint64_t)pad << 8 | HDR_PAD, __ATOMIC_RELEASE);
		pos += pad;
	}
	sample = (struct ring_sample *)(header_at(r, pos) + 1);
	memcpy(sample, head, sizeof(*head));
	memcpy(sample->frames, frames, frame_bytes);
	__atomic_store_n(header_at(r, pos), (uint64_t)len << 8 | HDR_SAMPLE, __ATOMIC_RELEASE);
	return true;
}

static void release(struct ring *r, uint32_t len)
{
	memset(header_at(r, r->tail), 0, len);
	__atomic_store_n(&r->tail, r->tail + len, __ATOMIC_RELEASE);
}

const struct ring_sample *ring_peek(struct ring *r, uint64_t end)
{
	while (r->tail < end) {
		uint64_t header = __atomic_load_n(header_at(r, r->tail), __ATOMIC_ACQUIRE);

		if (header == 0)
			return NULL;
		if ((header & 0xff) == HDR_SAMPLE)
			return (const struct ring_sample *)(header_at(r, r->tail) + 1);
		release(r, (uint32_t)(header >> 8));
	}
	return NULL;
}

void ring_pop(struct ring *r)
{
	release(r, (uint32_t)(*header_at(r, r->tail) >> 8));
}

int ring_init(struct ring *r, uint32_t bytes)
{
	uint32_t size = RING_BYTES_MIN;
	void *mem;

	while (size < bytes && size < RING_BYTES_MAX)
		size *= 2;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return -1;
	r->mem = mem;
	r->size = size;
	r->head = r->tail = 0;
	return 0;
}

void ring_deinit(struct ring *r)
{
	if (r->mem)
		munmap(r->mem, r->size);
	r->mem = NULL;
	r->size = 0;
}
