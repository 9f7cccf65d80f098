/*
 * Full names of the threads in events, read while the threads live: a waiting thread reports its
 * own name, a thread that is about to wait that of the lock's owner, and the signal handler that of
 * the thread it samples. The periodic pass over all threads would miss most threads that live for
 * milliseconds only. A name enters the ring before its event, once for each thread; reported
 * threads are remembered by number and Thread.getId(), a pair that no two threads share.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#define THREAD_NAME_BYTES 768 /* longer names are cut until the next pass over all threads */

/* Agent's thread; may be called again. */
void thread_name_init(JNIEnv *env);

/* ---- application threads, in native state ---- */

/* Reports the calling thread, whose number on the wire is @number. */
void thread_name_self(uint64_t java_thread, uint32_t number);
/* Reports the thread @number, whose Thread is @thread; calls the JVM. */
void thread_name_of(JNIEnv *env, jobject thread, uint32_t number);
/*
 * Reports the thread @number that runs on @java_thread without calling the JVM, because a JNI
 * reference could not be taken safely while that thread may end. Call guard_begin_sig() first.
 * @object: the address of its Thread if known; 0 = it is looked up.
 */
void thread_name_on(uint64_t java_thread, uint64_t object, uint32_t number);
/* Is that the JavaThread of a thread that has not ended? The memory of an ended JavaThread still
 * looks the same, and its stack soon belongs to another thread. false also if it cannot be read
 * now. */
bool thread_name_lives(uint64_t java_thread);
bool thread_name_is_sent(uint32_t number, uint64_t id);
/* Has the agent's thread look for an unmounted virtual thread, to report its name, unless that was
 * reported. */
void thread_name_seek(uint64_t id, uint32_t number);

/* ---- the signal handler ---- */

/*
 * Reports the interrupted thread, which no virtual thread runs on, before its event. Call
 * guard_begin_sig() first. Returns whether there is nothing left to do; false = it is no Java
 * thread, or its name cannot be read now.
 */
bool thread_name_here_sig(uint32_t tid);
/* Changes when all names must be reported again; never 0. */
extern uint32_t thread_name_generation_sig;

/* ---- the agent's thread ---- */

/* Record that a thread's name was sent (mark), or that it was lost and must be sent again
 * (forget). */
void thread_name_mark_sent(uint32_t number, uint64_t id);
void thread_name_forget(uint32_t number);
void thread_name_forget_all(void);

/* The threads given to thread_name_seek(), in slots by number modulo THREAD_NAME_SOUGHT; id 0 = an
 * empty slot. */
#define THREAD_NAME_SOUGHT 32u /* power of two */
struct thread_name_sought {
	uint64_t ids[THREAD_NAME_SOUGHT];
};
bool thread_name_has_sought(void);
/* Moves all threads that are sought to @ret and marks their names as sent; returns how many there
 * are. */
uint32_t thread_name_take_sought(struct thread_name_sought *ret);
void thread_name_forget_sought(void);
/* Is the virtual thread @thread one of @left? If so, removes it there and reports its name. */
bool thread_name_found(JNIEnv *env, jobject thread, struct thread_name_sought *left,
		       void (*on_name)(uint32_t number, uint64_t id, const char *name));
/* Has thread_name_init() found the fields from which names are read? */
bool thread_name_is_usable(void);
