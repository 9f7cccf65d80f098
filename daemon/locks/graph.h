/*
 * Who blocks whom: open waits as a graph in which each thread points at the owner of what it waits
 * for. Chains go through monitors and locks of java.util.concurrent alike. A circle of waits
 * without a time limit is a deadlock; pure memory, no recursion: the owners are what a process
 * says.
 */
#pragma once

#include "daemon/locks/locks.h"

struct lock_edge {
	const struct locks_open *wait;
	int32_t next; /* the edge of the owner's own wait; -1 = it does not wait, or none is known
		       */
	uint32_t cycle; /* which circle it is part of, from 1; 0 = none */
	uint32_t behind; /* threads that wait for this one, at any distance; not itself in a circle
			  */
	uint32_t depth; /* how many edges to the end of its chain, or to its circle; 0 = part of one
			 */
	bool deadlock; /* part of a circle in which nobody set a time limit */
};

/* A thread that waits for nothing itself and has others waiting for it. */
struct lock_blocker {
	uint32_t tid;
	uint32_t behind; /* at any distance */
};

struct lock_graph {
	struct lock_edge *edges; /* one a waiting thread */
	uint32_t n, n_cycles, n_deadlocks;
	struct lock_blocker *blockers; /* by number behind them, the most first */
	uint32_t n_blockers;
};

/* @waits: borrowed as long as the graph lives. Object.wait waits for no owner. 0 or -ENOMEM. */
int lock_graph_new(const struct locks_open *waits, uint32_t n, struct lock_graph *ret);
void lock_graph_free(struct lock_graph *g);
