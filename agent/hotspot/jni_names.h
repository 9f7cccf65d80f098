/* Java threads through plain JNI: no JVMTI, no safepoint. Agent's thread only. */
#pragma once

#include "agent/base/agent.h"

/* Calls @on for each live platform thread. @java_thread: the address of its JavaThread; 0 = not
 * started or ended. @thread is a local reference, valid during the call. */
typedef void jni_thread_fn(JNIEnv *env, jobject thread, uint64_t java_thread, void *context);
void jni_threads_each(jni_thread_fn *on, void *context);
/* Does it wait with a time limit? false also if unknown. Only inside jni_threads_each(). */
bool jni_thread_is_timed(JNIEnv *env, jobject thread);
/* Is it parked? true also if unknown. Only inside jni_threads_each(). */
bool jni_thread_is_parked(JNIEnv *env, jobject thread);
/*
 * Calls @on_name for each live platform thread, with its tid, its Thread.getId() and its name as
 * JNI returns it (modified UTF-8, valid during the call); and @on_state, unless NULL, with the
 * address of its JavaThread and the status field of Thread in JVMTI's bits, where it is known.
 */
typedef void jni_name_fn(uint32_t tid, uint64_t id, const char *name);
typedef void jni_state_fn(uint32_t tid, uint64_t java_thread, int32_t status);
void jni_names_pass(jni_name_fn *on_name, jni_state_fn *on_state);
/* Copies a system property to @buf, "" if there is none. */
void jni_property(JNIEnv *env, const char *key, char *buf, size_t size);
void jni_names_free(void);
