/*
 * The ids of a stream's threads, stacks and methods in a profile. What is found is remembered as
 * long as the profile, or the one that has its names, stays the same, so that a known stack costs
 * one lookup.
 */
#pragma once

#include "daemon/profile/live.h"

#define LIVE_THREADS 128

/* The ids of one source's stacks and names, in all profiles that share them. */
struct live_stacks {
	uint64_t serial; /* of the profile that has the names; 0 = none yet */
	uint32_t *nodes; /* by stream node: profile node + 1; 0 = unknown */
	uint32_t *methods; /* by stream method: a profile frame of it + 1; 0 = unknown */
	uint32_t *texts; /* by stream text: profile string; 0 = unknown */
	uint32_t n_nodes, n_methods, n_texts;
	uint64_t second; /* CLOCK_MONOTONIC; begin of the second in which new_nodes are counted */
	uint32_t new_nodes;
};

/* The ids of one source in one profile. */
struct live_ids {
	uint64_t serial; /* of the profile; 0 = none yet */
	uint32_t process; /* UINT32_MAX = unknown */
	struct live_stacks *shared; /* with ids of other profiles that have the same names; NULL =
				       `own` */
	struct live_stacks own;
	struct live_thread {
		uint32_t tid, thread; /* in the profile, + 1; 0 = unknown */
		uint32_t number; /* of its name in the stream; 0 = unknown */
	} threads[LIVE_THREADS]; /* threads with recent samples, at tid modulo LIVE_THREADS */
	uint32_t new_spans; /* in this profile, of this source */
};

/* Makes the ids those of the profile @serial; those of another profile are forgotten. */
void live_ids_turn(struct live_ids *c, uint64_t serial);
void live_ids_forget(struct live_ids *c); /* frees the memory, too, but not what is shared */
/* From now on the stacks refer to the set of names with the number @serial; stacks that refer to
 * another set are forgotten. */
void live_stacks_turn(struct live_stacks *s, uint64_t serial);
void live_stacks_forget(struct live_stacks *s);
/* The thread of @process with this tid and name, added if @p does not have it. @number: of the
 * name, as in struct stream_sample; 0 = unknown. */
uint32_t live_ids_thread(struct live_ids *c, struct profile *p, uint32_t process, uint32_t tid,
			 const char *name, uint32_t number);
/* live_ids_process(): the process in @p; its tenant pays for what is added from then on.
 * live_ids_stack(): the stack that ends in @leaf; must be called after it. Without room they
 * return "[profile full]". */
uint32_t live_ids_process(struct live_ids *c, struct profile *p, const struct live_process *info);
uint32_t live_ids_stack(struct live_ids *c, struct profile *p, const struct stream *stream,
			uint32_t leaf);
/* The span of a row in @p; 0 = it would be one more than @most of this source. */
uint32_t live_ids_span(struct live_ids *c, struct profile *p, const struct stream_context *trace,
		       uint32_t most);
