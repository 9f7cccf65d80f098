#include "tests/unit/made_waits.h"

static void an_open_wait_ends_with_its_end(void **state)
{
	struct stream_lock w = entered(5, "A", 1, t0 + S, 10 * MS);
	struct locks_rows r;

	(void)state;
	add_open(w, false);
	add_open(w, false); /* told again */
	assert_int_equal(n_open(), 1);
	r = ask(t0 + 3 * S, 60 * S, false);
	assert_int_equal(r.rows[0].open, 1);
	assert_int_equal(r.rows[0].waits, 0);
	assert_int_equal(r.rows[0].total_ns, 2 * S);
	locks_rows_free(&r);
	w.duration_ns = 3 * S;
	add(w);
	assert_int_equal(n_open(), 0);
	r = ask(t0 + 4 * S, 60 * S, false);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.rows[0].waits, 1);
	assert_int_equal(r.rows[0].total_ns, 3 * S);
	locks_rows_free(&r);
}

static void a_closed_wait_is_no_event(void **state)
{
	struct stream_lock w = entered(5, "A", 1, t0, 10 * MS);
	struct locks_rows r;

	(void)state;
	add_open(w, false);
	w.flags = WIRE_LOCK_CLOSED;
	add(w);
	assert_int_equal(n_open(), 0);
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.n, 0);
	locks_rows_free(&r);
}

static void the_end_of_an_older_wait_leaves_the_newer_one(void **state)
{
	struct stream_lock old = entered(5, "A", 1, t0, 10 * MS);

	(void)state;
	add_open(entered(5, "B", 2, t0 + S, 10 * MS), false);
	add(old);
	assert_int_equal(n_open(), 1);
	/* but a later end shows that the earlier wait is over too: its own end was lost */
	add(entered(5, "C", 3, t0 + 2 * S, 10 * MS));
	assert_int_equal(n_open(), 0);
}

static void waits_of_threads_without_a_number_end_one_by_one(void **state)
{
	(void)state;
	add_open(entered(WIRE_VIRTUAL_TID, "A", 1, t0, 10 * MS), false);
	add_open(entered(WIRE_VIRTUAL_TID, "A", 1, t0 + 1, 10 * MS), false);
	add(entered(WIRE_VIRTUAL_TID, "A", 1, t0 + 1, 20 * MS));
	assert_int_equal(n_open(), 1);
}

static void the_end_of_a_thread_or_session_ends_its_waits(void **state)
{
	struct wire_thread t = { .tid = 5, .flags = WIRE_THREAD_ENDED };

	(void)state;
	add_open(entered(5, "A", 1, t0, 10 * MS), false);
	add_open(entered(6, "A", 1, t0, 10 * MS), false);
	locks_thread(locks, &t, "", t0 + S);
	assert_int_equal(n_open(), 1);
	locks_session(locks);
	assert_int_equal(n_open(), 0);
}

static void open_waits_are_bounded(void **state)
{
	struct locks_lost lost;

	(void)state;
	for (uint32_t i = 1; i <= LOCKS_OPEN_MAX + 10; i++)
		add_open(entered(i, "A", 1, t0, 10 * MS), false);
	assert_int_equal(n_open(), LOCKS_OPEN_MAX);
	locks_lost(locks, &lost);
	assert_int_equal(lost.open, 10);
}

static void the_latest_owner_is_shown(void **state)
{
	struct stream_lock w = entered(5, "A", 1, t0, 10 * MS),
			   other = entered(6, "A", 1, t0 - S, 500 * MS);
	struct locks_open *list;
	uint32_t n;

	(void)state;
	w.owner_tid = other.owner_tid = 9;
	add_open(w, false);
	/* the owner's record from before this wait: that owner has passed the lock on to 9 */
	add(other);
	assert_int_equal(locks_open(locks, t0 + S, &list, &n), 0);
	assert_int_equal(list[0].owner_tid, 9);
	free(list);
	other.duration_ns = 3 * S;
	other.tid = 7;
	add(other);
	assert_int_equal(locks_open(locks, t0 + 10 * S, &list, &n), 0);
	assert_int_equal(list[0].owner_tid, 7);
	free(list);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_open_wait_ends_with_its_end),
		TEST(a_closed_wait_is_no_event),
		TEST(the_end_of_an_older_wait_leaves_the_newer_one),
		TEST(waits_of_threads_without_a_number_end_one_by_one),
		TEST(the_end_of_a_thread_or_session_ends_its_waits),
		TEST(open_waits_are_bounded),
		TEST(the_latest_owner_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
