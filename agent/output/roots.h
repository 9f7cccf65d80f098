/*
 * Stacks for CPU time that comes without one because its thread has ended. For each thread name,
 * its digits left out, the frames at the root that nine in ten of its deep enough samples had in
 * common: a thread of the same name was most likely called from there, too. Only methods, and only
 * as long as the writer's ids hold, so that no handle outlives its method. Only the agent's thread.
 */
#pragma once

#include <stdint.h>
#include "agent/base/walk.h"

#define ROOTS_DEPTH 8

/* A thread called @name was sampled; @frames leaf first. */
void roots_seen(uint32_t epoch, const char *name, const struct walk_frame *frames, uint32_t n);
/* The common frames of threads with a name like @name, leaf first; how many. ret[ROOTS_DEPTH] */
uint32_t roots_of(uint32_t epoch, const char *name, struct walk_frame *ret);
