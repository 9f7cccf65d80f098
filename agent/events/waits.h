/*
 * Waits of application threads for locks, from their begin to their end, whatever tells of them
 * (monitors.c: JVMTI events, park.c: the native of Unsafe.park). Both calls come in the waiting
 * thread, in native state with the last Java frame's anchor set. Nothing here waits, allocates or
 * writes to the pipe: an ended wait above the threshold goes into the ring with its stack, one
 * below it is counted, one for want of work is counted apart (idle_waits.h).
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
 * Before blocking. @java_thread: the JavaThread's address; @key names the waiter until the end: the
 * virtual thread's id where one is mounted, as its end may come on another carrier.
 */
void wait_begin(uint64_t java_thread, uint64_t key, enum wire_wait how, uint8_t flags,
		const struct wait_lock *lock);
/* After. @look (NULL = never) is asked for what the begin left out, only above the threshold. */
void wait_end(uint64_t java_thread, uint64_t key, enum wire_wait how,
	      void (*look)(void *context, struct wait_lock *lock), void *context);

/*
 * The same of a wait that ends in the function in which it began: its slot is known, nothing is
 * searched for, and no word is written that other threads write, too. Its key is the JavaThread.
 */
struct wait_here {
	uint64_t begin_ns, duration_ns;
	uint32_t slot;
	bool is_idle,
		is_reported; /* it is counted as idle, and is to be reported as what follows */
	struct idle_sum idle;
};
/* A slot for it, in which it is not seen yet; a barrier for all loads and stores. false = none. */
bool wait_claim_slot(uint64_t java_thread, struct wait_here *ret);
void wait_give_back(const struct wait_here *here);
/* Now it begins. @number: of a virtual thread, on the wire. */
void wait_begin_here(struct wait_here *here, uint64_t java_thread, uint32_t number, uint8_t flags,
		     const struct wait_lock *lock);
/* After. true = it was below the threshold and is counted: that was all. */
bool wait_was_short(uint64_t java_thread, struct wait_here *here);
/* ... else: as wait_end(). */
void wait_report_here(uint64_t java_thread, struct wait_here *here,
		      void (*look)(void *context, struct wait_lock *lock), void *context);

/* ---- the waits going on, for the agent's thread ---- */

#define WAITS_MAX 16384u /* at once; beyond that a wait is not seen */

/* A line of the cache: no two threads write to the same. */
struct wait {
	uint64_t begin_ns; /* 0 = the slot is free or being filled in */
	uint64_t java_thread, key;
	struct wait_lock lock;
	uint32_t number; /* on the wire, of a virtual thread; 0 = the kernel's tid */
	uint8_t how, flags;
	uint8_t reported; /* the agent's own thread alone: enum of open.c */
	uint8_t was_in_progress; /* a park of waits_add() */
	/* of all waits at this slot that were below the threshold; whoever has the slot adds */
	uint64_t short_waits, short_ns;
};
_Static_assert(sizeof(struct wait) == 64, "a line");

/* The agent's own thread alone: the wait at this slot that it reported as OPEN. */
struct wait_reported {
	uint64_t ns; /* its begin */
	uint32_t number, identity;
};

extern const struct events_source waits_source;

/* A copy of the wait at slot @i if there is one; whole, or false. */
bool waits_copy(uint32_t i, struct wait *ret);
/* Is that wait still going on? */
bool waits_is_same(uint32_t i, const struct wait *copy);
struct wait *waits_at(uint32_t i); /* NULL = no table */
struct wait_reported *waits_reported_at(uint32_t i); /* where there is a table */
int32_t waits_find(uint64_t key); /* the slot of a waiter; -1 = it does not wait */
/* A wait that began before anybody reported it: from now on. The slot, or -1. */
int32_t waits_add(uint64_t java_thread, uint64_t key, enum wire_wait how,
		  const struct wait_lock *lock);
/* It was none: forget it, if it is still that one. */
void waits_remove(uint32_t i, uint64_t begin_ns);
/* Has anybody a slot who does not wait? */
bool waits_are_beginning(void);
uint32_t waits_used(void); /* slots from here on have never been used */
uint64_t waits_bytes(void);
/* Waits that were not sent, but for idle ones: counters as in struct counters. */
void waits_counts(uint64_t *ret_short, uint64_t *ret_short_ns, uint64_t *ret_unpaired);
