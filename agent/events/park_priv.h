/*
 * Shared by park.c (the native method itself), park_native.c (which registers it), park_permit.c
 * (will the park wait at all?), park_blocker.c and park_peek.c (the object that the thread parks
 * for).
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/events/waits.h"

typedef void JNICALL park_fn(JNIEnv *env, jobject unsafe, jboolean absolute, jlong time);

/* ---- park.c ---- */

/* Our native method: never unmapped, and only passes on while park.c is off. */
void JNICALL park_ours(JNIEnv *env, jobject unsafe, jboolean absolute, jlong time);
/* The native method that ours calls; set before the first call can come. */
extern park_fn *park_before;
/* The time of a park by which the agent's thread checks that our native method is called; being
 * negative, it returns at once. */
#define PARK_PROBE_TIME (-1)
extern JNIEnv *park_prober;
extern uint32_t park_probed;

/* ---- park_native.c, agent's thread ---- */

int park_native_put(JNIEnv *env, const char **why);
void park_native_take_back(JNIEnv *env);

/* ---- park_permit.c ---- */

/* The thread itself: will its next park return at once? false also where that is not known. */
bool park_has_permit(uint64_t java_thread);
/* Agent's thread, which parks and unparks itself to find where the permit is kept. */
void park_permit_learn(JNIEnv *env, void (*unpark)(JNIEnv *env), void (*park)(JNIEnv *env));

/* ---- park_blocker.c ---- */

/* Agent's thread. 0, or -errno with a sentence. */
int park_blocker_init(JNIEnv *env, const char **why);
/* No thread may be in one of the functions below. */
void park_blocker_deinit(JNIEnv *env);

/* The thread that parks. */
struct park_self {
	JNIEnv *env;
	uint64_t java_thread;
	jobject thread; /* its Thread; the virtual thread if one is mounted */
	bool is_local; /* @thread is a local reference */
	bool is_virtual;
};

/* Called in the thread that parks. Calls no Java code; leaves no exception pending. */
void park_self_get(JNIEnv *env, struct park_self *ret);
void park_self_put(struct park_self *self);
/* Before parking: the tid of the thread that owns what it parks for; 0 = none or unknown. */
uint32_t park_owner(const struct park_self *self);
/* ---- park_peek.c ---- */

struct park_fields {
	int32_t blocker, eetop; /* offsets in a Thread */
	int32_t owner; /* offset in an AbstractOwnableSynchronizer */
};

/* Agent's thread: tries the reads on its own Thread, to which the slot @thread refers. If they
 * fail, park_peek_owner() always returns false. */
void park_peek_init(JNIEnv *env, jobject thread, jclass synchronizer, jfieldID blocker,
		    const struct park_fields *fields);
/* As park_owner(), for a thread given by the slot of its Thread. false = the JVM must be asked. */
bool park_peek_owner(jobject thread, uint32_t *ret_tid);

/* ---- park_blocker.c ---- */

/* After parking: class and identity of what it parked for. */
void park_read_blocker(const struct park_self *self, struct wait_lock *lock);
/* Agent's thread: calls @on for each platform thread that is parked for an object, with that
 * object's owner if another thread owns it. */
void park_blocked_each(void (*on)(uint64_t java_thread, const struct wait_lock *lock,
				  uint8_t flags));
