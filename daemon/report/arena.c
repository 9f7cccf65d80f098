/* See arena.h. */
#include "daemon/report/arena.h"

#include <stdlib.h>
#include <string.h>

struct arena_block {
	struct arena_block *next;
	size_t used;
	_Alignas(16) char bytes[64 * 1024];
};

void *arena_take(struct arena *a, size_t len)
{
	struct arena_block *b = a->blocks;
	void *p;

	len = (len + 15) & ~(size_t)15;
	if (len > sizeof(b->bytes) || !b || b->used + len > sizeof(b->bytes)) {
		size_t extra = len > sizeof(b->bytes) ? len - sizeof(b->bytes) : 0;

		b = calloc(1, sizeof(*b) + extra);
		if (!b) {
			a->failed = true;
			return NULL;
		}
		b->next = a->blocks;
		a->blocks = b;
	}
	p = b->bytes + b->used;
	b->used += len;
	return p;
}

void *arena_copy(struct arena *a, const void *bytes, size_t len)
{
	void *p = arena_take(a, len);

	return p ? memcpy(p, bytes, len) : NULL;
}

void arena_free(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
}
