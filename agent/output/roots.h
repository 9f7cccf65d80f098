/*
 * Stacks for CPU time of ended threads, which has none. For each thread name, without its digits,
 * this keeps the frames at the root that at least nine in ten of the deep enough samples have in
 * common: another thread with that name was most likely called from there, too. Only methods are
 * kept, and only within one epoch of the writer, so that no handle outlives its method. Only the
 * agent's thread.
 */
#pragma once

#include <stdint.h>
#include "agent/base/walk.h"

#define ROOTS_DEPTH 8

/* A thread called @name was sampled; @frames leaf first. */
void roots_seen(uint32_t epoch, const char *name, const struct walk_frame *frames, uint32_t n);
/* Writes the common frames of threads with a name like @name to ret[ROOTS_DEPTH], leaf first.
 * Returns their number. */
uint32_t roots_of(uint32_t epoch, const char *name, struct walk_frame *ret);
