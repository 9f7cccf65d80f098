/* SipHash-2-4 by Aumasson and Bernstein, with the same key everywhere: numbers for stacks that are
 * equal on all nodes. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const void *data, size_t len);
