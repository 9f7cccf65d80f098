/*
 * The agent's shared state, one per process. Three kinds of code touch it:
 *   signal handlers      (*_sig.c), in any thread: counters, the ring and slots, by atomic
 * operations the agent's thread   everything application threads  at their begin and end
 * (engine/thread_start.c) and in events: as handlers
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

/* Counters that handlers and application threads add to, in numbers and in weight. For each kind of
 * event taken = pushed + sum(drop) whenever no thread is between the two. */
struct event_counters {
	uint64_t taken, taken_weight;
	uint64_t pushed, pushed_weight;
	struct {
		uint64_t n, weight;
	} drop[WIRE_DROP_COUNT];
	uint64_t cost_ns; /* CPU time of application threads for recorded events; not for CPU
			     samples */
};

struct counters {
	struct event_counters of[WIRE_EVENT_COUNT];
	uint64_t broken, exited; /* of CPU samples */
	uint64_t short_waits, short_waits_ns, unpaired_waits;
	uint64_t idle_waits, idle_waits_ns;
	uint64_t handled; /* samples that handlers took */
	uint64_t handler_ns; /* their CPU time, estimated by handler_cost.h; the agent's thread adds
			      */
	uint64_t handler_time[WIRE_TIME_COUNT]; /* a histogram of the timed ones */
};

enum writer_idle {
	WRITER_WORKS, /* it will read the ring before it waits */
	WRITER_IDLE, /* any event wakes it */
	WRITER_RESTS, /* only urgent events wake it: session/rest.h */
};

struct agent {
	JavaVM *vm;
	JNIEnv *env; /* of the agent's thread */
	struct counters counters;
	uint64_t housekeeping_ns; /* CPU time of its thread that does not depend on the interval */
	struct ring ring;
	int wake_fd; /* eventfd by which handlers wake the agent's thread */
	uint32_t writer_idle; /* enum writer_idle: does the writer wait for wake_fd? */
	char library[PATH_BYTES]; /* path this library was loaded from */
};

extern struct agent agent;

/* Wakes the agent's thread. Any thread, but no signal handler. */
void agent_wake(void);
/* Agent's thread: close wake_fd once no thread can write to it any more, as its number may be a
 * file of the application's the moment after. */
void agent_close_wake_fd(void);
