#include "tests/unit/live_end.h"
#include <stdio.h>

static void every_sample_ends_in_exactly_one_window(void **state)
{
	const struct stream_ops ops = { 0 };
	struct live_source *source;
	struct stream *stream;
	struct live *live;

	(void)state;
	windows = 0;
	window_weight = 0;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(on_window, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &app, &source), 0);
	live_tick(live, T0);
	for (uint64_t t = 0; t < 35; t++) {
		add(source, stream, T0 + t * LIVE_SLICE_NS);
		live_tick(live, T0 + t * LIVE_SLICE_NS);
		if (t >= 12) /* later than any open window, and still counted */
			add(source, stream, T0 + (t - 12) * LIVE_SLICE_NS);
	}
	assert_int_equal(windows, 3);
	live_source_free(source);
	live_free(live);
	assert_int_equal(window_weight, (35 + 23) * 10);
	stream_free(stream);
}

static void a_query_sees_seconds_and_windows_once(void **state)
{
	const struct stream_ops ops = { 0 };
	struct live_source *source;
	struct stream *stream;
	struct profile *p;
	struct live *live;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(NULL, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &app, &source), 0);
	live_tick(live, T0);
	for (uint64_t t = 0; t < 25; t++) {
		add(source, stream, T0 + t * LIVE_SLICE_NS);
		live_tick(live, T0 + t * LIVE_SLICE_NS);
	}
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(live, T0, T0 + 100 * LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(weight_of(p), 250);
	p = profile_free(p);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(
		live_query(live, T0 + 22 * LIVE_SLICE_NS, T0 + 24 * LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(weight_of(p), 20);
	profile_free(p);
	live_source_free(source);
	live_free(live);
	stream_free(stream);
}

static uint64_t queried(struct live *l, uint64_t from, uint64_t to)
{
	struct profile *p;
	uint64_t weight;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(l, from, to, NULL, p), 0);
	weight = weight_of(p);
	profile_free(p);
	return weight;
}

static void the_last_seconds_are_seen_one_by_one_also_when_their_window_is_closed(void **state)
{
	struct setup u = opened();

	(void)state;
	live_tick(u.live, T0);
	for (uint64_t t = 0; t < 60; t++) {
		live_tick(u.live, T0 + t * LIVE_SLICE_NS);
		add(u.source, u.stream, T0 + t * LIVE_SLICE_NS);
		if (t >= 10)
			assert_int_equal(queried(u.live, T0 + (t - 9) * LIVE_SLICE_NS,
						 T0 + (t + 1) * LIVE_SLICE_NS),
					 100);
		assert_int_equal(queried(u.live, T0, T0 + 100 * LIVE_SLICE_NS), (t + 1) * 10);
	}
	closed(&u);
	assert_int_equal(window_weight, 600);
}

static void nothing_is_put_before_the_begin(void **state)
{
	struct setup u = opened();
	uint64_t begin = T0 + LIVE_SLICE_NS;

	(void)state;
	live_begin_at(u.live, begin);
	add(u.source, u.stream, T0 + 1); /* before the first tick */
	live_tick(u.live, T0 + LIVE_SLICE_NS / 2);
	add(u.source, u.stream, T0 - 5 * LIVE_SLICE_NS); /* the gap between two daemons */
	assert_int_equal(live_oldest_real_ns(u.live), begin);
	assert_int_equal(queried(u.live, T0, begin), 0);
	assert_int_equal(queried(u.live, begin, begin + LIVE_SLICE_NS), 20);
	add(u.source, u.stream, begin + LIVE_SLICE_NS);
	assert_int_equal(queried(u.live, begin, begin + LIVE_SLICE_NS), 20);
	/* the wall clock is set back: samples keep following it */
	live_tick(u.live, T0 + 60 * LIVE_SLICE_NS);
	live_tick(u.live, T0 - 3600 * LIVE_SLICE_NS);
	add(u.source, u.stream, T0 - 3600 * LIVE_SLICE_NS);
	closed(&u);
	assert_int_equal(window_weight, 40);
}

#define CROWD 2000

static void rate_is(struct live *l, unsigned now, unsigned seconds, uint64_t begin, uint64_t rate)
{
	uint64_t to = T0 + now * LIVE_SLICE_NS, asked = to - seconds * LIVE_SLICE_NS;
	uint64_t from = live_query_begin(l, asked + 1);

	assert_true(from < to && from >= begin);
	assert_true(from <= asked || seconds > 11 || asked < begin);
	assert_int_equal(queried(l, from, to), (to - from) / LIVE_SLICE_NS * rate);
}

/* @threads come once a second. With a crowd of them memory has no room for all windows. */
static void rates_are(unsigned threads, bool all_in_memory)
{
	struct setup u = opened();
	uint64_t begin = T0 + 3 * LIVE_SLICE_NS;
	unsigned step = threads > 1 ? 9 : 1;

	live_begin_at(u.live, begin);
	for (unsigned t = 0; t < 45; t++) {
		live_tick(u.live, T0 + t * LIVE_SLICE_NS);
		for (unsigned i = 0; i < threads && t >= 3; i++) {
			struct stream_sample sample = { .tid = 1 + t % 10 * threads + i,
							.thread = "main",
							.weight_ns = 10 };

			live_add(u.source, u.stream, &sample, NULL, T0 + t * LIVE_SLICE_NS, 10);
		}
		for (unsigned seconds = 1; seconds <= t && t >= 3; seconds += step)
			rate_is(u.live, t + 1, seconds, begin, threads * 10ull);
	}
	assert_int_equal(live_oldest_real_ns(u.live) == begin, all_in_memory);
	closed(&u);
}

static void what_memory_has_of_a_time_begins_where_it_says(void **state)
{
	(void)state;
	rates_are(1, true);
	rates_are(CROWD, false);
}

static uint64_t told_weight[20];
static unsigned told_names[20]; /* how often the name of a thread was told */
static struct profile_slices *readers[2]; /* of the two windows */

/* As the journal has it. */
static bool on_slice(void *userdata, const struct profile *slice)
{
	struct profile_slices **reader = &readers[(slice->begin_real_ns - T0) / LIVE_WINDOW_NS];
	struct profile *p;
	uint8_t *bytes;
	size_t len;

	(void)userdata;
	if (!*reader)
		assert_int_equal(profile_slices_new(reader), 0);
	assert_int_equal(profile_encode_slice(slice, &bytes, &len), 0);
	assert_int_equal(profile_slices_read(*reader, bytes, len, &p), 0);
	for (unsigned t = 0; t < 20; t++) {
		char name[16];
		int n = snprintf(name, sizeof(name), "%cthread %u", 8 + (t > 9), t);

		told_names[t] += memmem(bytes, len, name, (size_t)n) != NULL;
	}
	free(bytes);
	assert_int_equal(p->end_real_ns - p->begin_real_ns, LIVE_SLICE_NS);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].taken, p->n_rows ? 2 : 0);
	told_weight[(p->begin_real_ns - T0) / LIVE_SLICE_NS] = weight_of(p);
	return true;
}

static void a_second_is_told_with_what_came_in_it_and_each_name_once(void **state)
{
	struct setup u = opened();

	(void)state;
	live_on_slice(u.live, on_slice);
	live_tick(u.live, T0);
	for (uint64_t t = 0; t < 20; t++) {
		char name[16];
		struct stream_sample sample = { .tid = 10 + (uint32_t)t,
						.thread = name,
						.weight_ns = 10 + t };

		snprintf(name, sizeof(name), "thread %u", (unsigned)t);
		/* once before and once after another second: it is in two parts */
		live_add(u.source, u.stream, &sample, NULL, T0 + t * LIVE_SLICE_NS, 10);
		if (t % 10)
			live_add_cpu(u.source, 1000, T0 + (t - 1) * LIVE_SLICE_NS,
				     T0 + (t - 1) * LIVE_SLICE_NS + 1);
		live_add(u.source, u.stream, &sample, NULL, T0 + t * LIVE_SLICE_NS + 5, 10);
		live_tick(u.live, T0 + t * LIVE_SLICE_NS);
	}
	for (uint64_t t = 0; t < 20; t++) {
		assert_int_equal(told_weight[t], 2 * (10 + t));
		assert_int_equal(told_names[t], 1);
	}
	for (unsigned i = 0; i < 2; i++)
		profile_slices_free(readers[i]);
	closed(&u);
}

static void a_sample_from_the_future_stays_with_the_present(void **state)
{
	struct setup u = opened();

	(void)state;
	live_tick(u.live, T0 + 5 * LIVE_SLICE_NS);
	for (int i = 0; i < 1000; i++)
		add(u.source, u.stream, UINT64_MAX / 1000 * (unsigned)i);
	assert_int_equal(windows, 0);
	live_tick(u.live, T0 + 12 * LIVE_SLICE_NS);
	assert_int_equal(windows, 1);
	assert_int_equal(window_weight, 10000);
	closed(&u);
	assert_int_equal(windows, 1);
}

static void a_wall_clock_that_is_set_loses_nothing(void **state)
{
	struct setup u = opened();
	uint64_t now = T0, sent = 0;
	const int64_t jumps[] = { 0, 3600, -7200, -15, 200, -100, 5 };

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		now += (uint64_t)(jumps[i] * (int64_t)LIVE_SLICE_NS);
		for (int t = 0; t < 25; t++, now += LIVE_SLICE_NS) {
			add(u.source, u.stream, now);
			sent += 10;
			live_tick(u.live, now);
		}
		assert_true(queried(u.live, now - 20 * LIVE_SLICE_NS, now + LIVE_SLICE_NS) >= 30);
	}
	closed(&u);
	assert_int_equal(window_weight, sent);
}

/* The agent sends its accounts late, for seconds that are long over: rows and accounts of any
 * span must agree all the same. */
static void the_accounts_of_every_span_are_those_of_its_rows(void **state)
{
	const struct profile_accounts dropped = { .of = { { 2, 20, 0, 0, 2, 20, 0 } } };
	struct setup u = opened();

	(void)state;
	live_tick(u.live, T0);
	for (uint64_t t = 0; t < 35; t++) {
		for (uint64_t i = 0; i <= t; i++)
			add(u.source, u.stream, T0 + t * LIVE_SLICE_NS + i);
		live_tick(u.live, T0 + t * LIVE_SLICE_NS);
		if (t % 7 == 6)
			live_add_accounts(u.source, &dropped);
	}
	for (uint64_t from = 0; from < 35; from++) {
		struct profile_losses *l;
		struct profile *p;

		assert_int_equal(profile_new(&p), 0);
		assert_int_equal(live_query(u.live, T0 + from * LIVE_SLICE_NS,
					    T0 + (from + 1) * LIVE_SLICE_NS, NULL, p),
				 0);
		l = &p->accounts.of[WIRE_EVENT_CPU];
		assert_int_equal(l->delivered, profile_samples(p));
		assert_int_equal(l->delivered_weight, weight_of(p));
		assert_int_equal(l->taken, l->delivered + l->dropped);
		assert_int_equal(l->taken_weight, l->delivered_weight + l->dropped_weight);
		assert_memory_equal(&p->processes[0].accounts, &p->accounts, sizeof(p->accounts));
		profile_free(p);
	}
	closed(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_ends_in_exactly_one_window),
		cmocka_unit_test(a_query_sees_seconds_and_windows_once),
		cmocka_unit_test(nothing_is_put_before_the_begin),
		cmocka_unit_test(what_memory_has_of_a_time_begins_where_it_says),
		cmocka_unit_test(the_accounts_of_every_span_are_those_of_its_rows),
		cmocka_unit_test(
			the_last_seconds_are_seen_one_by_one_also_when_their_window_is_closed),
		cmocka_unit_test(a_second_is_told_with_what_came_in_it_and_each_name_once),
		cmocka_unit_test(a_sample_from_the_future_stays_with_the_present),
		cmocka_unit_test(a_wall_clock_that_is_set_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
