/* Adds a target's events to its timeline, each with its own time. */
#pragma once

#include "daemon/host/host_priv.h"

/* Adds a sample. @tid is the host's number of the thread; @s has the stream's. */
void host_moment_sample(const struct host_entry *e, const struct target *t, enum timeline_kind kind,
			const struct stream_sample *s, uint32_t tid);
/* Adds a wait that has ended; its threads have the host's numbers. @idle: a wait for work. */
void host_moment_lock(const struct host_entry *e, const struct target *t,
		      const struct stream_lock *w, bool idle);
/* Adds an interval off the CPU; its threads have the host's numbers. That of a virtual thread
 * goes to the virtual thread. */
void host_moment_offcpu(const struct host_entry *e, const struct target *t,
			const struct offcpu_event *event);
/* Adds a safepoint as bands across all threads. A collection's band is the part in which all of them
 * stood still, so bands never overlap. @operation: what it was for, in the JVM's word. */
void host_moment_pause(const struct host_entry *e, const struct target *t,
		       const struct wire_pause *w, const char *operation);
/* Bytes that the settings leave to all timelines. */
size_t host_moments_bytes(const struct config *c);
