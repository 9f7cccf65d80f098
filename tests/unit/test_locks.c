#include "tests/unit/made_waits.h"

static void the_longest_waited_for_lock_comes_first(void **state)
{
	struct locks_rows r;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct stream_lock w = entered(10 + i, "org.shop.A", 1, t0 + i * S, 10 * MS);

		w.owner_tid = 99;
		add(w);
	}
	add(entered(10, "org.shop.B", 2, t0 + 4 * S, 90 * MS));
	r = ask(t0 + 5 * S, 60 * S, false);
	assert_int_equal(r.n, 2);
	assert_string_equal(r.rows[0].class_name, "org.shop.B");
	assert_int_equal(r.rows[0].longest_ns, 90 * MS);
	assert_string_equal(r.rows[1].class_name, "org.shop.A");
	assert_int_equal(r.rows[1].waits, 3);
	assert_int_equal(r.rows[1].total_ns, 30 * MS);
	assert_int_equal(r.rows[1].n_waiters, 3);
	assert_int_equal(r.rows[1].n_owners, 1);
	assert_int_equal(r.rows[1].owners[0].tid, 99);
	assert_int_equal(r.rows[1].owners[0].ns, 30 * MS);
	assert_int_equal(r.span_ns, 5 * S); /* no more is known */
	locks_rows_free(&r);
}

static void waits_before_the_span_are_left_out(void **state)
{
	struct locks_rows r;

	(void)state;
	add(entered(1, "A", 1, t0, 10 * MS));
	add(entered(1, "A", 1, t0 + 100 * S, 20 * MS));
	r = ask(t0 + 101 * S, 60 * S, false);
	assert_int_equal(r.rows[0].total_ns, 20 * MS);
	assert_true(r.span_ns >= 60 * S && r.span_ns < 66 * S);
	locks_rows_free(&r);
	r = ask(t0 + 101 * S, 600 * S, false);
	assert_int_equal(r.rows[0].total_ns, 30 * MS);
	locks_rows_free(&r);
	/* and waits that ended more than ten minutes ago are gone */
	r = ask(t0 + 900 * S, 600 * S, false);
	assert_int_equal(r.n, 0);
	locks_rows_free(&r);
}

static void the_same_class_with_another_identity_is_another_lock(void **state)
{
	struct locks_rows r;

	(void)state;
	add(entered(1, "A", 1, t0, MS));
	add(entered(1, "A", 2, t0, MS));
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.n, 2);
	locks_rows_free(&r);
}

static void idle_waits_show_when_asked_for(void **state)
{
	struct stream_lock w = entered(1, "Queue", 7, t0, 100 * MS);
	struct locks_rows r;

	(void)state;
	locks_add(locks, NULL, &w, true, t0 + S);
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.n, 0);
	locks_rows_free(&r);
	r = ask(t0 + S, 60 * S, true);
	assert_int_equal(r.n, 1);
	assert_true(r.rows[0].idle);
	locks_rows_free(&r);
}

static void a_sum_of_idle_waits_counts_as_many_and_is_none_of_the_longest(void **state)
{
	struct stream_lock w = entered(1, "Queue", 7, t0, 5 * MS);
	struct locks_rows r;

	(void)state;
	locks_add(locks, NULL, &w, true, t0 + S);
	w.begin_ns += 10 * MS;
	w.duration_ns = 900 * MS;
	w.flags = WIRE_LOCK_SUM;
	w.waits = 300;
	locks_add(locks, NULL, &w, true, t0 + S);
	r = ask(t0 + S, 60 * S, true);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.rows[0].waits, 301);
	assert_int_equal(r.rows[0].total_ns, 905 * MS);
	assert_int_equal(r.rows[0].longest_ns, 5 * MS);
	locks_rows_free(&r);
}

static void a_session_that_ended_leaves_what_it_needs_and_another_adds_to_it(void **state)
{
	struct locks_rows r;
	size_t bytes;

	(void)state;
	for (uint32_t i = 0; i < 70; i++)
		add(entered(5, "A", 1 + i, t0 + S, MS));
	bytes = locks_bytes(locks);
	locks_session(locks);
	assert_in_range(bytes - locks_bytes(locks), 20000, SIZE_MAX / 2);
	for (uint32_t i = 0; i < 140; i++)
		add(entered(5, i < 100 ? "A" : "B", 1 + i, t0 + S, MS));
	r = ask(t0 + 2 * S, 600 * S, false);
	assert_int_equal(r.n, 140);
	for (uint32_t i = 0; i < r.n; i++)
		assert_int_equal(r.rows[i].waits, r.rows[i].identity <= 70 ? 2 : 1);
	locks_rows_free(&r);
}

static void a_lock_whose_class_comes_later_is_one_row(void **state)
{
	struct locks_open *open;
	struct locks_rows r;
	uint32_t n;

	(void)state;
	add(entered(4, "", 0x77, t0, 10 * MS));
	add_open(entered(5, "", 0x77, t0, 10 * MS), false);
	assert_string_equal(locks_class_of(locks, 0x77), "");
	add(entered(6, "org.shop.A", 0x77, t0 + 20 * MS, 10 * MS));
	assert_string_equal(locks_class_of(locks, 0x77), "org.shop.A");
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.rows[0].class_name, "org.shop.A");
	assert_int_equal(r.rows[0].waits, 2);
	assert_int_equal(r.rows[0].open, 1);
	locks_rows_free(&r);
	assert_int_equal(locks_open(locks, t0 + S, &open, &n), 0);
	assert_string_equal(open[0].class_name, "org.shop.A");
	free(open);
	/* a wait for a lock with another identity stays unknown */
	add(entered(6, "", 0x78, t0 + 40 * MS, 10 * MS));
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.n, 2);
	locks_rows_free(&r);
}

static void counted_waits_belong_to_the_span(void **state)
{
	struct locks_counts c = { .shorter = 100, .shorter_ns = 10 * MS, .idle = 7, .lost = 1 };
	struct locks_rows r;

	(void)state;
	locks_count(locks, &c, t0);
	c.shorter += 5;
	c.idle += 2;
	locks_count(locks, &c, t0 + 100 * S);
	r = ask(t0 + 100 * S, 60 * S, false);
	assert_int_equal(r.counts.shorter, 5);
	assert_int_equal(r.counts.idle, 2);
	assert_int_equal(r.counts.lost, 0);
	locks_rows_free(&r);
	r = ask(t0 + 100 * S, 600 * S, false);
	assert_int_equal(r.counts.shorter, 105);
	assert_int_equal(r.counts.shorter_ns, 10 * MS);
	locks_rows_free(&r);
	/* a new session counts from zero */
	locks_session(locks);
	c = (struct locks_counts){ .shorter = 3 };
	locks_count(locks, &c, t0 + 101 * S);
	r = ask(t0 + 101 * S, 60 * S, false);
	assert_int_equal(r.counts.shorter, 8);
	locks_rows_free(&r);
}

static void idle_waits_of_an_agent_that_does_not_count_them_are_those_it_told(void **state)
{
	struct stream_lock w = entered(1, "Queue", 7, t0, 100 * MS);
	struct locks_counts c = { .idle = 20, .idle_ns = S };
	struct locks_rows r;

	(void)state;
	locks_add(locks, NULL, &w, true, t0 + S);
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.counts.idle, 1);
	assert_int_equal(r.counts.idle_ns, 100 * MS);
	locks_rows_free(&r);
	locks_count(locks, &c, t0 + S);
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.counts.idle, 20);
	locks_rows_free(&r);
}

static void nodes_of_an_epoch_that_is_over_are_no_stacks(void **state)
{
	struct stream_lock w = entered(5, "A", 1, t0, 10 * MS);
	struct locks_open *list;
	uint32_t n;

	(void)state;
	w.node = 17;
	add_open(w, false);
	locks_reset(locks);
	assert_int_equal(locks_open(locks, t0 + 60 * S, &list, &n), 0);
	assert_int_equal(list[0].node, 0);
	free(list);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_longest_waited_for_lock_comes_first),
		TEST(waits_before_the_span_are_left_out),
		TEST(the_same_class_with_another_identity_is_another_lock),
		TEST(idle_waits_show_when_asked_for),
		TEST(a_sum_of_idle_waits_counts_as_many_and_is_none_of_the_longest),
		TEST(a_session_that_ended_leaves_what_it_needs_and_another_adds_to_it),
		TEST(a_lock_whose_class_comes_later_is_one_row),
		TEST(counted_waits_belong_to_the_span),
		TEST(idle_waits_of_an_agent_that_does_not_count_them_are_those_it_told),
		TEST(nodes_of_an_epoch_that_is_over_are_no_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
