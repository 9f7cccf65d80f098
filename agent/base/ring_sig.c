/* The handlers' side of ring.h. */
#include "agent/base/ring.h"

#include <string.h>

uint64_t ring_head_sig(const struct ring *r)
{
	return __atomic_load_n(&r->head, __ATOMIC_SEQ_CST);
}

/* Claims @len contiguous bytes. *ret_pad: bytes of padding before them. */
static bool claim_sig(struct ring *r, uint32_t len, uint64_t *ret_pos, uint32_t *ret_pad)
{
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);

	for (;;) {
		uint64_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);
		uint32_t room_at_end = r->size - (uint32_t)(head & (r->size - 1));
		uint32_t pad = room_at_end < len ? room_at_end : 0;

		if (head < tail) { /* other records were claimed and read since head was loaded */
			head = __atomic_load_n(&r->head, __ATOMIC_RELAXED);
			continue;
		}
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
	uint32_t frame_bytes = (head->n_frames + head->n_owner_frames) * (uint32_t)sizeof(*frames);
	uint32_t context_bytes = (head->context_bytes + 7u) & ~7u; /* headers are aligned */
	uint32_t len = RING_HDR_BYTES + (uint32_t)sizeof(*head) + frame_bytes + context_bytes;
	struct ring_sample *sample;
	uint64_t pos;
	uint32_t pad;

	if (!claim_sig(r, len, &pos, &pad))
		return false;
	if (pad) {
		__atomic_store_n(ring_header(r, pos), (uint64_t)pad << 8 | RING_HDR_PAD,
				 __ATOMIC_RELEASE);
		pos += pad;
	}
	sample = (struct ring_sample *)(ring_header(r, pos) + 1);
	memcpy(sample, head, sizeof(*head));
	memcpy(sample->frames, frames, frame_bytes);
	if (context_bytes) {
		sample->context = (const char *)sample->frames + frame_bytes;
		memcpy((char *)sample->frames + frame_bytes, head->context, head->context_bytes);
	}
	__atomic_store_n(ring_header(r, pos), (uint64_t)len << 8 | RING_HDR_SAMPLE,
			 __ATOMIC_RELEASE);
	return true;
}
