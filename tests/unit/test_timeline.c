/* The last minutes of a target: what an answer contains, what it leaves out, and what it reports
 * about that. */
#include "tests/unit/unit.h"
#include "daemon/timeline/timeline.h"
#include "tests/unit/fed_stream.h"

#define S  1000000000ull
#define MS 1000000ull
static const uint64_t t0 = 5000 * S;

static struct timelines *pool;
static struct timeline *line;

static int begin(void **state)
{
	const struct timeline_process of = { .pid = 7, .start_time = 70, .tenant = 1 };

	(void)state;
	assert_int_equal(timelines_new(&pool), 0);
	assert_int_equal(timeline_new(pool, &of, &line), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	line = timeline_free(line);
	pool = timelines_free(pool);
	return 0;
}

static struct timeline_event wait_of(uint32_t tid, const char *name, uint64_t begin_ns,
				     uint64_t length_ns)
{
	return (struct timeline_event){ .kind = TIMELINE_LOCK,
					.reason = WIRE_WAIT_ENTER,
					.syscall = -1,
					.end_ns = begin_ns + length_ns,
					.length_ns = length_ns,
					.tid = tid,
					.thread = name };
}

static void sample(struct timeline *to, uint32_t tid, const char *name, uint64_t at_ns)
{
	const struct timeline_event e = { .kind = TIMELINE_CPU,
					  .end_ns = at_ns,
					  .length_ns = 10 * MS,
					  .tid = tid,
					  .thread = name,
					  .syscall = -1 };

	timeline_add(to, NULL, &e, at_ns);
}

static struct timeline_answer ask(uint64_t from_ns, uint64_t to_ns, const char *thread)
{
	const struct timeline_question q = { .from_ns = from_ns, .to_ns = to_ns, .thread = thread };
	struct timeline_answer a;

	assert_int_equal(timeline_query(line, &q, &a), 0);
	return a;
}

static const char *name_of(const struct timeline_answer *a, uint32_t thread)
{
	return thread ? a->threads[thread - 1].name : "";
}

static void added_events_are_in_the_answer(void **state)
{
	struct timeline_event w = wait_of(11, "waiter", t0, 300 * MS);
	struct timeline_answer a;

	(void)state;
	w.owner_tid = 12;
	w.owner = "owner";
	w.class_name = "org.shop.Stock";
	w.identity = 0xabc;
	w.trace_id = "t1";
	w.span_id = "s1";
	timeline_add(line, NULL, &w, t0 + 400 * MS);
	sample(line, 12, "owner", t0 + 500 * MS);
	a = ask(t0, t0 + S, NULL);
	assert_int_equal(a.n_rows, 2);
	assert_int_equal(a.n_parts, 1);
	for (uint32_t i = 0; i < 2; i++) {
		const struct timeline_row *r = &a.rows[i];
		const struct profile *p = a.parts[r->part];

		if (r->kind == TIMELINE_CPU) {
			assert_string_equal(name_of(&a, r->thread), "owner");
			assert_int_equal(r->length_ns, 10 * MS);
			continue;
		}
		assert_string_equal(name_of(&a, r->thread), "waiter");
		assert_string_equal(name_of(&a, r->owner), "owner");
		assert_string_equal(p->strings[r->class_name], "org.shop.Stock");
		assert_string_equal(p->strings[r->trace], "t1");
		assert_string_equal(p->strings[r->span], "s1");
		assert_int_equal(r->identity, 0xabc);
		assert_int_equal(r->end_ns, t0 + 300 * MS);
	}
	assert_int_equal(a.sums[TIMELINE_CPU].events, 1);
	assert_int_equal(a.sums[TIMELINE_LOCK].ns, 300 * MS);
	assert_int_equal(a.since_ns, t0 + 400 * MS);
	assert_false(a.forgotten);
	timeline_answer_free(&a);
}

static void an_interval_that_reaches_into_the_span_counts_with_its_part(void **state)
{
	struct timeline_event w = wait_of(11, "waiter", t0, 4 * S);
	struct timeline_answer a;

	(void)state;
	timeline_add(line, NULL, &w, t0 + 4 * S);
	a = ask(t0 + S, t0 + 3 * S, NULL);
	assert_int_equal(a.sums[TIMELINE_LOCK].events, 1);
	assert_int_equal(a.sums[TIMELINE_LOCK].ns, 4 * S);
	assert_int_equal(a.sums[TIMELINE_LOCK].inside_ns, 2 * S);
	timeline_answer_free(&a);
	a = ask(t0 + 5 * S, t0 + 6 * S, NULL);
	assert_int_equal(a.n_rows, 0);
	timeline_answer_free(&a);
}

static void moments_on_the_edge_belong_to_one_span_only(void **state)
{
	struct timeline_answer before, after;

	(void)state;
	sample(line, 11, "a", t0 + S);
	before = ask(t0, t0 + S, NULL);
	after = ask(t0 + S, t0 + 2 * S, NULL);
	assert_int_equal(before.n_rows + after.n_rows, 1);
	timeline_answer_free(&before);
	timeline_answer_free(&after);
}

static void events_outside_the_question_are_counted(void **state)
{
	const struct timeline_question q = { .from_ns = t0, .to_ns = t0 + S, .trace = "t1" };
	struct timeline_event w = wait_of(12, "other", t0, MS);
	struct timeline_answer a;

	(void)state;
	sample(line, 11, "worker-1", t0 + MS);
	sample(line, 12, "other", t0 + MS);
	a = ask(t0, t0 + S, "work");
	assert_int_equal(a.n_rows, 1);
	assert_int_equal(a.left_out[TIMELINE_CPU].events, 1);
	assert_int_equal(a.left_out[TIMELINE_CPU].ns, 10 * MS);
	timeline_answer_free(&a);
	w.trace_id = "t1";
	timeline_add(line, NULL, &w, t0 + MS);
	assert_int_equal(timeline_query(line, &q, &a), 0);
	assert_int_equal(a.n_rows, 1);
	assert_int_equal(a.rows[0].kind, TIMELINE_LOCK);
	assert_int_equal(a.left_out[TIMELINE_CPU].events, 2);
	timeline_answer_free(&a);
}

/* The answer has the trace's thread, the owner of a lock for which it waited, and no other
 * thread. */
static void around_a_trace_is_all_that_its_threads_did(void **state)
{
	const struct timeline_question q = {
		.from_ns = t0, .to_ns = t0 + S, .trace = "t1", .around = true
	};
	struct timeline_event w = wait_of(11, "worker", t0 + 2 * MS, MS);
	struct timeline_answer a;

	(void)state;
	sample(line, 11, "worker", t0);
	sample(line, 12, "owner", t0 + MS);
	sample(line, 13, "other", t0 + MS);
	w.trace_id = "t1";
	w.owner_tid = 12;
	w.owner = "owner";
	timeline_add(line, NULL, &w, t0 + 3 * MS);
	w = wait_of(13, "other", t0, MS);
	w.trace_id = "t2";
	timeline_add(line, NULL, &w, t0 + 3 * MS);
	assert_int_equal(timeline_query(line, &q, &a), 0);
	assert_int_equal(a.n_rows, 3);
	for (uint32_t i = 0; i < a.n_rows; i++)
		assert_string_not_equal(name_of(&a, a.rows[i].thread), "other");
	assert_int_equal(a.left_out[TIMELINE_CPU].events, 1);
	assert_int_equal(a.left_out[TIMELINE_LOCK].events, 1);
	timeline_answer_free(&a);
}

static void a_thread_keeps_one_row_when_its_name_comes_late(void **state)
{
	struct timeline_answer a;

	(void)state;
	sample(line, 11, "", t0);
	sample(line, 11, "late", t0 + MS);
	sample(line, 11, "late", t0 + TIMELINE_CHUNK_NS + MS);
	a = ask(t0, t0 + 2 * TIMELINE_CHUNK_NS, NULL);
	assert_int_equal(a.n_parts, 2);
	assert_int_equal(a.n_rows, 3);
	assert_int_equal(a.n_threads, 1);
	assert_string_equal(a.threads[0].name, "late");
	timeline_answer_free(&a);
}

static void times_of_a_liar_stay_in_range(void **state)
{
	struct timeline_event w = wait_of(11, "liar", t0 + 1000 * S, S);
	struct timeline_answer a;

	(void)state;
	timeline_add(line, NULL, &w, t0);
	w = wait_of(11, "liar", 5, UINT64_MAX / 2);
	timeline_add(line, NULL, &w, t0);
	a = ask(t0 - TIMELINE_KEEP_NS - S, t0 + S, NULL);
	assert_int_equal(a.n_rows, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_in_range(a.rows[i].end_ns, t0 - TIMELINE_KEEP_NS, t0);
	timeline_answer_free(&a);
}

static void old_chunks_are_freed_and_the_answer_says_so(void **state)
{
	struct timeline_answer a;

	(void)state;
	sample(line, 11, "a", t0);
	sample(line, 11, "a", t0 + 2 * TIMELINE_KEEP_NS);
	timelines_tick(pool, t0 + 2 * TIMELINE_KEEP_NS);
	a = ask(t0 - S, t0 + 2 * TIMELINE_KEEP_NS + S, NULL);
	assert_int_equal(a.n_rows, 1);
	assert_true(a.forgotten);
	assert_int_equal(a.since_ns, t0);
	timeline_answer_free(&a);
}

static void one_target_takes_half_of_the_room_and_what_it_says_beyond_is_counted(void **state)
{
	struct timeline_answer a;
	uint64_t kept, n = 200000;

	(void)state;
	timelines_limit(pool, 1 << 20);
	for (uint64_t i = 0; i < n; i++)
		sample(line, 11, "a", t0 + i);
	assert_true(timelines_bytes(pool) <= (1 << 19) + (1 << 18));
	a = ask(t0, t0 + S, NULL);
	kept = a.sums[TIMELINE_CPU].events;
	assert_in_range(kept, 1000, n - 1);
	assert_int_equal(kept + a.no_room[TIMELINE_CPU].events, n);
	assert_int_equal(a.sums[TIMELINE_CPU].ns + a.no_room[TIMELINE_CPU].ns, n * 10 * MS);
	timeline_answer_free(&a);
	/* the next chunk replaces that one: there is no room for two of this size */
	for (uint64_t i = 0; i < kept; i++)
		sample(line, 11, "a", t0 + 2 * TIMELINE_CHUNK_NS + i);
	a = ask(t0, t0 + 100 * S, NULL);
	assert_int_equal(a.sums[TIMELINE_CPU].events, kept);
	assert_true(a.forgotten);
	timeline_answer_free(&a);
}

static void the_tenant_that_has_most_gives(void **state)
{
	const struct timeline_process of = { .pid = 8, .start_time = 80, .tenant = 2 };
	struct timeline *small;
	size_t bytes;

	(void)state;
	assert_int_equal(timeline_new(pool, &of, &small), 0);
	for (uint64_t i = 0; i < 40000; i++)
		sample(line, 11, "a", t0 + i);
	for (uint64_t i = 0; i < 100; i++)
		sample(small, 12, "b", t0 + i);
	timelines_tick(pool, t0 + S);
	assert_true(timelines_bytes(pool) > (1 << 20));
	timelines_limit(pool, 1 << 20);
	timelines_tick(pool, t0 + S);
	bytes = timelines_bytes(pool);
	assert_true(bytes <= (1 << 20));
	timeline_free(small);
	assert_true(bytes - timelines_bytes(pool) > 3000); /* it had kept its own */
}

static void tenants_give_in_turns_when_they_have_the_same(void **state)
{
	const struct timeline_process of = { .pid = 8, .start_time = 80, .tenant = 2 };
	struct timeline *other;
	size_t all, own;

	(void)state;
	assert_int_equal(timeline_new(pool, &of, &other), 0);
	for (uint64_t k = 0; k < 6; k++)
		for (uint64_t i = 0; i < 2000; i++) {
			sample(line, 11, "a", t0 + k * TIMELINE_CHUNK_NS + i);
			if (k < 4)
				sample(other, 12, "b", t0 + k * TIMELINE_CHUNK_NS + i);
		}
	timelines_tick(pool, t0 + 6 * TIMELINE_CHUNK_NS);
	timelines_limit(pool, timelines_bytes(pool) / 2);
	timelines_tick(pool, t0 + 6 * TIMELINE_CHUNK_NS);
	all = timelines_bytes(pool);
	timeline_free(other);
	own = timelines_bytes(pool);
	assert_in_range(own, all / 3, all / 3 * 2);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Node 1 of the stream is a frame of this name; node 2 is called by it. */
static void define_stack(struct stream *s, const char *name)
{
	struct fault f = { 0 };

	assert_int_equal(put_string(s, 1, name, &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_STUB, 1, -1, 0 }, &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 2, 1, WIRE_KIND_STUB, 1, -1, 0 }, &f), 0);
}

static void forget_stacks(struct stream *s)
{
	struct fault f = { 0 };
	struct wire_writer w;

	timeline_reset(line);
	wire_begin(&w, buf, WIRE_RESET);
	assert_int_equal(feed(s, &w, &f), 0);
}

static void stack_sample(const struct stream *s, uint64_t at_ns)
{
	const struct timeline_event e = { .kind = TIMELINE_CPU,
					  .end_ns = at_ns,
					  .length_ns = 10 * MS,
					  .tid = 11,
					  .thread = "a",
					  .node = 2,
					  .syscall = -1 };

	timeline_add(line, s, &e, at_ns);
}

static void stack_wait(const struct stream *s, uint64_t at_ns)
{
	struct timeline_event w = wait_of(11, "a", at_ns, MS);

	w.node = 1;
	w.owner_tid = 12;
	w.owner_node = 2;
	timeline_add(line, s, &w, at_ns + MS);
}

/* The number of frames of a stack, all of which must have this name. */
static unsigned depth_of(const struct timeline_answer *a, uint32_t row, uint32_t node,
			 const char *name)
{
	const struct profile *p = a->stacks[a->rows[row].part];
	unsigned depth = 0;

	for (; node; node = p->nodes[node].parent, depth++)
		assert_string_equal(p->strings[p->frames[p->nodes[node].frame].method], name);
	return depth;
}

static struct timeline_answer ask_with_stacks(void)
{
	const struct timeline_question q = { .from_ns = t0, .to_ns = t0 + 9 * S, .stacks = true };
	struct timeline_answer a;

	assert_int_equal(timeline_query(line, &q, &a), 0);
	return a;
}

static void a_stack_is_what_it_was_when_the_event_came(void **state)
{
	struct stream *s = greeted_stream();
	struct timeline_answer a;

	(void)state;
	define_stack(s, "before");
	stack_sample(s, t0);
	stack_wait(s, t0 + MS);
	a = ask_with_stacks();
	assert_int_equal(a.n_rows, 2);
	assert_int_equal(depth_of(&a, 0, a.rows[0].stack, "before"), 2);
	timeline_answer_free(&a);
	forget_stacks(s);
	define_stack(s, "after");
	stack_sample(s, t0 + 4 * MS);
	forget_stacks(s);
	stream_free(s);
	sample(line, 11, "a", t0 + 5 * MS); /* without a stream */
	a = ask_with_stacks();
	assert_int_equal(a.n_rows, 4);
	assert_int_equal(depth_of(&a, 0, a.rows[0].stack, "before"), 2);
	assert_int_equal(depth_of(&a, 1, a.rows[1].stack, "before"), 1);
	assert_int_equal(depth_of(&a, 1, a.rows[1].owner_stack, "before"), 2);
	assert_int_equal(depth_of(&a, 2, a.rows[2].stack, "after"), 2);
	assert_int_equal(a.rows[3].stack, 0);
	timeline_answer_free(&a);
}

static void stacks_come_only_when_asked_for(void **state)
{
	struct stream *s = greeted_stream();
	struct timeline_answer a;

	(void)state;
	define_stack(s, "f");
	stack_sample(s, t0);
	forget_stacks(s);
	define_stack(s, "g");
	stack_sample(s, t0 + MS);
	a = ask(t0, t0 + S, NULL);
	assert_int_equal(a.n_rows, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(a.rows[i].stack, 0);
		assert_null(a.stacks[a.rows[i].part]);
	}
	timeline_answer_free(&a);
	timeline_reset(line);
	stream_free(s);
}

static void one_that_forgets_all_the_time_keeps_within_its_room(void **state)
{
	struct stream *s = greeted_stream();
	struct timeline_answer a;
	uint32_t n = 2000;

	(void)state;
	timelines_limit(pool, 1 << 20);
	for (uint32_t i = 0; i < n; i++) {
		define_stack(s, "f");
		stack_sample(s, t0 + i * MS);
		forget_stacks(s);
		assert_true(timelines_bytes(pool) <= (1 << 19) + (1 << 14));
	}
	stream_free(s);
	a = ask_with_stacks();
	assert_in_range(a.n_rows, 10, n - 1);
	assert_true(a.forgotten);
	for (uint32_t i = 0; i < a.n_rows; i++)
		assert_int_equal(depth_of(&a, i, a.rows[i].stack, "f"), 2);
	timeline_answer_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(added_events_are_in_the_answer, begin, end),
		cmocka_unit_test_setup_teardown(
			an_interval_that_reaches_into_the_span_counts_with_its_part, begin, end),
		cmocka_unit_test_setup_teardown(moments_on_the_edge_belong_to_one_span_only, begin,
						end),
		cmocka_unit_test_setup_teardown(events_outside_the_question_are_counted, begin,
						end),
		cmocka_unit_test_setup_teardown(around_a_trace_is_all_that_its_threads_did, begin,
						end),
		cmocka_unit_test_setup_teardown(a_thread_keeps_one_row_when_its_name_comes_late,
						begin, end),
		cmocka_unit_test_setup_teardown(times_of_a_liar_stay_in_range, begin, end),
		cmocka_unit_test_setup_teardown(old_chunks_are_freed_and_the_answer_says_so, begin,
						end),
		cmocka_unit_test_setup_teardown(
			one_target_takes_half_of_the_room_and_what_it_says_beyond_is_counted, begin,
			end),
		cmocka_unit_test_setup_teardown(the_tenant_that_has_most_gives, begin, end),
		cmocka_unit_test_setup_teardown(tenants_give_in_turns_when_they_have_the_same,
						begin, end),
		cmocka_unit_test_setup_teardown(a_stack_is_what_it_was_when_the_event_came, begin,
						end),
		cmocka_unit_test_setup_teardown(stacks_come_only_when_asked_for, begin, end),
		cmocka_unit_test_setup_teardown(one_that_forgets_all_the_time_keeps_within_its_room,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
