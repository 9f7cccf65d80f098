/* Why a thread was off the CPU: from the kernel's class, the JVM's status and the frames. */
#include "tests/unit/stacks.h"
#include <sys/syscall.h>
#include "daemon/profile/offcpu_event.h"

/* Frames from the root, NULL last. */
static struct offcpu_event explain(unsigned kernel_class, uint8_t status, const char *const *frames)
{
	struct offcpu_event e = {
		.kernel_class = kernel_class,
		.status = status,
		.has_stack = *frames != NULL,
		.syscall_nr = -1,
	};
	struct stream *s = stacks_stream(frames, &e.node);

	offcpu_event_explain(&e, s, "main");
	e.node = 0;
	stream_free(s);
	return e;
}
#define EXPLAIN(class, status, ...) \
	explain(class, WIRE_OFFCPU_##status, (const char *const[]){ __VA_ARGS__, NULL })
#define REASON(class, status, ...) EXPLAIN(class, status, __VA_ARGS__).reason
#define SHOP			   "java/lang/Thread.run", "org/shop/Main.work"

static void the_kernel_decides_where_it_knows(void **state)
{
	(void)state;
	assert_int_equal(REASON(OFFCPU_SOCKET, RUNNABLE, SHOP), OFFCPU_REASON_SOCKET);
	assert_int_equal(REASON(OFFCPU_FSYNC, RUNNABLE, SHOP), OFFCPU_REASON_FSYNC);
	assert_int_equal(REASON(OFFCPU_PIPE, RUNNABLE, SHOP), OFFCPU_REASON_PIPE);
	assert_int_equal(REASON(OFFCPU_FAULT, BLOCKED_IN_VM, SHOP), OFFCPU_REASON_FAULT);
	assert_int_equal(REASON(OFFCPU_RUNQUEUE, PARK, SHOP), OFFCPU_REASON_RUNQUEUE);
	assert_int_equal(REASON(OFFCPU_THROTTLED, RUNNABLE, SHOP), OFFCPU_REASON_THROTTLED);
	assert_int_equal(REASON(OFFCPU_DISK, RUNNABLE, SHOP), OFFCPU_REASON_DISK);
	assert_int_equal(REASON(OFFCPU_SLEEP, RUNNABLE, SHOP), OFFCPU_REASON_SLEEP);
}

static void of_a_futex_the_jvm_knows_why(void **state)
{
	(void)state;
	assert_int_equal(REASON(OFFCPU_FUTEX, LOCK, SHOP), OFFCPU_REASON_LOCK);
	assert_int_equal(REASON(OFFCPU_FUTEX, PARK, SHOP), OFFCPU_REASON_PARK);
	assert_int_equal(REASON(OFFCPU_FUTEX, WAIT, SHOP), OFFCPU_REASON_WAIT);
	assert_int_equal(REASON(OFFCPU_FUTEX, SLEEP, SHOP), OFFCPU_REASON_SLEEP);
	assert_int_equal(REASON(OFFCPU_FUTEX, BLOCKED_IN_VM, SHOP), OFFCPU_REASON_SAFEPOINT);
	assert_int_equal(REASON(OFFCPU_FUTEX, GC, SHOP), OFFCPU_REASON_GC);
	assert_int_equal(REASON(OFFCPU_FUTEX, RUNNABLE, SHOP), OFFCPU_REASON_OTHER);
	assert_int_equal(REASON(OFFCPU_NO_CLASS, PARK, SHOP), OFFCPU_REASON_PARK);
}

static void without_a_status_the_frames_tell(void **state)
{
	(void)state;
	assert_int_equal(REASON(OFFCPU_FUTEX, NONE, SHOP, "jdk/internal/misc/Unsafe.park", "futex"),
			 OFFCPU_REASON_PARK);
	assert_int_equal(REASON(OFFCPU_FUTEX, NONE, SHOP, "java/lang/Object.wait0"),
			 OFFCPU_REASON_WAIT);
	assert_int_equal(REASON(OFFCPU_FUTEX, NONE, SHOP, "java/lang/Thread.sleepNanos0"),
			 OFFCPU_REASON_SLEEP);
	assert_int_equal(REASON(OFFCPU_FUTEX, NONE, SHOP), OFFCPU_REASON_OTHER);
}

static void sockets_that_poll_are_sockets(void **state)
{
	(void)state;
	assert_int_equal(REASON(OFFCPU_POLL, RUNNABLE, SHOP, "sun/nio/ch/NioSocketImpl.timedRead",
				"sun/nio/ch/NioSocketImpl.park", "sun/nio/ch/Net.poll"),
			 OFFCPU_REASON_SOCKET);
	assert_int_equal(
		REASON(OFFCPU_POLL, RUNNABLE, SHOP, "java/net/PlainSocketImpl.socketAccept"),
		OFFCPU_REASON_ACCEPT);
	assert_int_equal(REASON(OFFCPU_POLL, RUNNABLE, SHOP, "sun/nio/ch/EPoll.wait"),
			 OFFCPU_REASON_POLL);
}

static void waits_for_work_are_idle(void **state)
{
	(void)state;
	assert_true(EXPLAIN(OFFCPU_FUTEX, PARK, "java/lang/Thread.run",
			    "java/util/concurrent/ThreadPoolExecutor$Worker.run",
			    "java/util/concurrent/ThreadPoolExecutor.runWorker",
			    "java/util/concurrent/ThreadPoolExecutor.getTask",
			    "java/util/concurrent/LinkedBlockingQueue.take",
			    "java/util/concurrent/locks/LockSupport.park",
			    "jdk/internal/misc/Unsafe.park")
			    .idle);
	assert_false(EXPLAIN(OFFCPU_FUTEX, PARK, SHOP, "jdk/internal/misc/Unsafe.park").idle);
	/* a collector's thread, a compiler's */
	assert_true(EXPLAIN(OFFCPU_FUTEX, NONE, "start_thread").idle);
	assert_true(EXPLAIN(OFFCPU_FUTEX, BLOCKED_IN_VM, "start_thread").idle);
	assert_int_equal(REASON(OFFCPU_FUTEX, BLOCKED_IN_VM, "start_thread"), OFFCPU_REASON_OTHER);
	assert_false(EXPLAIN(OFFCPU_FILE, NONE, "start_thread").idle);
}

static void the_text_has_the_lock_or_the_call(void **state)
{
	struct stream_lock lock = { .class_name = "org.shop.Cache" };
	struct offcpu_event e = { .reason = OFFCPU_REASON_LOCK, .syscall_nr = SYS_futex };
	char buf_text[OFFCPU_TEXT_MAX];

	(void)state;
	assert_string_equal(offcpu_event_text(&e, buf_text), "lock");
	e.lock = &lock;
	assert_string_equal(offcpu_event_text(&e, buf_text), "lock org.shop.Cache");
	e.lock = NULL;
	e.reason = OFFCPU_REASON_OTHER;
	assert_string_equal(offcpu_event_text(&e, buf_text), "other futex");
	e.syscall_nr = 100000;
	assert_string_equal(offcpu_event_text(&e, buf_text), "other");
	assert_string_equal(offcpu_syscall_name(SYS_semtimedop), "semtimedop");
	assert_string_equal(offcpu_syscall_name(SYS_quotactl), "quotactl"); /* seldom, but known */
	assert_null(offcpu_syscall_name(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_decides_where_it_knows),
		cmocka_unit_test(of_a_futex_the_jvm_knows_why),
		cmocka_unit_test(without_a_status_the_frames_tell),
		cmocka_unit_test(sockets_that_poll_are_sockets),
		cmocka_unit_test(waits_for_work_are_idle),
		cmocka_unit_test(the_text_has_the_lock_or_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
