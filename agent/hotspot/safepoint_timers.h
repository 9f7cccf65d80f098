/*
 * The last safepoint as JDK 8 to 12 record it, in another form than later ones (safepoints.h): when
 * it began and when it ended, in two variables of class RuntimeService, and performance counters
 * with the number of safepoints, the sum of the times until the last thread had stopped, and the
 * begin of each collector's last collection. The first are neither exported nor, in many builds, in
 * a symbol table, but they are next to pointers to the counters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SAFEPOINT_COLLECTORS 4u

/* All times are ns since the JVM started (ticks of os::elapsed_counter()). */
struct safepoint_timers {
	const uint64_t *begin, *end; /* NULL = not known; during a safepoint end precedes begin */
	/* addresses of counters, whose memory may be gone when the JVM ends: the number of
	 * safepoints; the sum of the times until the last thread had stopped; the begin of each
	 * collector's last collection */
	uint64_t number_at, reaching_at, collected_at[SAFEPOINT_COLLECTORS];
	uint32_t n_collectors;
	uint64_t started_ns; /* their 0, CLOCK_MONOTONIC */
};
extern struct safepoint_timers safepoint_timers_sig;

/* Agent's thread: finds them. false = this JVM does not have them, or no counters. */
bool safepoint_timers_find(struct safepoint_timers *ret);
/* Then: the JVM's name of a collector, such as "PSParallelCompact"; "" = unknown. Never freed. */
const char *safepoint_timers_collector(uint32_t i);
