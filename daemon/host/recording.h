/*
 * A recording of one streaming target: lifts the agent's CPU budget if asked to, changes the
 * interval of CPU samples and the collected events, collects, and restores everything at the end.
 */
#pragma once

#include "daemon/host/host.h"

#define RECORDING_THREAD_MAX 128 /* longest filter by name, with the NUL; longer ones are cut */

#define RECORDING_MIN_WAIT_LEAST 1000ull /* as events.lock.min_wait */
#define RECORDING_MIN_WAIT_MOST	 60000000000ull

struct recording_options {
	uint64_t interval_ns; /* of CPU samples; 0 = that of the settings */
	unsigned events; /* bits 1 << enum wire_event */
	const char *thread; /* only threads whose name contains this; NULL = all */
	uint64_t lock_min_ns; /* the shortest wait to record; 0 = that of the settings */
	uint64_t alloc_interval, wall_interval_ns; /* as events.wall.interval; 0 = that of the
						    * settings */
	size_t bytes_max; /* memory of its profile, beyond which stacks become "[profile full]"; 0 =
			   * as for any profile */
	bool trace_ids; /* with the trace and span ids of its events */
	bool keep_budget; /* the agent's CPU budget stays in force: it may lengthen the interval */
};

struct recording;

/* Options are copied, @t is borrowed and may end first. 0, -EBUSY (@t has a recording), -EACCES
 * (its owner does not allow one of the events), -ENOMEM, or -errno of the START. */
int recording_new(struct host *h, struct target *t, const struct recording_options *o,
		  struct recording **ret);
/* Nothing is added to it any more, and another recording of the JVM may begin. */
void recording_end(struct recording *r);
struct recording *recording_free(struct recording *r); /* also ends it */
/* What has been recorded so far, with native frames named; the caller's. 0 or -ENOMEM. A large
 * recording takes long, so this must not run in the loop. */
int recording_profile(const struct recording *r, struct profile **ret);
/* The same without waits for work, and quickly: the caller may be the loop. */
int recording_working(const struct recording *r, struct profile **ret);
/* Those of its events that the agent reports as not collected; bits. Only while it runs. */
unsigned recording_missing(const struct recording *r);
/* Samples so far, of all its events and of the chosen threads. */
uint64_t recording_samples(const struct recording *r);
/* What the agent reports as not collected, and why: "alloc: needs JDK 11"; "" = nothing. Cut to
 * @buf, which is returned. */
const char *recording_notes(const struct recording *r, char *buf, size_t size);
/* false: no more samples will come; @buf has the reason: "the JVM ended", "the JVM is failed: no
 * answer". */
bool recording_runs(const struct recording *r, char *buf, size_t size);
