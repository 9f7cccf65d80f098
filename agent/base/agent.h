/*
 * The agent's shared state. One process has one: `agent`. Three kinds of code touch it:
 *   handler   *_sig.c, in any thread: atomics, ring, slots; nothing else
 *   thread    the agent's own thread: everything
 *   starts    engine/thread_start.c, in application threads at their begin and end: slots, ring
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
 * event taken = pushed + sum(drop) whenever nobody is half way. */
struct event_counters {
	uint64_t taken, taken_weight;
	uint64_t pushed, pushed_weight;
	struct {
		uint64_t n, weight;
	} drop[WIRE_DROP_COUNT];
	uint64_t cost_ns; /* of the application's threads, for those that are told; not CPU's */
};

struct counters {
	struct event_counters of[WIRE_EVENT_COUNT];
	uint64_t broken, exited; /* of CPU samples */
	uint64_t short_waits, short_waits_ns, unpaired_waits;
	uint64_t idle_waits, idle_waits_ns;
	uint64_t handled; /* samples that handlers took */
	uint64_t handler_ns; /* their CPU time, by handler_cost.h; the agent's thread adds */
	uint64_t handler_time[WIRE_TIME_COUNT]; /* of those that are timed */
};

enum writer_idle {
	WRITER_WORKS, /* it looks into the ring before it waits */
	WRITER_IDLE, /* whatever comes wakes it */
	WRITER_RESTS, /* CPU samples wait until it has rested: rest.h */
};

struct agent {
	JavaVM *vm;
	JNIEnv *env; /* of the agent's thread */
	struct counters counters;
	uint64_t housekeeping_ns; /* of its thread's CPU time, whatever the interval is */
	struct ring ring;
	int wake_fd; /* eventfd: a handler wakes the idle writer */
	uint32_t writer_idle; /* enum writer_idle: does the writer wait for wake_fd? */
	char library[PATH_BYTES]; /* path this library was loaded from */
};

extern struct agent agent;

/* The agent's thread looks what there is to do. Any thread, at any time but in a handler. */
void agent_wake(void);
/* Agent's thread: close wake_fd once no thread can write to it any more, as its number may be a
 * file of the application's the moment after. */
void agent_close_wake_fd(void);
