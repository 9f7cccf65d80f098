/*
 * How long a target's times off the CPU must be for a record, and for a signal, without which the
 * record has no Java stack of its own: as long as it was asked for, and longer while there are too
 * many of them. Signals cost most, so they get fewer first. Before that, threads that wait for work
 * again and again are spared signals and records: enum offcpu_spares. No minimum grows while ever
 * more waits are spared, because more of the threads are known to wait for work: above a minimum
 * that is longer than these waits, nothing would tell that of the others. Times in the run queue
 * have minimums of their own, and no more signals and records than waits leave, but an eighth.
 * Pure.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/bpf/offcpu.h"

#define OFFCPU_MIN_NS_MAX 1000000000ull /* a minimum is not doubled beyond this */

/* Of one part of a target's times off the CPU, since its begin. */
struct offcpu_part_counts {
	uint64_t intervals; /* long enough for a record */
	/* long enough for a signal: those that had one, and those for which none was left */
	uint64_t signalled, over_budget;
};

/* Counts since the target's begin. */
struct offcpu_signal_counts {
	struct offcpu_part_counts parts[OFFCPU_PARTS];
	uint64_t spared;
	uint64_t asked, unasked; /* see struct offcpu_target */
};

/* One of the two minimums. */
struct offcpu_level {
	unsigned quiet; /* ticks with few above it */
	bool raised; /* it was doubled at the last tick */
	uint64_t too_long_ns; /* one that left hardly any; 0 = none is known */
	unsigned hold; /* ticks for which that is believed */
};

/* How long a time off the CPU must be now for a record, and for a signal. */
struct offcpu_minimums {
	uint64_t record_ns, signal_ns; /* the latter is at least as long */
	/* there are too many records, and a longer minimum would leave hardly any: those that fit
	 * are a sample */
	bool samples;
};

/* What is allowed in a second. */
struct offcpu_allowance {
	uint64_t own_signals; /* the part of the signals that other targets cannot use up */
	uint64_t signals, records;
};

struct offcpu_minimum {
	uint64_t asked_ns;
	struct offcpu_minimums now[OFFCPU_PARTS];
	struct offcpu_allowance queued; /* for times in the run queue, in the next second */
	struct offcpu_signal_counts last; /* at the last tick */
	enum offcpu_spares spares;
	uint64_t spared; /* in the last second */
	uint64_t habit_ns; /* see struct offcpu_target */
	struct {
		struct offcpu_level signals, records;
	} levels[OFFCPU_PARTS];
};

/* Begins anew with the minimum @asked_ns, without forgetting m->last. */
void offcpu_minimum_begin(struct offcpu_minimum *m, uint64_t asked_ns,
			  const struct offcpu_allowance *allowed);
/* Call once a second: changes m->now, m->queued, m->spares and m->habit_ns for the next one. */
void offcpu_minimum_tick(struct offcpu_minimum *m, const struct offcpu_signal_counts *now,
			 const struct offcpu_allowance *allowed);
