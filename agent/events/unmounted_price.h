/* What the waits of virtual threads may cost: chooses the threshold from which they are recorded,
 * or that they cannot be collected at all. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Totals. */
struct unmounted_use {
	uint64_t at_ns, process_ns; /* CLOCK_MONOTONIC; CPU time of the process */
	uint64_t waits; /* of any length */
	uint64_t recorded_ns; /* CPU time of the application's threads for those recorded */
};

#define UNMOUNTED_MIN_NS_MAX 10000000000ull

/*
 * @then, @now: about a second apart. @permille: the budget as a part of the process's CPU time.
 * @asked_ns: the threshold of START. Returns the threshold that @is_ns should become; 0 = hearing
 * of each wait already costs more than the budget.
 */
uint64_t unmounted_price_min_ns(const struct unmounted_use *then, const struct unmounted_use *now,
				uint64_t permille, uint64_t asked_ns, uint64_t is_ns);
