/* What an allocation sample stands for. Pure. */
#pragma once

#include <stdint.h>

/*
 * The JVM takes an object with the probability that one of its bytes is a sampling point, and those
 * come @interval bytes apart on average: 1 - exp(-size/interval). One that was taken stands for its
 * size divided by that, for about the interval if it is small and for itself if it is large.
 * Without libm, within a millionth.
 */
uint64_t alloc_weight(uint64_t size, uint64_t interval);
