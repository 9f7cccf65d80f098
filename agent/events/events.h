/*
 * What is collected beside CPU samples: waits, allocations, wall-clock samples. A source is a way
 * to be told of them; START's `events` says which are on. Sources begin and end in the agent's
 * thread; what they are told comes in application threads, which look at `on` first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/agent.h"
#include "agent/ring.h"
#include "proto/wire.h"

#define LOCK_MIN_NS_DEFAULT NS_PER_MS

struct events {
	uint32_t on; /* bits 1 << enum wire_event, of sources: CPU is the engine's */
	uint64_t lock_min_ns;
	bool idle_apart; /* waits for want of work are counted apart and told in sums */
	/* application threads that may touch the ring or our buffers; what all read lies apart */
	uint32_t inside __attribute__((aligned(64)));
};
extern struct events events;

/* The threshold that START asks for. */
static inline uint64_t events_lock_min_ns(const struct wire_start *start)
{
	return start->lock_min_ns ? start->lock_min_ns : LOCK_MIN_NS_DEFAULT;
}

static inline bool events_on(enum wire_event event)
{
	return __atomic_load_n(&events.on, __ATOMIC_ACQUIRE) & 1u << event;
}

/* All calls in the agent's thread, attached to the JVM. */
struct events_source {
	const char *step; /* of its NOTE */
	enum wire_event event; /* is on in START as long as the source is */
	/* Begin, or go on with what another START says. "" or, in *note, what the owner should
	 * know: a sentence that stays valid. < 0: the source is off. */
	int (*begin)(const struct wire_start *start, const char **note);
	void (*end)(void);
	/* Something to do from time to time: returns when next, UINT64_MAX = never. NULL = nothing.
	 */
	uint64_t (*tick)(uint64_t now_ns);
	/* Has it something to do before that? NULL = never. */
	bool (*due)(void);
};

/* From begin() on: what the owner should know now, as *note of begin(). */
void events_note(const struct events_source *source, const char *note);

/* What START's `events` means. */
static inline uint32_t events_wanted(const struct wire_start *start)
{
	return start->events ? (uint32_t)start->events : 1u << WIRE_EVENT_CPU;
}

/* A session is new: its reader knows no note yet. */
void events_hello(void);
/* On and off as @start says; notes are written. */
void events_begin(const struct wire_start *start);
/* Everything off and put back. false = a thread of the application hangs inside. */
bool events_end(void);
void events_tick(uint64_t now_ns);
uint64_t events_next_ns(void); /* when events_tick() has something to do */
uint64_t events_bytes(void);

/* push.c, application threads in native state: one event into the ring, with the stack from the
 * last Java frame. @head: all but frames; its tid is that of @java_thread (0 = the calling thread),
 * its virtual thread is filled in. Counts it in the books of its event. false = dropped. */
bool events_push(struct ring_sample *head, uint64_t java_thread);
/* The same without a stack of its own: frames are given. */
bool events_push_frames(struct ring_sample *head, const struct walk_frame *frames);
/* A RING_NAME, ahead of the event that it is for. false = not now. */
bool events_push_name(const struct ring_sample *head, const struct walk_frame *text);
/* false = the event is off: nothing of ours may be touched. Else leave. */
bool events_enter(enum wire_event event);
void events_leave(void);
/* Between the two: a buffer of WALK_FRAMES_MAX frames. -1 = all are in use. */
int events_frames(struct walk_frame **ret);
void events_frames_done(int buffer);
uint64_t events_push_bytes(void);
int events_push_init(void);
void events_push_free(void);
