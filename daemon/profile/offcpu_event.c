/* See offcpu_event.h. */
#include "daemon/profile/offcpu_event.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "daemon/ground/mem.h"
#include "daemon/profile/idle.h"

#define LOOK_FRAMES_MAX 24 /* frames, from the leaf, among which Java frames are searched */
#define JAVA_FRAMES_MAX 6 /* Java frames that can tell what the JDK is doing */
#define YIELD_FRAMES	5 /* Java frames in which a virtual thread leaves its carrier */
#define NATIVE_FRAMES_MAX 12 /* native frames that can tell what the JVM is doing */
#define VIRTUAL_MAX	14 /* the same of a virtual thread, which parks by way of several more */

const char *const offcpu_reason_names[OFFCPU_REASON_COUNT] = {
#define X(id, name) [OFFCPU_REASON_##id] = name,
	OFFCPU_REASONS(X)
#undef X
};

/* ---- Java frames that say what the wait is for ------------------------------------------------
 */

struct offcpu_place {
	const char *class_name, *method; /* method: the beginning of its name */
	enum offcpu_reason reason;
};

/* The reason of a wait to which the JVM gave no status: a collector was running, or it is
 * another kind of JVM. */
static const struct offcpu_place waits[] = {
	{ "jdk.internal.misc.Unsafe", "park", OFFCPU_REASON_PARK },
	{ "sun.misc.Unsafe", "park", OFFCPU_REASON_PARK },
	{ "java.lang.Object", "wait", OFFCPU_REASON_WAIT },
	{ "java.lang.Thread", "sleep", OFFCPU_REASON_SLEEP },
};

/* Native methods that wait for work within the JVM. */
static const struct offcpu_place waits_in_vm[] = {
	{ "java.lang.ref.Reference", "waitForReferencePendingList", OFFCPU_REASON_WAIT },
	{ "java.lang.VirtualThread", "takeVirtualThreadListToUnblock", OFFCPU_REASON_WAIT },
};

/* Where the JDK polls, because a socket has a time limit or waits for a connection; or, of a
 * virtual thread, parks. */
static const struct offcpu_place polls[] = {
	{ "java.lang.VirtualThread", "sleepNanos", OFFCPU_REASON_SLEEP },
	{ "java.net.PlainDatagramSocketImpl", "peek", OFFCPU_REASON_SOCKET },
	{ "java.net.PlainDatagramSocketImpl", "receive", OFFCPU_REASON_SOCKET },
	{ "java.net.PlainSocketImpl", "socketAccept", OFFCPU_REASON_ACCEPT },
	{ "java.net.PlainSocketImpl", "socketConnect", OFFCPU_REASON_CONNECT },
	{ "java.net.SocketInputStream", "socketRead", OFFCPU_REASON_SOCKET },
	{ "java.net.SocketOutputStream", "socketWrite", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.DatagramChannelImpl", "blockingReceive", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.DatagramChannelImpl", "read", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.DatagramChannelImpl", "receive", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.NioSocketImpl", "accept", OFFCPU_REASON_ACCEPT },
	{ "sun.nio.ch.NioSocketImpl", "timedAccept", OFFCPU_REASON_ACCEPT },
	{ "sun.nio.ch.NioSocketImpl", "connect", OFFCPU_REASON_CONNECT },
	{ "sun.nio.ch.NioSocketImpl", "timedFinishConnect", OFFCPU_REASON_CONNECT },
	{ "sun.nio.ch.NioSocketImpl", "implRead", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.NioSocketImpl", "timedRead", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.NioSocketImpl", "implWrite", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.ServerSocketChannelImpl", "accept", OFFCPU_REASON_ACCEPT },
	{ "sun.nio.ch.ServerSocketChannelImpl", "blockingAccept", OFFCPU_REASON_ACCEPT },
	{ "sun.nio.ch.SocketAdaptor$SocketInputStream", "read", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.SocketChannelImpl", "connect", OFFCPU_REASON_CONNECT },
	{ "sun.nio.ch.SocketChannelImpl", "blockingConnect", OFFCPU_REASON_CONNECT },
	{ "sun.nio.ch.SocketChannelImpl", "blockingRead", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.SocketChannelImpl", "blockingWrite", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.SocketChannelImpl", "finishConnect", OFFCPU_REASON_CONNECT },
	{ "sun.nio.ch.SocketChannelImpl", "read", OFFCPU_REASON_SOCKET },
	{ "sun.nio.ch.SocketChannelImpl", "write", OFFCPU_REASON_SOCKET },
};

/* Where a virtual thread leaves its carrier otherwise than to park: it stays runnable, and waits
 * for a carrier; or from JDK 24 on, in a monitor. */
static const struct offcpu_place leaves[] = {
	{ "java.lang.VirtualThread", "tryYield", OFFCPU_REASON_RUNQUEUE },
	{ "java.lang.Object", "wait", OFFCPU_REASON_WAIT },
};

/* The method by which a virtual thread leaves its carrier, unless it waits in a monitor. */
static const struct offcpu_place yields[] = {
	{ "java.lang.VirtualThread", "yieldContinuation", OFFCPU_REASON_PARK },
};

static bool offcpu_is_place(const struct stream_frame *f, const struct offcpu_place *p)
{
	return strcmp(f->class_name, p->class_name) == 0 &&
	       strncmp(f->method, p->method, strlen(p->method)) == 0;
}

/* The reason of the first Java frame, of @most, that @places has. *ret_java is the number of Java
 * frames that were seen. */
static enum offcpu_reason offcpu_look(const struct stream *stream, uint32_t node,
				      const struct offcpu_place *places, size_t n, unsigned most,
				      unsigned *ret_java)
{
	struct stream_frame f;

	*ret_java = 0;
	for (int i = 0; i < LOOK_FRAMES_MAX && *ret_java < most; i++) {
		if (!stream_node(stream, node, &f, &node))
			break;
		if (!wire_kind_is_method(f.kind))
			continue;
		++*ret_java;
		for (size_t p = 0; p < n; p++)
			if (offcpu_is_place(&f, &places[p]))
				return places[p].reason;
	}
	return OFFCPU_REASON_OTHER;
}

/* ---- reasons -------------------------------------------------------------------------------- */

/* PARK, WAIT, SLEEP, or OTHER = the leaf's Java frame does not tell. */
static enum offcpu_reason offcpu_leaf_reason(const struct offcpu_event *e,
					     const struct stream *stream)
{
	unsigned n_java;

	return offcpu_look(stream, e->node, waits, ARRAY_SIZE(waits), 1, &n_java);
}

static bool offcpu_begins(const char *name, const char *begin)
{
	return strncmp(name, begin, strlen(begin)) == 0;
}

/* Where a thread that allocates, or wants a collection, waits until a collector that runs beside
 * the threads has gone on. No safepoint tells of it. */
static bool offcpu_is_for_collector(const char *function)
{
	static const char *const places[] = {
		"ShenandoahPacer::pace_for_alloc",
		"ShenandoahControlThread::handle_alloc_failure",
		"ShenandoahControlThread::request_gc",
		"ShenandoahController::handle_alloc_failure",
		"ShenandoahGenerationalControlThread::request_gc",
		"ZPageAllocator::alloc_page",
		"XPageAllocator::alloc_page",
		"ZRelocateQueue::add_and_wait",
		"ZForwarding::",
		"XForwarding::",
		"ZDriverPort::send_sync",
		"GCLocker::stall_until_clear",
		"GCLocker::enter_slow",
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (offcpu_begins(function, places[i]))
			return true;
	return false;
}

enum offcpu_reason offcpu_event_by_native(const struct offcpu_event *e, const struct stream *stream,
					  offcpu_name_fn *name_of, void *userdata)
{
	bool in_condition = false, of_jvm = false;
	uint32_t node = e->node;
	struct stream_frame f;

	for (int i = 0; i < NATIVE_FRAMES_MAX && stream_node(stream, node, &f, &node); i++) {
		const char *name = wire_kind_is_method(f.kind) ? NULL : name_of(userdata, &f);

		if (wire_kind_is_method(f.kind))
			break;
		if (!name)
			continue;
		/* it asks the VM thread for an operation, such as a handshake with other threads */
		if (offcpu_begins(name, "VMThread::execute"))
			return of_jvm ? OFFCPU_REASON_LOCK : OFFCPU_REASON_SAFEPOINT;
		/* before JDK 12 the JVM's mutexes are its own, and their threads park. One of them
		 * stops the threads at a safepoint, and afterwards lets them go one by one */
		if (of_jvm && offcpu_begins(name, "SafepointSynchronize::block"))
			return OFFCPU_REASON_SAFEPOINT;
		if (!of_jvm && offcpu_is_for_collector(name))
			return OFFCPU_REASON_GC;
		of_jvm |= offcpu_begins(name, "Mutex::lock") ||
			  offcpu_begins(name, "Monitor::lock") ||
			  offcpu_begins(name, "Monitor::ILock");
		/* a wait for a condition enters its mutex again */
		in_condition |= strstr(name, "_cond_") != NULL;
		if (!in_condition && !of_jvm &&
		    (offcpu_begins(name, "pthread_mutex_") ||
		     offcpu_begins(name, "__pthread_mutex_")))
			return OFFCPU_REASON_LOCK;
	}
	return of_jvm ? OFFCPU_REASON_LOCK : OFFCPU_REASON_OTHER;
}

/* The notifier makes a waiting thread enter the monitor again, so that the status of a thread whose
 * Object.wait() was notified is that of an entry when it runs again. */
static enum offcpu_reason offcpu_by_entry(const struct offcpu_event *e, const struct stream *stream)
{
	return offcpu_leaf_reason(e, stream) == OFFCPU_REASON_WAIT ? OFFCPU_REASON_WAIT
								   : OFFCPU_REASON_LOCK;
}

/* A virtual thread parks also to sleep and to wait for a socket. */
static enum offcpu_reason offcpu_by_park(const struct offcpu_event *e, const struct stream *stream)
{
	enum offcpu_reason reason = OFFCPU_REASON_OTHER;
	unsigned n_java;

	if (e->virtual_tid)
		reason = offcpu_look(stream, e->node, polls, ARRAY_SIZE(polls), VIRTUAL_MAX,
				     &n_java);
	return reason == OFFCPU_REASON_OTHER ? OFFCPU_REASON_PARK : reason;
}

/* A virtual thread that had no carrier. Without Java frames it most likely parked. */
static enum offcpu_reason offcpu_by_unmount(const struct offcpu_event *e,
					    const struct stream *stream)
{
	unsigned n_java;
	enum offcpu_reason reason =
		offcpu_look(stream, e->node, leaves, ARRAY_SIZE(leaves), YIELD_FRAMES, &n_java);

	if (reason != OFFCPU_REASON_OTHER)
		return reason;
	reason = offcpu_look(stream, e->node, yields, ARRAY_SIZE(yields), YIELD_FRAMES, &n_java);
	return reason == OFFCPU_REASON_PARK || !n_java ? offcpu_by_park(e, stream)
						       : OFFCPU_REASON_LOCK;
}

/* The kernel's futex, or none of its classes: the JVM's status tells why the thread waited. */
static enum offcpu_reason offcpu_by_status(const struct offcpu_event *e,
					   const struct stream *stream)
{
	unsigned n_java;
	enum offcpu_reason by_frame =
		offcpu_look(stream, e->node, waits, ARRAY_SIZE(waits), JAVA_FRAMES_MAX, &n_java);

	switch (e->status) {
	case WIRE_OFFCPU_LOCK:
		return offcpu_by_entry(e, stream);
	case WIRE_OFFCPU_PARK:
		return offcpu_by_park(e, stream);
	case WIRE_OFFCPU_WAIT:
		return OFFCPU_REASON_WAIT;
	case WIRE_OFFCPU_SLEEP:
		return OFFCPU_REASON_SLEEP;
	case WIRE_OFFCPU_BLOCKED_IN_VM: /* the JVM's own threads wait for work with this status, too
					 */
		return n_java ? OFFCPU_REASON_SAFEPOINT : OFFCPU_REASON_OTHER;
	case WIRE_OFFCPU_UNMOUNTED:
		return offcpu_by_unmount(e, stream);
	case WIRE_OFFCPU_GC:
		return n_java ? OFFCPU_REASON_GC : OFFCPU_REASON_OTHER;
	default:
		return by_frame;
	}
}

static enum offcpu_reason offcpu_by_class(const struct offcpu_event *e, const struct stream *stream)
{
	unsigned n_java;
	enum offcpu_reason by_frame;

	switch (e->kernel_class) {
	case OFFCPU_SLEEP:
		return OFFCPU_REASON_SLEEP;
	case OFFCPU_POLL:
		by_frame = offcpu_look(stream, e->node, polls, ARRAY_SIZE(polls), JAVA_FRAMES_MAX,
				       &n_java);
		return by_frame == OFFCPU_REASON_OTHER ? OFFCPU_REASON_POLL : by_frame;
	case OFFCPU_SOCKET:
		return OFFCPU_REASON_SOCKET;
	case OFFCPU_ACCEPT:
		return OFFCPU_REASON_ACCEPT;
	case OFFCPU_CONNECT:
		return OFFCPU_REASON_CONNECT;
	case OFFCPU_FILE:
		return OFFCPU_REASON_FILE;
	case OFFCPU_FSYNC:
		return OFFCPU_REASON_FSYNC;
	case OFFCPU_PIPE:
		return OFFCPU_REASON_PIPE;
	case OFFCPU_FAULT:
		return OFFCPU_REASON_FAULT;
	case OFFCPU_DISK:
		return OFFCPU_REASON_DISK;
	case OFFCPU_THROTTLED:
		return OFFCPU_REASON_THROTTLED;
	case OFFCPU_RUNQUEUE:
		return OFFCPU_REASON_RUNQUEUE;
	default: /* OFFCPU_FUTEX, OFFCPU_OTHER, OFFCPU_NO_CLASS */
		return offcpu_by_status(e, stream);
	}
}

/* Can a thread wait for work in this way? */
static bool offcpu_may_be_idle(enum offcpu_reason reason)
{
	return reason == OFFCPU_REASON_PARK || reason == OFFCPU_REASON_WAIT ||
	       reason == OFFCPU_REASON_SLEEP || reason == OFFCPU_REASON_POLL ||
	       reason == OFFCPU_REASON_ACCEPT || reason == OFFCPU_REASON_SOCKET ||
	       reason == OFFCPU_REASON_PIPE || reason == OFFCPU_REASON_OTHER;
}

/* Only loops that wait for work accept connections, or wait in epoll: the JDK's selectors and
 * Netty's, which idle.h has, and those of native libraries. A read with a time limit waits in poll.
 */
static bool offcpu_is_loop(const struct offcpu_event *e)
{
	static const int calls[] = {
#ifdef SYS_epoll_wait /* x86-64 */
		SYS_epoll_wait,
#endif
#ifdef SYS_epoll_pwait2
		SYS_epoll_pwait2,
#endif
		SYS_epoll_pwait,
	};

	if (e->kernel_class == OFFCPU_ACCEPT)
		return true;
	for (size_t i = 0; e->kernel_class == OFFCPU_POLL && i < ARRAY_SIZE(calls); i++)
		if (e->syscall_nr == calls[i])
			return true;
	return false;
}

static bool offcpu_is_idle(const struct offcpu_event *e, const struct stream *stream,
			   const char *thread)
{
	const struct stream_sample as_sample = {
		.tid = e->tid,
		.thread = thread,
		.node = e->node,
	};
	enum offcpu_reason in_vm;
	unsigned n_java;

	if (offcpu_is_loop(e)) {
		(void)offcpu_look(stream, e->node, NULL, 0, JAVA_FRAMES_MAX, &n_java);
		if (n_java == 0)
			return true;
	}
	if (!offcpu_may_be_idle(e->reason) || !idle_sample(stream, &as_sample))
		return false;
	if (e->reason != OFFCPU_REASON_OTHER || e->kernel_class != OFFCPU_FUTEX)
		return true;
	/* most native methods that wait for work, as for a connection, wait in no futex: there the
	 * JVM holds the thread on its way back */
	in_vm = offcpu_look(stream, e->node, waits_in_vm, ARRAY_SIZE(waits_in_vm), 1, &n_java);
	return n_java == 0 || in_vm != OFFCPU_REASON_OTHER;
}

static void offcpu_set_reason(struct offcpu_event *e, enum offcpu_reason reason,
			      const struct stream *stream, const char *thread)
{
	e->reason = reason;
	e->idle = offcpu_is_idle(e, stream, thread);
}

void offcpu_event_by_leaf(struct offcpu_event *e, const struct stream *stream, const char *thread)
{
	offcpu_set_reason(e, offcpu_leaf_reason(e, stream), stream, thread);
}

void offcpu_event_by_wait(struct offcpu_event *e, const struct stream *stream, const char *thread)
{
	struct offcpu_event wait = *e;

	offcpu_event_by_leaf(&wait, stream, thread);
	if (wait.reason == OFFCPU_REASON_OTHER ? wait.idle : e->status == WIRE_OFFCPU_GC)
		*e = wait;
}

/* Is it a frame in which the JVM calls the agent when a virtual thread mounts: the native method,
 * or the stub of compiled code in its place? The application knows nothing of it. */
static bool offcpu_notifies(const struct stream_frame *f)
{
	if (wire_kind_is_method(f->kind))
		return strcmp(f->class_name, "java.lang.VirtualThread") == 0 &&
		       strncmp(f->method, "notifyJvmti", strlen("notifyJvmti")) == 0;
	return strstr(f->method, "notify_jvmti_vthread") != NULL;
}

/* The frame that yielded. */
static uint32_t offcpu_yielded(const struct stream *stream, uint32_t node)
{
	struct stream_frame f;
	uint32_t parent;

	while (stream_node(stream, node, &f, &parent) && parent && offcpu_notifies(&f))
		node = parent;
	return node;
}

bool offcpu_is_idle_vm_thread(enum offcpu_reason reason, const char *thread)
{
	if (reason == OFFCPU_REASON_SLEEP) /* the VM thread does until all threads have stopped */
		return idle_vm_thread(thread) && strcmp(thread, "VM Thread") != 0;
	return reason == OFFCPU_REASON_OTHER && idle_vm_thread(thread);
}

void offcpu_event_explain(struct offcpu_event *e, const struct stream *stream, const char *thread)
{
	unsigned n_java;
	bool is_futex;

	if (e->status == WIRE_OFFCPU_UNMOUNTED)
		e->node = offcpu_yielded(stream, e->node);
	offcpu_set_reason(e, offcpu_by_class(e, stream), stream, thread);
	e->unsettled = false;
	is_futex = e->reason == OFFCPU_REASON_OTHER &&
		   (e->kernel_class == OFFCPU_FUTEX || e->kernel_class == OFFCPU_NO_CLASS);
	if (!is_futex && e->kernel_class != OFFCPU_SLEEP)
		return;
	/* a collector's or compiler's thread that waits for work has no Java frame */
	(void)offcpu_look(stream, e->node, NULL, 0, JAVA_FRAMES_MAX, &n_java);
	if (n_java == 0)
		e->idle |=
			(is_futex && e->has_stack) || offcpu_is_idle_vm_thread(e->reason, thread);
}

/* ---- CPU quota ------------------------------------------------------------------------------- */

bool offcpu_event_split_quota(struct offcpu_event *e, uint64_t min_ns, struct offcpu_event *ret)
{
	uint64_t queue_ns = e->runqueue_ns, throttled_ns = e->throttled_ns;

	if (e->lock || queue_ns < min_ns || throttled_ns <= queue_ns / 2 ||
	    queue_ns >= e->duration_ns)
		return false;
	e->throttled_ns = 0;
	*ret = *e;
	ret->duration_ns = queue_ns;
	ret->runqueue_ns = queue_ns - throttled_ns;
	ret->reason = OFFCPU_REASON_THROTTLED;
	ret->kernel_class = OFFCPU_THROTTLED;
	ret->idle = ret->by_habit = false;
	ret->waker = "";
	ret->waker_pid = ret->waker_tid = ret->waker_own_tid = 0;
	ret->n_ips = 0; /* they are those of the wait */
	e->end_ns -= queue_ns;
	e->duration_ns -= queue_ns;
	e->runqueue_ns = 0;
	return true;
}

/* ---- texts ---------------------------------------------------------------------------------- */

static const struct {
	int nr;
	const char *name;
} calls[] = {
#define X(name) { SYS_##name, #name },
#include "syscall_names.h" /* X(read), X(write), ... of sys/syscall.h */
#undef X
};

const char *offcpu_syscall_name(int nr)
{
	for (size_t i = 0; nr >= 0 && i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return calls[i].name;
	return NULL;
}

const char *offcpu_event_text(const struct offcpu_event *e, char buf[OFFCPU_TEXT_MAX])
{
	const char *name = offcpu_reason_names[e->reason], *of = "";

	if (e->lock && e->lock->class_name[0])
		of = e->lock->class_name;
	else if (e->reason == OFFCPU_REASON_OTHER && offcpu_syscall_name(e->syscall_nr))
		of = offcpu_syscall_name(e->syscall_nr);
	snprintf(buf, OFFCPU_TEXT_MAX, "%s%s%s", name, *of ? " " : "", of);
	return buf;
}
