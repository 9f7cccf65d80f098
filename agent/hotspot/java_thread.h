/*
 * Which Java thread was interrupted? GetEnv is the documented way, but it reads a thread-local
 * variable of libjvm, and the first access to one in a thread unknown to the JVM may allocate. All
 * versions of HotSpot also keep the Thread pointer under a pthread key, and the JNIEnv lies inside
 * that object; both places are learnt once, from the agent's own thread.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, attached. 0, or -ENOTSUP if this JVM keeps them elsewhere. */
int java_thread_init(JNIEnv *env);
/* The JavaThread of the calling thread; 0 when it is not a Java thread. */
uint64_t java_thread_address_sig(void);
/* Is there a JavaThread? Uncertain for a thread that has just ended. */
bool java_thread_is_sig(uint64_t address);
/* The JavaThread whose JNIEnv @env is. */
uint64_t java_thread_of_sig(const JNIEnv *env);
/* The tid of a thread; 0 = unknown. */
uint32_t java_thread_tid_sig(uint64_t java_thread);
/* The calling thread's JNIEnv, or NULL. */
JNIEnv *java_thread_env_sig(void);
