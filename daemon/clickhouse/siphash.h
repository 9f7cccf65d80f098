/* SipHash-2-4 by Aumasson and Bernstein, always with the same key, so that equal stacks have the
 * same number on all nodes. Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const void *data, size_t len);
