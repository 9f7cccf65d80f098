/* Virtual threads, all of them: counted, or one by one. Agent's thread. */
#pragma once

#include <jni.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/wire.h"

/*
 * One look at all virtual threads, counted by container, state and what they wait for; a record for
 * each group, its ids not filled in. @container: as thread dumps call it; @class_name: of the lock;
 * "" = none. A group of 0 threads where there are no virtual threads; nothing below JDK 21.
 */
typedef void virtual_states_fn(struct wire_virtual *group, const char *container,
			       const char *class_name);
void virtual_states_look(uint64_t now_ns, virtual_states_fn *on_group);
void virtual_states_end(void);
/* One by one, once there are any; @look returns false when it has seen enough. */
void virtual_threads_each(bool (*look)(JNIEnv *env, jobject thread, void *context), void *context);
