/*
 * Reads the JDK's sets of virtual threads without calling the JVM. A pass by the JDK's own code
 * (virtual_threads_each()) takes 50 us and more, however few threads there are. This one takes some
 * 50 ns for each thread, and finds a thread by its id with a few loads. It sees the sets of the
 * root container and of executors whose class a pass by Java code has met: a thread that is not
 * found here may still exist.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the agent's thread, for virtual_states.c ---- */

/* @root, @containers: the JDK's root container and its class ThreadContainers. May be called again.
 */
void virtual_sets_begin(JNIEnv *env, jobject root, jclass containers);
/* Learns the class of a container with threads: others of that class are known from now on. */
void virtual_sets_learn(JNIEnv *env, jobject container);
void virtual_sets_end(JNIEnv *env);

/* ---- loads that may fail; what is found is an address that may be wrong a moment later ---- */

/* Agent's thread: calls @on_thread for one thread after the other until it returns false. */
void virtual_sets_each(bool (*on_thread)(uint64_t thread, void *context), void *context);
/* The same for recent threads, among the last few hundred of all threads: a thread that lives for
 * one task is found among thousands of older ones. */
void virtual_sets_newest(bool (*on_thread)(uint64_t thread, void *context), void *context);
/* Also in application threads: the Thread with that id; 0 = not found. */
uint64_t virtual_sets_find(uint64_t id);
/* The id if that is the Thread of a virtual thread; 0 = it is not. */
uint64_t virtual_sets_id(uint64_t thread);
