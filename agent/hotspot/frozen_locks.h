/* The locks of a virtual thread that has no carrier: 24 and later keep them in its frozen stack. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

#define FROZEN_LOCKS_MAX 8

/* Agent's thread, once java.lang.VirtualThread is initialised. Reads megabytes of libjvm's file the
 * first time. false = this JVM does not tell. */
bool frozen_locks_init(JNIEnv *env);
/* Addresses of the objects it has locked, as they are right now; returns how many, 0 = none or not
 * sure: it may be running, or the collector be at it. */
uint32_t frozen_locks(JNIEnv *env, jobject thread, uint64_t ret[FROZEN_LOCKS_MAX]);
/* Its number on the wire, 0 = not to be had; its name is said. */
uint32_t frozen_number(JNIEnv *env, jobject thread);

/* The same of a Thread by its address (virtual_sets.h). */
uint32_t frozen_locks_at(uint64_t thread, uint64_t ret[FROZEN_LOCKS_MAX]);
uint32_t frozen_number_at(uint64_t thread);
