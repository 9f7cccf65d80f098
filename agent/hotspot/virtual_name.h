/* Identifies the calling virtual thread. In a signal handler the walker reads its identity without
 * the JVM, and an active collector may hide it; here the JVM can be called. */
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
/* Call it before its stack is walked: with ZGC the path to its frozen frames leads through
 * references that nobody but the JVM can follow until it has healed them. */
void virtual_mend(void);
/* Its number on the wire, as threads_virtual() assigns it; 0 for a platform thread. */
uint32_t virtual_number(uint64_t java_thread);
