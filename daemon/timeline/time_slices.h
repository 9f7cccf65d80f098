/*
 * One thread's time in slices of equal length, the last few of which are kept. A slice holds only
 * the reasons that it has time of, so that a thread that always waits for the same takes little
 * memory. Without memory for a reason its time is left out: it is not seen. For time_ledger.c,
 * which says what the numbers mean.
 */
#pragma once

#include "daemon/timeline/time_ledger.h"

struct time_part {
	uint32_t us;
	uint8_t kind; /* enum, in time_slices.c */
	uint8_t from, reason;
};

struct time_slice {
	uint64_t number; /* in its ring; 0 = empty */
	uint32_t wall_us, cpu_us, runqueue_us;
	uint8_t n_parts, cap_parts;
	struct time_part *parts; /* owned */
};

struct time_ring {
	struct time_slice *slices;
	uint32_t n;
	uint64_t slice_ns;
	size_t *bytes; /* counts what the parts of all slices take */
};
/* Frees the parts of all slices. */
void time_ring_deinit(const struct time_ring *r);

/* What passed in some time, us. */
struct time_passed {
	uint64_t wall, cpu, runqueue, off[TIME_LEDGER_REASONS];
};
/* CPU, run queue, reasons. */
#define TIME_PARTS (TIME_LEDGER_REASONS + 2)

/* Spreads @p evenly over the slices of [begin, end), which usually is a second. */
void time_ring_spread(const struct time_ring *r, struct time_passed p, uint64_t begin_ns,
		      uint64_t end_ns);
/* Moves @us from part @from to part @to, both below TIME_PARTS, in the slices up to @at_ns,
 * beginning with the newest. */
void time_ring_move(const struct time_ring *r, uint64_t at_ns, uint32_t from, uint32_t to,
		    uint64_t us);
/* Adds what @why explains. */
void time_ring_explain(const struct time_ring *r, const struct time_reason *why);
/* The difference between two moments or totals, us; 0 if @now_ns is the smaller one. */
uint64_t time_us_between(uint64_t before_ns, uint64_t now_ns);

/* The sum of several slices, ns. */
#define TIME_SOURCES 3u /* kernel's reasons that are explained; others stay unexplained */
struct time_sum {
	struct time_row row;
	/* [TIME_SOURCES] takes what is not used */
	uint64_t explained[TIME_SOURCES + 1][TIME_LEDGER_REASONS],
		waited[TIME_SOURCES + 1][TIME_LEDGER_REASONS];
	uint8_t from[TIME_SOURCES];
	uint32_t n_from;
};
/* The place of the kernel's reason @from in the sum. */
uint32_t time_sum_source(struct time_sum *sum, uint8_t from);
/* Adds the slices with the numbers @first to @last. */
void time_sum_add(struct time_sum *sum, const struct time_ring *r, uint64_t first, uint64_t last);
