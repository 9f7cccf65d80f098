/*
 * The events other than CPU samples: waits, allocations, wall-clock samples. Holds which of them
 * are on, and how many application threads are inside our code for one. Sources (events/sources.c)
 * begin and end in the agent's thread; their events occur in application threads, which check `on`
 * first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/base/agent.h"
#include "proto/wire.h"

#define LOCK_MIN_NS_DEFAULT NS_PER_MS

struct events {
	/* bits 1 << enum wire_event; CPU is not among them, it belongs to the engine; OFFCPU is if
	 * virtual threads report their waits, else it is the engine's, too */
	uint32_t on;
	uint64_t lock_min_ns;
	bool idle_apart; /* idle waits are counted apart and reported in sums */
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

/* The events that START asks for, as bits 1 << enum wire_event. */
static inline uint32_t events_wanted(const struct wire_start *start)
{
	return start->events ? (uint32_t)start->events : 1u << WIRE_EVENT_CPU;
}

static inline bool events_on(enum wire_event event)
{
	return __atomic_load_n(&events.on, __ATOMIC_ACQUIRE) & 1u << event;
}

/* Application threads. false = the event is off, and the thread must not touch anything of the
 * agent. true = the thread must call events_leave() afterwards. */
bool events_enter(enum wire_event event);
void events_leave(void);
/* Agent's thread, after an event was switched off: waits up to half a second until no thread is
 * inside. false = a thread hangs there. */
bool events_wait_until_left(void);

/* A source of events. All calls in the agent's thread, attached to the JVM. */
struct events_source {
	const char *step; /* the step that its NOTE names */
	enum wire_event event; /* the source is on while START asks for this event */
	/* Starts, or applies the settings of another START. Sets *note to a sentence for the owner
	 * that stays valid, or leaves it as "". < 0: the source is off; -EAGAIN: the JVM is still
	 * starting, and begin() is called again soon. */
	int (*begin)(const struct wire_start *start, const char **note);
	void (*end)(void);
	/* Periodic work. Returns the time of the next call, CLOCK_MONOTONIC in ns; UINT64_MAX = no
	 * further call. NULL = no such work. */
	uint64_t (*tick)(uint64_t now_ns);
	/* true = tick() must be called now, before that time. NULL = never. */
	bool (*due)(void);
};
