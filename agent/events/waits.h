/*
 * Waits of application threads for locks, from their begin to their end, whatever tells of them
 * (monitors.c: JVMTI events, park.c: the native of Unsafe.park). Both calls come in the waiting
 * thread, in native state with the last Java frame's anchor set. Nothing here waits, allocates or
 * writes to the pipe: an ended wait above the threshold goes into the ring with its stack, one below
 * it is counted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "proto/wire.h"

/* What is known of a lock; 0 = unknown. */
struct wait_lock {
	uint64_t class_handle; /* walker_class_of_sig() */
	uint32_t identity;
	uint32_t owner_tid; /* when the wait began */
};

/*
 * Before blocking. @java_thread: the JavaThread's address; @key names the waiter until the end: the
 * virtual thread's id where one is mounted, as its end may come on another carrier.
 */
void wait_begin(uint64_t java_thread, uint64_t key, enum wire_wait how, uint8_t flags,
		const struct wait_lock *lock);
/* After. @look (NULL = never) is asked for what the begin left out, only above the threshold. */
void wait_end(uint64_t java_thread, uint64_t key, enum wire_wait how,
	      void (*look)(void *context, struct wait_lock *lock), void *context);
