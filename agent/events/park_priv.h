/*
 * Between park.c (what every park runs through), park_native.c (which puts it there), park_permit.c
 * (does it wait at all?), park_blocker.c and park_peek.c (what the thread parks for).
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/events/waits.h"

typedef void JNICALL park_fn(JNIEnv *env, jobject unsafe, jboolean absolute, jlong time);

/* ---- park.c ---- */

/* Ours: never unmapped, and a pass-through while park.c is off. */
void JNICALL park_ours(JNIEnv *env, jobject unsafe, jboolean absolute, jlong time);
/* What ours calls; set before the first call can come. */
extern park_fn *park_before;
/* A park with a time below zero returns at once: how the agent's thread sees that ours is called.
 */
#define PARK_PROBE_TIME (-1)
extern JNIEnv *park_prober;
extern uint32_t park_probed;

/* ---- park_native.c, agent's thread ---- */

int park_native_put(JNIEnv *env, const char **why);
void park_native_take_back(JNIEnv *env);

/* ---- park_permit.c ---- */

/* The thread itself: its next park returns at once. false also where that is not known. */
bool park_has_permit(uint64_t java_thread);
/* Agent's thread, which parks and unparks itself. */
void park_permit_learn(JNIEnv *env, void (*unpark)(JNIEnv *env), void (*park)(JNIEnv *env));

/* ---- park_blocker.c ---- */

/* Agent's thread. 0, or -errno with a sentence. */
int park_blocker_init(JNIEnv *env, const char **why);
/* No thread may be in one of the functions below. */
void park_blocker_deinit(JNIEnv *env);

/* Who parks. */
struct park_self {
	JNIEnv *env;
	uint64_t java_thread;
	jobject thread; /* its Thread, the virtual one where one is mounted */
	bool is_local; /* @thread is a local reference */
	bool is_virtual;
};

/* The thread that parks. No call of Java; errors leave no exception. */
void park_self_get(JNIEnv *env, struct park_self *ret);
void park_self_put(struct park_self *self);
/* Before: the tid of the thread that holds what it parks for; 0 = nobody or unknown. */
uint32_t park_owner(const struct park_self *self);
/* ---- park_peek.c ---- */

struct park_fields {
	int32_t blocker, eetop; /* of a Thread */
	int32_t owner; /* of an AbstractOwnableSynchronizer */
};

/* Agent's thread: @thread is the slot of its own Thread. Where it does not work, nothing is read.
 */
void park_peek_init(JNIEnv *env, jobject thread, jclass synchronizer, jfieldID blocker,
		    const struct park_fields *fields);
/* The same as park_owner(), of a thread by its slot. false = the JVM must be asked. */
bool park_peek_owner(jobject thread, uint32_t *ret_tid);

/* ---- park_blocker.c ---- */

/* After: class and identity. */
void park_look(const struct park_self *self, struct wait_lock *lock);
/* Agent's thread: each platform thread that is parked for something; its owner where another thread
 * holds it. */
void park_blocked_each(void (*on)(uint64_t java_thread, const struct wait_lock *lock,
				  uint8_t flags));
