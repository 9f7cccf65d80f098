/*
 * Idle waits: waits for work (proto/idle.h). They are nearly all waits of a server, of no interest
 * one by one, and too many to be reported with a stack each. The waiting thread recognises them by
 * the few frames that matter, at about the cost of a short wait, and counts them. About once a
 * second each thread reports one wait that stands for all its idle waits since the last report.
 * The same table keeps each thread's sums of other waits that are too short to be reported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "proto/wire.h"

/* Counts a wait of a platform thread that was below the threshold and not idle. A thread that finds
 * no slot is not counted here. */
void idle_waits_add_short(uint64_t java_thread, enum wire_wait how, uint64_t duration_ns,
			  uint64_t now_ns);
/* Agent's thread. Takes the sums of that thread's short waits since the last call; false = there
 * were none. */
bool idle_waits_take_short(uint64_t java_thread, uint32_t ret_us[WIRE_WAIT_COUNT]);
/* Halves the sums of all threads, which nobody has asked for: they then stand for half the time. */
void idle_waits_halve_short(void);

/* Agent's thread. 0 or -ENOMEM. The memory is never unmapped, as that of waits.c. */
int idle_waits_begin(void);
void idle_waits_end(void); /* the totals are kept */
uint64_t idle_waits_bytes(void);
/* Totals of all threads since the agent was loaded. */
void idle_waits_counts(uint64_t *ret_waits, uint64_t *ret_ns);

/*
 * Called by the thread that has waited, in native state, at the place where it waited.
 *
 * idle_wait_known() walks no stack: it compares the place with those where the thread has waited
 * before, and may be called at any time; false = the place is new. idle_wait_classify() walks the
 * stack and remembers the answer; only between events_enter() and events_leave().
 */
bool idle_wait_known(uint64_t java_thread, bool *ret_idle);
bool idle_wait_classify(uint64_t java_thread);

/* What one reported wait stands for. */
struct idle_sum {
	uint64_t waits, ns;
};
/*
 * Counts an idle wait of @duration_ns that ended at @now_ns. true = a wait has to be reported,
 * which stands for *@ret. A wait of IDLE_ALONE_NS or more is reported by itself, as the reader may
 * know it already as an open wait. @java_thread 0: a virtual thread, which has no sums.
 */
#define IDLE_ALONE_NS 1000000000ull
bool idle_wait_count(uint64_t java_thread, uint64_t duration_ns, uint64_t now_ns,
		     struct idle_sum *ret);
