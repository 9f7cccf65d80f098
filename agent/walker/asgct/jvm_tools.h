/*
 * The JVMTI environment of the fallback walker: what AsyncGetCallTrace requires (ClassLoad enabled,
 * a jmethodID of every method created in advance), and the names of methods.
 */
#pragma once

#include <jvmti.h>
#include <stdint.h>

/* Agent's thread. 0, or -ETIMEDOUT if the JVM did not reach the live phase within 5 s, or -ENOTSUP.
 * May be called again. */
int jvm_tools_init(JavaVM *vm, JNIEnv *env);
void jvm_tools_deinit(void);
