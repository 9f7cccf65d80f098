/*
 * A stream's ids in a profile: what an event's stack is called there. Known nodes and methods are
 * kept while the profile stays the same, so that a known stack costs one lookup.
 */
#pragma once

#include "daemon/profile/live.h"

#define LIVE_THREADS 32

/* Ids of a source in one profile. */
struct live_ids {
	uint64_t serial; /* serial of its window; 0 = none */
	uint32_t process; /* UINT32_MAX = unknown */
	uint32_t *nodes; /* by stream node: profile node + 1; 0 = unknown */
	uint32_t *methods; /* by stream method: a profile frame of it + 1; 0 = unknown */
	uint32_t n_nodes, n_methods;
	struct live_thread {
		uint32_t tid, thread; /* in the profile */
		bool known;
	} threads[LIVE_THREADS]; /* that had samples of late, by tid, modulo */
	uint64_t second; /* CLOCK_MONOTONIC, begin of this second; new nodes in it: */
	uint32_t new_nodes;
};

/* The ids are for the profile @serial from now on. */
void live_ids_turn(struct live_ids *c, uint64_t serial);
void live_ids_forget(struct live_ids *c); /* also frees its memory */
/* The thread of that name in @p, of @process. */
uint32_t live_ids_thread(struct live_ids *c, struct profile *p, uint32_t process, uint32_t tid,
			 const char *name);
/* The process in @p, which pays for new entries from then on, and (called after it) the stack that
 * ends in @leaf; entries without room become "[profile full]". */
uint32_t live_ids_process(struct live_ids *c, struct profile *p, const struct live_process *info);
uint32_t live_ids_stack(struct live_ids *c, struct profile *p, const struct stream *stream,
			uint32_t leaf);
