/*
 * The times of ended threads that have no room of their own any more, added up by slice: the sums
 * of a JVM that starts many threads stay complete. For time_ledger.c.
 */
#pragma once

#include "daemon/timeline/time_ledger.h"

#define TIME_FOLDED_SLICES 14u /* at least as many as a thread has of either length */
#define TIME_FOLDED_TIDS   8192u /* power of two */

struct time_folded_slice {
	uint64_t number; /* as in struct time_slice; 0 = empty */
	uint32_t threads; /* that ended in it */
	struct time_row row;
};

struct time_folded {
	/* short and long ones, at their number modulo TIME_FOLDED_SLICES */
	struct time_folded_slice fine[TIME_FOLDED_SLICES], coarse[TIME_FOLDED_SLICES];
	/* the last threads that were added, at their tid modulo TIME_FOLDED_TIDS */
	uint32_t tids[TIME_FOLDED_TIDS];
};

/* Adds to @slices what a thread did in one of them; @ended: it ended there. Nothing if the slice is
 * too old. */
void time_folded_add(struct time_folded_slice *slices, uint64_t number, const struct time_row *row,
		     bool ended);
/* The sum of @slices from @first to @last, with the tid 0. Returns how many threads ended there. */
uint32_t time_folded_sum(const struct time_folded_slice *slices, uint64_t first, uint64_t last,
			 struct time_row *ret);
