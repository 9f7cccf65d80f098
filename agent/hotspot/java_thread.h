/*
 * Finds the Java thread that a signal has interrupted. GetEnv is the documented way, but it reads a
 * thread-local variable of libjvm, and a thread's first access to such a variable may allocate
 * memory. All versions of HotSpot also store the address of the JavaThread under a pthread key, and
 * the JNIEnv is a part of the JavaThread; the key and the offset are learnt once, from the agent's
 * own thread.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, attached to the JVM. 0, or -ENOTSUP if this JVM stores them differently. */
int java_thread_init(JNIEnv *env);
/* The JavaThread of the calling thread; 0 when it is not a Java thread. */
uint64_t java_thread_address_sig(void);
/* Is there a JavaThread at @address? Not certain if the thread has just ended. */
bool java_thread_is_sig(uint64_t address);
/* The JavaThread whose JNIEnv @env is. */
uint64_t java_thread_of_sig(const JNIEnv *env);
/* The kernel's tid of a JavaThread; 0 = unknown. */
uint32_t java_thread_tid_sig(uint64_t java_thread);
/* The calling thread's JNIEnv, or NULL. */
JNIEnv *java_thread_env_sig(void);
