/*
 * Finds the owner of a monitor in the JVM's data structures (VMStructs) while the JVM runs, without
 * a safepoint. All loads are guarded. A reported owner held the lock a moment ago; if that is not
 * certain, none is reported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, after walker_init(), before any event. Where the JVM's fields are not found, all
 * owners are 0. */
void owner_init(void);

/*
 * Application threads: the number on the wire of the thread that holds the monitor which
 * @java_thread is about to enter; 0 = none or unknown. @object: a JNI reference to the lock, NULL =
 * unknown. @ret_unknown: the monitor if it is held but does not show by whom (unknown_owner.h),
 * else 0.
 */
uint32_t owner_of_pending(uint64_t java_thread, void *object, uint64_t *ret_unknown);

/* ---- for the agent's thread ---- */

/* The monitor that another thread waits for. */
struct owner_monitor {
	uint64_t address; /* ObjectMonitor; 0 = none */
	bool waiting; /* in Object.wait(), rather than to enter the monitor */
	uint64_t class_handle; /* class of the object; 0 = unknown */
	uint32_t identity; /* identity hash, if the program has asked for it before; 0 = it has
			    * not */
	uint32_t owner; /* number of the owner; 0 = none or unknown */
};
void owner_blocked_on(uint64_t java_thread, struct owner_monitor *ret);
/* Is the monitor held, and does it still not show by whom? @ret_object: the address of the lock
 * object; 0 = it cannot be read. */
bool owner_is_unknown(uint64_t monitor, uint64_t *ret_object);
/* The number of the platform or mounted virtual thread that has the object in its lock stack, whose
 * name is reported too; 0 = none. */
uint32_t owner_by_lock_stack(uint64_t object);
/* The number on the wire of the thread that runs on @java_thread: the tid, or the number of the
 * virtual thread that is mounted. */
uint32_t owner_number(uint64_t java_thread);
/* The JavaThread on which the thread with that number runs; 0 = none. */
uint64_t owner_thread(uint32_t number);
/* Calls @on_thread for each Java thread. */
void owner_each_thread(void (*on_thread)(uint64_t java_thread));
