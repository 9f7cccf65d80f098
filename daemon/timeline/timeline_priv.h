/* Inside the timeline room: timeline.c (adding, the budget), timeline_query.c. */
#pragma once

#include "daemon/profile/live_ids.h"
#include "daemon/timeline/timeline.h"

/* A sample: what most events are, so it has no more than it needs. */
struct timeline_tick {
	uint64_t at_ns, weight_ns;
	uint32_t thread, stack, trace, span;
	uint32_t kind;
};

/* A wait or another interval. Threads: positions in the chunk's profile, + 1. */
struct timeline_interval {
	uint64_t end_ns, length_ns, runqueue_ns;
	uint32_t thread, owner, waker;
	uint32_t stack, owner_stack;
	uint32_t class_name, trace, span;
	uint32_t identity, n;
	int32_t syscall;
	uint8_t kind, reason, flags;
};

/* What came in one span of time, with the names and stacks of it. */
struct timeline_chunk {
	struct timeline_chunk *next; /* the next newer one */
	uint64_t begin_ns, end_ns; /* when its events came */
	uint64_t first_ns, last_ns; /* the earliest begin and the latest end of them */
	uint64_t serial;
	struct profile *profile; /* threads, strings, stacks; no rows */
	struct timeline_tick *ticks;
	struct timeline_interval *intervals;
	uint32_t n_ticks, cap_ticks, n_intervals, cap_intervals;
	struct timeline_sum no_room[TIMELINE_KIND_COUNT];
};

struct timeline {
	struct timelines *pool;
	struct timeline *next; /* of the pool */
	struct timeline_process of;
	struct timeline_chunk *oldest, *newest;
	struct live_ids ids; /* of the newest chunk's profile */
	uint64_t serial;
	uint64_t begin_ns; /* nothing is missing since then; 0 = nothing came yet */
	bool forgot; /* a chunk has gone */
	size_t bytes; /* as of the last look, timeline.c */
};

size_t timeline_chunk_bytes(const struct timeline_chunk *c);
