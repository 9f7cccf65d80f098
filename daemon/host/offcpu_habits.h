/*
 * What the threads of a JVM usually wait for in a futex (a sleep, or work, which the agent reports
 * in sums, or locks, of which it reports each wait), in reads of sockets (the next request, or the
 * answers to others' requests), which are polls if they have a timeout, and in accept calls. A next
 * wait without a stack and a lock is most likely the same: over its budget the engine sends no
 * signals, and nothing else tells what it is. Many threads do one thing only, others alternate: a
 * single wait is no habit yet, and one that was wrong once is not relied on until it was right
 * eight times in a row. Pure, one for each target.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/profile/offcpu_event.h"

/* All zero = nothing is known. */
struct offcpu_habits {
	struct offcpu_habit *places; /* n of them, a power of two; NULL = none yet */
	unsigned n;
	uint64_t told; /* waits without a stack whose reason is the habit */
	/* waits with a stack and without a lock for which the habit would have been right, and
	 * wrong */
	uint64_t right, wrong;
};

/* The kernel has a record of a time off the CPU of this thread that ended at @end_ns. */
void offcpu_habits_recorded(struct offcpu_habits *h, uint32_t tid, unsigned kernel_class,
			    uint64_t end_ns);
/* Does the kernel spare the thread the records of its waits in futexes, because they are waits for
 * work, if @work, or all for locks, and has no record come that ends between @begin_ns and @end_ns?
 */
bool offcpu_habits_spare(const struct offcpu_habits *h, uint32_t tid, uint64_t begin_ns,
			 uint64_t end_ns, bool work);
/* A wait of the thread that ended at @end_ns is a lock event. Returns whether all its waits in
 * futexes are: the last 32 were. */
bool offcpu_habits_told(struct offcpu_habits *h, uint32_t tid, uint64_t end_ns);
/* A thread waited for work, as a lock event tells: @waits times, the last one until @at_ns. Returns
 * whether that is its habit. */
bool offcpu_habits_work(struct offcpu_habits *h, uint32_t tid, uint64_t at_ns,
			enum offcpu_reason reason, uint32_t waits);
/* Learns from a wait with a stack, and sets as_usual and as_always of it; sets reason, idle and
 * by_habit of one without. Sets ends_told of both. */
void offcpu_habits_apply(struct offcpu_habits *h, struct offcpu_event *e);
size_t offcpu_habits_bytes(const struct offcpu_habits *h);
void offcpu_habits_clear(struct offcpu_habits *h);
