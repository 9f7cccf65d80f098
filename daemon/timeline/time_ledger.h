/*
 * Where the time of each thread of one target went: on the CPU, in the run queue, off the CPU by
 * reason, not seen. For every thread and span these always add up to the wall-clock time: what
 * nobody measured is "not seen", and what was measured twice counts once. The kernel's running
 * totals come once a second. Where the kernel does not know the reason of an interval, the reason
 * comes later, when the interval has ended, and replaces the kernel's. Pure memory, bounded: slices
 * of 5 s for the last minute, of a minute for the last ten.
 *
 * All times are CLOCK_MONOTONIC. Reasons are numbers below TIME_LEDGER_REASONS; the caller knows
 * their names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/ground/mem.h"

#define TIME_LEDGER_REASONS  19u
/* Threads of one target that have rows of their own. If there are more, those that have ended share
 * one, and the time of living ones is not seen. */
#define TIME_LEDGER_THREADS  2048u
#define TIME_LEDGER_SLICE_NS 5000000000ull
#define TIME_LEDGER_MAX_NS   600000000000ull
#define TIME_LEDGER_STALE_NS 3000000000ull /* totals come once a second */

struct time_ledger;

int time_ledger_new(struct time_ledger **ret);
struct time_ledger *time_ledger_free(struct time_ledger *l);
DEFINE_FREEP(struct time_ledger, time_ledger_free);
size_t time_ledger_bytes(const struct time_ledger *l);

/* One thread's totals since @from_ns. A @from_ns at or after the end of the last totals means that
 * they begin anew: the time in between is not seen. */
struct time_totals {
	uint32_t tid; /* the number that daemon/host gave the thread */
	bool ended; /* these are the thread's last totals */
	uint64_t from_ns, to_ns;
	uint64_t cpu_ns, runqueue_ns;
	uint64_t off_ns[TIME_LEDGER_REASONS];
	/* At @to_ns the thread has been off the CPU since then; 0 = it runs. The last two members
	 * say why. */
	uint64_t off_since_ns;
	uint8_t off_reason;
	int32_t off_syscall; /* -1 = none, or unknown */
};
void time_ledger_totals(struct time_ledger *l, const struct time_totals *t);

/* The thread spent [begin, end) for @reason, which the kernel's totals count under @from. Only
 * as much as those have is moved; they may come later, if the thread has just begun. @from ==
 * @reason: the kernel's reason is right. */
struct time_reason {
	uint32_t tid;
	uint64_t begin_ns, end_ns;
	uint8_t from, reason;
	/* A lock event reported it. A time off the CPU may report the same wait,
	 * so the larger of the two sums of a reason counts. */
	bool is_wait;
	/* Only so much of the span, spread evenly over it; 0 = all of it. */
	uint64_t part_ns;
};
void time_ledger_reason(struct time_ledger *l, const struct time_reason *r);

/*
 * At @at_ns the thread was in a wait for @reason, which the kernel counts under @from; it is in it
 * until a later call tells otherwise, or it runs. @from == @reason: it is in none.
 */
struct time_seen {
	uint32_t tid;
	uint64_t at_ns;
	uint8_t from, reason;
	/* No lock event tells of it when it ends: what is known of it stays, and for a minute
	 * explains times of @from that nothing else does. */
	bool no_event;
};
void time_ledger_seen(struct time_ledger *l, const struct time_seen *seen);

struct time_row {
	uint32_t tid; /* 0 = of all ended threads without a row of their own */
	bool ended;
	uint64_t wall_ns; /* the sum of all that follow */
	uint64_t cpu_ns, runqueue_ns, off_ns[TIME_LEDGER_REASONS], unseen_ns;
};
struct time_rows {
	struct time_row *rows; /* sorted by tid; threads with any time in the span */
	uint32_t n;
	uint64_t begin_ns, end_ns, span_ns; /* the span and its length */
	uint32_t folded; /* ended threads that share the row of tid 0 */
	uint64_t refused; /* totals without room, since the start */
};
/*
 * The @last_ns that ended @back_ns before @now_ns (0 = now), in whole slices of five seconds, or of
 * a minute if they began more than a minute ago; less if less is known. @open: waits in progress,
 * as reasons that end now. Free *ret with time_rows_free(). 0 or -ENOMEM.
 */
int time_ledger_query(const struct time_ledger *l, uint64_t now_ns, uint64_t back_ns,
		      uint64_t last_ns, const struct time_reason *open, uint32_t n_open,
		      struct time_rows *ret);
void time_rows_free(struct time_rows *r);
/* Has @tid ended, with its times in the row of tid 0? That is remembered of the last thousands. */
bool time_ledger_has_folded(const struct time_ledger *l, uint32_t tid);
/* The row of @tid; NULL = it has none. */
const struct time_row *time_rows_find(const struct time_rows *r, uint32_t tid);

/* A time off the CPU that has not ended: the kernel's totals count it, but it is no event yet. */
struct time_off {
	uint32_t tid;
	uint64_t begin_ns;
	uint8_t reason; /* the kernel's */
	uint8_t seen_reason; /* of time_ledger_seen(); the same, if that knows no better */
	int32_t syscall_nr; /* -1 = none, or unknown */
};
/* Lists the threads that are off the CPU at @now_ns, as far as their last totals tell and are not
 * older than TIME_LEDGER_STALE_NS. malloc'ed. 0 or -ENOMEM. */
int time_ledger_off(const struct time_ledger *l, uint64_t now_ns, struct time_off **ret,
		    uint32_t *ret_n);
/* Makes the parts of @r add up to its wall-clock time: what is missing becomes time that was not
 * seen; if they are too much, all are reduced in proportion. */
void time_row_close(struct time_row *r);
/* Adds the times of @from to those of *to. */
void time_row_add(struct time_row *to, const struct time_row *from);
