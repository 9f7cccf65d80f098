/*
 * Parks of LockSupport (Lock, Condition, Semaphore, queues, pools) without JVMTI: the native of
 * Unsafe.park is ours while it is on, and calls the one before it. Waits go to waits.h.
 */
#pragma once

#include <stdint.h>
#include "agent/events/waits.h"

/* Agent's thread, attached, after walker_init(). 0, or -errno with a static sentence in *why. */
int park_start(const char **why);
/* Agent's thread, from time to time: another profiler that ends may have put back what was there
 * before us. Returns when to look again. */
uint64_t park_tick(uint64_t now_ns);
/* Agent's thread: from now on a pass-through, and out of the way where ours is still the last one
 * put there. Threads may be parked inside for hours: their way back touches nothing but mapped
 * code. */
void park_stop(void);

/* park_in_progress.c: parks that began before ours was called. */
extern const struct events_source park_in_progress_source;

/* What a thread that parks now parks for: the agent's thread asks, for waits that go on. */
struct park_ask {
	uint64_t java_thread; /* not 0 */
	struct wait_lock lock; /* filled in where the thread parks for something; the owner is who
				  has it now */
};
/* One pass over all threads for all of @asks: some 30 at once, not one by one. The thread may have
 * gone on to wait for something else: whether it has not is to be looked at after. Nothing is known
 * of a virtual thread. */
void park_look_now(struct park_ask *asks, uint32_t n);
