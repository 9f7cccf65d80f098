/* Shared by the files of the timeline room: timeline.c (adding, the budget), timeline_query.c
 * (answers). */
#pragma once

#include "daemon/profile/live_ids.h"
#include "daemon/timeline/timeline.h"

/* A sample. Most events are samples, so it has only the fields that it needs, in 32 bytes. */
struct timeline_tick {
	uint64_t at_ns, weight_ns;
	uint32_t thread : 28, kind : 4; /* a profile has at most 2^21 threads */
	uint32_t stack, trace, span;
};

/* A wait or another interval. Threads are positions in the chunk's profile, + 1. */
struct timeline_interval {
	uint64_t end_ns, length_ns, runqueue_ns;
	uint32_t thread, owner, waker;
	uint32_t stack, owner_stack;
	uint32_t class_name, trace, span;
	uint32_t identity, n;
	int32_t syscall;
	uint8_t kind, reason, flags;
};

/* The stacks of chunks whose nodes the stream has forgotten. */
struct timeline_stacks {
	struct profile *profile;
	uint32_t chunks; /* number of chunks that refer to it; the last one frees it */
};

/* The events that arrived in one span of time, with the names of their threads, locks and traces.
 */
struct timeline_chunk {
	struct timeline_chunk *next; /* the next newer one */
	uint64_t begin_ns, end_ns; /* when its events arrived */
	uint64_t first_ns, last_ns; /* their earliest begin and their latest end */
	uint64_t serial;
	struct profile *profile; /* threads and strings; no rows */
	/* what the stacks of its events are nodes of; NULL = of timeline.stream */
	struct timeline_stacks *stacks;
	struct timeline_tick *ticks;
	struct timeline_interval *intervals;
	uint32_t n_ticks, cap_ticks, n_intervals, cap_intervals;
	struct timeline_sum no_room[TIMELINE_KIND_COUNT];
};

struct timeline {
	struct timelines *pool;
	struct timeline *next; /* in the list of the budget */
	struct timeline_process of;
	struct timeline_chunk *oldest, *newest;
	struct live_ids ids; /* of the newest chunk's profile; only process and threads */
	const struct stream *stream; /* until timeline_reset(); NULL = none has been seen */
	uint64_t serial;
	uint64_t begin_ns; /* nothing since then is missing; 0 = nothing has come yet */
	bool forgot; /* a chunk was dropped */
	size_t bytes; /* as last measured */
	size_t tenant_bytes; /* of its tenant's timelines, while the budget is exceeded */
};

size_t timeline_chunk_bytes(const struct timeline_chunk *c);
struct live_process timeline_process_of(const struct timeline *t);
