/*
 * The last minutes of one target, event by event: when its threads were sampled, when and why each
 * waited, when all of them stood still. The history adds such events up; here each is kept, with
 * its stack, as long as there is room. Pure memory, in chunks, of which the oldest is dropped as a
 * whole. All targets share one budget (timelines_limit()): when it is exceeded, the tenant that
 * takes most loses its oldest chunk (docs/decisions/0012). Answers say since when they are
 * complete, and how many events found no room.
 *
 * All times are CLOCK_REALTIME (real_ns). The target chooses the times that it sends; so no event
 * ends in the future, and none is older than TIMELINE_KEEP_NS.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/ground/mem.h"
#include "daemon/profile/live_ids.h"
#include "daemon/profile/profile.h"
#include "daemon/stream/stream.h"

#define TIMELINE_CHUNK_NS 20000000000ull
#define TIMELINE_KEEP_NS  300000000000ull
#define TIMELINES_BYTES	  (12ul << 20) /* of all targets together, until timelines_limit() */

struct timelines; /* the budget that all share */
struct timeline; /* one target */

int timelines_new(struct timelines **ret);
struct timelines *
timelines_free(struct timelines *p); /* all struct timeline must be freed before */
/* Sets the bytes that all targets together may take; a single one may take half of them. */
void timelines_limit(struct timelines *p, size_t bytes);
size_t timelines_bytes(const struct timelines *p);
/* Drops chunks that are too old or exceed the budget; to be called once a second. */
void timelines_tick(struct timelines *p, uint64_t now_real_ns);

/* The target's process, and its tenant, see tenant_number(). timeline_new(): 0 or -ENOMEM. */
struct timeline_process {
	uint32_t pid;
	uint64_t start_time, tenant;
};
int timeline_new(struct timelines *p, const struct timeline_process *of, struct timeline **ret);
struct timeline *timeline_free(struct timeline *t); /* NULL is allowed */
DEFINE_FREEP(struct timeline, timeline_free);
/* To be called before the stream forgets its nodes, or ends: copies the stacks of all events. */
void timeline_reset(struct timeline *t);

enum timeline_kind {
	TIMELINE_CPU, /* a sample of CPU time; its length is the time that it stands for */
	TIMELINE_WALL, /* a wall-clock sample; its length is the time that it stands for */
	TIMELINE_LOCK, /* a wait; reason: enum wire_wait */
	TIMELINE_OFFCPU, /* an interval off the CPU; reason: enum offcpu_reason */
	TIMELINE_BAND, /* no thread ran Java code; reason: enum timeline_band */
	TIMELINE_KIND_COUNT
};
extern const char *const timeline_kind_names[TIMELINE_KIND_COUNT];
enum timeline_band { TIMELINE_SAFEPOINT, TIMELINE_GC, TIMELINE_BAND_COUNT };
extern const char *const timeline_band_names[TIMELINE_BAND_COUNT];
/* Samples are moments: their length is a weight, not an interval. */
static inline bool timeline_is_moment(unsigned kind)
{
	return kind == TIMELINE_CPU || kind == TIMELINE_WALL;
}

#define TIMELINE_IDLE  1u /* a wait for work */
#define TIMELINE_TIMED 2u /* it had a time limit */
#define TIMELINE_OPEN  4u /* in progress: it ends when the answer is made */
#define TIMELINE_TWICE 16u /* of TIMELINE_OFFCPU: there is a TIMELINE_LOCK of the same wait */
#define TIMELINE_SUM \
	8u /* several waits, of whose times only the sum and the end of the last are known */

/* An event to be added. Strings are borrowed; NULL means "". */
struct timeline_event {
	enum timeline_kind kind;
	uint8_t reason, flags;
	int32_t syscall; /* -1 = none */
	uint64_t end_ns; /* a moment's own time */
	uint64_t length_ns;
	uint64_t runqueue_ns; /* at the end of the interval: the thread was runnable, but did not
				 run */
	uint32_t tid; /* the number that daemon/host gave the thread */
	uint32_t thread_number; /* of its name, as in struct stream_sample; 0 = unknown */
	const char *thread;
	uint32_t node; /* leaf of its stack in the stream; 0 = none */
	uint32_t owner_tid, owner_node, waker_tid; /* 0 = unknown */
	const char *owner, *waker;
	const char *class_name; /* of the lock */
	uint32_t identity;
	const char *trace_id, *span_id;
	uint32_t n; /* events that it stands for; 0 means 1 */
};
/* @stream: the stream of its nodes, the same until timeline_reset(); NULL = it has none. */
void timeline_add(struct timeline *t, const struct stream *stream, const struct timeline_event *e,
		  uint64_t now_real_ns);

/* ---- questions (timeline_query.c) ---- */

struct timeline_question {
	uint64_t from_ns, to_ns;
	const char *thread; /* a part of the thread's name; NULL = all threads */
	const char *trace; /* id of a trace; NULL = all events */
	bool around; /* with @trace: all events of the threads that had an event of the trace in
		      * this time, and of those that held a lock for which it waited */
	bool stacks; /* with the stacks, which costs most */
};

/* A thread in an answer. Threads of one number may have had several names: then there are
 * several. */
struct timeline_thread {
	uint32_t tid;
	const char *name;
};

/*
 * An event in an answer. Threads are positions in the answer's list, + 1; 0 = none, or unknown.
 * Strings are ids in the profile of the row's part, stacks are nodes of stacks[part].
 */
struct timeline_row {
	uint64_t end_ns, length_ns, runqueue_ns;
	uint32_t thread, owner, waker;
	uint32_t stack, owner_stack; /* 0 = none, or not asked for */
	uint32_t class_name, trace, span;
	uint32_t identity, n;
	int32_t syscall;
	uint32_t part;
	uint8_t kind, reason, flags;
};

struct timeline_sum {
	uint64_t events; /* including all that one record stands for */
	uint64_t ns; /* sum of their lengths */
	uint64_t inside_ns; /* of the intervals: the sum of what lies within the question's span */
};

struct timeline_answer {
	struct timeline_row *rows; /* in the order of their arrival */
	uint32_t n_rows;
	struct timeline_thread *threads; /* the answer owns their names */
	bool *around; /* timeline_question.around: by thread; [0] is that of no thread */
	uint32_t n_threads;
	const struct profile **parts; /* one profile for each part; borrowed from the timeline */
	const struct profile **stacks; /* by part; several parts may have the same; NULL = not
					  asked for. Behind the last part: own_stacks */
	uint32_t n_parts;
	struct profile *own_stacks; /* of parts whose nodes are those of the stream */
	struct live_ids ids; /* of own_stacks */
	uint64_t since_ns; /* no event that ended later is missing; UINT64_MAX = nothing has come
			      yet */
	bool forgotten; /* earlier events were dropped, because of their age or for want of room */
	struct timeline_sum sums[TIMELINE_KIND_COUNT]; /* of the rows */
	struct timeline_sum left_out[TIMELINE_KIND_COUNT]; /* events of other threads and traces */
	struct timeline_sum no_room[TIMELINE_KIND_COUNT]; /* events without room, in the chunks of
							     this answer */
};
/* Answers a question; valid until the next timeline_add(). Owners and wakers are in the list of
 * threads even if they have no row. 0 or -ENOMEM. */
int timeline_query(const struct timeline *t, const struct timeline_question *q,
		   struct timeline_answer *ret);
/* The stack in a->own_stacks that ends in @node of the target's stream; 0 = none, or no stacks were
 * asked for. For waits that no event tells of yet. */
uint32_t timeline_answer_stack(struct timeline_answer *a, const struct stream *stream,
			       uint32_t node);
void timeline_answer_free(struct timeline_answer *a);
