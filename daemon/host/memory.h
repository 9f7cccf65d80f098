/*
 * What targets take of the daemon's memory (limits.memory), and which of them gives up when it is
 * too much. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct memory_use {
	uint64_t tenant; /* tenant_number() */
	size_t bytes;
};

/*
 * One that must give up what it takes, or -1: one that takes more than a quarter of @limit; of
 * several tenants one that takes more than half of it, or when all together are over it the one
 * that takes most, with the largest of its own. @shared: bytes for all of them, which are counted
 * up to half of the limit.
 */
int memory_over(const struct memory_use *uses, unsigned n, size_t shared, size_t limit);
