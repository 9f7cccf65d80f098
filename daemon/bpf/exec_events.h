/*
 * Reports starts and ends of processes, which the kernel announces through BPF (Linux 5.8 with BTF,
 * CAP_BPF and CAP_PERFMON). Where that is refused, the caller gets a sentence with the reason, and
 * scans /proc instead.
 */
#pragma once

#include <sys/types.h>
#include "daemon/core/loop.h"

#define EXEC_EVENTS_WHY_MAX 200

struct exec_events;
struct exec_events_ops {
	/* @comm: the new program's name, cut to 15 bytes, unchecked */
	void (*on_exec)(void *userdata, pid_t pid, const char *comm, uint64_t mono_ns);
	/* The last thread of @pid exits; the kernel has not given its pid to another process yet.
	 * @status: as in wait(2). */
	void (*on_exit)(void *userdata, pid_t pid, int status, uint64_t mono_ns);
};

/* 0, or -errno with a sentence in @why (EXEC_EVENTS_WHY_MAX bytes). */
int exec_events_new(struct loop *loop, const struct exec_events_ops *ops, void *userdata,
		    struct exec_events **ret, char *why);
struct exec_events *exec_events_free(struct exec_events *e);
DEFINE_FREEP(struct exec_events, exec_events_free);
/* The number of events since the start for which the ring had no room. */
uint64_t exec_events_lost(const struct exec_events *e);
