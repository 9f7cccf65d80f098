/*
 * Limits the log lines that others can cause: to a burst, and then to a rate. Lines over
 * the limit are left out and counted; one line reports their number when lines are allowed again.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct log_limit {
	unsigned burst, per_s; /* set by the owner; burst 0 = no limit */
	uint64_t held; /* lines left out since the last one that was allowed */
	unsigned used; /* lines of the burst that are used up */
	uint64_t mono_ns; /* CLOCK_MONOTONIC up to which `used` was refilled */
};

/* May a line be written now? @who: whom the lines are about, "pid=7"; for the line that reports how
 * many were left out. */
bool log_allowed(struct log_limit *l, const char *who);
/* Reports how many lines were left out, if any were. To be called when the owner of @l ends. */
void log_limit_end(struct log_limit *l, const char *who);
