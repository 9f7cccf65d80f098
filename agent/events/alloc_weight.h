/* The weight of an allocation sample. Pure. */
#pragma once

#include <stdint.h>

/*
 * Returns the bytes that a sample of an object of @size bytes stands for. Sampling points are
 * @interval bytes apart on average, and the JVM samples an object if one of its bytes is such a
 * point: with probability 1 - exp(-size/interval). The weight is the size divided by that: about
 * the interval for small objects, the size itself for large ones. Computed without libm, with a
 * relative error below one millionth.
 */
uint64_t alloc_weight(uint64_t size, uint64_t interval);
