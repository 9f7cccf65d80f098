/*
 * CPU time for decoding: what one has earned and not spent, and how much of a bound each of many
 * gets. Pure.
 */
#pragma once

#include <stdint.h>

/* Of what is earned no more than @most_ns is kept. */
void decode_earn(int64_t *left_ns, uint64_t earned_ns, uint64_t most_ns);
/* What @own cannot pay comes from @shared, as far as there is any; @own may fall below zero then.
 */
void decode_spend(int64_t *own_ns, int64_t *shared_ns, uint64_t spent_ns);
/*
 * The highest level at which the sum of all min(asked, level) is not above @bound: small demands
 * are met in full, the others get the level. UINT64_MAX: all get what they ask for.
 */
uint64_t decode_level(const uint64_t *asked, unsigned n, uint64_t bound);
