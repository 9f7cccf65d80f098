/*
 * Full names of the threads that events tell of, read while they live: a waiter says its own, and
 * who is about to wait reads the lock's owner's. A look at all threads every now and then would
 * find few of those that live for milliseconds. A name goes through the ring, ahead of the event,
 * once for each thread: which are said is remembered by number and Thread.getId(), which no two
 * threads share.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#define THREAD_NAME_BYTES 768 /* longer ones are cut until the next look at all threads */

/* Agent's thread; may be called again. */
void thread_name_init(JNIEnv *env);

/* ---- application threads, in native state ---- */

/* The calling thread, whose number on the wire is @number. */
void thread_name_self(uint64_t java_thread, uint32_t number);
/* Another's by its Thread, which the JVM is asked. */
void thread_name_of(JNIEnv *env, jobject thread, uint32_t number);
/*
 * The thread @number that runs on @java_thread, read past the JVM: never by a reference of that
 * thread's, which ends with it. Guarded loads may be made. @object: its Thread if that is known
 * already, 0 = it is looked for.
 */
void thread_name_on(uint64_t java_thread, uint64_t object, uint32_t number);
/* Is that a JavaThread whose Thread has not ended? Memory of one that did says the same as before,
 * and its stack is another's soon. false also where that is not to be had now. */
bool thread_name_lives(uint64_t java_thread);
bool thread_name_is_sent(uint32_t number, uint64_t id);
/* A virtual thread that is on no carrier: the agent's thread looks for it, unless it is said. */
void thread_name_seek(uint64_t id, uint32_t number);

/* ---- the agent's thread ---- */

/* The reader was told, or has forgotten. */
void thread_name_mark_sent(uint32_t number, uint64_t id);
void thread_name_forget(uint32_t number);
void thread_name_forget_all(void);

/* Those of thread_name_seek(), by number modulo THREAD_NAME_SOUGHT; id 0 = none. */
#define THREAD_NAME_SOUGHT 32u /* power of two */
struct thread_name_sought {
	uint64_t ids[THREAD_NAME_SOUGHT];
};
bool thread_name_has_sought(void);
/* All that are sought now, which count as said; how many. */
uint32_t thread_name_take_sought(struct thread_name_sought *ret);
void thread_name_forget_sought(void);
/* Is the virtual thread @thread one of @left? Then it is taken out, and its name passed on. */
bool thread_name_found(JNIEnv *env, jobject thread, struct thread_name_sought *left,
		       void (*on_name)(uint32_t number, uint64_t id, const char *name));
/* thread_name_init() has found what names are read from. */
bool thread_name_is_usable(void);
