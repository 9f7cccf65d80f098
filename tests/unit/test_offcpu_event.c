/* Why a thread was off the CPU: derived from the kernel's class, the JVM's thread status and the
 * frames. */
#include "tests/unit/stacks.h"
#include <sys/syscall.h>
#include "daemon/ground/clock.h"
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

/* The status of a thread that was notified is that of the entry that follows. */
static void a_wait_that_was_notified_is_a_wait(void **state)
{
	(void)state;
	assert_int_equal(REASON(OFFCPU_FUTEX, LOCK, SHOP, "java/lang/Thread.join",
				"java/lang/Object.wait", "futex"),
			 OFFCPU_REASON_WAIT);
	assert_int_equal(REASON(OFFCPU_FUTEX, LOCK, SHOP, "java/lang/Object.wait",
				"java/lang/Object.wait0"),
			 OFFCPU_REASON_WAIT);
	/* a lock of what Object.wait() calls */
	assert_int_equal(REASON(OFFCPU_FUTEX, LOCK, SHOP, "java/lang/Object.wait",
				"org/shop/Main.wait"),
			 OFFCPU_REASON_LOCK);
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

static const char *label_of(void *userdata, const struct stream_frame *f)
{
	(void)userdata;
	return strcmp(f->method, "stripped") == 0 ? NULL : f->method;
}

static enum offcpu_reason by_native(const char *const *frames)
{
	struct offcpu_event e = { .has_stack = true };
	struct stream *s = stacks_stream(frames, &e.node);
	enum offcpu_reason reason = offcpu_event_by_native(&e, s, label_of, NULL);

	stream_free(s);
	return reason;
}
#define BY_NATIVE(...) by_native((const char *const[]){ SHOP, __VA_ARGS__, NULL })

static void native_frames_tell_what_the_jvm_does(void **state)
{
	(void)state;
	assert_int_equal(BY_NATIVE("Handshake::execute(HandshakeClosure*)",
				   "VMThread::execute(VM_Operation*)",
				   "VMThread::wait_until_executed(VM_Operation*)",
				   "Monitor::wait(unsigned long)", "pthread_cond_wait", "stripped"),
			 OFFCPU_REASON_SAFEPOINT);
	assert_int_equal(BY_NATIVE("Mutex::lock(Thread*)", "pthread_mutex_lock", "__lll_lock_wait"),
			 OFFCPU_REASON_LOCK);
	/* JDK 11 */
	assert_int_equal(BY_NATIVE("Monitor::lock(Thread*)", "Monitor::ILock(Thread*)",
				   "os::PlatformEvent::park()", "pthread_cond_wait"),
			 OFFCPU_REASON_LOCK);
	assert_int_equal(BY_NATIVE("SafepointSynchronize::block(JavaThread*)",
				   "Monitor::lock_without_safepoint_check(Thread*)",
				   "Monitor::ILock(Thread*)", "os::PlatformEvent::park()",
				   "pthread_cond_wait"),
			 OFFCPU_REASON_SAFEPOINT);
	assert_int_equal(BY_NATIVE("VMThread::execute(VM_Operation*)", "Monitor::lock(Thread*)",
				   "Monitor::ILock(Thread*)", "pthread_cond_wait"),
			 OFFCPU_REASON_LOCK);
	assert_int_equal(BY_NATIVE("Monitor::wait(unsigned long)", "pthread_cond_wait",
				   "__pthread_mutex_cond_lock", "__lll_lock_wait"),
			 OFFCPU_REASON_OTHER);
	assert_int_equal(BY_NATIVE("os::create_thread(Thread*, os::ThreadType, unsigned long)",
				   "Monitor::wait_without_safepoint_check(unsigned long)",
				   "pthread_cond_wait"),
			 OFFCPU_REASON_OTHER);
	/* an allocation waits for Shenandoah or ZGC */
	assert_int_equal(BY_NATIVE("ShenandoahHeap::allocate_memory(ShenandoahAllocRequest&)",
				   "ShenandoahPacer::pace_for_alloc(unsigned long)",
				   "Monitor::wait(long)", "os::PlatformMonitor::wait(long)",
				   "pthread_cond_timedwait"),
			 OFFCPU_REASON_GC);
	assert_int_equal(BY_NATIVE("ZHeap::alloc_page(unsigned char, unsigned long)",
				   "ZPageAllocator::alloc_page_stall(ZPageAllocation*)",
				   "PosixSemaphore::wait()", "sem_wait"),
			 OFFCPU_REASON_GC);
	assert_int_equal(BY_NATIVE("ZPageAllocator::alloc_page(unsigned char, unsigned long)",
				   "pthread_mutex_lock", "__lll_lock_wait"),
			 OFFCPU_REASON_LOCK);
	/* not below Java frames */
	assert_int_equal(BY_NATIVE("pthread_mutex_lock", "org/shop/Main.called"),
			 OFFCPU_REASON_OTHER);
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
	/* a datagram, of JDK 17 and of 11 */
	assert_int_equal(REASON(OFFCPU_POLL, RUNNABLE, SHOP, "java/net/DatagramSocket.receive",
				"sun/nio/ch/DatagramSocketAdaptor.receive",
				"sun/nio/ch/DatagramChannelImpl.blockingReceive",
				"sun/nio/ch/DatagramChannelImpl.park", "sun/nio/ch/Net.poll"),
			 OFFCPU_REASON_SOCKET);
	assert_int_equal(REASON(OFFCPU_POLL, RUNNABLE, SHOP,
				"java/net/PlainDatagramSocketImpl.receive0"),
			 OFFCPU_REASON_SOCKET);
	assert_int_equal(REASON(OFFCPU_POLL, RUNNABLE, SHOP, "sun/nio/ch/EPoll.wait"),
			 OFFCPU_REASON_POLL);
}

/* Frames from the root, NULL last, of a thread in a JVM whose pauses are not known. */
static struct offcpu_event by_wait(uint8_t status, const char *const *frames)
{
	struct offcpu_event e = { .kernel_class = OFFCPU_FUTEX,
				  .status = status,
				  .has_stack = true };
	struct stream *s = stacks_stream(frames, &e.node);

	offcpu_event_explain(&e, s, "main");
	offcpu_event_by_wait(&e, s, "main");
	e.node = 0;
	stream_free(s);
	return e;
}
#define BY_WAIT(status, ...) \
	by_wait(WIRE_OFFCPU_##status, (const char *const[]){ __VA_ARGS__, NULL })

static void a_wait_that_ends_during_a_collection_is_a_wait(void **state)
{
	(void)state;
	assert_int_equal(BY_WAIT(GC, SHOP, "jdk/internal/misc/Unsafe.park").reason,
			 OFFCPU_REASON_PARK);
	assert_int_equal(BY_WAIT(GC, SHOP, "java/lang/Object.wait").reason, OFFCPU_REASON_WAIT);
	assert_false(BY_WAIT(GC, SHOP, "jdk/internal/misc/Unsafe.park").idle);
	assert_true(BY_WAIT(GC, "java/lang/Thread.run",
			    "java/util/concurrent/ThreadPoolExecutor$Worker.run",
			    "java/util/concurrent/ThreadPoolExecutor.runWorker",
			    "java/util/concurrent/ThreadPoolExecutor.getTask",
			    "java/util/concurrent/LinkedBlockingQueue.take",
			    "java/util/concurrent/locks/LockSupport.park",
			    "jdk/internal/misc/Unsafe.park")
			    .idle);
	/* it did not wait: the collection held it */
	assert_int_equal(BY_WAIT(GC, SHOP).reason, OFFCPU_REASON_GC);
	/* its status could be read: its wait was over when a safepoint held it */
	assert_int_equal(BY_WAIT(BLOCKED_IN_VM, SHOP, "jdk/internal/misc/Unsafe.park").reason,
			 OFFCPU_REASON_SAFEPOINT);
}

static void the_thread_that_handles_references_waits_for_a_collection(void **state)
{
	struct offcpu_event e =
		BY_WAIT(GC, "java/lang/ref/Reference$ReferenceHandler.run",
			"java/lang/ref/Reference.processPendingReferences",
			"java/lang/ref/Reference.waitForReferencePendingList");

	(void)state;
	assert_int_equal(e.reason, OFFCPU_REASON_OTHER);
	assert_true(e.idle);
}

/* A thread that comes back from a poll while the threads are stopped waits in a futex until they go
 * on. */
static void a_thread_that_is_held_after_a_poll_is_not_idle(void **state)
{
	struct offcpu_event held = BY_WAIT(
		BLOCKED_IN_VM, "java/lang/Thread.run", "sun/nio/ch/SelectorImpl.lockAndDoSelect",
		"sun/nio/ch/EPollSelectorImpl.doSelect", "sun/nio/ch/EPoll.wait");

	(void)state;
	assert_int_equal(held.reason, OFFCPU_REASON_SAFEPOINT);
	assert_false(held.idle);
	/* its status could not be read */
	held = BY_WAIT(NONE, "java/lang/Thread.run", "sun/nio/ch/SelectorImpl.lockAndDoSelect",
		       "sun/nio/ch/EPoll.wait");
	assert_int_equal(held.reason, OFFCPU_REASON_OTHER);
	assert_false(held.idle);
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

static bool is_idle_without_a_stack_in(enum offcpu_class kernel_class, int syscall_nr,
				       const char *thread)
{
	struct offcpu_event e = { .kernel_class = kernel_class, .syscall_nr = syscall_nr };
	const char *const none[] = { NULL };
	struct stream *s = stacks_stream(none, &e.node);

	e.node = 0;
	offcpu_event_explain(&e, s, thread);
	stream_free(s);
	return e.idle;
}

static bool is_idle_without_a_stack(const char *thread)
{
	return is_idle_without_a_stack_in(OFFCPU_FUTEX, SYS_futex, thread);
}

static void epoll_and_accept_are_for_loops_that_wait_for_work(void **state)
{
	(void)state;
	assert_true(is_idle_without_a_stack_in(OFFCPU_ACCEPT, SYS_accept, "worker-1"));
	assert_false(is_idle_without_a_stack_in(OFFCPU_CONNECT, SYS_connect, "worker-1"));
	assert_true(is_idle_without_a_stack_in(OFFCPU_POLL, SYS_epoll_pwait, "worker-1"));
	assert_false(is_idle_without_a_stack_in(OFFCPU_POLL, SYS_ppoll, "worker-1"));
	assert_false(is_idle_without_a_stack_in(OFFCPU_RUNQUEUE, SYS_epoll_pwait, "worker-1"));
}

static void the_thread_that_unblocks_virtual_threads_waits_for_work(void **state)
{
	(void)state;
	assert_true(EXPLAIN(OFFCPU_FUTEX, NONE, "java/lang/Thread.run",
			    "java/lang/VirtualThread.unblockVirtualThreads",
			    "java/lang/VirtualThread.takeVirtualThreadListToUnblock",
			    "PlatformEvent::park()")
			    .idle);
	assert_true(is_idle_without_a_stack("VirtualThread-unblocker"));
}

static void threads_of_the_jvm_are_known_by_name(void **state)
{
	static const char *const own[] = { "VM Thread",	      "VM Periodic Tas",  "VM Peri..Thread",
					   "C2 CompilerThre", "GC Thread#0",	  "GC Thread#12",
					   "G1 Main Marker",  "G1 Conc#1",	  "G1 Young RemSet",
					   "Shenandoah GC T", "GC task thread#",  "ZWorkerYoung#3",
					   "Signal Dispatch", "Signal Dispatcher", "DestroyJavaVM" };
	static const char *const others[] = { "",	    "main",	      "GC Thread#x",
					      "GC Threads", "VM Threads",     "Monitor",
					      "C2",	    "ZWorker",	      "VM Periodic",
					      "GC..Thread", "pool-1-thread-1" };

	(void)state;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!is_idle_without_a_stack(own[i]))
			fail_msg("\"%s\" is not idle", own[i]);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (is_idle_without_a_stack(others[i]))
			fail_msg("\"%s\" is idle", others[i]);
}

static bool is_idle_sleep(const char *const *frames, const char *thread)
{
	struct offcpu_event e = { .kernel_class = OFFCPU_SLEEP,
				  .syscall_nr = SYS_clock_nanosleep,
				  .has_stack = *frames != NULL };
	struct stream *s = stacks_stream(frames, &e.node);

	offcpu_event_explain(&e, s, thread);
	stream_free(s);
	assert_int_equal(e.reason, OFFCPU_REASON_SLEEP);
	return e.idle;
}

static void timers_of_the_jvm_sleep_for_work(void **state)
{
	static const char *const none[] = { NULL }, *const java[] = { SHOP, NULL },
				 *const native[] = { "ShenandoahControlThread::run_service()",
						     "os::naked_short_sleep(long)", NULL };

	(void)state;
	assert_true(is_idle_sleep(native, "Shenandoah Cont"));
	assert_true(is_idle_sleep(none, "Shenandoah Cont"));
	assert_true(is_idle_sleep(none, "ShenRegulator"));
	assert_false(is_idle_sleep(native, "VM Thread")); /* until all threads have stopped */
	assert_false(is_idle_sleep(none, "VM Thread"));
	assert_false(is_idle_sleep(native, "worker-1"));
	assert_false(is_idle_sleep(java, "Shenandoah Cont")); /* a Java thread of that name */
}

/* Stacks of JDK 21, from Thread.run on; JDK 25 has an additional frame in some of them. */
#define PINNED "java/lang/VirtualThread.parkOnCarrierThread", "jdk/internal/misc/Unsafe.park"

static enum offcpu_reason of_virtual(uint32_t tid, const char *const *frames)
{
	struct offcpu_event e = { .kernel_class = OFFCPU_FUTEX,
				  .status = WIRE_OFFCPU_PARK,
				  .has_stack = true,
				  .virtual_tid = tid };
	struct stream *s = stacks_stream(frames, &e.node);

	offcpu_event_explain(&e, s, "ForkJoinPool-1-worker-1");
	stream_free(s);
	return e.reason;
}

static void a_virtual_thread_that_keeps_its_carrier_says_why(void **state)
{
	static const char *const park[] = { SHOP,
					    "java/util/concurrent/locks/LockSupport.park",
					    "java/lang/VirtualThreads.park",
					    "java/lang/VirtualThread.park",
					    PINNED,
					    NULL };
	static const char *const sleep[] = { SHOP,
					     "java/lang/Thread.sleep",
					     "java/lang/VirtualThread.sleepNanos",
					     "java/lang/VirtualThread.parkNanos",
					     PINNED,
					     NULL };
	static const char *const read[] = { SHOP,
					    "sun/nio/ch/NioSocketImpl.read",
					    "sun/nio/ch/NioSocketImpl.implRead",
					    "sun/nio/ch/NioSocketImpl.park",
					    "sun/nio/ch/Poller.poll",
					    "sun/nio/ch/Poller.poll1",
					    "java/util/concurrent/locks/LockSupport.park",
					    "java/lang/VirtualThreads.park",
					    "java/lang/System$1.parkVirtualThread",
					    "java/lang/VirtualThread.park",
					    PINNED,
					    NULL };

	(void)state;
	assert_int_equal(of_virtual(31, park), OFFCPU_REASON_PARK);
	assert_int_equal(of_virtual(31, sleep), OFFCPU_REASON_SLEEP);
	assert_int_equal(of_virtual(31, read), OFFCPU_REASON_SOCKET);
	assert_int_equal(of_virtual(0, read), OFFCPU_REASON_PARK);
}

static enum offcpu_reason of_unmounted(const char *const *frames)
{
	struct offcpu_event e = { .kernel_class = OFFCPU_NO_CLASS,
				  .status = WIRE_OFFCPU_UNMOUNTED,
				  .has_stack = true,
				  .tid = WIRE_VIRTUAL_TID + 31,
				  .virtual_tid = WIRE_VIRTUAL_TID + 31 };
	struct stream *s = stacks_stream(frames, &e.node);

	offcpu_event_explain(&e, s, "");
	stream_free(s);
	return e.reason;
}
#define UNMOUNTED(...) of_unmounted((const char *const[]){ SHOP, __VA_ARGS__, NULL })
#define YIELDS \
	"java/lang/VirtualThread.yieldContinuation", "java/lang/VirtualThread.notifyJvmtiMount"

static void a_virtual_thread_without_a_carrier_says_why(void **state)
{
	(void)state;
	assert_int_equal(UNMOUNTED("java/util/concurrent/locks/LockSupport.park",
				   "java/lang/VirtualThread.park", YIELDS),
			 OFFCPU_REASON_PARK);
	assert_int_equal(UNMOUNTED("java/lang/Thread.sleep", "java/lang/VirtualThread.sleepNanos",
				   "java/lang/VirtualThread.parkNanos", YIELDS),
			 OFFCPU_REASON_SLEEP);
	assert_int_equal(UNMOUNTED("sun/nio/ch/NioSocketImpl.accept",
				   "sun/nio/ch/NioSocketImpl.park", "sun/nio/ch/Poller.poll",
				   "java/util/concurrent/locks/LockSupport.park",
				   "java/lang/VirtualThread.park", YIELDS),
			 OFFCPU_REASON_ACCEPT);
	/* it waits for a carrier */
	assert_int_equal(
		UNMOUNTED("java/lang/Thread.yield", "java/lang/VirtualThread.tryYield", YIELDS),
		OFFCPU_REASON_RUNQUEUE);
	/* from JDK 24 on */
	assert_int_equal(UNMOUNTED("java/lang/Object.wait", "java/lang/Object.wait0"),
			 OFFCPU_REASON_WAIT);
	assert_int_equal(UNMOUNTED("org/shop/Cache.get"), OFFCPU_REASON_LOCK);
	assert_int_equal(of_unmounted((const char *const[]){ NULL }), OFFCPU_REASON_PARK);
}

static void the_stack_of_a_yield_ends_where_it_yields(void **state)
{
	static const char *const stubs[] = { "java/lang/VirtualThread.notifyJvmtiMount",
					     "[C2 Runtime notify_jvmti_vthread_mount]" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++) {
		const char *const frames[] = { SHOP, "java/lang/VirtualThread.yieldContinuation",
					       stubs[i], NULL };
		struct offcpu_event e = { .kernel_class = OFFCPU_NO_CLASS,
					  .status = WIRE_OFFCPU_UNMOUNTED,
					  .has_stack = true };
		struct stream *s = stacks_stream(frames, &e.node);
		struct stream_frame f;
		uint32_t parent;

		offcpu_event_explain(&e, s, "");
		assert_true(stream_node(s, e.node, &f, &parent));
		assert_string_equal(f.method, "yieldContinuation");
		stream_free(s);
	}
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

static void a_wait_that_ends_without_quota_is_two_events(void **state)
{
	const struct stream_lock lock = { 0 };
	struct offcpu_event e, quota,
		whole = {
			.end_ns = 100 * NS_PER_MS,
			.duration_ns = 90 * NS_PER_MS,
			.runqueue_ns = 80 * NS_PER_MS,
			.throttled_ns = 70 * NS_PER_MS,
			.reason = OFFCPU_REASON_SLEEP,
			.kernel_class = OFFCPU_SLEEP,
			.idle = true,
			.waker_tid = 7,
			.node = 5,
			.n_ips = 3,
		};

	(void)state;
	e = whole;
	assert_true(offcpu_event_split_quota(&e, NS_PER_MS, &quota));
	assert_int_equal(e.end_ns, 20 * NS_PER_MS);
	assert_int_equal(e.duration_ns, 10 * NS_PER_MS);
	assert_int_equal(e.runqueue_ns, 0);
	assert_int_equal(e.reason, OFFCPU_REASON_SLEEP);
	assert_true(e.idle);
	assert_int_equal(e.waker_tid, 7);
	assert_int_equal(e.n_ips, 3);
	assert_int_equal(quota.end_ns, 100 * NS_PER_MS);
	assert_int_equal(quota.duration_ns, 80 * NS_PER_MS);
	assert_int_equal(quota.runqueue_ns, 10 * NS_PER_MS);
	assert_int_equal(quota.reason, OFFCPU_REASON_THROTTLED);
	assert_false(quota.idle);
	assert_int_equal(quota.waker_tid, 0);
	assert_int_equal(quota.node, 5);
	assert_int_equal(quota.n_ips, 0);

	e = whole;
	assert_false(offcpu_event_split_quota(&e, 81 * NS_PER_MS, &quota));
	e.lock = &lock;
	assert_false(offcpu_event_split_quota(&e, NS_PER_MS, &quota));
	e = whole;
	e.throttled_ns = 40 * NS_PER_MS;
	assert_false(offcpu_event_split_quota(&e, NS_PER_MS, &quota));
	e.runqueue_ns = e.throttled_ns = 0;
	assert_false(offcpu_event_split_quota(&e, NS_PER_MS, &quota));
	e = whole;
	e.duration_ns = e.runqueue_ns; /* it was put off the CPU: there is no wait */
	assert_false(offcpu_event_split_quota(&e, NS_PER_MS, &quota));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_decides_where_it_knows),
		cmocka_unit_test(of_a_futex_the_jvm_knows_why),
		cmocka_unit_test(a_wait_that_was_notified_is_a_wait),
		cmocka_unit_test(without_a_status_the_frames_tell),
		cmocka_unit_test(native_frames_tell_what_the_jvm_does),
		cmocka_unit_test(sockets_that_poll_are_sockets),
		cmocka_unit_test(a_wait_that_ends_during_a_collection_is_a_wait),
		cmocka_unit_test(the_thread_that_handles_references_waits_for_a_collection),
		cmocka_unit_test(a_thread_that_is_held_after_a_poll_is_not_idle),
		cmocka_unit_test(waits_for_work_are_idle),
		cmocka_unit_test(epoll_and_accept_are_for_loops_that_wait_for_work),
		cmocka_unit_test(the_thread_that_unblocks_virtual_threads_waits_for_work),
		cmocka_unit_test(threads_of_the_jvm_are_known_by_name),
		cmocka_unit_test(timers_of_the_jvm_sleep_for_work),
		cmocka_unit_test(a_virtual_thread_that_keeps_its_carrier_says_why),
		cmocka_unit_test(a_virtual_thread_without_a_carrier_says_why),
		cmocka_unit_test(the_stack_of_a_yield_ends_where_it_yields),
		cmocka_unit_test(a_wait_that_ends_without_quota_is_two_events),
		cmocka_unit_test(the_text_has_the_lock_or_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
