/*
 * A budget of CPU time: what is earned and spent, and how a limit is divided among many. Pure.
 */
#pragma once

#include <stdint.h>

/* Adds @earned_ns to *left_ns, of which at most @most_ns is kept. */
void decode_earn(int64_t *left_ns, uint64_t earned_ns, uint64_t most_ns);
/* Spends from *own_ns; what that does not cover comes from *shared_ns, as far as there is any,
 * and the rest makes *own_ns negative. */
void decode_spend(int64_t *own_ns, int64_t *shared_ns, uint64_t spent_ns);
/*
 * The highest level at which the sum of all min(asked, level) does not exceed @bound: small demands
 * are met, larger ones get the level. UINT64_MAX: all demands are met.
 */
uint64_t decode_level(const uint64_t *asked, unsigned n, uint64_t bound);
