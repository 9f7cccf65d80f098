/* More threads of one target than have rows of their own: those that have ended share one. */
#include "tests/unit/ledger_begin.h"

enum { PARK = 1, POLL, OTHER = 5 };

#define LIVING	 60u
#define A_SECOND 300u /* threads that live for a tenth of a second */
/* number of a thread that begins after thousands of others */
#define FIRST_LATE (1000 * A_SECOND)

static void brief_threads(uint64_t second)
{
	for (uint32_t i = 0; i < A_SECOND; i++) {
		/* some are in two slices */
		uint64_t from = t0 + second * S + i * MS - (second ? 50 * MS : 0);
		uint32_t tid = 1000 + (uint32_t)second * A_SECOND + i;
		struct time_totals t = { .tid = tid,
					 .ended = true,
					 .from_ns = from,
					 .to_ns = from + 100 * MS,
					 .cpu_ns = 5 * MS,
					 .off_ns[OTHER] = 95 * MS };
		struct time_reason why = { .tid = tid,
					   .begin_ns = from + 5 * MS,
					   .end_ns = from + 100 * MS,
					   .from = OTHER,
					   .reason = PARK };

		time_ledger_reason(ledger, &why);
		time_ledger_totals(ledger, &t);
		/* of one that has no row of its own any more */
		why.tid -= 20 * A_SECOND;
		if (second >= 20 && i % 4 == 0)
			time_ledger_reason(ledger, &why);
	}
}

static void living_thread(uint32_t tid, uint64_t begin, uint64_t second)
{
	struct time_totals t = { .tid = tid,
				 .from_ns = t0 + begin * S,
				 .to_ns = t0 + (second + 1) * S,
				 .off_ns[POLL] = (second + 1 - begin) * S };

	time_ledger_totals(ledger, &t);
}

static void end_thread(uint32_t tid, uint64_t second)
{
	struct time_totals t = {
		.tid = tid, .ended = true, .from_ns = t0 + second * S, .to_ns = t0 + second * S
	};

	time_ledger_totals(ledger, &t);
}

static void assert_about(uint64_t is, uint64_t should)
{
	assert_true(is >= should - should / 200 && is <= should + should / 200);
}

static bool near(uint64_t threads, uint64_t should)
{
	return threads + A_SECOND / 2 >= should && threads <= should + A_SECOND / 2;
}

/* The sums of all rows, and the rows of those that live, after that second. */
static void assert_all_is_there(uint64_t second, uint64_t last_ns)
{
	struct time_row sum = { 0 };
	struct time_rows rows;
	uint64_t brief, known;

	assert_int_equal(
		time_ledger_query(ledger, t0 + (second + 1) * S, 0, last_ns, NULL, 0, &rows), 0);
	for (uint32_t i = 0; i < rows.n; i++) {
		assert_int_equal(sum_of(&rows.rows[i]), rows.rows[i].wall_ns);
		time_row_add(&sum, &rows.rows[i]);
	}
	for (uint32_t tid = 1; tid <= LIVING; tid++)
		assert_int_equal(time_rows_find(&rows, tid)->wall_ns / S, rows.span_ns / S);
	assert_int_equal(time_rows_find(&rows, FIRST_LATE) != NULL, second >= 500);
	/* some of the first and last ones may be only partly in the span */
	brief = A_SECOND * (rows.span_ns / S);
	assert_true(near(sum.cpu_ns / (5 * MS), brief));
	assert_about(sum.off_ns[PARK], 19 * sum.cpu_ns);
	assert_true(sum.unseen_ns < sum.wall_ns / 1000);
	known = rows.n - LIVING - (second >= 500) - (rows.folded > 0) + rows.folded;
	assert_true(near(known, brief));
	assert_int_equal(rows.refused, 0);
	time_rows_free(&rows);
}

/* Reasons of a thread that has just ended may still come. */
static void assert_has_row(uint64_t second, uint32_t tid)
{
	struct time_rows rows;

	assert_int_equal(
		time_ledger_query(ledger, t0 + (second + 1) * S, 0, 20 * S, NULL, 0, &rows), 0);
	assert_non_null(time_rows_find(&rows, tid));
	time_rows_free(&rows);
}

static void many_threads_that_end_leave_room_and_their_times(void **state)
{
	(void)state;
	for (uint64_t second = 0; second < 750; second++) {
		for (uint32_t tid = 1; tid <= LIVING; tid++)
			living_thread(tid, 0, second);
		if (second >= 500)
			living_thread(FIRST_LATE, 500, second);
		brief_threads(second);
		if (second >= 2 && second < 100)
			assert_has_row(second, 1000 + (uint32_t)(second - 2) * A_SECOND);
		if (second % 50 != 49)
			continue;
		assert_all_is_there(second, 20 * S);
		assert_all_is_there(second, 300 * S);
	}
	assert_true(time_ledger_bytes(ledger) < 4u << 20);
}

/* A JVM of 3,000 living threads: the rows of the first ones stay, also when others end. */
static void ended_threads_make_room_for_living_ones(void **state)
{
	struct time_rows rows;

	(void)state;
	for (uint32_t i = 1; i <= TIME_LEDGER_THREADS; i++) {
		struct time_totals t = {
			.tid = i, .ended = i % 4 == 0, .from_ns = t0, .to_ns = t0 + S, .cpu_ns = S
		};

		time_ledger_totals(ledger, &t);
	}
	for (uint32_t i = 10001; i <= 10000 + TIME_LEDGER_THREADS; i++)
		living_thread(i, 0, 1);
	assert_int_equal(time_ledger_query(ledger, t0 + 2 * S, 0, 60 * S, NULL, 0, &rows), 0);
	assert_int_equal(rows.folded, TIME_LEDGER_THREADS / 4);
	assert_int_equal(rows.n, TIME_LEDGER_THREADS + 1);
	assert_int_equal(rows.refused, TIME_LEDGER_THREADS / 4 * 3);
	assert_int_equal(rows.rows[0].cpu_ns / S, TIME_LEDGER_THREADS / 4);
	assert_non_null(time_rows_find(&rows, 1));
	assert_null(time_rows_find(&rows, 4));
	assert_true(time_ledger_has_folded(ledger, 4));
	assert_false(time_ledger_has_folded(ledger, 1) || time_ledger_has_folded(ledger, 0));
	assert_non_null(time_rows_find(&rows, 10001));
	time_rows_free(&rows);
	/* the kernel gives the number of an ended thread to another one, for which there is room */
	for (uint32_t i = 10001; i <= 10010; i++)
		end_thread(i, 2);
	living_thread(4, 2, 3);
	assert_false(time_ledger_has_folded(ledger, 4));
	assert_true(time_ledger_has_folded(ledger, 10001));
	/* a wait of one that has ended is told of late */
	time_ledger_reason(ledger, &(struct time_reason){ .tid = 10001,
							  .begin_ns = t0,
							  .end_ns = t0 + S,
							  .from = OTHER,
							  .reason = PARK });
	assert_true(time_ledger_has_folded(ledger, 10001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_threads_that_end_leave_room_and_their_times,
						begin, end),
		cmocka_unit_test_setup_teardown(ended_threads_make_room_for_living_ones, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
