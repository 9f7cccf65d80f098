/*
 * JVMTI environments that are created once and kept until the JVM ends, even across detaches. They
 * are never disposed of: DisposeEnvironment sometimes corrupts the JVM's heap and crashes it if the
 * environment has had events. In a loop of create, enable, disable, dispose, beside three threads
 * that start and join threads, JDK 25 crashed after 2,600 and 5,400 rounds, 21 at once, 17 after
 * 26,000; 107,000 rounds without the disposal, or without events, were harmless. Moreover, the
 * memory of a disposed environment is freed only at a safepoint, which an idle JVM may never have,
 * and each new environment takes longer to create than the one before.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>

/* Agent's thread. Creates *env if it is NULL. -EAGAIN: the JVM is still starting and gives none
 * yet; -ENOTSUP: it gives none. */
int jvmti_env_make(jvmtiEnv **env, jint version);
/* Has this agent ever created one, now or when it was loaded by -agentpath? */
bool jvmti_env_is_there(void);
/* Relinquishes the environment's capabilities @had, because some can belong to one environment
 * only. */
void jvmti_env_rest(jvmtiEnv *env, const jvmtiCapabilities *had);
