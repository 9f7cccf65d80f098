/* Memory for thousands of small objects that are freed together, such as all messages of a file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks;
	bool failed; /* an allocation has failed: the objects may be incomplete, and must not be
			used */
};

/* Returns @len zeroed bytes, aligned for any type; NULL without memory. */
void *arena_take(struct arena *a, size_t len);
void *arena_copy(struct arena *a, const void *bytes, size_t len);
void arena_free(struct arena *a);
