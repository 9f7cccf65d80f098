/* Identifies the calling virtual thread by calling the JVM. In a signal handler that is impossible;
 * there the walker reads the identity from memory, which an active collector may prevent. */
#pragma once

#include <jni.h>
#include "agent/base/ring.h"

/* Agent's thread; may be called again. */
void virtual_name_init(JNIEnv *env);
/* The calling thread, in native state: sets virtual_id and name of @head, 0 and "" for a platform
 * thread. */
void virtual_identity(struct ring_sample *head);
/* The same for any virtual thread; id 0 = unknown. */
void virtual_identity_of(JNIEnv *env, jobject thread, struct ring_sample *head);
/* Thread.threadId() of any thread, by JNI; 0 = unknown. */
uint64_t virtual_id_of(JNIEnv *env, jobject thread);
/* Call it before the calling thread's stack is walked. With ZGC the path to its frozen frames leads
 * through references that only the JVM can follow until it has healed (updated) them; this call
 * makes it do so. */
void virtual_heal(void);
/* The calling thread's number on the wire, derived from its id; 0 for a platform thread. */
uint32_t virtual_number(uint64_t java_thread);
