/*
 * Where the JDK keeps its virtual threads, read past the JVM. A look at all of them by the JDK's
 * own code (virtual_threads_each()) takes 50 us and more however few there are; this one takes some
 * 50 ns for each, and one thread is found by its id with a few loads. It sees the sets of the root
 * and of executors, those whose class a look by Java code has met: what is not found here may still
 * exist.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the agent's thread, for virtual_states.c ---- */

/* @root, @containers: the JDK's root container and its class ThreadContainers. May be called again.
 */
void virtual_sets_begin(JNIEnv *env, jobject root, jclass containers);
/* A container with threads: others of its class are known from now on. */
void virtual_sets_learn(JNIEnv *env, jobject container);
void virtual_sets_end(JNIEnv *env);

/* ---- loads that may fail; what is found is an address that may be wrong a moment later ---- */

/* The agent's thread: one after the other; @look returns false when it has seen enough. */
void virtual_sets_each(bool (*look)(uint64_t thread, void *context), void *context);
/* The same of those that began lately, among the last few hundred of all threads: who lives for
 * one task is found among thousands that do not. */
void virtual_sets_newest(bool (*look)(uint64_t thread, void *context), void *context);
/* Application threads too: the Thread of that id; 0 = not found. */
uint64_t virtual_sets_find(uint64_t id);
/* Is that the Thread of a virtual thread? Its id; 0 = no. */
uint64_t virtual_sets_id(uint64_t thread);
