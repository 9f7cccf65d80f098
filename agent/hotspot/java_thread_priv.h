/* Shared by java_thread.c, which learns the offsets, and java_thread_sig.c, which uses them. */
#pragma once

#include <jni.h>
#include <pthread.h>
#include <stdint.h>

typedef void *getspecific_fn(pthread_key_t key);

struct java_thread_offsets {
	getspecific_fn *getspecific;
	pthread_key_t key;
	uint64_t env_offset; /* of the JNIEnv in a JavaThread */
	int32_t osthread, number; /* offsets in a JavaThread and in an OSThread; -1 = not
				   * exported */
	const struct JNINativeInterface_ *functions; /* JNI's function table: the first word of
						      * every JNIEnv points to it */
};

extern struct java_thread_offsets java_thread_offsets;
