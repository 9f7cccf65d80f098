/*
 * One interval in which a thread was off the CPU, as the daemon tells of it: what the kernel knows
 * (duration, run queue, system call, waker, kernel stack), what the JVM said of the thread when it
 * ran again (Java stack, status), and the wait for a lock that it was part of. Made by
 * daemon/host/offcpu_join.h. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>
#include "daemon/bpf/offcpu.h"
#include "daemon/stream/stream.h"

/* Why: X(ENUM, "name"). The names are part of the JSON. */
#define OFFCPU_REASONS(X)         \
	X(LOCK, "lock")           \
	X(PARK, "park")           \
	X(WAIT, "wait")           \
	X(SLEEP, "sleep")         \
	X(POLL, "poll")           \
	X(SOCKET, "socket")       \
	X(ACCEPT, "accept")       \
	X(CONNECT, "connect")     \
	X(FILE, "file")           \
	X(FSYNC, "fsync")         \
	X(PIPE, "pipe")           \
	X(FAULT, "fault")         \
	X(DISK, "disk")           \
	X(RUNQUEUE, "runqueue")   \
	X(THROTTLED, "throttled") \
	X(SAFEPOINT, "safepoint") \
	X(GC, "gc")               \
	X(OTHER, "other")

enum offcpu_reason {
#define X(id, name) OFFCPU_REASON_##id,
	OFFCPU_REASONS(X)
#undef X
		OFFCPU_REASON_COUNT
};
extern const char *const offcpu_reason_names[OFFCPU_REASON_COUNT];

#define OFFCPU_NO_CLASS OFFCPU_CLASS_COUNT /* the kernel told nothing of it */

struct offcpu_event {
	uint64_t end_ns; /* CLOCK_MONOTONIC: when the thread ran again */
	uint64_t duration_ns; /* run queue included */
	uint64_t runqueue_ns; /* of it: runnable, but another thread ran */
	uint32_t tid; /* the platform thread, as in struct stream_sample */
	uint32_t virtual_tid; /* the virtual thread on it; 0 = none. Alone if it has no carrier */
	/* their names, and the waker's if it is a thread of the same JVM; "" = unknown. Filled in
	 * when the event is passed on. */
	const char *thread, *virtual_thread, *waker;
	enum offcpu_reason reason;
	unsigned kernel_class; /* enum offcpu_class, or OFFCPU_NO_CLASS */
	uint8_t status; /* enum wire_offcpu_status */
	bool idle; /* a wait for work, idle.h */
	bool has_stack; /* the agent told of it: node is its stack */
	int syscall_nr; /* -1 = none: a fault, or preempted */
	/* who woke it: in the first pid namespace, and its own number if it is a thread of a
	 * target; 0 = unknown, or the kernel */
	uint32_t waker_pid, waker_tid, waker_own_tid;
	uint32_t node; /* leaf of its stack; 0 = none */
	const struct stream_lock *lock; /* the same wait as an event of lock; NULL = none */
	const struct stream_context *trace; /* NULL = none */
	const uint64_t *ips; /* the kernel's frames, innermost first */
	unsigned n_ips;
};

/* Fills in reason and idle from class, status and stack. @thread: its name, "" unknown. */
void offcpu_event_explain(struct offcpu_event *e, const struct stream *stream, const char *thread);
/* The frame on top of its stack in profiles: "sleep", "lock org.shop.Cache", "other futex". */
#define OFFCPU_TEXT_MAX 320
const char *offcpu_event_text(const struct offcpu_event *e, char buf[OFFCPU_TEXT_MAX]);
/* The name of a system call of this machine; NULL = not one of those that often wait. */
const char *offcpu_syscall_name(int nr);
