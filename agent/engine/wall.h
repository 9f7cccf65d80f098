/*
 * Wall-clock samples of chosen Java threads, whether they run or not: for machines where the host
 * engine cannot follow sleeping threads. Off by default, because a signal ends some system calls of
 * the application early (EINTR; docs/operations.md says which).
 *
 * Each thread is looked at once in every interval, at a random moment, so that no periodic
 * behaviour of the application distorts its shares; with more threads than WALL_LOOKS_PER_MS allows
 * the interval is longer. A sample stands for one interval, a late one for more, so that the
 * weights of a thread add up to the time it lived. A thread gets a signal only if its stack may
 * have changed. If it has used no CPU time since its last sample, or the kernel reports it blocked
 * in the same system call with the same stack pointer and first argument, its last stack is sent
 * again.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/events.h"

#define WALL_THREADS_MAX  8192u
#define WALL_LOOKS_PER_MS 8u /* so many signals at most, too */
#define WALL_INTERVAL_NS  (50 * NS_PER_MS)

enum wall_state {
	WALL_FREE,
	WALL_IDLE, /* no signal on its way */
	WALL_SENT,
	WALL_IN_HANDLER,
};

/* One thread; the signal's cookie points here. */
struct wall_thread {
	uint32_t state; /* enum wall_state */
	uint32_t tid;
	/* by the handler while WALL_IN_HANDLER */
	uint64_t weight_ns; /* what the signal on its way stands for */
	uint64_t pc, sp; /* where it interrupted the thread */
	uint64_t argument; /* of the system call it is blocked in, then; 0 = not known */
	/* by the agent's thread */
	uint64_t accounted_ns; /* its time is in samples up to here, CLOCK_MONOTONIC */
	uint64_t undelivered_ns; /* of signals that were not delivered */
	uint32_t unwritten; /* looks since the signal's sample, while the writer had not come to it
			     */
	uint64_t cpu_ns; /* its clock when it was blocked at pc; 0 = was not */
	/* its last sample as the writer wrote it: stack, number; epoch 0 = none */
	uint32_t node, wire_tid, epoch, context, context_turn;
};

struct wall {
	struct wall_thread *threads; /* WALL_THREADS_MAX */
	uint32_t on; /* the handler ignores signals when 0 */
};
extern struct wall wall;

extern const struct events_source wall_source;

/* A Java thread is seen under this name. */
void wall_thread_seen(uint32_t tid, const char *name);
/* The writer wrote a sample of @slot (ring_sample.slot); @epoch: for how long its node means
 * that; @turn: the same of its context. */
void wall_written(uint32_t slot, const struct wire_sample *record, uint32_t epoch, uint32_t turn);
void wall_free(void); /* no handler is inside */
uint64_t wall_bytes(void);

/* wall_sig.c: the handler's part. false = not a signal of ours. */
bool wall_on_signal_sig(const siginfo_t *info, void *ucontext);
