/*
 * The last minutes of one target, event by event: when each of its threads was sampled, when and
 * for what it waited, when all of them stood still. The history adds such events up; here they stay
 * apart, with their stacks, until there is no room for them. Pure memory, in chunks: the oldest
 * chunk goes as a whole. All targets share one budget (timelines_limit()): above it the tenant that
 * has most loses its oldest chunk (docs/decisions/0012). What is not there any more is said:
 * answers tell since when they are complete, and how much found no room.
 *
 * All times are CLOCK_REALTIME (real_ns). A target chooses the times that it sends: no event ends
 * in the future, and none is older than TIMELINE_KEEP_NS.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "daemon/profile/profile.h"
#include "daemon/stream/stream.h"

#define TIMELINE_CHUNK_NS 20000000000ull
#define TIMELINE_KEEP_NS  300000000000ull
#define TIMELINES_BYTES	  (24ul << 20) /* of all targets together, at first */

struct timelines; /* the budget */
struct timeline; /* one target's */

int timelines_new(struct timelines **ret);
struct timelines *timelines_free(struct timelines *p); /* after the last struct timeline */
/* Bytes that all of them may take; one of them takes at most half of these. */
void timelines_limit(struct timelines *p, size_t bytes);
size_t timelines_bytes(const struct timelines *p);
/* Once a second: chunks that are too old, or above the budget, go. */
void timelines_tick(struct timelines *p, uint64_t now_real_ns);

/* Which process it is, and @tenant (tenant_number()) pays. 0 or -ENOMEM. */
struct timeline_process {
	uint32_t pid;
	uint64_t start_time, tenant;
};
int timeline_new(struct timelines *p, const struct timeline_process *of, struct timeline **ret);
struct timeline *timeline_free(struct timeline *t); /* NULL is allowed */
DEFINE_FREEP(struct timeline, timeline_free);
/* The stream's node ids have a new meaning from now on. */
void timeline_reset(struct timeline *t);

enum timeline_kind {
	TIMELINE_CPU, /* a moment: a sample on the CPU; its length is the CPU time it stands for */
	TIMELINE_WALL, /* a moment: a wall-clock sample, likewise */
	TIMELINE_LOCK, /* a wait; reason: enum wire_wait */
	TIMELINE_OFFCPU, /* an interval off the CPU; reason: enum offcpu_reason */
	TIMELINE_BAND, /* no thread ran Java; reason: enum timeline_band */
	TIMELINE_KIND_COUNT
};
extern const char *const timeline_kind_names[TIMELINE_KIND_COUNT];
enum timeline_band { TIMELINE_SAFEPOINT, TIMELINE_GC, TIMELINE_BAND_COUNT };
extern const char *const timeline_band_names[TIMELINE_BAND_COUNT];
/* Is it a moment? Then its length is a weight and no interval. */
static inline bool timeline_is_moment(unsigned kind)
{
	return kind == TIMELINE_CPU || kind == TIMELINE_WALL;
}

#define TIMELINE_IDLE  1u /* a wait for work */
#define TIMELINE_TIMED 2u /* with a time limit */
#define TIMELINE_OPEN  4u /* goes on: ends at the moment of the question */
#define TIMELINE_TWICE 16u /* of TIMELINE_OFFCPU: the same wait is there as TIMELINE_LOCK too */
#define TIMELINE_SUM \
	8u /* several waits, of whose times only the sum and the end of the last are known */

/* What happened, as it comes in. Strings are borrowed; NULL is as good as "". */
struct timeline_event {
	enum timeline_kind kind;
	uint8_t reason, flags;
	int32_t syscall; /* -1 = none */
	uint64_t end_ns; /* of a moment: itself */
	uint64_t length_ns;
	uint64_t runqueue_ns; /* the end of it, in which the thread could have run */
	uint32_t tid; /* the host room's number of the thread */
	const char *thread;
	uint32_t node; /* the leaf of its stack in the stream; 0 = none */
	uint32_t owner_tid, owner_node, waker_tid; /* 0 = unknown */
	const char *owner, *waker;
	const char *class_name; /* of the lock */
	uint32_t identity;
	const char *trace_id, *span_id;
	uint32_t n; /* events that it stands for; 0 = 1 */
};
/* @stream: where its nodes are; NULL = it has none. */
void timeline_add(struct timeline *t, const struct stream *stream, const struct timeline_event *e,
		  uint64_t now_real_ns);
size_t timeline_bytes(const struct timeline *t);

/* ---- questions (timeline_query.c) ---- */

struct timeline_question {
	uint64_t from_ns, to_ns;
	const char *thread; /* part of a thread's name; NULL = all */
	const char *trace; /* a trace's id; NULL = all */
};

/* A thread of an answer: its number and its name; one number may have had several. */
struct timeline_thread {
	uint32_t tid;
	const char *name;
};

/*
 * An event of an answer. Threads are positions in the answer's list, + 1 (0 = none, or unknown).
 * Stacks and strings are ids in the profile of its part.
 */
struct timeline_row {
	uint64_t end_ns, length_ns, runqueue_ns;
	uint32_t thread, owner, waker;
	uint32_t stack, owner_stack; /* 0 = none */
	uint32_t class_name, trace, span;
	uint32_t identity, n;
	int32_t syscall;
	uint32_t part;
	uint8_t kind, reason, flags;
};

struct timeline_sum {
	uint64_t events; /* with all that a record stands for */
	uint64_t ns; /* their whole lengths */
	uint64_t inside_ns; /* of those that are intervals, the part within the question's span */
};

struct timeline_answer {
	struct timeline_row *rows; /* in the order in which they came */
	uint32_t n_rows;
	struct timeline_thread *threads; /* names are the answer's */
	uint32_t n_threads;
	const struct profile **parts; /* borrowed from the timeline */
	uint32_t n_parts;
	uint64_t since_ns; /* nothing that ended later is missing; UINT64_MAX = nothing came yet */
	bool forgotten; /* there was something before, which has gone for want of room or by age */
	struct timeline_sum sums[TIMELINE_KIND_COUNT]; /* of the rows */
	struct timeline_sum left_out[TIMELINE_KIND_COUNT]; /* of other threads and traces */
	struct timeline_sum no_room[TIMELINE_KIND_COUNT]; /* in the chunks that it is made from */
};
/* Valid until the next timeline_add(). Owners and wakers are in the list of threads although they
 * may have no row. 0 or -ENOMEM. */
int timeline_query(const struct timeline *t, const struct timeline_question *q,
		   struct timeline_answer *ret);
void timeline_answer_free(struct timeline_answer *a);
