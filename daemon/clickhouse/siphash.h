/* SipHash-2-4 by Aumasson and Bernstein, with a key that is the same everywhere: numbers for stacks
 * on which all nodes agree. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const void *data, size_t len);
