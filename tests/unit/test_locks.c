#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/locks/locks.h"

#define S  1000000000ull
#define MS 1000000ull
static const uint64_t t0 = 5000 * S;

static struct locks *locks;

static int begin(void **state)
{
	(void)state;
	return locks_new(t0, &locks);
}

static int end(void **state)
{
	(void)state;
	locks = locks_free(locks);
	return 0;
}

static struct stream_lock entered(uint32_t tid, const char *class_name, uint32_t identity, uint64_t begin_ns,
				  uint64_t duration_ns)
{
	return (struct stream_lock){
		.tid = tid,
		.begin_ns = begin_ns,
		.duration_ns = duration_ns,
		.wait = WIRE_WAIT_ENTER,
		.class_name = class_name,
		.identity = identity,
		.thread = "",
		.owner = "",
		.waker = "",
		.waits = 1,
	};
}

static void add(struct stream_lock w)
{
	locks_add(locks, NULL, &w, false, w.begin_ns + w.duration_ns);
}

static void add_open(struct stream_lock w, bool idle)
{
	w.flags |= WIRE_LOCK_OPEN;
	locks_add(locks, NULL, &w, idle, w.begin_ns + w.duration_ns);
}

static uint32_t n_open(void)
{
	struct locks_open *list;
	uint32_t n;

	assert_int_equal(locks_open(locks, t0 + 60 * S, &list, &n), 0);
	free(list);
	return n;
}

static struct locks_rows ask(uint64_t now, uint64_t last, bool idle)
{
	struct locks_rows r;

	assert_int_equal(locks_query(locks, now, last, idle, LOCKS_BY_LOCK, &r), 0);
	return r;
}

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

static void what_is_older_than_asked_for_is_left_out(void **state)
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
	r = ask(t0 + 900 * S, 600 * S, false); /* and what is over ten minutes old is no more */
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
	assert_int_equal(r.rows[0].waits, 1000); /* none of it was folded away */
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
	add(entered(8, "org.shop.A", 1, t0 + 10 * S, 20 * MS)); /* in another slice, yet the same lock */
	w.owner_tid = 99;
	add(w);
	w.wait = WIRE_WAIT_PARK;
	add(w);
	add(entered(7, "org.shop.B", 0, t0 + 40 * S, 80 * MS)); /* without an identity: who knows how many */
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
	assert_int_equal(r.n, 2); /* nothing among the other locks */
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
	/* but a newer end tells that the older one is over too: its own was lost */
	add(entered(5, "C", 3, t0 + 2 * S, 10 * MS));
	assert_int_equal(n_open(), 0);
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
	/* one of another identity is not known by that */
	add(entered(6, "", 0x78, t0 + 40 * MS, 10 * MS));
	r = ask(t0 + S, 60 * S, false);
	assert_int_equal(r.n, 2);
	locks_rows_free(&r);
}

static void virtual_threads_without_a_name_share_their_times(void **state)
{
	struct locks_thread_rows r;

	(void)state;
	for (uint32_t i = 1; i <= 5000; i++) {
		struct stream_lock w = entered(WIRE_VIRTUAL_TID + i, "A", 1, t0, MS);

		add_open(w, false);
		add(w);
	}
	assert_int_equal(locks_threads(locks, t0 + S, 60 * S, &r), 0);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.rows[0].tid, WIRE_VIRTUAL_TID);
	assert_int_equal(r.rows[0].wait_ns, 5000 * MS);
	locks_thread_rows_free(&r);
	assert_int_equal(n_open(), 0);
}

static void what_is_only_counted_is_of_the_span(void **state)
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

static void who_got_the_lock_since_is_its_owner(void **state)
{
	struct stream_lock w = entered(5, "A", 1, t0, 10 * MS), other = entered(6, "A", 1, t0 - S, 500 * MS);
	struct locks_open *list;
	uint32_t n;

	(void)state;
	w.owner_tid = other.owner_tid = 9;
	add_open(w, false);
	add(other); /* before the wait began: that one gave it to 9 */
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

/* ---- threads ---------------------------------------------------------------------------------- */

static struct locks_thread_rows list(uint64_t now, uint64_t last)
{
	struct locks_thread_rows r;

	assert_int_equal(locks_threads(locks, now, last, &r), 0);
	return r;
}

static const struct locks_thread_row *thread(const struct locks_thread_rows *r, uint32_t tid)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (r->rows[i].tid == tid)
			return &r->rows[i];
	return NULL;
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
	r = list(t0 + 16 * S, 1 * S); /* only what was in the last slice */
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
		if (slices[i] == 7) /* it takes no more than it needs */
			assert_in_range(locks_bytes(locks) - before, 1, 300);
	}
	add(entered(6, "A", 1, now - S, S));
	add(entered(6, "A", 1, t0 + 10 * S, now - t0 - 10 * S)); /* farther back than it was known */
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
	/* in the slice after the last walk there is room again */
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
	struct stream_virtual v = { .mono_ns = at, .container = container, .class_name = "",
				    .state = WIRE_STATE_WAITING, .count = count, .mounted = 1 };

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
		TEST(the_longest_waited_for_lock_comes_first),
		TEST(what_is_older_than_asked_for_is_left_out),
		TEST(the_same_class_with_another_identity_is_another_lock),
		TEST(idle_waits_show_when_asked_for),
		TEST(a_sum_of_idle_waits_counts_as_many_and_is_none_of_the_longest),
		TEST(totals_stay_true_when_locks_churn),
		TEST(locks_of_a_class_are_one_row),
		TEST(classes_keep_their_waits_when_locks_churn),
		TEST(a_session_that_ended_leaves_what_it_needs_and_another_adds_to_it),
		TEST(classes_without_room_are_the_other_locks),
		TEST(names_of_classes_are_bounded),
		TEST(an_open_wait_ends_with_its_end),
		TEST(a_closed_wait_is_no_event),
		TEST(the_end_of_an_older_wait_leaves_the_newer_one),
		TEST(a_lock_whose_class_comes_later_is_one_row),
		TEST(virtual_threads_without_a_name_share_their_times),
		TEST(what_is_only_counted_is_of_the_span),
		TEST(idle_waits_of_an_agent_that_does_not_count_them_are_those_it_told),
		TEST(waits_of_threads_without_a_number_end_one_by_one),
		TEST(the_end_of_a_thread_or_session_ends_its_waits),
		TEST(open_waits_are_bounded),
		TEST(who_got_the_lock_since_is_its_owner),
		TEST(nodes_of_an_epoch_that_is_over_are_no_stacks),
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
