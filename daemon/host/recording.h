/*
 * A recording of one streaming target: if asked to, it lifts the agent's CPU budget, changes the
 * interval of CPU samples and collects further events; at the end it restores all of these.
 */
#pragma once

#include "daemon/host/host.h"

#define RECORDING_THREAD_MAX 128 /* bytes of a filter by name with the NUL; others are cut */

#define RECORDING_MIN_WAIT_LEAST 1000ull /* ns; the smallest events.lock.min_wait */
#define RECORDING_MIN_WAIT_MOST	 60000000000ull

struct recording_options {
	uint64_t interval_ns; /* of CPU samples; 0 = as in the settings */
	unsigned events; /* bits 1 << enum wire_event */
	const char *thread; /* only threads whose names contain this; NULL = all */
	uint64_t lock_min_ns; /* the shortest wait that is recorded; 0 = as in the settings */
	/* as events.alloc.interval and events.wall.interval; 0 = as in the settings */
	uint64_t alloc_interval, wall_interval_ns;
	/* of the profile's memory, beyond which stacks become "[profile full]"; 0 = as usual */
	size_t bytes_max;
	bool trace_ids; /* with the trace and span ids of its events */
	bool keep_budget; /* leaves the agent its CPU budget, which may lengthen the interval */
};

struct recording;

/* Starts a recording. @o is copied; @t is borrowed and may end first. 0, -EBUSY (@t has a
 * recording), -EACCES (its owner does not allow one of the events), -ENOMEM, or -errno of the
 * START. */
int recording_new(struct host *h, struct target *t, const struct recording_options *o,
		  struct recording **ret);
/* Ends it: nothing is added any more, and another recording of the JVM may begin. */
void recording_end(struct recording *r);
struct recording *recording_free(struct recording *r); /* ends it, too */
/* What was recorded so far, with native frames named; the caller frees it. 0 or -ENOMEM. Takes
 * long for a large recording, so the loop must not call it. */
int recording_profile(const struct recording *r, struct profile **ret);
/* The same without waits for work. The loop may call it if bytes_max is small. */
int recording_working(const struct recording *r, struct profile **ret);
/* Which of its events the agent says it does not collect; bits. Only while it runs. */
unsigned recording_missing(const struct recording *r);
/* The samples so far, of all its events and of the chosen threads. */
uint64_t recording_samples(const struct recording *r);
/* What the agent says it does not collect, and why: "alloc: needs JDK 11", after the reason why it
 * collects nothing at all, if there is one; "" = nothing. Returns @buf. */
const char *recording_notes(const struct recording *r, char *buf, size_t size);
/* Can more samples come? If not, @buf says why: "the JVM ended", "the JVM is failed: no answer". */
bool recording_runs(const struct recording *r, char *buf, size_t size);
