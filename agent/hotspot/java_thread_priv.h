/* Between java_thread.c, which learns the places, and java_thread_sig.c, which reads them. */
#pragma once

#include <jni.h>
#include <pthread.h>
#include <stdint.h>

typedef void *getspecific_fn(pthread_key_t key);

struct java_thread_offsets {
	getspecific_fn *getspecific;
	pthread_key_t key;
	uint64_t env_offset; /* of the JNIEnv in a JavaThread */
	int32_t osthread, number; /* in a JavaThread, in an OSThread; -1 = not exported */
	const struct JNINativeInterface_ *functions; /* what every JNIEnv begins with */
};

extern struct java_thread_offsets java_thread_offsets;
