/*
 * Parks of LockSupport (Lock, Condition, Semaphore, queues, pools) without JVMTI: the native of
 * Unsafe.park is ours while it is on, and calls the one before it. Waits go to waits.h.
 */
#pragma once

/* Agent's thread, attached, after walker_init(). 0, or -errno with a static sentence in *why. */
int park_start(const char **why);
/* Agent's thread: from now on a pass-through, and out of the way where ours is still the last one
 * put there. Threads may be parked inside for hours: their way back touches nothing but mapped
 * code. */
void park_stop(void);
