#include "tests/unit/made_waits.h"
#include <stdio.h>
#include "daemon/locks/locks_priv.h"

static struct locks_rows ask_classes(uint64_t now, uint64_t last, bool idle)
{
	struct locks_rows r;

	assert_int_equal(locks_query(locks, now, last, idle, LOCKS_BY_CLASS, &r), 0);
	return r;
}

static uint64_t total(const struct locks_rows *r, uint64_t *ret_waits)
{
	uint64_t ns = 0;

	*ret_waits = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		ns += r->rows[i].total_ns;
		*ret_waits += r->rows[i].waits;
	}
	return ns;
}

static void totals_stay_true_when_locks_churn(void **state)
{
	uint64_t waits, sum = 0;
	struct locks_rows r;
	struct locks_lost lost;
	const struct locks_row *last;

	(void)state;
	for (uint32_t i = 1; i <= 100000; i++) {
		add(entered(1 + i % 50, "One", i, t0 + i * (S / 10000), MS));
		sum += MS;
		if (i % 100)
			continue;
		add(entered(7, "Hot", 1, t0 + i * (S / 10000), 30 * MS));
		sum += 30 * MS;
	}
	r = ask(t0 + 11 * S, 600 * S, false);
	assert_int_equal(total(&r, &waits), sum);
	assert_int_equal(waits, 101000);
	assert_string_equal(r.rows[0].class_name, "Hot");
	assert_int_equal(r.rows[0].waits, 1000); /* nothing of it was merged into "others" */
	last = &r.rows[r.n - 1];
	assert_true(last->other);
	assert_string_equal(last->class_name, "[other locks]");
	assert_true(last->more_waiters);
	locks_rows_free(&r);
	locks_lost(locks, &lost);
	assert_true(lost.folded > 90000);
	assert_true(locks_bytes(locks) < 4u << 20);
}

static void locks_of_a_class_are_one_row(void **state)
{
	struct stream_lock w = entered(9, "org.shop.A", 2, t0 + 40 * S, 30 * MS);
	struct locks_rows r;

	(void)state;
	add(entered(7, "org.shop.A", 1, t0, 10 * MS));
	add(entered(8, "org.shop.A", 1, t0 + 10 * S,
		    20 * MS)); /* in another slice, but for the same lock */
	w.owner_tid = 99;
	add(w);
	w.wait = WIRE_WAIT_PARK;
	add(w);
	add(entered(7, "org.shop.B", 0, t0 + 40 * S,
		    80 * MS)); /* without an identity the number of locks is unknown */
	add_open(entered(5, "org.shop.A", 3, t0 + 40 * S, S), false);
	r = ask_classes(t0 + 41 * S, 60 * S, false);
	assert_int_equal(r.n, 3);
	assert_string_equal(r.rows[0].class_name, "org.shop.A");
	assert_int_equal(r.rows[0].wait, WIRE_WAIT_ENTER);
	assert_int_equal(r.rows[0].locks, 3);
	assert_false(r.rows[0].more_locks);
	assert_int_equal(r.rows[0].identity, 0);
	assert_int_equal(r.rows[0].waits, 3);
	assert_int_equal(r.rows[0].open, 1);
	assert_int_equal(r.rows[0].total_ns, S + 60 * MS);
	assert_int_equal(r.rows[0].longest_ns, S);
	assert_int_equal(r.rows[0].n_waiters, 4);
	assert_int_equal(r.rows[0].waiters[0].tid, 5);
	assert_int_equal(r.rows[0].owners[0].tid, 99);
	assert_string_equal(r.rows[1].class_name, "org.shop.B");
	assert_int_equal(r.rows[1].locks, 1);
	assert_true(r.rows[1].more_locks);
	assert_int_equal(r.rows[2].wait, WIRE_WAIT_PARK);
	assert_int_equal(r.rows[2].locks, 1);
	locks_rows_free(&r);
}

static void classes_keep_their_waits_when_locks_churn(void **state)
{
	struct locks_rows r;

	(void)state;
	for (uint32_t i = 1; i <= 40000; i++) {
		add(entered(1 + i % 50, "Many", i, t0 + i * (S / 10000), MS));
		add(entered(1, "Few", 1 + i % 3, t0 + i * (S / 10000), MS / 1000));
	}
	r = ask_classes(t0 + 5 * S, 600 * S, false);
	assert_int_equal(r.n, 2); /* nothing in the row of other locks */
	assert_string_equal(r.rows[0].class_name, "Many");
	assert_int_equal(r.rows[0].waits, 40000);
	assert_int_equal(r.rows[0].total_ns, 40000 * MS);
	assert_in_range(r.rows[0].locks, 100, 40000);
	assert_true(r.rows[0].more_locks);
	assert_string_equal(r.rows[1].class_name, "Few");
	assert_int_equal(r.rows[1].waits, 40000);
	locks_rows_free(&r);
	assert_true(locks_bytes(locks) < 4u << 20);
}

static void classes_without_room_are_the_other_locks(void **state)
{
	char name[16];
	uint64_t waits;
	struct locks_rows r;

	(void)state;
	for (uint32_t i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		add(entered(1, name, i + 1, t0 + i * MS, MS));
	}
	r = ask_classes(t0 + 4 * S, 600 * S, false);
	assert_int_equal(total(&r, &waits), 3000 * MS);
	assert_int_equal(waits, 3000);
	assert_true(r.n > LOCKS_REST_MAX && r.n < 3000);
	assert_true(r.rows[r.n - 1].other);
	assert_true(r.rows[r.n - 1].more_locks);
	assert_string_equal(r.rows[r.n - 1].class_name, "[other locks]");
	locks_rows_free(&r);
}

static void names_of_classes_are_bounded(void **state)
{
	char name[2001];
	uint64_t waits;
	struct locks_rows r;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(name, 12, "c%010u", i);
		name[11] = 'x';
		add(entered(1, name, 1, t0 + i * MS, MS));
	}
	r = ask(t0 + 11 * S, 600 * S, false);
	assert_int_equal(total(&r, &waits), 10000 * MS);
	assert_int_equal(waits, 10000);
	locks_rows_free(&r);
	assert_true(locks_bytes(locks) < 4u << 20);
}

static size_t added_up(void)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < LOCKS_SLICES; i++) {
		const struct slice *s = &locks->slices[i];

		bytes += s->table ? lock_table_bytes(s->table) : 0;
		bytes += s->packed ? packed_bytes(s->packed) : 0;
	}
	return bytes;
}

/* Tables grow, fold, shrink with a session, are packed and expire. */
static void bytes_of_tables_are_those_of_each_added_up(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 30000; i++) {
		add(entered(1 + i % 50, i % 3 ? "One" : "Two", i, t0 + i * (S / 20), MS));
		if (i % 700 == 0)
			assert_int_equal(locks->tables_bytes, added_up());
		if (i % 5000 == 0)
			locks_session(locks);
	}
	assert_true(locks->tables_bytes > 0);
	assert_int_equal(locks->tables_bytes, added_up());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(totals_stay_true_when_locks_churn),
		TEST(locks_of_a_class_are_one_row),
		TEST(classes_keep_their_waits_when_locks_churn),
		TEST(classes_without_room_are_the_other_locks),
		TEST(names_of_classes_are_bounded),
		TEST(bytes_of_tables_are_those_of_each_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
