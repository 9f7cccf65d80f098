/* Memory for thousands of small objects that are freed together: all messages of one file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks;
	bool failed; /* an allocation has failed: nothing of it may be used */
};

/* @len zeroed bytes, for any type; NULL without memory. */
void *arena_take(struct arena *a, size_t len);
void *arena_copy(struct arena *a, const void *bytes, size_t len);
void arena_free(struct arena *a);
