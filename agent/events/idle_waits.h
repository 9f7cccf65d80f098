/*
 * Waits for want of work (proto/idle.h). They are nearly all waits of a server, of no interest one
 * by one, and too many to be reported with a stack each. The thread that waited recognises them by
 * the few frames that matter, at about the cost of a short wait, and counts them. About once a
 * second each thread reports one wait that stands for all its idle waits since the last report.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Agent's thread. 0 or -ENOMEM. The memory stays mapped for ever, as that of waits.c. */
int idle_waits_begin(void);
void idle_waits_end(void); /* what was counted stays counted */
uint64_t idle_waits_bytes(void);
/* Totals of all threads since the agent was loaded. */
void idle_waits_counts(uint64_t *ret_waits, uint64_t *ret_ns);

/*
 * The thread that waited, in native state, from where it began to wait.
 *
 * The first of the two takes no walk: it knows the places where the thread has waited before, and
 * may be called at any time; false = it does not know. The other looks, and remembers; between
 * events_enter() and events_leave().
 */
bool idle_wait_known(uint64_t java_thread, bool *ret_idle);
bool idle_wait_look(uint64_t java_thread);

/* What one wait that is reported stands for. */
struct idle_sum {
	uint64_t waits, ns;
};
/*
 * An idle wait ended at @now_ns: counted. true = it is to be reported, as @ret; one that lasted
 * IDLE_ALONE_NS stands for itself, as the reader may know of it already. @java_thread 0: of a
 * virtual thread, which has no sums.
 */
#define IDLE_ALONE_NS 1000000000ull
bool idle_wait_count(uint64_t java_thread, uint64_t duration_ns, uint64_t now_ns,
		     struct idle_sum *ret);
