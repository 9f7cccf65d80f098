/*
 * The events beside CPU samples: waits, allocations, wall-clock samples. Keeps which of them are
 * on, and how many application threads are inside our code for one. Sources (events/sources.c)
 * begin and end in the agent's thread; their events come in application threads, which check `on`
 * first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/agent.h"
#include "proto/wire.h"

#define LOCK_MIN_NS_DEFAULT NS_PER_MS

struct events {
	uint32_t on; /* bits 1 << enum wire_event, of sources: CPU is the engine's */
	uint64_t lock_min_ns;
	bool idle_apart; /* waits for want of work are counted apart and reported in sums */
	/* number of application threads that may touch the ring or the agent's buffers; on a
	 * separate cache line */
	uint32_t inside __attribute__((aligned(64)));
};
extern struct events events;

/* The threshold that START asks for. */
static inline uint64_t events_lock_min_ns(const struct wire_start *start)
{
	return start->lock_min_ns ? start->lock_min_ns : LOCK_MIN_NS_DEFAULT;
}

/* What START's `events` means. */
static inline uint32_t events_wanted(const struct wire_start *start)
{
	return start->events ? (uint32_t)start->events : 1u << WIRE_EVENT_CPU;
}

static inline bool events_on(enum wire_event event)
{
	return __atomic_load_n(&events.on, __ATOMIC_ACQUIRE) & 1u << event;
}

/* Application threads. false = the event is off: they must not touch anything of the agent. true:
 * call events_leave() afterwards. */
bool events_enter(enum wire_event event);
void events_leave(void);
/* Agent's thread, after an event was switched off: waits until no thread is inside. false = one
 * hangs there. */
bool events_wait_until_left(void);

/* A source of events. All calls in the agent's thread, attached to the JVM. */
struct events_source {
	const char *step; /* of its NOTE */
	enum wire_event event; /* is on in START as long as the source is */
	/* Starts, or applies the settings of another START. "" or, in *note, a sentence for the
	 * owner that stays valid. < 0: the source is off. */
	int (*begin)(const struct wire_start *start, const char **note);
	void (*end)(void);
	/* Something to do from time to time: returns when next, UINT64_MAX = never. NULL = nothing.
	 */
	uint64_t (*tick)(uint64_t now_ns);
	/* Has it something to do before that? NULL = never. */
	bool (*due)(void);
};
