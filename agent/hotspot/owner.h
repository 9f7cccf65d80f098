/*
 * Who holds a monitor, read out of the JVM's own structures (VMStructs) while it runs: no
 * safepoint, no Java object but the address of the lock itself. Every load may fail; what is named
 * was the owner a moment ago, or nobody is named.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Agent's thread, once the walker is there. false = this JVM does not tell: all owners are 0. */
bool owner_init(void);

/*
 * The number on the wire of the thread that holds the monitor which @java_thread is about to enter;
 * 0 = nobody or unknown. @object: a JNI reference to the lock, NULL = none. @ret_unknown: the
 * monitor, if somebody holds it and the JVM does not know who (unknown_owner.h), else 0.
 */
uint32_t owner_of_pending(uint64_t java_thread, void *object, uint64_t *ret_unknown);

/* ---- for the agent's thread ---- */

/* What a thread is blocked on, from outside. */
struct owner_monitor {
	uint64_t address; /* ObjectMonitor; 0 = none */
	bool waiting; /* in Object.wait, not to enter */
	uint64_t class_handle; /* of the object; 0 = unknown */
	uint32_t identity; /* if it has been asked for before; 0 = it has not */
	uint32_t owner; /* its number; 0 = nobody or unknown */
};
void owner_blocked_on(uint64_t java_thread, struct owner_monitor *ret);
/* Does the JVM still not know who holds it? @ret_object: its object's address; 0 = not to be had.
 */
bool owner_is_unknown(uint64_t monitor, uint64_t *ret_object);
/* The number of the thread that runs and has the object in its lock stack; 0 = none. */
uint32_t owner_by_lock_stack(uint64_t object);
/* The number on the wire: the kernel's tid, or that of the virtual thread mounted there. */
uint32_t owner_number(uint64_t java_thread);
/* The JavaThread on which a thread of that number runs; 0 = none. */
uint64_t owner_thread(uint32_t number);
/* Calls @look for each Java thread. */
void owner_each_thread(void (*look)(uint64_t java_thread));
