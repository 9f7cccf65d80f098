#include "tests/unit/unit.h"
#include <stdio.h>
#include <string.h>
#include "daemon/profile/live.h"

#define T0 (1000 * LIVE_WINDOW_NS)

static uint64_t window_weight;
static int windows;

static uint64_t weight_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		sum += p->rows[i].weight;
	return sum;
}

static void on_window(void *userdata, const struct profile *w)
{
	(void)userdata;
	windows++;
	window_weight += weight_of(w);
}

static const struct live_process app = { .pid = 5, .name = "app" };

static void add(struct live_source *s, struct stream *stream, uint64_t real_ns)
{
	struct stream_sample sample = { .tid = 9, .thread = "main", .weight_ns = 10 };

	live_add(s, stream, &sample, NULL, real_ns, 10);
}

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
		if (t >= 12) /* later than any open window: still counted */
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

static void a_recording_has_its_own_profile(void **state)
{
	const struct stream_ops ops = { 0 };
	struct live_tap *tap, *second;
	struct live_source *source;
	struct stream *stream;
	struct live *live;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(NULL, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &app, &source), 0);
	add(source, stream, T0);
	assert_int_equal(live_tap_new(source, 1, false, T0, &tap), 0);
	assert_true(live_tap_new(source, 1, false, T0, &second) < 0);
	add(source, stream, T0 + 1);
	assert_int_equal(weight_of(live_tap_profile(tap)), 10);
	live_source_free(source); /* the target is gone: what was recorded stays */
	assert_int_equal(weight_of(live_tap_profile(tap)), 10);
	live_tap_free(tap);
	live_free(live);
	stream_free(stream);
}

struct setup {
	struct live *live;
	struct live_source *source;
	struct stream *stream;
};

static struct setup opened(void)
{
	const struct stream_ops ops = { 0 };
	struct setup u;

	windows = 0;
	window_weight = 0;
	assert_int_equal(stream_new(&ops, NULL, &u.stream), 0);
	assert_int_equal(live_new(on_window, NULL, &u.live), 0);
	assert_int_equal(live_source_new(u.live, &app, &u.source), 0);
	return u;
}

static void closed(struct setup *u)
{
	live_source_free(u->source);
	live_free(u->live);
	stream_free(u->stream);
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
	add(u.source, u.stream, T0 - 5 * LIVE_SLICE_NS); /* of the time between two daemons */
	assert_int_equal(live_oldest_real_ns(u.live), begin);
	assert_int_equal(queried(u.live, T0, begin), 0);
	assert_int_equal(queried(u.live, begin, begin + LIVE_SLICE_NS), 20);
	add(u.source, u.stream, begin + LIVE_SLICE_NS);
	assert_int_equal(queried(u.live, begin, begin + LIVE_SLICE_NS), 20);
	/* the wall clock is set back: samples stay with it, as ever */
	live_tick(u.live, T0 + 60 * LIVE_SLICE_NS);
	live_tick(u.live, T0 - 3600 * LIVE_SLICE_NS);
	add(u.source, u.stream, T0 - 3600 * LIVE_SLICE_NS);
	closed(&u);
	assert_int_equal(window_weight, 40);
}

static uint64_t told_weight[20], told_strings[20];

/* As the journal has it. */
static bool on_slice(void *userdata, const struct profile *slice)
{
	struct profile *p;
	uint8_t *bytes;
	size_t len;

	(void)userdata;
	assert_int_equal(profile_encode_used(slice, &bytes, &len), 0);
	assert_int_equal(profile_decode(bytes, len, &p), 0);
	free(bytes);
	assert_int_equal(p->end_real_ns - p->begin_real_ns, LIVE_SLICE_NS);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].taken, p->n_rows ? 2 : 0);
	told_weight[(p->begin_real_ns - T0) / LIVE_SLICE_NS] = weight_of(p);
	told_strings[(p->begin_real_ns - T0) / LIVE_SLICE_NS] = p->n_strings;
	profile_free(p);
	return true;
}

static void a_second_is_told_with_what_came_in_it_and_no_names_of_others(void **state)
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
		/* before and after another second: in two parts */
		live_add(u.source, u.stream, &sample, NULL, T0 + t * LIVE_SLICE_NS, 10);
		if (t % 10)
			live_add_cpu(u.source, 1000, T0 + (t - 1) * LIVE_SLICE_NS,
				     T0 + (t - 1) * LIVE_SLICE_NS + 1);
		live_add(u.source, u.stream, &sample, NULL, T0 + t * LIVE_SLICE_NS + 5, 10);
		live_tick(u.live, T0 + t * LIVE_SLICE_NS);
	}
	for (uint64_t t = 0; t < 20; t++) {
		assert_int_equal(told_weight[t], 2 * (10 + t));
		assert_int_equal(told_strings[t], 3); /* "", the process and its one thread */
	}
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

static void what_was_dropped_is_booked_also_where_nothing_came(void **state)
{
	const struct profile_accounts all = { .of = { { 7, 70, 0, 0, 7, 70, 0 } } };
	struct setup u = opened();
	struct profile *p;

	(void)state;
	live_tick(u.live, T0 + LIVE_SLICE_NS);
	live_add_accounts(u.source, &all);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u.live, T0, T0 + 5 * LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 7);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].dropped, 7);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].dropped, 7);
	profile_free(p);
	closed(&u);
}

static void put(struct stream *stream, struct wire_writer *w, uint64_t sequence)
{
	struct fault f = { 0 };
	uint32_t len = wire_end(w, sequence);

	assert_int_equal(stream_feed(stream, w->buf, len, &f), 0);
}

/* One stub frame called @label as node 1 of the stream, and @depth more of it below. */
static void define(struct stream *stream, const char *label, uint32_t depth, uint64_t *sequence)
{
	struct wire_string string = { 1, { label, (uint32_t)strlen(label) } };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &string));
	put(stream, &w, ++*sequence);
	for (uint32_t i = 1; i <= depth; i++) {
		struct wire_node node = { i, i - 1, WIRE_KIND_STUB, 1, -1, 0 };

		wire_begin(&w, buf, WIRE_NODE);
		assert_true(wire_put_node(&w, &node));
		put(stream, &w, ++*sequence);
	}
}

static void greet(struct stream *stream, uint64_t *sequence)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	uint8_t buf[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	put(stream, &w, ++*sequence);
}

static uint32_t find_label(struct live *l, const char *label, uint64_t *ret_weight)
{
	uint32_t depth = 0;
	struct profile *p;

	*ret_weight = 0;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(l, 0, UINT64_MAX, NULL, p), 0);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		uint32_t node = p->rows[i].node;

		if (!node || strcmp(p->strings[p->frames[p->nodes[node].frame].method], label) != 0)
			continue;
		*ret_weight += p->rows[i].weight;
		for (; node; node = p->nodes[node].parent)
			depth++;
	}
	profile_free(p);
	return depth;
}

static void ids_mean_what_they_meant_when_the_sample_came(void **state)
{
	struct stream_sample sample = { .tid = 9, .thread = "main", .weight_ns = 10, .node = 1 };
	struct setup u = opened();
	struct wire_writer w;
	uint8_t buf[WIRE_FRAME_MAX];
	uint64_t sequence = 0, weight;

	(void)state;
	live_tick(u.live, T0);
	greet(u.stream, &sequence);
	define(u.stream, "before", 1, &sequence);
	live_add(u.source, u.stream, &sample, NULL, T0, 10);
	live_add(u.source, u.stream, &sample, NULL, T0 + LIVE_SLICE_NS, 10);
	wire_begin(&w, buf, WIRE_RESET);
	put(u.stream, &w, ++sequence);
	live_source_reset(u.source);
	define(u.stream, "after", 1, &sequence);
	live_add(u.source, u.stream, &sample, NULL, T0, 10);
	live_add(u.source, u.stream, &sample, NULL, T0 + LIVE_SLICE_NS, 10);
	live_add(u.source, u.stream, &sample, NULL, T0 + 2 * LIVE_SLICE_NS, 10);
	find_label(u.live, "before", &weight);
	assert_int_equal(weight, 20);
	find_label(u.live, "after", &weight);
	assert_int_equal(weight, 30);
	closed(&u);
}

static void a_stack_beyond_all_reason_is_cut_and_says_so(void **state)
{
	struct stream_sample sample = { .tid = 9, .thread = "main", .weight_ns = 10, .node = 6000 };
	struct setup u = opened();
	uint64_t sequence = 0, weight;

	(void)state;
	live_tick(u.live, T0);
	greet(u.stream, &sequence);
	define(u.stream, "deep", 6000, &sequence);
	/* step by step it grows no deeper either, and all that is cut is one */
	for (sample.node = 1000; sample.node <= 6000; sample.node += 1000)
		live_add(u.source, u.stream, &sample, NULL, T0, 10);
	find_label(u.live, "deep", &weight);
	assert_int_equal(weight, 20);
	assert_int_equal(find_label(u.live, "[deeper stack cut]", &weight), STREAM_DEPTH_MAX + 1);
	assert_int_equal(weight, 40);
	closed(&u);
}

static const char *name_of(void *userdata, uint64_t address)
{
	(void)userdata;
	return address == 1 ? "outer" : address == 2 ? "inner" : NULL;
}

static void stacks_of_the_kernel_stand_above_the_leaf_and_share_the_weight(void **state)
{
	struct stream_sample sample = { .tid = 9, .thread = "main", .weight_ns = 10, .node = 1 };
	struct kernel_stack *a = calloc(1, sizeof(*a) + 2 * sizeof(*a->ips));
	struct kernel_stack *b = calloc(1, sizeof(*b) + sizeof(*b->ips));
	struct live_kernel kernel = { .first = a, .n = 2, .name = name_of };
	struct setup u = opened();
	uint64_t sequence = 0, weight;
	struct profile *p;

	(void)state;
	a->n = 2;
	a->ips[0] = 2;
	a->ips[1] = 1;
	b->n = 1;
	b->ips[0] = 77;
	a->next = b;
	live_tick(u.live, T0);
	greet(u.stream, &sequence);
	define(u.stream, "leaf", 1, &sequence);
	live_add(u.source, u.stream, &sample, &kernel, T0, 10);
	sample.weight_ns = 7; /* does not divide by two, and an end without any */
	live_add(u.source, u.stream, &sample, &kernel, T0, 10);
	live_add(u.source, u.stream, &sample, NULL, T0, 10);
	assert_int_equal(find_label(u.live, "inner", &weight), 3);
	assert_int_equal(weight, 5 + 3);
	assert_int_equal(find_label(u.live, "[unknown]", &weight), 2);
	assert_int_equal(weight, 5 + 4);
	assert_int_equal(find_label(u.live, "leaf", &weight), 1);
	assert_int_equal(weight, 7);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u.live, 0, UINT64_MAX, NULL, p), 0);
	assert_int_equal(profile_samples(p), 3);
	for (uint32_t i = 0; i < p->n_frames; i++) {
		assert_int_equal(p->frames[i].offset, 0);
		assert_int_equal(p->frames[i].kind == WIRE_KIND_KERNEL,
				 strcmp(p->strings[p->frames[i].method], "leaf") != 0);
	}
	profile_free(p);
	kernel_stack_free_all(a);
	closed(&u);
}

static void add_event(struct setup *u, enum wire_event event, const char *class_name,
		      uint64_t weight)
{
	const struct live_event e = {
		.event = event,
		.tid = 9,
		.thread = "main",
		.class_name = class_name,
		.weight = weight,
		.interval = 1000000,
	};

	live_add_event(u->source, u->stream, &e, NULL, T0);
}

static void what_was_waited_for_or_allocated_stands_on_the_stack(void **state)
{
	const struct profile_filter alloc = { .events = 1u << WIRE_EVENT_ALLOC };
	struct setup u = opened();
	struct profile *p;

	(void)state;
	live_tick(u.live, T0);
	add_event(&u, WIRE_EVENT_LOCK, "java.util.concurrent.locks.ReentrantLock", 5000000);
	add_event(&u, WIRE_EVENT_LOCK, "", 1000000);
	add_event(&u, WIRE_EVENT_ALLOC, "[B", 524288);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u.live, T0, T0 + LIVE_SLICE_NS, &alloc, p), 0);
	assert_int_equal(p->n_rows, 1);
	assert_int_equal(p->rows[0].weight, 524288);
	assert_int_equal(p->frames[p->nodes[p->rows[0].node].frame].kind, WIRE_KIND_CLASS);
	assert_string_equal(p->strings[p->frames[p->nodes[p->rows[0].node].frame].method],
			    "byte[]");
	p = profile_free(p);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u.live, T0, T0 + LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(p->n_rows, 3);
	profile_free(p);
	closed(&u);
}

static void a_recording_takes_its_events_alone(void **state)
{
	const struct profile_accounts dropped = { .of = { { 0 }, { 1, 10, 0, 0, 1, 10, 0 } },
						  .short_waits = 5 };
	struct setup u = opened();
	struct live_tap *tap;
	struct profile *p;

	(void)state;
	assert_int_equal(live_tap_new(u.source, 1u << WIRE_EVENT_LOCK, false, T0, &tap), 0);
	add(u.source, u.stream, T0);
	add_event(&u, WIRE_EVENT_LOCK, "", 77);
	live_add_accounts(u.source, &dropped);
	p = live_tap_profile(tap);
	assert_int_equal(weight_of(p), 77);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 0);
	assert_int_equal(p->accounts.of[WIRE_EVENT_LOCK].taken, 2);
	assert_int_equal(p->accounts.of[WIRE_EVENT_LOCK].delivered_weight, 77);
	assert_int_equal(p->accounts.short_waits, 5);
	live_tap_free(tap);
	closed(&u);
}

static void a_recording_is_as_long_as_it_took_whatever_times_events_have(void **state)
{
	struct setup u = opened();
	struct live_tap *tap;

	(void)state;
	assert_int_equal(live_tap_new(u.source, 1u << WIRE_EVENT_CPU, false, T0, &tap), 0);
	add(u.source, u.stream, T0 - LIVE_SLICE_NS);
	add(u.source, u.stream, UINT64_MAX / 2);
	live_add_cpu(u.source, 50, T0, T0 + 9);
	live_tap_end(tap, T0 + 9);
	assert_int_equal(live_tap_profile(tap)->begin_real_ns, T0);
	assert_int_equal(live_tap_profile(tap)->end_real_ns, T0 + 9);
	assert_int_equal(profile_cpu_ns(live_tap_profile(tap)), 50);
	live_tap_free(tap);
	closed(&u);
}

/* The agent tells its accounts when it likes, of seconds that are long over: rows and accounts of
 * any span agree all the same. */
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

static uint64_t cpu_of(struct live *l, uint64_t from, uint64_t to)
{
	struct profile *p;
	uint64_t ns;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(l, from, to, NULL, p), 0);
	ns = profile_cpu_ns(p);
	profile_free(p);
	return ns;
}

static void cpu_time_is_spread_over_the_seconds_that_it_took(void **state)
{
	const uint64_t s = LIVE_SLICE_NS;
	struct setup u = opened();

	(void)state;
	live_tick(u.live, T0 + 6 * s);
	live_add_cpu(u.source, 1000, T0 + s / 2, T0 + 3 * s); /* 400 a second */
	assert_int_equal(cpu_of(u.live, T0, T0 + s), 200);
	assert_int_equal(cpu_of(u.live, T0 + s, T0 + 2 * s), 400);
	assert_int_equal(cpu_of(u.live, T0 + 2 * s, T0 + 3 * s), 400);
	assert_int_equal(cpu_of(u.live, T0 + 3 * s, T0 + 9 * s), 0);
	/* the wall clock was set, or the daemon stood still: all of it to the last moment */
	live_add_cpu(u.source, 70, T0 + 5 * s, T0 + 4 * s);
	live_add_cpu(u.source, 7, T0 - 3600 * s, T0 + 5 * s);
	assert_int_equal(cpu_of(u.live, T0 + 4 * s, T0 + 5 * s), 70);
	assert_int_equal(cpu_of(u.live, T0 + 5 * s, T0 + 6 * s), 7);
	live_tick(u.live, T0 + 40 * s);
	assert_int_equal(cpu_of(u.live, T0, T0 + 40 * s), 1077);
	closed(&u);
}

/* Samples of @tenant in @p that say "[profile full]". */
static uint64_t full_of(const struct profile *p, uint64_t tenant)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_thread *t = &p->threads[p->rows[i].thread];

		if (p->processes[t->process].tenant == tenant &&
		    strcmp(p->strings[t->name], "[profile full]") == 0)
			n += p->rows[i].samples;
	}
	return n;
}

static uint64_t full[3];
static size_t largest;

static void on_shared_window(void *userdata, const struct profile *w)
{
	(void)userdata;
	for (uint64_t tenant = 1; tenant <= 2; tenant++)
		full[tenant] += full_of(w, tenant);
	if (profile_bytes(w) > largest)
		largest = profile_bytes(w);
}

/* @n samples of threads with names that are long and new. */
static void add_new(struct live_source *s, struct stream *stream, uint64_t real_ns, int n)
{
	static unsigned next;
	char name[400];

	for (int i = 0; i < n; i++) {
		struct stream_sample sample = { .tid = ++next, .thread = name, .weight_ns = 10 };

		snprintf(name, sizeof(name), "%u %*s", next, 350, "x");
		live_add(s, stream, &sample, NULL, real_ns, 10);
	}
}

/* One that fills its slices, second after second, beside one that does not. */
static void a_source_s_stacks_find_room_beside_another_s(void **state)
{
	const struct live_process hostile = { .pid = 6, .name = "x", .tenant = 1 };
	const struct live_process honest = { .pid = 7, .name = "app", .tenant = 2 };
	const struct stream_ops ops = { 0 };
	struct live_source *a, *b;
	struct stream *stream;
	struct live *live;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(on_shared_window, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &hostile, &a), 0);
	assert_int_equal(live_source_new(live, &honest, &b), 0);
	live_tick(live, T0);
	for (uint64_t t = 0; t < 22; t++) {
		add_new(a, stream, T0 + t * LIVE_SLICE_NS, 12000);
		add_new(b, stream, T0 + t * LIVE_SLICE_NS, 200);
		live_tick(live, T0 + t * LIVE_SLICE_NS);
	}
	live_free(live);
	stream_free(stream);
	assert_true(full[1] > 0);
	assert_int_equal(full[2], 0);
	assert_true(largest < 64ul << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_ends_in_exactly_one_window),
		cmocka_unit_test(a_query_sees_seconds_and_windows_once),
		cmocka_unit_test(nothing_is_put_before_the_begin),
		cmocka_unit_test(a_recording_has_its_own_profile),
		cmocka_unit_test(what_was_waited_for_or_allocated_stands_on_the_stack),
		cmocka_unit_test(a_recording_takes_its_events_alone),
		cmocka_unit_test(a_recording_is_as_long_as_it_took_whatever_times_events_have),
		cmocka_unit_test(the_accounts_of_every_span_are_those_of_its_rows),
		cmocka_unit_test(cpu_time_is_spread_over_the_seconds_that_it_took),
		cmocka_unit_test(
			the_last_seconds_are_seen_one_by_one_also_when_their_window_is_closed),
		cmocka_unit_test(a_second_is_told_with_what_came_in_it_and_no_names_of_others),
		cmocka_unit_test(a_sample_from_the_future_stays_with_the_present),
		cmocka_unit_test(a_wall_clock_that_is_set_loses_nothing),
		cmocka_unit_test(what_was_dropped_is_booked_also_where_nothing_came),
		cmocka_unit_test(ids_mean_what_they_meant_when_the_sample_came),
		cmocka_unit_test(a_stack_beyond_all_reason_is_cut_and_says_so),
		cmocka_unit_test(stacks_of_the_kernel_stand_above_the_leaf_and_share_the_weight),
		cmocka_unit_test(a_source_s_stacks_find_room_beside_another_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
