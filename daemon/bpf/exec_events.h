/*
 * Starts and ends of processes as reported by the kernel through BPF (Linux 5.8 with BTF, CAP_BPF
 * and CAP_PERFMON). If that is refused, there is a sentence with the reason, and a scan of /proc
 * instead.
 */
#pragma once

#include <sys/types.h>
#include "daemon/core/loop.h"

#define EXEC_EVENTS_WHY_MAX 200

struct exec_events;
struct exec_events_ops {
	/* @comm: the new program's name, cut to 15 bytes, not checked */
	void (*on_exec)(void *userdata, pid_t pid, const char *comm, uint64_t mono_ns);
	/* the last thread of @pid exits, before the pid can mean another process. @status: as in
	 * wait(2) */
	void (*on_exit)(void *userdata, pid_t pid, int status, uint64_t mono_ns);
};

/* 0, or -errno with a sentence in @why (EXEC_EVENTS_WHY_MAX bytes). */
int exec_events_new(struct loop *loop, const struct exec_events_ops *ops, void *userdata,
		    struct exec_events **ret, char *why);
struct exec_events *exec_events_free(struct exec_events *e);
DEFINE_FREEP(struct exec_events, exec_events_free);
/* Events for which the ring had no room, since the start. */
uint64_t exec_events_lost(const struct exec_events *e);
