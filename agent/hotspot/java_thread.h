/*
 * Which Java thread was interrupted? GetEnv would be the polite way, but it reads a thread-local
 * variable of libjvm, and the first touch of one in a thread that the JVM has never seen may
 * allocate. HotSpot also keeps its Thread pointer under a pthread key, in every version, and the
 * JNIEnv lies inside that thread: both places are learnt once from the agent's own thread.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, attached. 0, or -ENOTSUP when this JVM keeps them elsewhere. */
int java_thread_init(JNIEnv *env);
/* The JavaThread of the calling thread; 0 when it is not a Java thread. */
uint64_t java_thread_address_sig(void);
/* Does a JavaThread lie there? Of one that has just ended: perhaps. */
bool java_thread_is_sig(uint64_t address);
/* The JavaThread whose JNIEnv @env is. */
uint64_t java_thread_of_sig(const JNIEnv *env);
/* The kernel's number of a thread; 0 = not to be had. */
uint32_t java_thread_tid_sig(uint64_t java_thread);
/* The calling thread's JNIEnv, or NULL. */
JNIEnv *java_thread_env_sig(void);
