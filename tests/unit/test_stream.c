#include "tests/unit/fed_stream.h"
#include <errno.h>

static int greet(struct stream *s, const char *secret, uint32_t len, struct fault *f)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL, .secret = { secret, len } };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	return feed(s, &w, f);
}

static void a_hello_without_the_secret_ends_the_stream(void **state)
{
	static const char secret[] = "0123456789abcdef", wrong[] = "0123456789abcdeF";
	static const struct {
		const char *said;
		uint32_t len;
		int expect;
	} cases[] = { { secret, 16, 0 },
		      { wrong, 16, -EPERM },
		      { secret, 15, -EPERM },
		      { secret, 17, -EPERM },
		      { "", 0, -EPERM } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fault f = { 0 };
		struct stream *s;

		sequence = 0;
		samples = 0;
		assert_int_equal(stream_new(&ops, NULL, &s), 0);
		stream_expect(s, (const uint8_t *)secret);
		assert_int_equal(put_sample(s, 0, &f), 0); /* of an older session */
		assert_int_equal(greet(s, cases[i].said, cases[i].len, &f), cases[i].expect);
		assert_int_equal(samples, 0);
		stream_free(s);
	}
}

static void a_missing_frame_ends_the_stream(void **state)
{
	struct stream *s = greeted_stream();
	struct fault f = { 0 };

	(void)state;
	sequence++;
	assert_int_equal(put_sample(s, 0, &f), -EBADMSG);
	stream_free(s);
}

static void frames_of_an_older_session_are_skipped(void **state)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct wire_writer w;
	struct fault f = { 0 };
	struct stream *s;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	sequence = 77;
	samples = 0;
	assert_int_equal(put_sample(s, 12345, &f), 0);
	assert_int_equal(samples, 0);
	sequence = 0;
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(samples, 1);
	stream_free(s);
}

static int put_hello(struct stream *s, struct fault *f)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	return feed(s, &w, f);
}

static void a_later_hello_begins_anew_and_keeps_the_accounts(void **state)
{
	struct stream *s = greeted_stream();
	struct stream_counts c;
	struct fault f = { 0 };
	uint32_t parent;
	struct stream_frame frame;

	(void)state;
	assert_int_equal(put_string(s, 1, "old", &f), 0);
	assert_int_equal(put_node(s, (struct wire_node){ 1, 0, WIRE_KIND_STUB, 1, -1, 0 }, &f), 0);
	assert_int_equal(put_sample(s, 1, &f), 0);
	assert_int_equal(put_ledger(s, 4, 1, 3, &f), 0);
	sequence = 0;
	assert_int_equal(put_hello(s, &f), 0);
	assert_int_equal(hellos, 2);
	assert_false(stream_node(s, 1, &frame, &parent));
	assert_int_equal(put_string(s, 1, "new", &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(put_ledger(s, 3, 1, 2, &f), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_CPU].taken, 7);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 2);
	assert_int_equal(c.of[WIRE_EVENT_CPU].dropped[WIRE_DROP_RING_FULL].n, 5);
	assert_int_equal(c.of[WIRE_EVENT_CPU].lost, 0);
	assert_int_equal(put_hello(s, &f), 0);
	assert_int_equal(put_hello(s, &f), -EBADMSG); /* no end of it */
	stream_free(s);
}

static void states_of_threads_are_told_with_names_and_stand_beside_the_accounts(void **state)
{
	struct wire_thread thread = { 7, WIRE_THREAD_JAVA, 1, str("main") };
	struct wire_state record = { 5, 7, WIRE_STATE_BLOCKED, WIRE_OFFCPU_LOCK, 9, 0, { 0 } };
	struct wire_virtual group = { 6, 2, 1, WIRE_STATE_WAITING, 100, 1 };
	struct stream *s = greeted_stream();
	struct stream_counts c;
	struct fault f = { 0 };
	struct wire_writer w;

	(void)state;
	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &thread));
	assert_int_equal(feed(s, &w, &f), 0);
	wire_begin(&w, buf, WIRE_STATE);
	assert_true(wire_put_state(&w, &record));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_string_equal(last_state_thread, "main");
	assert_int_equal(put_string(s, 1, "java/lang/Object", &f), 0);
	assert_int_equal(put_string(s, 2, "pool/1", &f), 0);
	wire_begin(&w, buf, WIRE_VIRTUAL);
	assert_true(wire_put_virtual(&w, &group));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_string_equal(last_virtual.class_name, "java.lang.Object");
	assert_string_equal(last_virtual.container, "pool/1");
	assert_int_equal(last_virtual.count, 100);
	stream_counts(s, &c);
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		assert_int_equal(c.of[e].taken, 0);
	group.container_id = 3; /* which nobody defined */
	wire_begin(&w, buf, WIRE_VIRTUAL);
	assert_true(wire_put_virtual(&w, &group));
	assert_int_equal(feed(s, &w, &f), -EBADMSG);
	stream_free(s);
}

static uint32_t number_of_next(struct stream *s, const char *name)
{
	struct fault f = { 0 };

	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_string_equal(last.thread, name);
	return last.thread_number;
}

static void put_name(struct stream *s, const char *name)
{
	struct wire_thread thread = { 7, WIRE_THREAD_JAVA, 1, str(name) };
	struct wire_writer w;
	struct fault f = { 0 };

	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &thread));
	assert_int_equal(feed(s, &w, &f), 0);
}

static void a_name_of_a_thread_has_a_number(void **state)
{
	struct stream *s = greeted_stream();
	uint32_t first, second;

	(void)state;
	assert_int_equal(number_of_next(s, ""), 0);
	put_name(s, "main");
	first = number_of_next(s, "main");
	assert_true(first != 0);
	assert_int_equal(number_of_next(s, "main"), first);
	put_name(s, "worker");
	second = number_of_next(s, "worker");
	assert_true(second != 0 && second != first);
	stream_free(s);
	/* names of another stream have other numbers */
	s = greeted_stream();
	put_name(s, "other");
	first = number_of_next(s, "other");
	assert_true(first != 0 && first != second);
	stream_free(s);
}

static void safepoints_are_told_with_what_they_were_for(void **state)
{
	struct wire_pause pause = { 5, 2, 9, 3, WIRE_PAUSE_GC, 1 };
	struct stream *s = greeted_stream();
	struct fault f = { 0 };
	struct wire_writer w;

	(void)state;
	assert_int_equal(put_string(s, 1, "G1CollectFull", &f), 0);
	wire_begin(&w, buf, WIRE_PAUSE);
	assert_true(wire_put_pause(&w, &pause));
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(last_pause.length_ns, 9);
	assert_int_equal(last_pause.number, 3);
	assert_string_equal(last_operation, "G1CollectFull");
	pause.operation_id = 2; /* which nobody defined */
	wire_begin(&w, buf, WIRE_PAUSE);
	assert_true(wire_put_pause(&w, &pause));
	assert_int_equal(feed(s, &w, &f), -EBADMSG);
	stream_free(s);
}

static void frames_of_unknown_types_are_skipped(void **state)
{
	struct stream *s = greeted_stream();
	struct wire_writer w;
	struct fault f = { 0 };

	(void)state;
	for (int type = WIRE_LOCK; type <= WIRE_CONTEXT; type++) {
		wire_begin(&w, buf, (enum wire_type)type);
		assert_int_equal(feed(s, &w, &f), 0);
	}
	wire_begin(&w, buf, (enum wire_type)200);
	memset(buf + w.len, 0xff, 100);
	w.len += 100;
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(put_sample(s, 0, &f), 0);
	assert_int_equal(samples, 1);
	stream_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_without_the_secret_ends_the_stream),
		cmocka_unit_test(a_missing_frame_ends_the_stream),
		cmocka_unit_test(frames_of_an_older_session_are_skipped),
		cmocka_unit_test(a_later_hello_begins_anew_and_keeps_the_accounts),
		cmocka_unit_test(
			states_of_threads_are_told_with_names_and_stand_beside_the_accounts),
		cmocka_unit_test(a_name_of_a_thread_has_a_number),
		cmocka_unit_test(safepoints_are_told_with_what_they_were_for),
		cmocka_unit_test(frames_of_unknown_types_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
