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

/* The number on the wire of the thread that holds the monitor which @java_thread is about to enter;
 * 0 = nobody or unknown. @object: a JNI reference to the lock, NULL = none. */
uint32_t owner_of_pending(uint64_t java_thread, void *object);

/* ---- for the agent's thread ---------------------------------------------------------------------
 */

/* The number on the wire: the kernel's tid, or that of the virtual thread mounted there. */
uint32_t owner_number(uint64_t java_thread);
/* The JavaThread on which a thread of that number runs; 0 = none. */
uint64_t owner_thread(uint32_t number);

struct owner_monitor {
	uint64_t pending,
		waiting; /* ObjectMonitor the thread waits to enter, or is waiting at; 0 */
};
void owner_monitor_of(uint64_t java_thread, struct owner_monitor *ret);
/* The Klass of the object that belongs to a monitor; 0 = unknown. */
uint64_t owner_klass(uint64_t monitor);

/* Calls @look for each Java thread. */
void owner_each_thread(void (*look)(uint64_t java_thread, void *context), void *context);
