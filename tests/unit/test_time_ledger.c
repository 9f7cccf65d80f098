/* Where a thread's time went: the parts always add up to the wall-clock time. */
#include "tests/unit/ledger_begin.h"

enum { LOCK, PARK, POLL, SOCKET, SLEEP, OTHER };

/* The row of a thread; fails if its parts do not add up to its time. */
static struct time_row row_back(uint32_t tid, uint64_t now_ns, uint64_t back_ns, uint64_t last_ns,
				const struct time_reason *open)
{
	const struct time_row *r;
	struct time_rows rows;
	struct time_row row;

	assert_int_equal(
		time_ledger_query(ledger, now_ns, back_ns, last_ns, open, open != NULL, &rows), 0);
	for (uint32_t i = 0; i < rows.n; i++)
		assert_int_equal(sum_of(&rows.rows[i]), rows.rows[i].wall_ns);
	r = time_rows_find(&rows, tid);
	assert_non_null(r);
	row = *r;
	time_rows_free(&rows);
	return row;
}

static struct time_row row_of(uint32_t tid, uint64_t now_ns, uint64_t last_ns,
			      const struct time_reason *open)
{
	return row_back(tid, now_ns, 0, last_ns, open);
}

/* One second after the other: in each, @cpu on the CPU, @queue in the run queue, the rest off
 * the CPU for @reason. */
static void live(struct time_totals *t, unsigned seconds, uint64_t cpu_ns, uint64_t queue_ns,
		 unsigned reason)
{
	for (unsigned i = 0; i < seconds; i++) {
		t->to_ns += S;
		t->cpu_ns += cpu_ns;
		t->runqueue_ns += queue_ns;
		t->off_ns[reason] += S - cpu_ns - queue_ns;
		time_ledger_totals(ledger, t);
	}
}

static void totals_become_times_of_a_span(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_row r;

	(void)state;
	live(&t, 40, 300 * MS, 20 * MS, OTHER);
	r = row_of(11, t.to_ns, 600 * S, NULL);
	assert_int_equal(r.wall_ns, 40 * S);
	assert_int_equal(r.cpu_ns, 40 * 300 * MS);
	assert_int_equal(r.runqueue_ns, 40 * 20 * MS);
	assert_int_equal(r.off_ns[OTHER], 40 * 680 * MS);
	assert_int_equal(r.unseen_ns, 0);
	/* whole slices: from 10 s to 15 s */
	r = row_of(11, t.to_ns, 10 * S, NULL);
	assert_in_range(r.wall_ns, 10 * S, 15 * S);
	assert_in_range(r.cpu_ns, r.wall_ns * 3 / 10 - 10000, r.wall_ns * 3 / 10 + 10000);
}

/* The thread computes for 20 s, waits for 20 s, and computes for 15 s; a lock event tells of the
 * wait, and of one that goes on. */
static void a_span_may_have_ended_before_now(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_reason why = { 11, t0 + 20 * S, t0 + 40 * S, OTHER, PARK, false, 0 };
	struct time_reason open = { 11, t0 + 35 * S, t0 + 55 * S, OTHER, SOCKET, false, 0 };
	struct time_rows rows;
	struct time_row r;

	(void)state;
	live(&t, 20, S, 0, OTHER);
	live(&t, 20, 0, 0, OTHER);
	live(&t, 15, S, 0, OTHER);
	time_ledger_reason(ledger, &why);
	r = row_back(11, t0 + 55 * S, 36 * S, 19 * S, NULL); /* 0 s to 19 s */
	assert_in_range(r.wall_ns, 20 * S - MS, 20 * S);
	assert_int_equal(r.cpu_ns, r.wall_ns);
	r = row_back(11, t0 + 55 * S, 16 * S, 18 * S, NULL); /* 21 s to 39 s, in whole slices */
	assert_int_equal(r.wall_ns, 20 * S);
	assert_in_range(r.off_ns[PARK], 20 * S - MS, 20 * S);
	/* what goes on began after the span */
	r = row_back(11, t0 + 55 * S, 25 * S, 10 * S, &open);
	assert_int_equal(r.off_ns[SOCKET], 0);
	/* before the first totals */
	assert_int_equal(time_ledger_query(ledger, t0 + 55 * S, 100 * S, 60 * S, NULL, 0, &rows),
			 0);
	assert_int_equal(rows.n, 0);
	assert_int_equal(rows.span_ns, 0);
	time_rows_free(&rows);
}

static void a_reason_takes_the_place_of_what_it_explains(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_reason why = { .tid = 11,
				   .begin_ns = t0 + 2 * S,
				   .end_ns = t0 + 12 * S,
				   .from = OTHER,
				   .reason = PARK };
	struct time_row r;

	(void)state;
	live(&t, 20, 0, 0, OTHER);
	time_ledger_reason(ledger, &why);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 10 * S - 10000, 10 * S + 10000);
	assert_in_range(r.off_ns[OTHER], 10 * S - 10000, 10 * S + 10000);
	/* it explains no more time than there is, also if it is reported twice */
	time_ledger_reason(ledger, &why);
	time_ledger_reason(ledger, &why);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.off_ns[PARK] + r.off_ns[OTHER], 20 * S);
	/* and no time for which the kernel has another reason */
	why.from = POLL;
	why.reason = SOCKET;
	time_ledger_reason(ledger, &why);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.off_ns[SOCKET], 0);
}

/* A thread may begin, wait and end between two readings of the kernel's totals. */
static void a_reason_may_come_before_the_first_totals(void **state)
{
	struct time_totals t = { .tid = 12, .from_ns = t0, .to_ns = t0 + S, .ended = true };
	struct time_reason why = { 12, t0 + 100 * MS, t0 + 700 * MS, OTHER, PARK, false, 0 };
	struct time_row r;

	(void)state;
	time_ledger_reason(ledger, &why);
	t.off_ns[OTHER] = 900 * MS;
	t.cpu_ns = 100 * MS;
	time_ledger_totals(ledger, &t);
	r = row_of(12, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.wall_ns, S);
	assert_int_equal(r.off_ns[PARK], 600 * MS);
	assert_int_equal(r.off_ns[OTHER], 300 * MS);
}

static void a_wait_counts_once_however_it_is_told_of(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_reason why = { .tid = 11,
				   .begin_ns = t0 + 2 * S,
				   .end_ns = t0 + 6 * S,
				   .from = OTHER,
				   .reason = PARK };
	struct time_row r;

	(void)state;
	live(&t, 20, 0, 0, OTHER);
	time_ledger_reason(ledger, &why); /* reported as an event off the CPU */
	why.is_wait = true;
	time_ledger_reason(ledger, &why); /* the same as a wait */
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 4 * S - 10000, 4 * S + 10000);
	/* waits that have no event off the CPU */
	why.begin_ns = t0 + 6 * S;
	why.end_ns = t0 + 16 * S;
	time_ledger_reason(ledger, &why);
	why.reason = LOCK;
	why.begin_ns = t0 + 17 * S;
	why.end_ns = t0 + 19 * S;
	time_ledger_reason(ledger, &why);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 14 * S - 10000, 14 * S + 10000);
	assert_in_range(r.off_ns[LOCK], 2 * S - 10000, 2 * S + 10000);
	assert_in_range(r.off_ns[OTHER], 4 * S - 20000, 4 * S + 20000);
}

/* Waits that are no events are told of as a sum. */
static void a_reason_may_explain_a_part_of_its_span(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_reason why = { .tid = 11,
				   .begin_ns = t0 + 5 * S,
				   .end_ns = t0 + 15 * S,
				   .from = OTHER,
				   .reason = PARK,
				   .is_wait = true,
				   .part_ns = 4 * S };
	struct time_row r;

	(void)state;
	live(&t, 20, 0, 0, OTHER);
	time_ledger_reason(ledger, &why);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 4 * S - 10000, 4 * S);
	why.reason = LOCK;
	why.part_ns = UINT64_MAX; /* not more than its span */
	time_ledger_reason(ledger, &why);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[LOCK], 10 * S - 10000, 10 * S);
}

/* One second after the other off the CPU since @since_ns. */
static void be_off(struct time_totals *t, unsigned seconds, uint64_t since_ns)
{
	t->off_since_ns = since_ns;
	t->off_reason = OTHER;
	live(t, seconds, 0, 0, OTHER);
}

static void see(uint64_t at_ns, uint8_t reason, bool no_event)
{
	time_ledger_seen(ledger, &(struct time_seen){ 11, at_ns, OTHER, reason, no_event });
}

static void a_wait_in_which_a_thread_is_seen_is_known_before_it_ends(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_off *off;
	struct time_row r;
	uint32_t n;

	(void)state;
	be_off(&t, 5, t0 + 1);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.off_ns[PARK], 0);
	see(t0 + 4 * S, PARK, true);
	be_off(&t, 5, t0 + 1);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 10 * S - 10000, 10 * S);
	assert_int_equal(time_ledger_off(ledger, t.to_ns, &off, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(off[0].reason, OTHER);
	assert_int_equal(off[0].seen_reason, PARK);
	free(off);
	/* that wait is over, and keeps its reason; the next one is another */
	be_off(&t, 5, t0 + 10 * S);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 10 * S - 10000, 10 * S);
	assert_in_range(r.off_ns[OTHER], 5 * S, 5 * S + 10000);
	see(t0 + 15 * S, PARK, true);
	see(t0 + 16 * S, OTHER, true); /* no longer */
	be_off(&t, 5, t0 + 10 * S);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 10 * S - 10000, 10 * S);
}

static void a_wait_in_which_a_thread_is_seen_counts_once(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_reason why = {
		.tid = 11, .begin_ns = t0 + 2 * S, .from = OTHER, .reason = PARK, .is_wait = true
	};
	struct time_row r;

	(void)state;
	be_off(&t, 2, 0);
	see(t0 + 4 * S, PARK, false);
	be_off(&t, 8, t0 + 2 * S);
	r = row_of(11, t.to_ns, 60 * S, &why); /* a lock event has told that it began */
	assert_in_range(r.off_ns[PARK], 8 * S - 10000, 8 * S);
	why.end_ns = t.to_ns;
	time_ledger_reason(ledger, &why);
	be_off(&t, 10, t0 + 11 * S);
	r = row_of(11, t.to_ns, 60 * S, NULL); /* and that it ended */
	assert_in_range(r.off_ns[PARK], 8 * S - 10000, 8 * S);
	assert_in_range(r.off_ns[OTHER], 12 * S, 12 * S + 10000);
}

/* Sleeps of 3 ms have no events; 2 s of a lock of the JVM's own have one, without a better reason.
 */
static void short_sleeps_are_known_by_a_thread_seen_asleep(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	const struct time_reason parked = { .tid = 11,
					    .begin_ns = t0,
					    .end_ns = t0 + 10 * S,
					    .from = OTHER,
					    .reason = PARK,
					    .is_wait = true,
					    .part_ns = S },
				 other = { .tid = 11,
					   .begin_ns = t0 + 5 * S,
					   .end_ns = t0 + 7 * S,
					   .from = OTHER,
					   .reason = OTHER };
	struct time_row r;

	(void)state;
	live(&t, 10, 0, 0, OTHER);
	time_ledger_reason(ledger, &parked);
	time_ledger_reason(ledger, &other);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[OTHER], 9 * S - 10000, 9 * S + 10000);
	/* what nobody has reported yet may be other waits */
	see(t0 + 5 * S, SLEEP, true);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[SLEEP], 7 * S / 2 - 10000, 7 * S / 2 + 10000);
	see(t0 + 10 * S, SLEEP, true);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[SLEEP], 7 * S - 10000, 7 * S + 10000);
	assert_in_range(r.off_ns[PARK], S - 10000, S + 10000);
	assert_in_range(r.off_ns[OTHER], 2 * S - 10000, 2 * S + 10000);
	/* a wait that goes on, in which nobody has seen it, may be any */
	be_off(&t, 30, t.to_ns + 1);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[SLEEP], 7 * S - 10000, 7 * S + 10000);
	assert_in_range(r.off_ns[OTHER], 32 * S - 10000, 32 * S + 10000);
	/* and that it was asleep once says nothing of times much later */
	t.off_since_ns = 0;
	live(&t, 120, 0, 0, OTHER);
	r = row_of(11, t.to_ns, 30 * S, NULL);
	assert_int_equal(r.off_ns[SLEEP], 0);
}

/* A thread that sleeps already when it is measured, or is measured anew, says nothing any more. */
static void a_wait_from_before_the_first_totals_is_known(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_row r;

	(void)state;
	see(t0 - 100 * S, PARK, true);
	be_off(&t, 5, t0);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 5 * S - 10000, 5 * S);
	t = (struct time_totals){ .tid = 11, .from_ns = t0 + 8 * S, .to_ns = t0 + 8 * S };
	be_off(&t, 5, t0 + 8 * S);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.off_ns[PARK], 10 * S - 10000, 10 * S);
	assert_in_range(r.unseen_ns, 3 * S - 10000, 3 * S + 10000);
}

static void a_wait_that_goes_on_explains_too(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_reason open = {
		.tid = 11, .begin_ns = t0 + 5 * S, .from = OTHER, .reason = LOCK
	};
	struct time_row r;

	(void)state;
	live(&t, 30, 0, 0, OTHER);
	r = row_of(11, t.to_ns, 60 * S, &open);
	assert_int_equal(r.off_ns[LOCK], 25 * S);
	assert_int_equal(r.off_ns[OTHER], 5 * S);
	open.begin_ns = 1;
	r = row_of(11, t.to_ns, 60 * S, &open);
	assert_int_equal(r.off_ns[LOCK], 30 * S);
}

/* The agent, which came when the thread waited already, knows of the wait from 3 s on. */
static void a_wait_that_goes_on_is_as_long_as_the_thread_has_not_run(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	const struct time_reason open = {
		.tid = 11, .begin_ns = t0 + 3 * S, .from = OTHER, .reason = LOCK
	};
	struct time_row r;

	(void)state;
	be_off(&t, 8, t0);
	r = row_of(11, t.to_ns, 60 * S, &open);
	assert_int_equal(r.off_ns[LOCK], 8 * S);
	assert_int_equal(r.off_ns[OTHER], 0);
}

static void unmeasured_time_is_unseen(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_row r;

	(void)state;
	live(&t, 5, S, 0, OTHER);
	/* measuring began anew 3 s later */
	t = (struct time_totals){ .tid = 11, .from_ns = t.to_ns + 3 * S, .to_ns = t.to_ns + 3 * S };
	live(&t, 5, S, 0, OTHER);
	/* and totals in which a part of the time is missing */
	t.to_ns += S;
	time_ledger_totals(ledger, &t);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 14 * S);
	assert_int_equal(r.unseen_ns, 4 * S);
	assert_int_equal(r.cpu_ns, 10 * S);
}

static void a_rest_that_goes_on_is_unseen(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 }, other = t;
	struct time_row r;

	(void)state;
	other.tid = 12;
	live(&other, 2, S, 0, OTHER);
	live(&t, 10, S, 0, OTHER);
	/* totals come once a second: what is missing may still come */
	r = row_of(11, t.to_ns + 2 * S, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 10 * S);
	r = row_of(11, t.to_ns + 40 * S, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 50 * S);
	assert_int_equal(r.unseen_ns, 40 * S);
	r = row_of(11, t.to_ns + 40 * S, 20 * S, NULL);
	assert_in_range(r.unseen_ns, 20 * S, 25 * S); /* in whole slices */
	assert_int_equal(r.wall_ns, r.unseen_ns);
	/* this one was gone before, without a word of its end */
	r = row_of(12, t.to_ns + 40 * S, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 2 * S);
	/* it goes on: the same time is unseen still */
	t = (struct time_totals){ .tid = 11, .from_ns = t.to_ns + 40 * S, .to_ns = t.to_ns + 40 * S };
	live(&t, 1, S, 0, OTHER);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 51 * S);
	assert_int_equal(r.unseen_ns, 40 * S);
}

static void time_that_was_counted_too_early_moves(void **state)
{
	struct time_totals t = { .tid = 1, .from_ns = t0, .to_ns = t0 };
	struct time_row r;

	(void)state;
	live(&t, 20, 0, 0, OTHER);
	/* it wakes: all of its sleep was a poll, and it has run for a moment */
	t.off_ns[POLL] = t.off_ns[OTHER] + 600 * MS;
	t.off_ns[OTHER] = 0;
	t.cpu_ns = 300 * MS;
	t.runqueue_ns = 100 * MS;
	t.to_ns += S;
	time_ledger_totals(ledger, &t);
	r = row_of(1, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 21 * S);
	assert_int_equal(r.cpu_ns, 300 * MS);
	assert_int_equal(r.runqueue_ns, 100 * MS);
	assert_int_equal(r.off_ns[POLL], 20 * S + 600 * MS);
	assert_int_equal(r.off_ns[OTHER], 0);
	r = row_of(1, t.to_ns, 120 * S, NULL);
	assert_int_equal(r.off_ns[POLL], 20 * S + 600 * MS);
	/* it seems to run, until a record shows that it slept */
	live(&t, 5, S, 0, OTHER);
	t.cpu_ns -= 4900 * MS;
	t.off_ns[PARK] += 4900 * MS;
	live(&t, 1, 0, 0, PARK);
	r = row_of(1, t.to_ns, 60 * S, NULL);
	assert_int_equal(r.wall_ns, 27 * S);
	assert_int_equal(r.cpu_ns, 400 * MS);
	assert_int_equal(r.off_ns[PARK], 5900 * MS);
	assert_int_equal(r.unseen_ns, 0);
}

static void no_time_counts_twice_when_totals_overlap(void **state)
{
	struct time_totals t = { .tid = 1, .from_ns = t0, .to_ns = t0 };
	struct time_row r;

	(void)state;
	live(&t, 6, 300 * MS, 100 * MS, OTHER);
	t.from_ns += 20 * MS;
	live(&t, 1, 300 * MS, 100 * MS, OTHER);
	t.from_ns -= 20 * MS;
	live(&t, 1, 300 * MS, 100 * MS, OTHER);
	r = row_of(1, t.to_ns, 30 * S, NULL);
	assert_int_equal(r.wall_ns, 8 * S);
	assert_int_equal(r.cpu_ns, 2400 * MS);
	assert_int_equal(r.runqueue_ns, 800 * MS);
	assert_int_equal(r.unseen_ns, 0);
}

static void old_slices_are_freed(void **state)
{
	struct time_totals t = { .tid = 11, .from_ns = t0, .to_ns = t0 };
	struct time_row r;

	(void)state;
	live(&t, 1200, 500 * MS, 0, PARK);
	r = row_of(11, t.to_ns, 600 * S, NULL);
	assert_in_range(r.wall_ns, 600 * S, 660 * S);
	assert_in_range(r.cpu_ns, r.wall_ns / 2 - 100000, r.wall_ns / 2 + 100000);
	r = row_of(11, t.to_ns, 60 * S, NULL);
	assert_in_range(r.wall_ns, 60 * S, 65 * S);
}

static void nonsense_still_adds_up(void **state)
{
	struct time_totals t = {
		.tid = 11, .from_ns = t0, .to_ns = t0 + 10 * S, .cpu_ns = 500 * S
	};
	struct time_reason why = {
		.tid = 11, .begin_ns = 0, .end_ns = UINT64_MAX, .from = OTHER, .reason = PARK
	};
	struct time_row r;

	(void)state;
	for (unsigned i = 0; i < TIME_LEDGER_REASONS; i++)
		t.off_ns[i] = 40 * S * i;
	time_ledger_totals(ledger, &t);
	time_ledger_reason(ledger, &why);
	why.tid = 12;
	time_ledger_reason(ledger, &why);
	why = (struct time_reason){
		.tid = 11, .begin_ns = t0, .end_ns = t0 + 1, .from = 200, .reason = 200
	};
	time_ledger_reason(ledger, &why);
	t.to_ns = t0 + 5 * S; /* back */
	time_ledger_totals(ledger, &t);
	r = row_of(11, t0 + 12 * S, 60 * S, &why);
	assert_in_range(r.wall_ns, 1, 20 * S);
}

/* The threads that are off the CPU at @now_ns; the caller frees them. */
static struct time_off *off_at(uint64_t now_ns, uint32_t *ret_n)
{
	struct time_off *off = NULL;

	assert_int_equal(time_ledger_off(ledger, now_ns, &off, ret_n), 0);
	return off;
}

static void open_times_are_listed(void **state)
{
	struct time_totals sleeps = { .tid = 11,
				      .from_ns = t0,
				      .to_ns = t0 + S,
				      .off_ns = { [POLL] = S },
				      .off_since_ns = t0 + 5,
				      .off_reason = POLL,
				      .off_syscall = 232 };
	struct time_totals runs = { .tid = 12, .from_ns = t0, .to_ns = t0 + S, .cpu_ns = S };
	struct time_off *off;
	uint32_t n;

	(void)state;
	time_ledger_totals(ledger, &sleeps);
	time_ledger_totals(ledger, &runs);
	off = off_at(t0 + S, &n);
	assert_int_equal(n, 1);
	assert_int_equal(off[0].tid, 11);
	assert_int_equal(off[0].begin_ns, t0 + 5);
	assert_int_equal(off[0].reason, POLL);
	assert_int_equal(off[0].syscall_nr, 232);
	free(off);
	/* totals that are no longer updated say nothing about the present */
	free(off_at(t0 + S + TIME_LEDGER_STALE_NS, &n));
	assert_int_equal(n, 1);
	free(off_at(t0 + S + TIME_LEDGER_STALE_NS + 1, &n));
	assert_int_equal(n, 0);
	sleeps.ended = true;
	time_ledger_totals(ledger, &sleeps);
	free(off_at(t0 + S, &n));
	assert_int_equal(n, 0);
}

static void threads_without_room_are_counted(void **state)
{
	struct time_rows rows;

	(void)state;
	for (uint32_t i = 1; i <= TIME_LEDGER_THREADS + 10; i++) {
		struct time_totals t = { .tid = i, .from_ns = t0, .to_ns = t0 + S, .cpu_ns = S };

		time_ledger_totals(ledger, &t);
	}
	assert_int_equal(time_ledger_query(ledger, t0 + S, 0, 60 * S, NULL, 0, &rows), 0);
	assert_int_equal(rows.n, TIME_LEDGER_THREADS);
	assert_int_equal(rows.refused, 10);
	time_rows_free(&rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(totals_become_times_of_a_span, begin, end),
		cmocka_unit_test_setup_teardown(a_span_may_have_ended_before_now, begin, end),
		cmocka_unit_test_setup_teardown(a_reason_takes_the_place_of_what_it_explains, begin,
						end),
		cmocka_unit_test_setup_teardown(a_reason_may_come_before_the_first_totals, begin,
						end),
		cmocka_unit_test_setup_teardown(a_wait_counts_once_however_it_is_told_of, begin,
						end),
		cmocka_unit_test_setup_teardown(a_reason_may_explain_a_part_of_its_span, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_wait_in_which_a_thread_is_seen_is_known_before_it_ends, begin, end),
		cmocka_unit_test_setup_teardown(short_sleeps_are_known_by_a_thread_seen_asleep,
						begin, end),
		cmocka_unit_test_setup_teardown(a_wait_in_which_a_thread_is_seen_counts_once, begin,
						end),
		cmocka_unit_test_setup_teardown(a_wait_from_before_the_first_totals_is_known, begin,
						end),
		cmocka_unit_test_setup_teardown(a_wait_that_goes_on_explains_too, begin, end),
		cmocka_unit_test_setup_teardown(unmeasured_time_is_unseen, begin, end),
		cmocka_unit_test_setup_teardown(
			a_wait_that_goes_on_is_as_long_as_the_thread_has_not_run, begin, end),
		cmocka_unit_test_setup_teardown(a_rest_that_goes_on_is_unseen, begin, end),
		cmocka_unit_test_setup_teardown(time_that_was_counted_too_early_moves, begin, end),
		cmocka_unit_test_setup_teardown(no_time_counts_twice_when_totals_overlap, begin,
						end),
		cmocka_unit_test_setup_teardown(old_slices_are_freed, begin, end),
		cmocka_unit_test_setup_teardown(nonsense_still_adds_up, begin, end),
		cmocka_unit_test_setup_teardown(open_times_are_listed, begin, end),
		cmocka_unit_test_setup_teardown(threads_without_room_are_counted, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
