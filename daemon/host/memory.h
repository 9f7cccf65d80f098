/*
 * How much of the daemon's memory each target takes, and whose session ends when that is more than
 * limits.memory. Pure.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct memory_use {
	uint64_t tenant; /* tenant_number() */
	size_t bytes;
};

/*
 * Finds the target whose session has to end; returns its index, or -1. It is one that takes more
 * than a quarter of @limit; else, if there are several tenants, the largest target of a tenant that
 * takes more than half of it; else, if all together exceed it, the largest target of the largest
 * tenant. @shared: bytes that all targets share, which count up to half of the limit.
 */
int memory_over(const struct memory_use *uses, unsigned n, size_t shared, size_t limit);
