/*
 * The agent's shared state, one per process. Three kinds of code touch it:
 *
 * - signal handlers (*_sig.c), in any thread: the counters, the ring and slots, by atomic
 * operations;
 * - application threads, when they begin and end (engine/thread_start.c) and in events: the same;
 * - the agent's thread: everything.
 */
#pragma once

#include <jvmti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "agent/base/clock.h"
#include "agent/base/ring.h"
#include "proto/wire.h"

#define PATH_BYTES 256
#define LABELS_MAX 32

/* Counters that handlers and application threads add to: numbers and weights of events. For each
 * kind of event taken = pushed + sum(drop) whenever no thread is in the middle of one. */
struct event_counters {
	uint64_t taken, taken_weight;
	uint64_t pushed, pushed_weight;
	struct {
		uint64_t n, weight;
	} drop[WIRE_DROP_COUNT];
	/* CPU time that recording these events took in application threads; 0 for CPU samples,
	 * and for times off the CPU that a handler recorded */
	uint64_t cost_ns;
};

struct counters {
	struct event_counters of[WIRE_EVENT_COUNT];
	uint64_t broken, exited; /* CPU samples only */
	uint64_t short_waits, short_waits_ns, unpaired_waits;
	uint64_t idle_waits, idle_waits_ns;
	uint64_t short_unmounted, short_unmounted_ns, unseen_unmounted; /* virtual threads' */
	uint64_t handled; /* samples taken by handlers */
	/* CPU time of handlers, estimated by handler_cost.h; only the agent's thread adds */
	uint64_t handler_ns;
	uint64_t handler_time[WIRE_TIME_COUNT]; /* histogram of the samples that were timed */
};

enum writer_idle {
	WRITER_WORKS, /* the writer will read the ring before it sleeps */
	WRITER_IDLE, /* any event wakes it */
	WRITER_RESTS, /* only urgent events wake it: session/rest.h */
};

struct agent {
	JavaVM *vm;
	JNIEnv *env; /* the JNIEnv of the agent's thread */
	struct counters counters;
	/* CPU time of the agent's thread that does not depend on the interval */
	uint64_t housekeeping_ns;
	struct ring ring;
	int wake_fd; /* eventfd by which handlers wake the agent's thread */
	uint32_t writer_idle; /* enum writer_idle: does the writer wait for wake_fd? */
	char library[PATH_BYTES]; /* path from which this library was loaded */
};

extern struct agent agent;

/* Wakes the agent's thread. Any thread, but no signal handler. */
void agent_wake(void);
/* Agent's thread: closes wake_fd when no thread can write to it any more, because the application
 * may get a file with the same number at once. */
void agent_close_wake_fd(void);
