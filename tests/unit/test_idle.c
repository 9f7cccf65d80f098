#include "tests/unit/unit.h"
#include <stdio.h>
#include "daemon/profile/idle.h"

static uint8_t buf[WIRE_FRAME_MAX];
static uint64_t sequence;
static uint32_t next_id;

static struct wire_str str(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static void feed(struct stream *s, struct wire_writer *w)
{
	struct fault f = { 0 };
	uint32_t len = wire_end(w, ++sequence);

	assert_int_equal(stream_feed(s, buf, len, &f), 0);
}

static uint32_t string(struct stream *s, const char *text)
{
	struct wire_string record = { ++next_id, str(text) };
	struct wire_writer w;

	wire_begin(&w, buf, WIRE_STRING);
	assert_true(wire_put_string(&w, &record));
	feed(s, &w);
	return next_id;
}

/* A frame of "java/lang/Thread.run"; without a dot a label. */
static uint32_t frame(struct stream *s, uint32_t parent, const char *name)
{
	struct wire_node node = { .parent = parent, .kind = WIRE_KIND_STUB, .line = -1 };
	const char *dot = strrchr(name, '.');
	struct wire_writer w;

	if (dot) {
		char class_name[200];
		struct wire_method m;

		snprintf(class_name, sizeof(class_name), "%.*s", (int)(dot - name), name);
		m.class_id = string(s, class_name);
		m.name_id = string(s, dot + 1);
		m.sig_id = string(s, "()V");
		m.file_id = 0;
		m.id = node.ref = ++next_id;
		wire_begin(&w, buf, WIRE_METHOD);
		assert_true(wire_put_method(&w, &m));
		feed(s, &w);
		node.kind = WIRE_KIND_C2;
	} else {
		node.ref = string(s, name);
	}
	node.id = ++next_id;
	wire_begin(&w, buf, WIRE_NODE);
	assert_true(wire_put_node(&w, &node));
	feed(s, &w);
	return node.id;
}

/* Frames from the root, NULL last. */
static bool is_idle(const char *const *frames)
{
	struct wire_hello h = { .protocol = WIRE_PROTOCOL };
	struct stream_ops ops = { 0 };
	struct wire_writer w;
	struct stream *s;
	uint32_t node = 0;
	bool idle;

	sequence = next_id = 0;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	wire_begin(&w, buf, WIRE_HELLO);
	assert_true(wire_put_hello(&w, &h));
	feed(s, &w);
	for (; *frames; frames++)
		node = frame(s, node, *frames);
	idle = idle_stack(s, node);
	assert_int_equal(idle_stack(s, node), idle); /* as remembered */
	stream_free(s);
	return idle;
}
#define IDLE(...) is_idle((const char *const[]){ __VA_ARGS__, NULL })

#define WORKER                                                                        \
	"java/lang/Thread.run", "java/util/concurrent/ThreadPoolExecutor$Worker.run", \
		"java/util/concurrent/ThreadPoolExecutor.runWorker"
#define PARK  "java/util/concurrent/locks/LockSupport.park", "jdk/internal/misc/Unsafe.park"
#define AWAIT "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject.await", PARK

static void a_worker_at_an_empty_queue_is_idle(void **state)
{
	(void)state;
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			 "java/util/concurrent/LinkedBlockingQueue.take", AWAIT));
	assert_true(IDLE("java/util/concurrent/ForkJoinWorkerThread.run",
			 "java/util/concurrent/ForkJoinPool.runWorker",
			 "java/util/concurrent/ForkJoinPool.awaitWork", PARK));
	assert_true(IDLE("java/util/TimerThread.run", "java/util/TimerThread.mainLoop",
			 "java/lang/Object.wait", "java/lang/Object.wait0"));
}

static void a_task_that_waits_inside_of_its_worker_is_not(void **state)
{
	(void)state;
	assert_false(IDLE(WORKER, "org/shop/Order.call",
			  "java/util/concurrent/LinkedBlockingQueue.take", AWAIT));
	assert_false(IDLE("java/util/TimerThread.run", "java/util/TimerThread.mainLoop",
			  "org/shop/Tick.run", "java/lang/Object.wait"));
	assert_false(IDLE("java/lang/Thread.run", "org/shop/Main.run", PARK));
}

static void workers_that_fight_for_the_lock_of_their_queue_are_not(void **state)
{
	(void)state;
	assert_false(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask",
			  "java/util/concurrent/LinkedBlockingQueue.take",
			  "java/util/concurrent/locks/ReentrantLock.lockInterruptibly",
			  "java/util/concurrent/locks/AbstractQueuedSynchronizer.acquire", PARK));
}

static void frames_without_a_method_do_not_decide(void **state)
{
	(void)state;
	assert_true(IDLE(WORKER, "java/util/concurrent/ThreadPoolExecutor.getTask", PARK,
			 "Unsafe_Park", "pthread_cond_wait"));
	assert_false(IDLE("start_thread", "pthread_cond_wait"));
}

static void who_enters_a_monitor_is_never_idle(void **state)
{
	struct stream_ops ops = { 0 };
	struct stream_lock wait = { .wait = WIRE_WAIT_ENTER };
	struct stream *s;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	assert_false(idle_wait(s, &wait));
	wait.wait = WIRE_WAIT_PARK; /* without a stack nobody knows */
	assert_false(idle_wait(s, &wait));
	stream_free(s);
}

static void threads_of_the_jvm_that_wait_to_be_asked_are_idle(void **state)
{
	struct stream_sample sample = { .thread = "Signal Dispatcher" };
	struct stream_ops ops = { 0 };
	struct stream *s;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &s), 0);
	assert_true(idle_sample(s, &sample));
	sample.thread = "http-1";
	assert_false(idle_sample(s, &sample));
	stream_free(s);
}

static void a_frame_alone_says_yes_no_or_go_on(void **state)
{
	(void)state;
	assert_int_equal(idle_frame("java.util.concurrent.ThreadPoolExecutor", "getTask"),
			 IDLE_YES);
	assert_int_equal(idle_frame("java.util.concurrent.ThreadPoolExecutor", "awaitTermination"),
			 IDLE_UNDECIDED);
	assert_int_equal(idle_frame("org.shop.Cart", "take"), IDLE_NO);
	assert_int_equal(idle_frame("sun.nio.ch.Poller", "poll"), IDLE_UNDECIDED); /* for I/O */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_at_an_empty_queue_is_idle),
		cmocka_unit_test(a_task_that_waits_inside_of_its_worker_is_not),
		cmocka_unit_test(workers_that_fight_for_the_lock_of_their_queue_are_not),
		cmocka_unit_test(frames_without_a_method_do_not_decide),
		cmocka_unit_test(who_enters_a_monitor_is_never_idle),
		cmocka_unit_test(threads_of_the_jvm_that_wait_to_be_asked_are_idle),
		cmocka_unit_test(a_frame_alone_says_yes_no_or_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
