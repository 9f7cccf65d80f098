/*
 * How long a target's times off the CPU must be for a signal: as long as it was asked for, and
 * longer while there are more of them than signals. Pure.
 */
#pragma once

#include <stdint.h>

#define OFFCPU_MIN_NS_MAX 1000000000ull /* a minimum is not doubled beyond this */

struct offcpu_minimum {
	uint64_t asked_ns;
	uint64_t signalled, over_budget; /* the target's counts at the last tick */
	unsigned quiet; /* ticks with few signals */
};

/* Call once a second: returns the minimum for the next one, after @min_ns. @signalled and
 * @over_budget: counts since the target's begin; @signals_per_s: the target's budget; @own_per_s:
 * the part of it that others cannot use up. */
uint64_t offcpu_minimum_tick(struct offcpu_minimum *m, uint64_t min_ns, uint64_t signalled,
			     uint64_t over_budget, uint64_t own_per_s, uint64_t signals_per_s);
