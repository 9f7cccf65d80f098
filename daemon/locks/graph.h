/*
 * Who blocks whom: open waits as a graph in which an edge leads from each waiting thread to the
 * owner of the lock. Chains pass through monitors and locks of java.util.concurrent alike. A cycle
 * of waits without a time limit is a deadlock. Pure memory, and no recursion, because the process
 * chooses the owners.
 */
#pragma once

#include "daemon/locks/locks.h"

struct lock_edge {
	const struct locks_open *wait;
	int32_t next; /* the edge of the owner's own wait; -1 = it does not wait, or none is known
		       */
	uint32_t cycle; /* the number of its cycle, from 1; 0 = none */
	uint32_t behind; /* threads that wait for this one, directly or not; excludes itself in a
			  * cycle */
	uint32_t depth; /* edges to the end of its chain, or to its cycle; 0 = part of one */
	bool deadlock; /* part of a cycle in which no wait has a time limit */
};

/* A thread that does not wait and blocks others. */
struct lock_blocker {
	uint32_t tid;
	uint32_t behind; /* directly or not */
};

struct lock_graph {
	struct lock_edge *edges; /* one for each waiting thread */
	uint32_t n, n_cycles, n_deadlocks;
	struct lock_blocker *blockers; /* by number of blocked threads, the most first */
	uint32_t n_blockers;
};

/* @waits: borrowed as long as the graph lives. Object.wait leads to no owner. 0 or -ENOMEM. */
int lock_graph_new(const struct locks_open *waits, uint32_t n, struct lock_graph *ret);
void lock_graph_free(struct lock_graph *g);
