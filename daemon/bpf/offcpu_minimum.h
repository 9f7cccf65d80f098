/*
 * How long a target's times off the CPU must be for a signal: as long as it was asked for, and
 * longer while there are more of them than signals. Before that, threads that wait for work again
 * and again are spared signals. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OFFCPU_MIN_NS_MAX 1000000000ull /* a minimum is not doubled beyond this */

/* Counts since the target's begin. */
struct offcpu_signal_counts {
	uint64_t signalled, over_budget, spared;
};

struct offcpu_minimum {
	uint64_t asked_ns;
	struct offcpu_signal_counts last; /* at the last tick */
	bool spares;
	unsigned quiet; /* ticks with few signals */
};

/* Call once a second: returns the minimum for the next one, after @min_ns, and sets m->spares.
 * @signals_per_s: the target's budget; @own_per_s: the part of it that others cannot use up. */
uint64_t offcpu_minimum_tick(struct offcpu_minimum *m, uint64_t min_ns,
			     const struct offcpu_signal_counts *now, uint64_t own_per_s,
			     uint64_t signals_per_s);
