/*
 * A JVMTI environment is made once and kept until the JVM ends, also over detaches: none is ever
 * disposed of. DisposeEnvironment of one that has had events ends the JVM, seldom, in a heap that
 * is no longer whole: make, enable, disable, dispose, beside three threads that start threads and
 * join them, ended a 25 after 2,600 and 5,400 rounds, a 21 at once, a 17 after 26,000; 107,000
 * rounds without the last step, or without the events, did nothing. And the memory of a disposed
 * one comes back at a safepoint only, which an idle JVM has none of, and each new one takes longer
 * to make than the one before.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>

/* Agent's thread. Makes *env if it is not there yet. */
bool jvmti_env_make(jvmtiEnv **env, jint version);
/* Has one ever been made by us? One that -agentpath made counts. */
bool jvmti_env_is_there(void);
/* Its capabilities go back: others may have them. */
void jvmti_env_rest(jvmtiEnv *env, const jvmtiCapabilities *had);
