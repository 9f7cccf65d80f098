#include "tests/unit/made_waits.h"

static void virtual_threads_without_a_name_share_their_times(void **state)
{
	struct locks_thread_rows r;

	(void)state;
	for (uint32_t i = 1; i <= 5000; i++) {
		struct stream_lock w = entered(WIRE_VIRTUAL_TID + i, "A", 1, t0, MS);

		add_open(w, false);
		add(w);
	}
	assert_int_equal(locks_threads(locks, t0 + S, 0, 60 * S, &r), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.rows[0].tid, WIRE_VIRTUAL_TID);
	assert_int_equal(r.rows[0].wait_ns, 5000 * MS);
	locks_thread_rows_free(&r);
	assert_int_equal(n_open(), 0);
}

static void told_at(uint64_t at, uint32_t tid, uint32_t flags, const char *name)
{
	struct wire_thread t = { .tid = tid, .flags = flags };

	locks_thread(locks, &t, name, at);
}

static void told(uint32_t tid, uint32_t flags, const char *name)
{
	told_at(t0, tid, flags, name);
}

static void sampled(uint32_t tid, uint64_t at, uint64_t weight)
{
	struct stream_sample s = { .tid = tid, .mono_ns = at, .weight_ns = weight };

	locks_sample(locks, &s, at);
}

static void a_thread_has_its_times_and_its_last_lock(void **state)
{
	struct locks_thread_rows r;
	const struct locks_thread_row *t;

	(void)state;
	told(5, WIRE_THREAD_JAVA, "worker");
	told(6, WIRE_THREAD_JAVA, "nothing done");
	sampled(5, t0 + S, 10 * MS);
	sampled(5, t0 + 2 * S, 10 * MS);
	add(entered(5, "A", 0xab, t0 + 3 * S, 12 * S)); /* over four slices */
	r = list(t0 + 16 * S, 60 * S);
	assert_int_equal(r.n, 2);
	t = thread(&r, 5);
	assert_string_equal(t->name, "worker");
	assert_int_equal(t->cpu_ns, 20 * MS);
	assert_int_equal(t->wait_ns, 12 * S);
	assert_string_equal(t->last_class, "A");
	assert_int_equal(t->last_identity, 0xab);
	assert_false(t->waits);
	locks_thread_rows_free(&r);
	r = list(t0 + 16 * S, 1 * S); /* only what happened in the last slice */
	assert_int_equal(thread(&r, 5)->wait_ns, 0);
	assert_int_equal(thread(&r, 5)->cpu_ns, 0);
	locks_thread_rows_free(&r);
}

static void a_thread_s_times_are_kept_however_long_it_lives(void **state)
{
	static const unsigned slices[] = { 0, 3, 7, 8, 20, 31, 32, 33, 100, 119 };
	size_t before = locks_bytes(locks);
	struct locks_thread_rows r;
	uint64_t sum = 0, now = t0;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(slices); i++) {
		now = t0 + slices[i] * 5 * S;
		sampled(5, now, (i + 1) * MS);
		sum += (i + 1) * MS;
		r = list(now + S, 600 * S);
		assert_int_equal(thread(&r, 5)->cpu_ns, sum);
		locks_thread_rows_free(&r);
		if (slices[i] == 7) /* a span takes no more slices than it needs */
			assert_in_range(locks_bytes(locks) - before, 1, 300);
	}
	add(entered(6, "A", 1, now - S, S));
	add(entered(6, "A", 1, t0 + 10 * S,
		    now - t0 - 10 * S)); /* a span that begins before the thread was known */
	r = list(now, 600 * S);
	assert_int_equal(thread(&r, 6)->wait_ns, now - t0 - 10 * S + S);
	locks_thread_rows_free(&r);
	r = list(now + 300 * S, 300 * S);
	assert_int_equal(thread(&r, 6)->wait_ns, 0);
	locks_thread_rows_free(&r);
	sampled(6, now + 3000 * S, MS);
	r = list(now + 3000 * S, 600 * S);
	assert_int_equal(thread(&r, 6)->cpu_ns, MS);
	assert_int_equal(thread(&r, 6)->wait_ns, 0);
	locks_thread_rows_free(&r);
}

static void a_wait_that_goes_on_counts_up_to_now(void **state)
{
	struct locks_thread_rows r;

	(void)state;
	add_open(entered(5, "A", 1, t0, 10 * MS), false);
	add_open(entered(6, "Q", 1, t0, 10 * MS), true);
	r = list(t0 + 30 * S, 10 * S);
	assert_int_equal(thread(&r, 5)->wait_ns, 10 * S);
	assert_int_equal(thread(&r, 6)->idle_ns, 10 * S);
	assert_int_equal(thread(&r, 6)->wait_ns, 0);
	assert_string_equal(thread(&r, 5)->open.class_name, "A");
	locks_thread_rows_free(&r);
}

static void a_number_used_again_is_another_thread(void **state)
{
	struct locks_thread_rows r;
	int seen = 0;

	(void)state;
	told(5, 0, "first");
	sampled(5, t0 + S, 10 * MS);
	told(5, WIRE_THREAD_ENDED, "");
	sampled(5, t0 + S, 10 * MS); /* its last moments */
	told(5, 0, "second");
	sampled(5, t0 + S, 3 * MS);
	r = list(t0 + 2 * S, 60 * S);
	assert_int_equal(r.n, 2);
	for (uint32_t i = 0; i < r.n; i++) {
		seen += strcmp(r.rows[i].name, "first") == 0 && r.rows[i].cpu_ns == 20 * MS;
		seen += strcmp(r.rows[i].name, "second") == 0 && r.rows[i].cpu_ns == 3 * MS;
	}
	assert_int_equal(seen, 2);
	assert_string_equal(locks_thread_name(locks, 5), "second");
	locks_thread_rows_free(&r);
}

static void a_thread_that_ended_and_did_nothing_is_left_out(void **state)
{
	struct locks_thread_rows r;

	(void)state;
	told(5, 0, "short");
	told(5, WIRE_THREAD_ENDED, "");
	r = list(t0 + S, 60 * S);
	assert_int_equal(r.n, 0);
	locks_thread_rows_free(&r);
}

static uint64_t all_cpu(uint64_t now)
{
	struct locks_thread_rows r = list(now, 600 * S);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r.n; i++)
		sum += r.rows[i].cpu_ns;
	locks_thread_rows_free(&r);
	return sum;
}

static void times_stay_true_with_more_threads_than_fit(void **state)
{
	struct locks_lost lost;

	(void)state;
	for (uint32_t i = 1; i <= LOCKS_THREADS_MAX + 1000; i++) {
		told(i, 0, "a thread with a name of some length, as people give them");
		sampled(i, t0 + i * 1000, MS);
	}
	assert_int_equal(all_cpu(t0 + S), (LOCKS_THREADS_MAX + 1000) * MS);
	assert_true(locks_bytes(locks) < LOCKS_THREAD_BYTES_MAX + (1u << 20));
	locks_lost(locks, &lost);
	assert_true(lost.threads > 0);
}

static void virtual_threads_do_not_push_out_the_others(void **state)
{
	struct locks_thread_rows r;

	(void)state;
	told(5, WIRE_THREAD_JAVA, "main");
	for (uint32_t i = 1; i <= 100000; i++) {
		told_at(t0 + i * MS, WIRE_VIRTUAL_TID + i, WIRE_THREAD_VIRTUAL, "v");
		sampled(WIRE_VIRTUAL_TID + i, t0 + i * MS, MS);
	}
	r = list(t0 + 100 * S, 600 * S);
	assert_non_null(thread(&r, 5));
	assert_true(r.n <= LOCKS_VIRTUAL_MAX + 2);
	locks_thread_rows_free(&r);
}

static void ended_threads_make_room(void **state)
{
	(void)state;
	for (uint32_t i = 1; i <= 3 * LOCKS_THREADS_MAX; i++) {
		uint64_t at = t0 + i * MS;
		struct wire_thread t = { .tid = i };

		locks_thread(locks, &t, "x", at);
		t.flags = WIRE_THREAD_ENDED;
		locks_thread(locks, &t, "", at);
	}
	/* one slice after the last pass there is room again */
	sampled(7, t0 + 200 * S, MS);
	assert_string_equal(locks_thread_name(locks, 3 * LOCKS_THREADS_MAX), "x");
}

static void times_of_another_clock_are_now(void **state)
{
	struct stream_lock w = entered(5, "A", 1, 3, 10 * MS);
	struct locks_rows r;

	(void)state;
	locks_add(locks, NULL, &w, false, t0 + S);
	w.begin_ns = UINT64_MAX - 5;
	locks_add(locks, NULL, &w, false, t0 + S);
	w.flags = WIRE_LOCK_OPEN;
	locks_add(locks, NULL, &w, false, t0 + S);
	r = ask(t0 + 2 * S, 60 * S, false);
	assert_int_equal(r.rows[0].waits, 2);
	assert_int_equal(r.rows[0].total_ns, 20 * MS + S + 10 * MS);
	locks_rows_free(&r);
}

static void looked(uint64_t at, const char *container, uint32_t count)
{
	struct stream_virtual v = { .mono_ns = at,
				    .container = container,
				    .class_name = "",
				    .state = WIRE_STATE_WAITING,
				    .count = count,
				    .mounted = 1 };

	locks_virtual(locks, &v);
}

static void a_look_at_virtual_threads_replaces_the_one_before(void **state)
{
	struct locks_thread_rows r;
	uint32_t sum = 0;

	(void)state;
	looked(t0, "old", 100);
	looked(t0 + 5 * S, "pool", 20000);
	looked(t0 + 5 * S, "", 1);
	r = list(t0 + 6 * S, 60 * S);
	assert_true(r.virtuals_known);
	assert_int_equal(r.n_virtuals, 2);
	assert_string_equal(r.virtuals[0].container, "pool");
	assert_int_equal(r.virtuals[0].count, 20000);
	locks_thread_rows_free(&r);
	for (uint32_t i = 0; i < 1000; i++)
		looked(t0 + 10 * S, "pool", 2);
	r = list(t0 + 11 * S, 60 * S);
	for (uint32_t i = 0; i < r.n_virtuals; i++)
		sum += r.virtuals[i].count;
	assert_int_equal(sum, 2000);
	locks_thread_rows_free(&r);
	looked(t0 + 15 * S, "", 0); /* none at all */
	r = list(t0 + 16 * S, 60 * S);
	assert_int_equal(r.n_virtuals, 0);
	assert_true(r.virtuals_known);
	locks_thread_rows_free(&r);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(virtual_threads_without_a_name_share_their_times),
		TEST(a_thread_has_its_times_and_its_last_lock),
		TEST(a_thread_s_times_are_kept_however_long_it_lives),
		TEST(a_wait_that_goes_on_counts_up_to_now),
		TEST(a_number_used_again_is_another_thread),
		TEST(a_thread_that_ended_and_did_nothing_is_left_out),
		TEST(times_stay_true_with_more_threads_than_fit),
		TEST(virtual_threads_do_not_push_out_the_others),
		TEST(ended_threads_make_room),
		TEST(times_of_another_clock_are_now),
		TEST(a_look_at_virtual_threads_replaces_the_one_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
