/* Java threads through plain JNI: no JVMTI, no safepoint. Agent's thread only. */
#pragma once

#include "agent/agent.h"

/* Calls threads_java_name() for each live platform thread; @states: and thread_states_java(). */
void jni_names_pass(bool states);
/* A system property into @buf, "" if there is none. */
void jni_property(JNIEnv *env, const char *key, char *buf, size_t size);
void jni_names_free(void);
