/*
 * Who blocks whom: open waits as a graph. An edge leads from each waiting thread to the owner of
 * the lock that it waits for, whether that is a monitor or a lock of java.util.concurrent. A cycle
 * of waits without a time limit is a deadlock. Pure memory; no recursion, because the target
 * chooses the owners and so the length of chains.
 */
#pragma once

#include "daemon/locks/locks.h"

struct lock_edge {
	const struct locks_open *wait;
	int32_t next; /* the edge of the owner's own wait; -1 = the owner does not wait, or is
			 unknown */
	uint32_t cycle; /* number of the cycle that it is part of, from 1; 0 = none */
	uint32_t behind; /* threads that wait for this one, directly or through others; in a cycle
			    without itself */
	uint32_t depth; /* edges from here to the end of the chain, or to a cycle; 0 = in a cycle */
	bool deadlock; /* in a cycle in which no wait has a time limit */
};

/* A thread that blocks others and does not wait itself. */
struct lock_blocker {
	uint32_t tid;
	uint32_t behind; /* threads that it blocks, directly or through others */
};

struct lock_graph {
	struct lock_edge *edges; /* one for each waiting thread */
	uint32_t n, n_cycles, n_deadlocks;
	struct lock_blocker *blockers; /* those that block most threads first */
	uint32_t n_blockers;
};

/* @waits is borrowed as long as the graph exists. No edge leads out of Object.wait. 0 or
 * -ENOMEM. */
int lock_graph_new(const struct locks_open *waits, uint32_t n, struct lock_graph *ret);
void lock_graph_free(struct lock_graph *g);
