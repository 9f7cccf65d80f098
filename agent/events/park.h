/*
 * Observes the parks of LockSupport (Lock, Condition, Semaphore, queues, pools) without JVMTI:
 * while it is on, the native method of Unsafe.park is ours and calls the one that was there before.
 * The waits go to waits.h.
 */
#pragma once

#include <jni.h>
#include <stdint.h>
#include "agent/events/waits.h"

/* Agent's thread, attached, after walker_init(). 0, or -errno with a static sentence in *why. */
int park_start(const char **why);
/* Agent's thread, every few seconds: puts our native method in again if another profiler that ended
 * has put back the one before it. Returns when to call it again. */
uint64_t park_tick(uint64_t now_ns);
/* Agent's thread: from now on our native method only passes on, and it is taken out if no other
 * agent has put its own in front. Threads may stay parked inside for hours; when they return they
 * touch nothing but mapped code. */
void park_stop(void);

/* The calling thread, in native state: class and identity of what @thread is parked for, if it is
 * parked for an object, and parks are or were collected. */
void park_read_blocker_of(JNIEnv *env, jobject thread, struct wait_lock *lock);

/* park_in_progress.c: parks that had begun before park_start(). */
extern const struct events_source park_in_progress_source;

/* The agent's thread asks what a parked thread waits for. */
struct park_query {
	uint64_t java_thread; /* not 0 */
	struct wait_lock lock; /* the answer, if there is one; the owner is the present one */
};
/* Answers all @queries by one pass over all threads. A thread may have gone on to another wait
 * meanwhile: the caller checks that afterwards. Queries for virtual threads get no answer. */
void park_read_blockers(struct park_query *queries, uint32_t n);
