/* Waits, allocations, wall-clock samples and notes, which test_stream.c leaves out. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include "daemon/stream/stream.h"

static uint8_t buf[WIRE_FRAME_MAX];
static uint64_t sequence;
static int locks, allocs, walls, offcpus;
static struct stream_lock last_lock;
static struct stream_alloc last_alloc;
static struct stream_sample last_wall;
static struct stream_offcpu last_offcpu;
static char last_step[100], last_what[400];

static void on_lock(void *userdata, const struct stream_lock *l)
{
	(void)userdata;
	locks++;
	last_lock = *l;
}

static void on_alloc(void *userdata, const struct stream_alloc *a)
{
	(void)userdata;
	allocs++;
	last_alloc = *a;
}

static void on_offcpu(void *userdata, const struct stream_offcpu *o)
{
	(void)userdata;
	offcpus++;
	last_offcpu = *o;
}

static void on_wall(void *userdata, const struct stream_sample *s)
{
	(void)userdata;
	walls++;
	last_wall = *s;
}

static void on_note(void *userdata, const char *step, const char *what)
{
	(void)userdata;
	snprintf(last_step, sizeof(last_step), "%s", step);
	snprintf(last_what, sizeof(last_what), "%s", what);
}

static struct wire_str str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static int feed(struct stream *s, struct wire_writer *w, struct fault *f)
{
	return stream_feed(s, buf, wire_end(w, ++sequence), f);
}

#define PUT(s, type, put, record, fault)       \
	({                                     \
		struct wire_writer w_;         \
		wire_begin(&w_, buf, type);    \
		assert_true(put(&w_, record)); \
		feed(s, &w_, fault);           \
	})

/* String 1 is a class, string 2 "[B", node 1 a stack, thread 7 "main", thread 8 "owner". */
static struct stream *ready_stream(void)
{
	static const struct stream_ops ops = { .on_lock = on_lock,
					       .on_alloc = on_alloc,
					       .on_wall = on_wall,
					       .on_offcpu = on_offcpu,
					       .on_note = on_note };
	const struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	const struct wire_string strings[] = { { 1, str("java/lang/Object") }, { 2, str("[B") } };
	const struct wire_node node = { 1, 0, WIRE_KIND_STUB, 1, -1, 0 };
	const struct wire_thread threads[] = { { 7, WIRE_THREAD_JAVA, 1, str("main") },
					       { 8, WIRE_THREAD_JAVA, 2, str("owner") } };
	struct fault f = { 0 };
	struct stream *s;

	sequence = 0;
	locks = allocs = walls = offcpus = 0;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	assert_int_equal(PUT(s, WIRE_HELLO, wire_put_hello, &h, &f), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(PUT(s, WIRE_STRING, wire_put_string, &strings[i], &f), 0);
	assert_int_equal(PUT(s, WIRE_NODE, wire_put_node, &node, &f), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(PUT(s, WIRE_THREAD, wire_put_thread, &threads[i], &f), 0);
	return s;
}

static const struct wire_lock wait_7 = {
	.begin_ns = 1000,
	.duration_ns = 5000000,
	.tid = 7,
	.wait = WIRE_WAIT_ENTER,
	.class_id = 1,
	.identity = 4711,
	.owner_tid = 8,
	.node = 1,
};

static void a_wait_comes_with_names_and_is_counted(void **state)
{
	struct stream *s = ready_stream();
	struct fault f = { 0 };
	struct stream_counts c;

	(void)state;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait_7, &f), 0);
	assert_int_equal(locks, 1);
	assert_string_equal(last_lock.class_name, "java.lang.Object");
	assert_string_equal(last_lock.thread, "main");
	assert_string_equal(last_lock.owner, "owner");
	assert_int_equal(last_lock.identity, 4711);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].delivered, 1);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].delivered_weight, 5000000);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 0);
	stream_free(s);
}

static void events_come_with_the_trace_of_their_thread(void **state)
{
	const struct wire_context first = { 5, str("4bf92f3577b34da6"), str("00f067aa") },
				  again = { 5, str("x.1.2"), str("") };
	const struct wire_sample wall = { 1000, 7, 1, 10, 5 };
	const struct wire_alloc alloc = { 1000, 7, 1, 2, 24, 524288, 5 };
	struct stream *s = ready_stream();
	size_t bytes = stream_bytes(s);
	struct wire_lock wait = wait_7;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), 0);
	assert_null(last_lock.trace);
	assert_int_equal(PUT(s, WIRE_CONTEXT, wire_put_context, &first, &f), 0);
	assert_true(stream_bytes(s) > bytes);
	wait.context = 5;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), 0);
	assert_string_equal(last_lock.trace->trace_id, "4bf92f3577b34da6");
	assert_string_equal(last_lock.trace->span_id, "00f067aa");
	assert_int_equal(PUT(s, WIRE_CONTEXT, wire_put_context, &again, &f), 0);
	assert_int_equal(PUT(s, WIRE_WALL, wire_put_sample, &wall, &f), 0);
	assert_string_equal(last_wall.trace->trace_id, "x.1.2");
	assert_string_equal(last_wall.trace->span_id, "");
	assert_int_equal(PUT(s, WIRE_ALLOC, wire_put_alloc, &alloc, &f), 0);
	assert_string_equal(last_alloc.trace->trace_id, "x.1.2");
	stream_free(s);
}

static void a_trace_that_is_undefined_or_no_text_ends_the_stream(void **state)
{
	const struct wire_context bad[] = { { 5, str("a\"b c"), str("") },
					    { 5, str("a"), str("\x1b[31m") },
					    { 5, str("\xff"), str("") } };
	struct wire_lock wait = wait_7;
	struct stream *s = ready_stream();
	struct fault f = { 0 };

	(void)state;
	wait.context = 6;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), -EBADMSG);
	stream_free(s);
	for (int i = 0; i < 3; i++) {
		s = ready_stream();
		f = (struct fault){ 0 };
		assert_int_equal(PUT(s, WIRE_CONTEXT, wire_put_context, &bad[i], &f), -EBADMSG);
		stream_free(s);
	}
	/* a RESET takes it back */
	s = ready_stream();
	f = (struct fault){ 0 };
	wait.context = 5;
	assert_int_equal(PUT(s, WIRE_CONTEXT, wire_put_context,
			     (&(struct wire_context){ 5, str("a"), str("b") }), &f),
			 0);
	{
		struct wire_writer w;

		wire_begin(&w, buf, WIRE_RESET);
		assert_int_equal(feed(s, &w, &f), 0);
	}
	wait.node = wait.class_id = 0;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), -EBADMSG);
	stream_free(s);
}

static void waits_that_go_on_stand_beside_the_accounts(void **state)
{
	struct stream *s = ready_stream();
	struct wire_lock wait = wait_7;
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	wait.flags = WIRE_LOCK_OPEN;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), 0);
	wait.flags = WIRE_LOCK_CLOSED;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), 0);
	assert_int_equal(locks, 2);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].taken, 0);
	stream_free(s);
}

static void a_wait_of_something_undefined_ends_the_stream(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct stream *s = ready_stream();
		struct wire_lock wait = wait_7;
		struct fault f = { 0 };

		*(i == 0 ? &wait.node : i == 1 ? &wait.owner_node : &wait.class_id) = 99;
		assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), -EBADMSG);
		assert_int_equal(locks, 0);
		stream_free(s);
	}
}

static void an_allocation_comes_with_its_class(void **state)
{
	struct wire_alloc alloc = { 1000, 7, 1, 2, 24, 524288, 0 };
	struct stream *s = ready_stream();
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_ALLOC, wire_put_alloc, &alloc, &f), 0);
	assert_int_equal(allocs, 1);
	assert_string_equal(last_alloc.class_name, "[B");
	assert_int_equal(last_alloc.size, 24);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_ALLOC].delivered_weight, 524288);
	alloc.class_id = 3;
	assert_int_equal(PUT(s, WIRE_ALLOC, wire_put_alloc, &alloc, &f), -EBADMSG);
	s = stream_free(s);
	s = ready_stream();
	memset(&f, 0, sizeof(f));
	alloc.class_id = 2;
	alloc.node = 2;
	assert_int_equal(PUT(s, WIRE_ALLOC, wire_put_alloc, &alloc, &f), -EBADMSG);
	stream_free(s);
}

static void wall_samples_have_accounts_of_their_own(void **state)
{
	const struct wire_sample sample = { 1000, 7, 1, 50000000, 0 };
	struct stream *s = ready_stream();
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_WALL, wire_put_sample, &sample, &f), 0);
	assert_int_equal(walls, 1);
	assert_string_equal(last_wall.thread, "main");
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_WALL].delivered_weight, 50000000);
	assert_int_equal(c.of[WIRE_EVENT_CPU].delivered, 0);
	stream_free(s);
}

static void intervals_off_the_cpu_have_accounts_of_their_own(void **state)
{
	struct wire_offcpu interval = { 1000, 7, 8, 1, 3000000, WIRE_OFFCPU_SLEEP, 0, 0, 0 };
	struct stream *s = ready_stream();
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_OFFCPU, wire_put_offcpu, &interval, &f), 0);
	assert_int_equal(offcpus, 1);
	assert_string_equal(last_offcpu.thread, "main");
	assert_string_equal(last_offcpu.virtual_thread, "owner");
	assert_int_equal(last_offcpu.status, WIRE_OFFCPU_SLEEP);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_OFFCPU].delivered_weight, 3000000);
	assert_int_equal(c.of[WIRE_EVENT_WALL].delivered, 0);
	interval.node = 2;
	assert_int_equal(PUT(s, WIRE_OFFCPU, wire_put_offcpu, &interval, &f), -EBADMSG);
	stream_free(s);
}

static void lost_waits_are_known_with_their_time(void **state)
{
	struct stream *s = ready_stream();
	struct wire_ledger l = { 0 };
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait_7, &f), 0);
	l.accounts[WIRE_EVENT_LOCK] = (struct wire_accounts){
		.taken = 3, .taken_weight = 9000000, .written = 1, .written_weight = 5000000
	};
	l.accounts[WIRE_EVENT_LOCK].drop[WIRE_DROP_RING_FULL].n = 2;
	l.accounts[WIRE_EVENT_LOCK].drop[WIRE_DROP_RING_FULL].weight = 4000000;
	l.counter[WIRE_COUNTER_SHORT_WAITS] = 10;
	assert_int_equal(PUT(s, WIRE_LEDGER, wire_put_ledger, &l, &f), 0);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].taken, 3);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].dropped[WIRE_DROP_RING_FULL].weight, 4000000);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].lost, 0);
	assert_int_equal(c.ledger.counter[WIRE_COUNTER_SHORT_WAITS], 10);
	/* and their accounts must balance like those of samples */
	l.accounts[WIRE_EVENT_LOCK].taken_weight++;
	assert_int_equal(PUT(s, WIRE_LEDGER, wire_put_ledger, &l, &f), -EBADMSG);
	assert_non_null(strstr(f.what, "lock"));
	stream_free(s);
}

static void no_time_of_waiting_makes_the_accounts_overflow(void **state)
{
	struct wire_lock wait = wait_7;
	struct stream *s = ready_stream();
	struct stream_counts c;
	struct fault f = { 0 };

	(void)state;
	wait.duration_ns = UINT64_MAX;
	assert_int_equal(PUT(s, WIRE_LOCK, wire_put_lock, &wait, &f), -EBADMSG);
	stream_counts(s, &c);
	assert_int_equal(c.of[WIRE_EVENT_LOCK].taken, 0);
	stream_free(s);
}

static void a_note_is_handed_on_clean(void **state)
{
	struct wire_fault note = { 0, str("monitors"), str("virtual\x1b threads") };
	struct stream *s = ready_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_NOTE, wire_put_fault, &note, &f), 0);
	assert_string_equal(last_step, "monitors");
	assert_string_equal(last_what, "virtual? threads");
	note.what = str("");
	assert_int_equal(PUT(s, WIRE_NOTE, wire_put_fault, &note, &f), 0);
	assert_string_equal(last_what, "");
	stream_free(s);
}

static void a_class_as_a_frame_is_the_daemons_to_add(void **state)
{
	const struct wire_node node = { 2, 1, WIRE_KIND_CLASS, 1, -1, 0 };
	struct stream *s = ready_stream();
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(PUT(s, WIRE_NODE, wire_put_node, &node, &f), -EBADMSG);
	stream_free(s);
}

static void a_readers_mark_is_forgotten_with_its_node(void **state)
{
	struct stream *s = ready_stream();
	struct fault f = { 0 };
	struct wire_writer w;

	(void)state;
	assert_int_equal(stream_node_mark(s, 1), 0);
	stream_mark_node(s, 1, 2);
	stream_mark_node(s, 77, 2); /* not defined: nothing */
	assert_int_equal(stream_node_mark(s, 1), 2);
	assert_int_equal(stream_node_mark(s, 77), 0);
	wire_begin(&w, buf, WIRE_RESET);
	assert_int_equal(feed(s, &w, &f), 0);
	assert_int_equal(stream_node_mark(s, 1), 0);
	stream_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_comes_with_names_and_is_counted),
		cmocka_unit_test(waits_that_go_on_stand_beside_the_accounts),
		cmocka_unit_test(events_come_with_the_trace_of_their_thread),
		cmocka_unit_test(a_trace_that_is_undefined_or_no_text_ends_the_stream),
		cmocka_unit_test(a_wait_of_something_undefined_ends_the_stream),
		cmocka_unit_test(an_allocation_comes_with_its_class),
		cmocka_unit_test(wall_samples_have_accounts_of_their_own),
		cmocka_unit_test(intervals_off_the_cpu_have_accounts_of_their_own),
		cmocka_unit_test(lost_waits_are_known_with_their_time),
		cmocka_unit_test(no_time_of_waiting_makes_the_accounts_overflow),
		cmocka_unit_test(a_note_is_handed_on_clean),
		cmocka_unit_test(a_class_as_a_frame_is_the_daemons_to_add),
		cmocka_unit_test(a_readers_mark_is_forgotten_with_its_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
