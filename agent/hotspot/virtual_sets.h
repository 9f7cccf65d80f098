/*
 * Reads the JDK's sets of virtual threads without calling the JVM. A pass by the JDK's own code
 * (virtual_threads_each()) takes at least 50 us, however few threads there are; this one takes some
 * 50 ns for each thread, and finds a thread by its id with a few loads. It reads the sets of the
 * root container and of containers (executors) whose class is known from virtual_sets_learn(), so a
 * thread that is not found here may still exist.
 */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the agent's thread, for virtual_states.c ---- */

/* @root, @containers: the JDK's root container and its class ThreadContainers; borrowed. May be
 * called again. */
void virtual_sets_begin(JNIEnv *env, jobject root, jclass containers);
/* Learns the class of a container of threads: from now on the sets of all containers of that class
 * are read. */
void virtual_sets_learn(JNIEnv *env, jobject container);
void virtual_sets_end(JNIEnv *env);

/* ---- by guarded loads; results are addresses, which may be outdated a moment later ---- */

/* Agent's thread: calls @on_thread for each thread until it returns false. */
void virtual_sets_each(bool (*on_thread)(uint64_t thread, void *context), void *context);
/* The same for those of the last few hundred threads that were started, so that a thread that lives
 * for one task is found even among thousands of older ones. */
void virtual_sets_newest(bool (*on_thread)(uint64_t thread, void *context), void *context);
/* Also in application threads: the Thread with that id; 0 = not found. */
uint64_t virtual_sets_find(uint64_t id);
/* The id of the virtual thread whose Thread is at @thread; 0 = it is no such object. */
uint64_t virtual_sets_id(uint64_t thread);
