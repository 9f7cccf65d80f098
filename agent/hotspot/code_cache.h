/* Where the JVM keeps generated code. Set once, before the first signal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct code_cache {
	uint64_t low, high;
};
extern struct code_cache code_cache_sig;

static inline bool code_cache_has(uint64_t pc)
{
	return pc >= code_cache_sig.low && pc < code_cache_sig.high;
}
