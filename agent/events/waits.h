/*
 * The waits of application threads for locks, from begin to end. They come from monitors.c (JVMTI
 * events) and park.c (the native method of Unsafe.park), both in the waiting thread, in native
 * state with the anchor of its last Java frame set. Nothing here blocks, allocates or writes to the
 * pipe. A wait that ends goes into the ring with its stack if it lasted as long as the threshold;
 * shorter ones are counted, and waits for want of work are counted apart (idle_waits.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/events.h"
#include "agent/events/idle_waits.h"
#include "proto/wire.h"

/* What is known of a lock; 0 = unknown. */
struct wait_lock {
	uint64_t class_handle; /* walker_class_of_sig() */
	uint32_t identity;
	uint32_t owner_tid; /* when the wait began; or a mark of unknown_owner.h */
};

/*
 * Called before blocking. @java_thread: the JavaThread's address. @key identifies the waiter at the
 * end: the id of the mounted virtual thread if there is one, as it may wake on another carrier,
 * else the JavaThread.
 */
void wait_begin(uint64_t java_thread, uint64_t key, enum wire_wait how, uint8_t flags,
		const struct wait_lock *lock);
/* Called after blocking. @describe (NULL = none) adds what is not known of the lock yet; it is
 * called only for waits that are reported. */
void wait_end(uint64_t java_thread, uint64_t key, enum wire_wait how,
	      void (*describe)(void *context, struct wait_lock *lock), void *context);

/*
 * The same for a wait that begins and ends in one function: its slot is known, so that nothing is
 * searched for and no word is shared with other threads. Its key is the JavaThread.
 */
struct wait_here {
	uint64_t begin_ns, duration_ns;
	uint32_t slot;
	bool is_idle, is_reported; /* counted as idle; is_reported: and reported as @idle */
	struct idle_sum idle;
};
/* Claims a slot, in which no wait is visible yet. A full memory barrier. false = none is free. */
bool wait_claim_slot(uint64_t java_thread, struct wait_here *ret);
void wait_give_back(const struct wait_here *here);
/* The wait begins. @number: the virtual thread's on the wire, 0 = a platform thread. */
void wait_begin_here(struct wait_here *here, uint64_t java_thread, uint32_t number, uint8_t flags,
		     const struct wait_lock *lock);
/* The wait has ended. true = it was below the threshold, is counted, and its slot released. */
bool wait_was_short(uint64_t java_thread, struct wait_here *here);
/* Reports a wait that was not short, as wait_end() does. */
void wait_report_here(uint64_t java_thread, struct wait_here *here,
		      void (*describe)(void *context, struct wait_lock *lock), void *context);

/* ---- the waits in progress, for the agent's thread ---- */

#define WAITS_MAX 16384u /* in progress at once; more are not seen */

/* One cache line, so that no two threads write to the same line. */
struct wait {
	uint64_t begin_ns; /* 0 = the slot is free or being filled in */
	uint64_t java_thread, key;
	struct wait_lock lock;
	uint32_t number; /* on the wire, of a virtual thread; 0 = the kernel's tid */
	uint8_t how, flags;
	uint8_t reported; /* only the agent's thread uses it: enum of open.c */
	uint8_t was_in_progress; /* a park that waits_add() added */
	/* all waits in this slot that were below the threshold; the slot's holder adds */
	uint64_t short_waits, short_ns;
};
_Static_assert(sizeof(struct wait) == 64, "a line");

/* Only the agent's thread uses it: the wait in this slot that it reported as OPEN. */
struct wait_reported {
	uint64_t ns; /* its begin */
	uint32_t number, identity;
};

extern const struct events_source waits_source;

/* Copies the wait in slot @i. false = there is none, or it changed meanwhile. */
bool waits_copy(uint32_t i, struct wait *ret);
/* Is that wait still going on? */
bool waits_is_same(uint32_t i, const struct wait *copy);
struct wait *waits_at(uint32_t i); /* NULL = there is no table */
struct wait_reported *waits_reported_at(uint32_t i); /* there must be a table */
int32_t waits_find(uint64_t key); /* the waiter's slot; -1 = it does not wait */
/* Adds a wait that was in progress already; it counts from now on. Returns its slot, or -1. */
int32_t waits_add(uint64_t java_thread, uint64_t key, enum wire_wait how,
		  const struct wait_lock *lock);
/* Removes the wait in slot @i if it is still the one that began at @begin_ns. */
void waits_remove(uint32_t i, uint64_t begin_ns);
/* Does any thread hold a slot without an open wait, before its wait begins or after it has
 * ended? */
bool waits_are_beginning(void);
uint32_t waits_used(void); /* slots from this one on have never been used */
uint64_t waits_bytes(void);
/* Waits that were not sent, except idle ones: the fields of struct counters. */
void waits_counts(uint64_t *ret_short, uint64_t *ret_short_ns, uint64_t *ret_unpaired);
