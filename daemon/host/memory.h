/*
 * The memory that targets take in the daemon (limits.memory), and which of them has to give up its
 * memory when it is too much. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct memory_use {
	uint64_t tenant; /* tenant_number() */
	size_t bytes;
};

/*
 * The index of a target that must give up its memory, or -1: one that takes more than a quarter of
 * @limit; if there are several tenants, the largest target of one that takes more than half of it;
 * and if all together exceed it, the largest target of the largest tenant. @shared: bytes used for
 * all of them, which count up to half of the limit.
 */
int memory_over(const struct memory_use *uses, unsigned n, size_t shared, size_t limit);
