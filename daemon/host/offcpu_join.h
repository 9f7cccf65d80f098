/*
 * Joins the records of one interval off the CPU: the kernel's, which comes first; the agent's,
 * which comes through the pipe a moment later and has the same thread and duration; and, if the
 * thread waited for a lock, the wait's, which the agent sends right afterwards. Each interval is
 * passed on once, as soon as no further record of it can come:
 * - a record of the kernel that needs none of the agent's: at once, or when a lock's could not come
 * any more
 * - a record of the kernel to which the agent's did not come: after 2 s, without a Java stack
 * - a record of the agent without the kernel's: with the reason that the JVM's status gives
 * - a record of a virtual thread that had no carrier: at once; the kernel has none
 * - a lock's wait whose record the kernel spared, with those of waits for work: at once
 * Pure, one for each target. At most OFFCPU_JOIN_MAX intervals wait; then the oldest is passed on
 * as it is. The agent's records are not trusted: one whose duration the kernel did not measure
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
/* A thread that enters a monitor may sleep several times before it gets it. After a second the
 * agent reports a wait that goes on. */
#define OFFCPU_JOIN_ENTRY_NS 2000000000ull

struct offcpu_join;

/* What a lock event shows of its thread's waits in futexes. */
enum offcpu_usual {
	OFFCPU_USUAL_NONE,
	OFFCPU_USUAL_WORK, /* they are waits for work, which come in sums */
	OFFCPU_USUAL_TOLD, /* they are waits for locks, of which each comes as a lock event */
};

/* The kernel's record: struct offcpu_interval without the process. */
struct offcpu_kernel {
	uint64_t end_ns, duration_ns, runqueue_ns, throttled_ns, stay_ns;
	uint32_t tid; /* the number in the thread's own pid namespace, as in the stream */
	uint32_t waker_pid, waker_tid, waker_own_tid;
	int syscall_nr;
	unsigned kernel_class; /* enum offcpu_class */
	bool signalled; /* the agent was signalled and will send a record */
};

/* Gets each interval, borrowed, with reason and idle set. The names of its lock's threads may be
 * missing: their numbers are there. */
typedef void offcpu_join_fn(void *userdata, const struct offcpu_event *e);
/* Sets reason, idle and unsettled of @e, by offcpu_event_explain() with the target's stream. If it
 * is unsettled, it is explained again when it is passed on, after OFFCPU_JOIN_LOCK_NS. */
typedef void offcpu_explain_fn(void *userdata, struct offcpu_event *e);

struct offcpu_join_counts {
	uint64_t joined; /* records of the kernel with one of the agent */
	uint64_t no_java_stack; /* records of the kernel for which the agent sent none */
	uint64_t no_kernel; /* records of the agent for which the kernel's is missing */
	uint64_t unmounted; /* records of virtual threads that had no carrier */
	uint64_t locks; /* intervals that have the record of a wait for a lock */
	uint64_t lock_only; /* those of them that have no other */
	uint64_t late; /* records of the agent that came after their interval was passed on; not
			  passed on again */
	/* intervals without a stack whose reason is that of the thread's last wait of which no lock
	 * event tells either */
	uint64_t by_habit;
	/* intervals with a stack and without a lock for which by_habit would have given the right
	 * reason, and a wrong one */
	uint64_t habit_right, habit_wrong;
	uint64_t hurried; /* intervals passed on early, because there was no room */
};

int offcpu_join_new(offcpu_explain_fn *explain, offcpu_join_fn *emit, void *userdata,
		    struct offcpu_join **ret);
/* Drops the intervals that wait. */
struct offcpu_join *offcpu_join_free(struct offcpu_join *j);
DEFINE_FREEP(struct offcpu_join, offcpu_join_free);
/* Adds a record of the kernel. @now_ns: CLOCK_MONOTONIC. @ips: at most OFFCPU_STACK_MAX are
 * kept. */
void offcpu_join_kernel(struct offcpu_join *j, const struct offcpu_kernel *k, const uint64_t *ips,
			unsigned n, uint64_t now_ns);
void offcpu_join_agent(struct offcpu_join *j, const struct stream_offcpu *o, uint64_t now_ns);
/* Adds a wait that has ended, or one that goes on (WIRE_LOCK_OPEN): its class and stacks must stay
 * valid until it is over, or until offcpu_join_reset(). With the stream's numbers. @idle:
 * idle_wait() of it. @spared_ns: from which duration on the kernel would have a record, if it did
 * not spare threads theirs; 0 = it spares nobody. @loses: it loses records, too, which count as
 * dropped. */
enum offcpu_usual offcpu_join_lock(struct offcpu_join *j, const struct stream_lock *w, bool idle,
				   uint64_t spared_ns, bool loses);
/* Passes on the intervals that have waited long enough. */
void offcpu_join_expire(struct offcpu_join *j, uint64_t now_ns);
/* Nodes and classes get new meanings: passes on the intervals with a stack. Those that wait for the
 * agent's record have none yet, and go on waiting. */
void offcpu_join_reset(struct offcpu_join *j);
/* Passes on all intervals, because the target ends. */
void offcpu_join_flush(struct offcpu_join *j);
void offcpu_join_counts(const struct offcpu_join *j, struct offcpu_join_counts *ret);
size_t offcpu_join_bytes(const struct offcpu_join *j);
