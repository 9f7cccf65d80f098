/* See hash.h. */
#include "daemon/ground/hash.h"

#include <stdlib.h>
#include <string.h>

bool hash_index_resize(struct hash_index *x, uint32_t size, uint32_t n, hash_index_hash_fn *hash_of,
		       const void *owner)
{
	uint32_t *slots = size == x->size ? x->slots : calloc(size, sizeof(*slots));

	if (!slots)
		return false;
	if (slots == x->slots)
		hash_index_clear(x);
	else
		free(x->slots);
	x->slots = slots;
	x->size = size;
	for (uint32_t number = 1; number <= n; number++) {
		uint32_t at = (uint32_t)hash_of(owner, number) & (size - 1);

		while (slots[at])
			at = (at + 1) & (size - 1);
		slots[at] = number;
	}
	return true;
}

void hash_index_clear(struct hash_index *x)
{
	if (x->size)
		memset(x->slots, 0, hash_index_bytes(x));
}

void hash_index_deinit(struct hash_index *x)
{
	free(x->slots);
	*x = (struct hash_index){ 0 };
}
