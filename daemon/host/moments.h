/* Events of targets for their timelines: each as it happened, with the daemon's time of it. */
#pragma once

#include "daemon/host/host_priv.h"

/* @tid: the host room's number of the thread; the samples have the stream's own. */
void host_moment_sample(const struct host_entry *e, const struct target *t, enum timeline_kind kind,
			const struct stream_sample *s, uint32_t tid);
/* A wait that ended, with the host room's numbers; @idle: a wait for work. */
void host_moment_lock(const struct host_entry *e, const struct target *t,
		      const struct stream_lock *w, bool idle);
/* An interval off the CPU, likewise; a virtual thread's is its own. */
void host_moment_offcpu(const struct host_entry *e, const struct target *t,
			const struct offcpu_event *event);
/* The settings allow timelines this much of the memory. */
size_t host_moments_bytes(const struct config *c);
