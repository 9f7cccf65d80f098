/* Java thread names through plain JNI: no JVMTI, no safepoint. Agent's thread only. */
#pragma once

#include "agent/agent.h"

void jni_names_pass(void); /* calls threads_java_name() for each live platform thread */
/* A system property into @buf, "" if there is none. */
void jni_property(JNIEnv *env, const char *key, char *buf, size_t size);
void jni_names_free(void);
