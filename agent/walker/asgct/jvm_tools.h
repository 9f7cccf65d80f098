/*
 * The JVMTI environment of the fallback walker: what AsyncGetCallTrace requires (ClassLoad enabled,
 * a jmethodID of every method created in advance), and the names of methods.
 */
#pragma once

#include <jvmti.h>
#include <stdint.h>

/* 0, or -ETIMEDOUT when the JVM did not become live within 5 s, -ENOTSUP. May be called again. */
int jvm_tools_init(JavaVM *vm, JNIEnv *env);
void jvm_tools_deinit(void);
