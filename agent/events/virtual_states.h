/* All virtual threads: counted in groups, or one by one. Agent's thread. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/wire.h"

/*
 * Counts all virtual threads by container, state and the class they wait for, and calls @on_group
 * for each group; the record's ids are not filled in. @container: its name in thread dumps;
 * @class_name: of the lock; "" = none. Without virtual threads there is one group of 0 threads;
 * below JDK 21 none.
 */
typedef void virtual_states_fn(struct wire_virtual *group, const char *container,
			       const char *class_name);
void virtual_states_each_group(uint64_t now_ns, virtual_states_fn *on_group);
void virtual_states_end(void);
/* Calls @on_thread for each virtual thread until it returns false. Does nothing before the JVM has
 * virtual threads. */
void virtual_threads_each(bool (*on_thread)(JNIEnv *env, jobject thread, void *context),
			  void *context);
