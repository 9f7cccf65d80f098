/* Names and lines of methods by jmethodID. Agent's thread only. */
#pragma once

#include <jvmti.h>

void names_init(JavaVM *vm, jvmtiEnv *jvmti);
