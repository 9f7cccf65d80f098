/* Frames in an agent's format, through the stream's decoder into the tables and the graph. */
#include "tests/unit/unit.h"
#include "daemon/ground/mem.h"
#include "daemon/locks/graph.h"

#define S  1000000000ull
#define MS 1000000ull
static const uint64_t t0 = 5000 * S;

static struct locks *locks;
static struct stream *stream;
static uint64_t now, sequence;
static uint8_t buf[WIRE_FRAME_MAX];

static void on_lock(void *userdata, const struct stream_lock *l)
{
	(void)userdata;
	locks_add(locks, stream, l, false, now);
}

static void on_thread(void *userdata, const struct wire_thread *t, const char *name)
{
	(void)userdata;
	locks_thread(locks, t, name, now);
}

static void on_reset(void *userdata)
{
	(void)userdata;
	locks_reset(locks);
}

static void send(struct wire_writer *w)
{
	struct fault f = { 0 };

	assert_int_equal(stream_feed(stream, buf, wire_end(w, ++sequence), &f), 0);
}

static struct wire_str str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static int begin(void **state)
{
	static const struct stream_ops ops = { .on_lock = on_lock, .on_thread = on_thread, .on_reset = on_reset };
	struct wire_hello hello = { .protocol = WIRE_PROTOCOL };
	struct wire_string classes[] = { { 1, str("LockStories$Left") },
					 { 2, str("java/util/concurrent/locks/ReentrantLock") } };
	struct wire_thread threads[] = { { 11, WIRE_THREAD_JAVA, 1, str("left") },
					 { 12, WIRE_THREAD_JAVA, 2, str("right") } };
	struct wire_writer w;

	(void)state;
	now = t0;
	sequence = 0;
	assert_int_equal(locks_new(now, &locks), 0);
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &hello));
	send(&w);
	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &classes[0]) && wire_put_string(&w, &classes[1]));
	send(&w);
	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &threads[0]) && wire_put_thread(&w, &threads[1]));
	send(&w);
	return 0;
}

static int end(void **state)
{
	(void)state;
	stream = stream_free(stream);
	locks = locks_free(locks);
	return 0;
}

static void send_wait(struct wire_lock lock)
{
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_LOCK);
	assert_true(wire_put_lock(&w, &lock));
	send(&w);
}

static const struct wire_lock left_parks = { .begin_ns = 5000 * S, .duration_ns = 100 * MS, .tid = 11,
					     .wait = WIRE_WAIT_PARK, .flags = WIRE_LOCK_OPEN, .class_id = 2,
					     .identity = 0x22, .owner_tid = 12 };
static const struct wire_lock right_enters = { .begin_ns = 5000 * S + MS, .duration_ns = 100 * MS, .tid = 12,
					       .wait = WIRE_WAIT_ENTER, .flags = WIRE_LOCK_OPEN, .class_id = 1,
					       .identity = 0x11, .owner_tid = 11 };

static uint32_t deadlocks(uint32_t *ret_waits)
{
	struct locks_open *open;
	struct lock_graph g;
	uint32_t n;

	assert_int_equal(locks_open(locks, now, &open, ret_waits), 0);
	assert_int_equal(lock_graph_new(open, *ret_waits, &g), 0);
	n = g.n_deadlocks;
	lock_graph_free(&g);
	free(open);
	return n;
}

static void two_open_waits_are_a_deadlock_until_one_ends(void **state)
{
	struct wire_lock ended = right_enters;
	struct locks_rows rows;
	uint32_t waits;

	(void)state;
	now = t0 + 110 * MS;
	send_wait(left_parks);
	assert_int_equal(deadlocks(&waits), 0);
	send_wait(right_enters);
	assert_int_equal(deadlocks(&waits), 1);
	now = t0 + 2 * S;
	assert_int_equal(locks_query(locks, now, 60 * S, false, LOCKS_BY_LOCK, &rows), 0);
	assert_int_equal(rows.n, 2);
	assert_string_equal(rows.rows[0].class_name, "java.util.concurrent.locks.ReentrantLock");
	assert_int_equal(rows.rows[0].total_ns, 2 * S);
	assert_string_equal(locks_thread_name(locks, rows.rows[0].owners[0].tid), "right");
	locks_rows_free(&rows);
	ended.flags = 0;
	ended.duration_ns = 2 * S;
	send_wait(ended);
	assert_int_equal(deadlocks(&waits), 0);
	assert_int_equal(waits, 1);
}

static void a_reset_keeps_what_waits(void **state)
{
	struct wire_string again = { 7, str("java/util/concurrent/locks/ReentrantLock") };
	struct wire_lock closed = left_parks;
	struct wire_writer w;
	uint32_t waits;

	(void)state;
	now = t0 + 110 * MS;
	send_wait(left_parks);
	send_wait(right_enters);
	wire_begin(&w, buf, WIRE_RESET);
	send(&w);
	assert_int_equal(deadlocks(&waits), 1);
	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &again));
	send(&w);
	closed.class_id = 7;
	closed.flags = WIRE_LOCK_CLOSED;
	send_wait(closed);
	assert_int_equal(deadlocks(&waits), 0);
	assert_int_equal(waits, 1);
}

/* Nodes 1 to 4: Thread.run < Main.sell < Stock.take < Unsafe.park, and 5: Thread.run < Main.count. */
static void send_stacks(void)
{
	static const char *const names[] = { "java/lang/Thread", "org/shop/Main", "org/shop/Stock",
					     "jdk/internal/misc/Unsafe", "run", "sell", "take", "park", "count", "()V" };
	static const struct wire_method methods[] = {
		{ 1, 101, 105, 110, 0 }, { 2, 102, 106, 110, 0 }, { 3, 103, 107, 110, 0 },
		{ 4, 104, 108, 110, 0 }, { 5, 102, 109, 110, 0 },
	};
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_STRING);
	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(wire_put_string(&w, &(struct wire_string){ 101 + i, str(names[i]) }));
	send(&w);
	wire_begin(&w, buf, WIRE_METHOD);
	for (uint32_t i = 0; i < ARRAY_SIZE(methods); i++)
		assert_true(wire_put_method(&w, &methods[i]));
	send(&w);
	wire_begin(&w, buf, WIRE_NODE);
	for (uint32_t i = 1; i <= 5; i++) {
		struct wire_node n = { .id = i, .parent = i == 5 ? 1 : i - 1, .kind = WIRE_KIND_C2, .ref = i, .line = -1 };

		assert_true(wire_put_node(&w, &n));
	}
	send(&w);
}

static void waiters_and_owners_are_at_methods_of_the_application(void **state)
{
	struct wire_lock wait = { .begin_ns = t0, .duration_ns = 50 * MS, .tid = 12, .wait = WIRE_WAIT_ENTER,
				  .class_id = 1, .identity = 0x11, .owner_tid = 11, .node = 4 };
	struct stream_sample sample = { .tid = 11, .mono_ns = t0 + 20 * MS, .node = 5, .weight_ns = MS };
	struct wire_writer w;
	struct locks_rows rows;

	(void)state;
	send_stacks();
	now = t0 + 50 * MS;
	locks_sample(locks, &sample, now);
	sample.mono_ns += 40 * MS; /* a record after the wait: the one before it counts */
	sample.node = 1;
	now += 10 * MS;
	locks_sample(locks, &sample, now);
	send_wait(wait);
	assert_int_equal(locks_query(locks, now, 60 * S, false, LOCKS_BY_LOCK, &rows), 0);
	assert_int_equal(rows.rows[0].n_waiting, 1);
	assert_string_equal(rows.rows[0].waiting[0].frame, "org.shop.Stock.take");
	assert_int_equal(rows.rows[0].waiting[0].node, 4);
	assert_int_equal(rows.rows[0].waiting[0].ns, 50 * MS);
	assert_int_equal(rows.rows[0].n_holding, 1);
	assert_string_equal(rows.rows[0].holding[0].frame, "org.shop.Main.count");
	locks_rows_free(&rows);
	/* the method is kept, the stack is not */
	wire_begin(&w, buf, WIRE_RESET);
	send(&w);
	assert_int_equal(locks_query(locks, now, 60 * S, false, LOCKS_BY_LOCK, &rows), 0);
	assert_string_equal(rows.rows[0].waiting[0].frame, "org.shop.Stock.take");
	assert_int_equal(rows.rows[0].waiting[0].node, 0);
	locks_rows_free(&rows);
}

static void owner_that_was_not_seen_is_where_it_waited_for_the_lock(void **state)
{
	struct wire_lock wait = { .begin_ns = t0, .duration_ns = 50 * MS, .tid = 11, .wait = WIRE_WAIT_ENTER,
				  .class_id = 1, .identity = 0x11, .node = 2 };
	struct locks_rows rows;

	(void)state;
	send_stacks();
	now = t0 + S;
	send_wait(wait);
	wait = (struct wire_lock){ .begin_ns = t0 + 100 * MS, .duration_ns = 50 * MS, .tid = 12,
				   .wait = WIRE_WAIT_ENTER, .class_id = 1, .identity = 0x11, .owner_tid = 11, .node = 1 };
	send_wait(wait);
	wait.identity = 0x12; /* it is about another lock, so it proves nothing here */
	send_wait(wait);
	assert_int_equal(locks_query(locks, now, 60 * S, false, LOCKS_BY_LOCK, &rows), 0);
	assert_int_equal(rows.n, 2);
	assert_int_equal(rows.rows[0].identity, 0x11);
	assert_string_equal(rows.rows[0].holding[0].frame, "org.shop.Main.sell");
	/* if all frames are the JDK's, the one at the leaf is used */
	assert_string_equal(rows.rows[0].waiting[1].frame, "java.lang.Thread.run");
	assert_int_equal(rows.rows[1].n_holding, 0);
	locks_rows_free(&rows);
}

static void owner_that_slept_is_where_it_was_while_the_wait_went_on(void **state)
{
	struct wire_lock wait = { .begin_ns = t0, .duration_ns = 20 * MS, .tid = 12, .wait = WIRE_WAIT_ENTER,
				  .flags = WIRE_LOCK_OPEN, .class_id = 1, .identity = 0x11, .owner_tid = 11,
				  .node = 1, .owner_node = 4 };
	struct locks_rows rows;

	(void)state;
	send_stacks();
	now = t0 + S;
	send_wait(wait);
	wait.flags = 0;
	wait.duration_ns = 50 * MS;
	wait.owner_node = 0; /* at the wait's end the owner is unknown */
	send_wait(wait);
	wait.begin_ns += 100 * MS; /* it is about another wait, so it proves nothing here */
	send_wait(wait);
	assert_int_equal(locks_query(locks, now, 60 * S, false, LOCKS_BY_LOCK, &rows), 0);
	assert_int_equal(rows.n, 1);
	assert_int_equal(rows.rows[0].n_holding, 1);
	assert_string_equal(rows.rows[0].holding[0].frame, "org.shop.Stock.take");
	assert_int_equal(rows.rows[0].holding[0].node, 4);
	assert_int_equal(rows.rows[0].holding[0].ns, 50 * MS);
	locks_rows_free(&rows);
}

static void the_end_of_a_thread_ends_its_wait(void **state)
{
	struct wire_thread gone = { .tid = 12, .flags = WIRE_THREAD_ENDED };
	struct wire_writer w;
	uint32_t waits;

	(void)state;
	send_wait(left_parks);
	send_wait(right_enters);
	wire_begin(&w, buf, WIRE_THREAD);
	assert_true(wire_put_thread(&w, &gone));
	send(&w);
	assert_int_equal(deadlocks(&waits), 0);
	assert_int_equal(waits, 1);
	assert_string_equal(locks_thread_name(locks, 12), "right"); /* its last name stays */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(two_open_waits_are_a_deadlock_until_one_ends, begin, end),
		cmocka_unit_test_setup_teardown(a_reset_keeps_what_waits, begin, end),
		cmocka_unit_test_setup_teardown(waiters_and_owners_are_at_methods_of_the_application, begin, end),
		cmocka_unit_test_setup_teardown(owner_that_was_not_seen_is_where_it_waited_for_the_lock, begin, end),
		cmocka_unit_test_setup_teardown(owner_that_slept_is_where_it_was_while_the_wait_went_on, begin, end),
		cmocka_unit_test_setup_teardown(the_end_of_a_thread_ends_its_wait, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
