/*
 * Wall-clock samples of selected Java threads, running or not: for machines where the host engine
 * cannot follow sleeping threads. Off by default, because a signal ends some system calls of the
 * application early (EINTR; docs/operations.md lists them).
 *
 * Each thread is polled once per interval, at a random moment, so that no periodic behaviour of the
 * application distorts its shares. With more threads than WALL_POLLS_PER_MS allows the interval is
 * longer. A sample's weight is one interval, or more if it is late, so that the weights of a thread
 * add up to the time it lived. A thread gets a signal only if its stack may have changed. If it has
 * used no CPU time since its last sample, or the kernel reports it blocked in the same system call
 * with the same stack pointer and first argument, its last stack is sent again.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "agent/base/events.h"

#define WALL_THREADS_MAX  8192u
#define WALL_POLLS_PER_MS 8u /* most polls in a millisecond; also limits signals */
#define WALL_INTERVAL_NS  (50 * NS_PER_MS)

enum wall_state {
	WALL_FREE,
	WALL_IDLE, /* no signal is pending */
	WALL_SENT,
	WALL_IN_HANDLER,
};

/* One thread; the signal's cookie points here. */
struct wall_thread {
	uint32_t state; /* enum wall_state */
	uint32_t tid;
	/* used by the handler while the state is WALL_IN_HANDLER */
	uint64_t weight_ns; /* weight of the sample that the pending signal takes */
	uint64_t pc, sp; /* where the last signal interrupted the thread */
	/* first argument of the system call in which it was blocked; 0 = unknown */
	uint64_t argument;
	/* used by the agent's thread */
	uint64_t accounted_ns; /* samples cover its time up to this moment, CLOCK_MONOTONIC */
	uint64_t undelivered_ns; /* weight of signals that were not delivered */
	/* polls since the last signal, before the writer has written its sample */
	uint32_t unwritten;
	uint64_t cpu_ns; /* its CPU time when it was blocked at pc; 0 = it was not */
	/* its last sample as written: stack, thread number, context; epoch 0 = none */
	uint32_t node, wire_tid, epoch, context, context_generation;
};

struct wall {
	struct wall_thread *threads; /* WALL_THREADS_MAX */
	uint32_t on; /* the handler ignores signals when 0 */
};
extern struct wall wall;

extern const struct events_source wall_source;

/* A pass over Java threads has found @tid with this name. */
void wall_thread_seen(uint32_t tid, const char *name);
/* The writer has written a sample of @slot (ring_sample.slot). @epoch: its node and thread number
 * are valid only in this epoch. @generation: its context is valid until its id gets another meaning
 * in a later generation. */
void wall_written(uint32_t slot, const struct wire_sample *record, uint32_t epoch,
		  uint32_t generation);
void wall_free(void); /* only when no handler is running */
uint64_t wall_bytes(void);

/* wall_sig.c, in the handler. false = the signal is not ours. */
bool wall_on_signal_sig(const siginfo_t *info, void *ucontext);
