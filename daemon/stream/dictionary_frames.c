/*
 * The frames of a stream's nodes, each kept once: most frames, a line of a method, are in many
 * stacks. The index that finds a frame is hashed with a random seed, because the target chooses
 * what is in it.
 */
#include "daemon/stream/stream_priv.h"

#include <errno.h>

#define FRAMES_SLOTS 256 /* at first; a power of two */

static uint32_t frames_hash(const struct stream *s, const struct stream_frame_entry *f)
{
	uint64_t h = ((uint64_t)f->ref << 32 | (uint32_t)f->line) ^ s->dictionary.seed;

	h = (h ^ h >> 29) * 0x9e3779b97f4a7c15ull;
	h = (h ^ ((uint64_t)f->offset_high << 8 | f->kind)) * 0xff51afd7ed558ccdull;
	return (uint32_t)(h >> 32);
}

static bool frames_same(const struct stream_frame_entry *a, const struct stream_frame_entry *b)
{
	return a->ref == b->ref && a->line == b->line && a->kind == b->kind &&
	       a->offset_high == b->offset_high;
}

/* The slot of an equal frame, or the empty one for it. A slot holds a position + 1. */
static uint32_t *frames_slot(const struct stream *s, const struct stream_frame_entry *f)
{
	const struct stream_frames *x = &s->dictionary.frames;
	uint32_t at = frames_hash(s, f) & (x->n_slots - 1);

	while (x->slots[at] && !frames_same(&x->list[x->slots[at] - 1], f))
		at = (at + 1) & (x->n_slots - 1);
	return &x->slots[at];
}

/* Doubles the index before three quarters of it are in use. */
static int frames_grow_index(struct stream *s, struct fault *f)
{
	struct stream_frames *x = &s->dictionary.frames;
	uint32_t n = x->n_slots ? 2 * x->n_slots : FRAMES_SLOTS;
	uint32_t *slots;
	int r;

	if (4 * (x->n + 1) <= 3 * x->n_slots)
		return 0;
	r = dictionary_charge(s, (n - x->n_slots) * sizeof(*slots), f);
	if (r < 0)
		return r;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for the agent's names");
	free(x->slots);
	x->slots = slots;
	x->n_slots = n;
	for (uint32_t i = 0; i < x->n; i++)
		*frames_slot(s, &x->list[i]) = i + 1;
	return 0;
}

int frames_add(struct stream *s, const struct stream_frame_entry *frame, uint32_t *ret,
	       struct fault *f)
{
	struct stream_frames *x = &s->dictionary.frames;
	uint32_t *slot;
	int r = frames_grow_index(s, f);

	if (r < 0)
		return r;
	slot = frames_slot(s, frame);
	if (!*slot) {
		r = dictionary_grow(s, (void **)&x->list, &x->cap, x->n, sizeof(*x->list), f);
		if (r < 0)
			return r;
		x->list[x->n++] = *frame;
		*slot = x->n;
	}
	*ret = *slot - 1;
	return 0;
}

void frames_forget(struct stream *s)
{
	free(s->dictionary.frames.list);
	free(s->dictionary.frames.slots);
	s->dictionary.frames = (struct stream_frames){ 0 };
}
