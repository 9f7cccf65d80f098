/* The locks of an unmounted virtual thread: JDK 24 and later keep them in its frozen stack. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#define FROZEN_LOCKS_MAX 8

/* Agent's thread, after java.lang.VirtualThread was initialised. The first call reads megabytes of
 * libjvm's file. false = not possible with this JVM. */
bool frozen_locks_init(JNIEnv *env);
/* Writes the present addresses of the objects that it has locked and returns their number. 0 =
 * none, or not certain: the thread may be running, or the collector active. */
uint32_t frozen_locks(JNIEnv *env, jobject thread, uint64_t ret[FROZEN_LOCKS_MAX]);
/* The thread's number on the wire, 0 = unknown; also reports its name. */
uint32_t frozen_number(JNIEnv *env, jobject thread);

/* The same two for a thread given by the address of its Thread object (virtual_sets.h). */
uint32_t frozen_locks_at(uint64_t thread, uint64_t ret[FROZEN_LOCKS_MAX]);
uint32_t frozen_number_at(uint64_t thread);
