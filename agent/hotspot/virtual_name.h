/* Who is the virtual thread that calls? In a signal handler the walker reads that past the JVM, and
 * a collector at work may hide it; here the JVM can be asked. */
#pragma once

#include <jni.h>
#include "agent/base/ring.h"

/* Agent's thread; may be called again. */
void virtual_name_init(JNIEnv *env);
/* The calling thread, in native state: virtual_id and name of @head, 0 and "" of a platform thread.
 */
void virtual_identity(struct ring_sample *head);
/* The same of any virtual thread; id 0 = not known. */
void virtual_identity_of(JNIEnv *env, jobject thread, struct ring_sample *head);
/* Before its stack is walked: with ZGC the way to its frozen frames leads through references that
 * only the JVM can follow until it has mended them. */
void virtual_mend(void);
/* Its number on the wire, as threads_virtual() gives it; 0 of a platform thread. */
uint32_t virtual_number(uint64_t java_thread);
