/*
 * JVMTI environments are kept from their first use to the detach: what a disposed one held the JVM
 * gives back only at a safepoint, which an idle one has none of, and each new one takes longer to
 * make than the one before (1,500 of them on 17: 2.4 s of CPU, the next 1,500: 4.8 s).
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>

/* Agent's thread. Makes *env if it is not there yet. */
bool jvmti_env_make(jvmtiEnv **env, jint version);
/* Its capabilities go back: others may have them. */
void jvmti_env_rest(jvmtiEnv *env, const jvmtiCapabilities *had);
void jvmti_env_free(jvmtiEnv **env);
