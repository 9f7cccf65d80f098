#include "tests/unit/live_end.h"
#include <stdio.h>

static void drops_are_counted_in_a_window_without_samples(void **state)
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

static void a_threshold_is_known_of_a_window_without_events(void **state)
{
	struct setup u = opened();
	struct profile *p;

	(void)state;
	live_note_interval(u.source, WIRE_EVENT_OFFCPU, 3); /* no window is open yet */
	add(u.source, u.stream, T0);
	live_note_interval(u.source, WIRE_EVENT_OFFCPU, 16);
	live_note_interval(u.source, WIRE_EVENT_OFFCPU, 8);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u.live, T0, T0 + 5 * LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(p->interval[WIRE_EVENT_OFFCPU], 16);
	profile_free(p);
	closed(&u);
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

static uint64_t weight_of_thread(const struct profile *p, const char *name)
{
	uint64_t weight = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		if (strcmp(p->strings[p->threads[p->rows[i].thread].name], name) == 0)
			weight += p->rows[i].weight;
	return weight;
}

static void a_thread_that_is_renamed_is_two(void **state)
{
	struct stream_sample sample = { .tid = 9, .weight_ns = 1 };
	static const struct {
		uint32_t number;
		const char *name;
	} names[] = { { 5, "first" },  { 5, "first" }, { 6, "second" }, { 6, "second" },
		      { 0, "second" }, { 0, "third" }, { 6, "second" }, { 0, "third" } };
	struct setup u = opened();
	struct profile *p;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		sample.thread_number = names[i].number;
		sample.thread = names[i].name;
		live_add(u.source, u.stream, &sample, NULL, T0, 10);
	}
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u.live, 0, UINT64_MAX, NULL, p), 0);
	assert_int_equal(weight_of_thread(p, "first"), 2);
	assert_int_equal(weight_of_thread(p, "second"), 4);
	assert_int_equal(weight_of_thread(p, "third"), 2);
	assert_int_equal(p->n_threads, 3);
	profile_free(p);
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
	/* it does not get deeper if it grows step by step, and everything that is cut becomes
	 * one frame */
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
	sample.weight_ns = 7; /* a row that cannot be halved, and an end without rows */
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

static void the_lock_or_class_is_the_leaf_of_the_stack(void **state)
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
	/* the wall clock was set, or the daemon stopped for a while: everything up to the last
	 * moment counts */
	live_add_cpu(u.source, 70, T0 + 5 * s, T0 + 4 * s);
	live_add_cpu(u.source, 7, T0 - 3600 * s, T0 + 5 * s);
	assert_int_equal(cpu_of(u.live, T0 + 4 * s, T0 + 5 * s), 70);
	assert_int_equal(cpu_of(u.live, T0 + 5 * s, T0 + 6 * s), 7);
	live_tick(u.live, T0 + 40 * s);
	assert_int_equal(cpu_of(u.live, T0, T0 + 40 * s), 1077);
	closed(&u);
}

/* Samples of @tenant in @p that became "[profile full]". */
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

/* @n samples of threads with long names, each of them new. */
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

/* One tenant fills its slices, second after second, beside one that does not. */
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
		cmocka_unit_test(the_lock_or_class_is_the_leaf_of_the_stack),
		cmocka_unit_test(cpu_time_is_spread_over_the_seconds_that_it_took),
		cmocka_unit_test(drops_are_counted_in_a_window_without_samples),
		cmocka_unit_test(a_threshold_is_known_of_a_window_without_events),
		cmocka_unit_test(ids_mean_what_they_meant_when_the_sample_came),
		cmocka_unit_test(a_thread_that_is_renamed_is_two),
		cmocka_unit_test(a_stack_beyond_all_reason_is_cut_and_says_so),
		cmocka_unit_test(stacks_of_the_kernel_stand_above_the_leaf_and_share_the_weight),
		cmocka_unit_test(a_source_s_stacks_find_room_beside_another_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
