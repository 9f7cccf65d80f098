/*
 * Joins the three records of one interval off the CPU: the kernel's (first), the agent's, which
 * comes through the pipe a moment later with the same thread and the same duration, and that of
 * the wait for a lock, if it is one, which the agent sends right behind. Each interval is passed on
 * once, as soon as nothing more is to be expected:
 *   - the kernel's record without a signal at once, or when a lock record would have come
 *   - a kernel's record whose agent is silent after 2 s, without a Java stack
 *   - an agent's record without the kernel's, with a reason from the agent's words alone
 * Pure, one for each target, bounded: beyond OFFCPU_JOIN_MAX intervals that wait the oldest is
 * passed on as it is. Nothing of the agent's is trusted: a duration that the kernel did not measure
 * joins nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "daemon/profile/offcpu_event.h"

#define OFFCPU_JOIN_MAX	     2048u
#define OFFCPU_JOIN_AGENT_NS 2000000000ull
#define OFFCPU_JOIN_LOCK_NS  300000000ull

struct offcpu_join;

/* What the kernel says: struct offcpu_interval without the process. */
struct offcpu_kernel {
	uint64_t end_ns, duration_ns, runqueue_ns, stay_ns;
	uint32_t tid; /* the thread's own number, as in the stream */
	uint32_t waker_pid, waker_tid, waker_own_tid;
	int syscall_nr;
	unsigned kernel_class; /* enum offcpu_class */
	bool signalled; /* the agent will tell of it */
};

/* @e: borrowed during the call; reason and idle are filled in. */
typedef void offcpu_join_fn(void *userdata, const struct offcpu_event *e);
/* Fills in reason and idle of @e: offcpu_event_explain() with the target's stream. */
typedef void offcpu_explain_fn(void *userdata, struct offcpu_event *e);

struct offcpu_join_counts {
	uint64_t joined; /* kernel's and agent's */
	uint64_t no_java_stack; /* kernel's alone */
	uint64_t no_kernel; /* agent's alone */
	uint64_t locks; /* with a record of a lock */
	uint64_t late; /* agent's, of intervals that were passed on without it: not told again */
	uint64_t hurried; /* passed on early, for want of room */
};

int offcpu_join_new(offcpu_explain_fn *explain, offcpu_join_fn *emit, void *userdata,
		    struct offcpu_join **ret);
/* Drops what waits. */
struct offcpu_join *offcpu_join_free(struct offcpu_join *j);
DEFINE_FREEP(struct offcpu_join, offcpu_join_free);
/* @now_ns: CLOCK_MONOTONIC of the daemon. @ips: at most OFFCPU_STACK_MAX are kept. */
void offcpu_join_kernel(struct offcpu_join *j, const struct offcpu_kernel *k, const uint64_t *ips,
			unsigned n, uint64_t now_ns);
void offcpu_join_agent(struct offcpu_join *j, const struct stream_offcpu *o, uint64_t now_ns);
/* An ended wait, with the stream's numbers. @idle: idle_wait() of it. */
void offcpu_join_lock(struct offcpu_join *j, const struct stream_lock *w, bool idle);
/* Passes on what has waited long enough. */
void offcpu_join_expire(struct offcpu_join *j, uint64_t now_ns);
/* Passes on everything: nodes get another meaning, or the target ends. */
void offcpu_join_flush(struct offcpu_join *j);
void offcpu_join_counts(const struct offcpu_join *j, struct offcpu_join_counts *ret);
size_t offcpu_join_bytes(const struct offcpu_join *j);
