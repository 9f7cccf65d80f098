/*
 * One JVMTI environment, created once and kept until the JVM ends, even across detaches. It is
 * never disposed of: DisposeEnvironment of an environment that has had events sometimes crashes the
 * JVM with a corrupt heap. In a loop of create, enable, disable, dispose, beside three threads that
 * start and join threads, JDK 25 crashed after 2,600 and 5,400 rounds, 21 at once, 17 after 26,000;
 * 107,000 rounds without the last step, or without the events, were harmless. Also, the memory of a
 * disposed environment is freed at a safepoint only, which an idle JVM never has, and each new one
 * takes longer to create than the one before.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>

/* Agent's thread. Creates *env if it does not exist yet. */
bool jvmti_env_make(jvmtiEnv **env, jint version);
/* Has this agent ever created one, now or when it was loaded by -agentpath? */
bool jvmti_env_is_there(void);
/* Relinquishes its capabilities, so that others can have them. */
void jvmti_env_rest(jvmtiEnv *env, const jvmtiCapabilities *had);
