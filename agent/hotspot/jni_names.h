/* Java threads through plain JNI: no JVMTI, no safepoint. Agent's thread only. */
#pragma once

#include "agent/base/agent.h"

/* Each live platform thread. @java_thread: the JavaThread's address; 0 = not begun, or ended.
 * @thread is a reference for the call alone. */
typedef void jni_thread_fn(JNIEnv *env, jobject thread, uint64_t java_thread, void *context);
void jni_threads_each(jni_thread_fn *on, void *context);
/* Does it wait with a time limit? false also where that is not known. In jni_threads_each() alone.
 */
bool jni_thread_is_timed(JNIEnv *env, jobject thread);
/* Is it parked? true also where that is not known. */
bool jni_thread_is_parked(JNIEnv *env, jobject thread);
/*
 * Each live platform thread by the kernel's number: its Thread.getId() and its name, as JNI gives
 * it (modified UTF-8, valid for the call alone); and, unless @on_state is NULL, Thread's own status
 * in the words of JVMTI, where it is known.
 */
typedef void jni_name_fn(uint32_t tid, uint64_t id, const char *name);
typedef void jni_state_fn(uint32_t tid, int32_t status);
void jni_names_pass(jni_name_fn *on_name, jni_state_fn *on_state);
/* A system property into @buf, "" if there is none. */
void jni_property(JNIEnv *env, const char *key, char *buf, size_t size);
void jni_names_free(void);
