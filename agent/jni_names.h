/* Java threads through plain JNI: no JVMTI, no safepoint. Agent's thread only. */
#pragma once

#include "agent/agent.h"

/* Each live platform thread. @java_thread: the JavaThread's address; 0 = not begun, or ended.
 * @thread is a reference for the call alone. */
typedef void jni_thread_fn(JNIEnv *env, jobject thread, uint64_t java_thread, void *context);
void jni_threads_each(jni_thread_fn *on, void *context);
/* Does it wait with a time limit? false also where that is not known. In jni_threads_each() alone.
 */
bool jni_thread_is_timed(JNIEnv *env, jobject thread);
/* Is it parked? true also where that is not known. */
bool jni_thread_is_parked(JNIEnv *env, jobject thread);
/* Calls threads_java_name() for each live platform thread; @states: and thread_states_java(). */
void jni_names_pass(bool states);
/* A system property into @buf, "" if there is none. */
void jni_property(JNIEnv *env, const char *key, char *buf, size_t size);
void jni_names_free(void);
