/*
 * Where the time of each thread of one target went: on the CPU, in the run queue, off the CPU by
 * reason, not seen. For every thread and every span these add up to the wall-clock time, always:
 * what nobody measured is not seen, and what was measured twice counts once. The kernel's running
 * totals come once a second; the reason for the part that the kernel cannot explain comes later,
 * when the interval has ended, and takes the place of what it explains. Pure memory, bounded, in
 * slices of 5 s for the last minute and of a minute for the last ten.
 *
 * All times are CLOCK_MONOTONIC. Reasons are numbers below TIME_LEDGER_REASONS that the caller
 * names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/ground/mem.h"

#define TIME_LEDGER_REASONS  18u
#define TIME_LEDGER_THREADS  2048u /* of one target; others are not seen */
#define TIME_LEDGER_SLICE_NS 5000000000ull
#define TIME_LEDGER_MAX_NS   600000000000ull

struct time_ledger;

int time_ledger_new(struct time_ledger **ret);
struct time_ledger *time_ledger_free(struct time_ledger *l);
DEFINE_FREEP(struct time_ledger, time_ledger_free);
size_t time_ledger_bytes(const struct time_ledger *l);

/* One thread's totals since @from_ns. A new @from_ns begins them anew: what lies between is not
 * seen. */
struct time_totals {
	uint32_t tid; /* the host room's number */
	bool ended; /* these are its last */
	uint64_t from_ns, to_ns;
	uint64_t cpu_ns, runqueue_ns;
	uint64_t off_ns[TIME_LEDGER_REASONS];
};
void time_ledger_totals(struct time_ledger *l, const struct time_totals *t);

/* The thread spent [begin, end) for @reason, and the kernel's totals have it under @from. Of time
 * that these do not have it takes nothing. */
struct time_reason {
	uint32_t tid;
	uint64_t begin_ns, end_ns;
	uint8_t from, reason;
};
void time_ledger_reason(struct time_ledger *l, const struct time_reason *r);

struct time_row {
	uint32_t tid;
	bool ended;
	uint64_t wall_ns; /* = all of the following */
	uint64_t cpu_ns, runqueue_ns, off_ns[TIME_LEDGER_REASONS], unseen_ns;
};
struct time_rows {
	struct time_row *rows; /* by tid; of threads that had any time in the span */
	uint32_t n;
	uint64_t span_ns; /* length of the span that the answer is about */
	uint64_t refused; /* threads for which there was no room, since the start */
};
/*
 * The last @last_ns before @now_ns, in whole slices; shorter if no more is known. @open: waits that
 * go on, as reasons that end now. 0 or -ENOMEM.
 */
int time_ledger_query(const struct time_ledger *l, uint64_t now_ns, uint64_t last_ns,
		      const struct time_reason *open, uint32_t n_open, struct time_rows *ret);
void time_rows_free(struct time_rows *r);
/* NULL = none. */
const struct time_row *time_rows_find(const struct time_rows *r, uint32_t tid);
/* Makes the parts of @r add up to its wall-clock time: too little becomes time that was not seen,
 * and of too much every part gives its share. */
void time_row_close(struct time_row *r);
