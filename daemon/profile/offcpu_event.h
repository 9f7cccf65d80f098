/*
 * One interval in which a thread was off the CPU: what the kernel measured (duration, run queue,
 * system call, waker, kernel stack), what the agent added when the thread ran again (Java stack,
 * status), and the wait for a lock that it belongs to. daemon/host/offcpu_join.h makes it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>
#include "daemon/bpf/offcpu.h"
#include "daemon/stream/stream.h"

/* The reasons: X(ENUM, "name"). The names are part of the JSON. */
#define OFFCPU_REASONS(X)         \
	X(LOCK, "lock")           \
	X(PARK, "park")           \
	X(WAIT, "wait")           \
	X(SLEEP, "sleep")         \
	X(POLL, "poll")           \
	X(SOCKET, "socket")       \
	X(ACCEPT, "accept")       \
	X(CONNECT, "connect")     \
	X(FILE, "file")           \
	X(FSYNC, "fsync")         \
	X(PIPE, "pipe")           \
	X(FAULT, "fault")         \
	X(DISK, "disk")           \
	X(RUNQUEUE, "runqueue")   \
	X(THROTTLED, "throttled") \
	X(SAFEPOINT, "safepoint") \
	X(GC, "gc")               \
	X(OTHER, "other")

enum offcpu_reason {
#define X(id, name) OFFCPU_REASON_##id,
	OFFCPU_REASONS(X)
#undef X
		OFFCPU_REASON_COUNT
};
extern const char *const offcpu_reason_names[OFFCPU_REASON_COUNT];

#define OFFCPU_NO_CLASS OFFCPU_CLASS_COUNT /* the kernel did not report the interval, or had none \
					    */

struct offcpu_event {
	uint64_t end_ns; /* CLOCK_MONOTONIC: when the thread ran again */
	uint64_t duration_ns; /* run queue included */
	uint64_t runqueue_ns; /* the part of it in which the thread was runnable but did not run */
	uint64_t throttled_ns; /* the part of that in which its cgroup had no CPU quota left */
	uint32_t tid; /* the platform thread, as in struct stream_sample */
	uint32_t virtual_tid; /* the virtual thread on it, or alone without a carrier; 0 = none */
	/* names of the threads, and of the waker if it belongs to the same JVM; "" = unknown;
	 * set when the event is passed on */
	const char *thread, *virtual_thread, *waker;
	enum offcpu_reason reason;
	unsigned kernel_class; /* enum offcpu_class, or OFFCPU_NO_CLASS */
	uint8_t status; /* enum wire_offcpu_status */
	bool idle; /* a wait for work, see idle.h */
	/* explain it again a moment later: its reason may be a safepoint of which the agent, which
	 * looks when threads run again, has not reported yet */
	bool unsettled;
	bool as_usual; /* idle by its stack, as the thread's last ones: see offcpu_habits.h */
	bool as_always; /* and as the last 32 with a stack, or all, if those are 26 to 31 */
	/* in a futex, and no lock event, unlike all of the thread's last ones */
	bool ends_told;
	bool by_habit; /* the reason is that of the thread's last wait, see offcpu_join.h */
	bool has_stack; /* the agent reported it, too: node is valid */
	int syscall_nr; /* -1 = none: a page fault, or it was preempted */
	/* the thread that woke it, in the host's pid namespace; waker_own_tid: in its own, if it
	 * belongs to a target; 0 = unknown, or the kernel */
	uint32_t waker_pid, waker_tid, waker_own_tid;
	uint32_t node; /* leaf of its stack; 0 = none */
	const struct stream_lock *lock; /* the same wait as a lock event; NULL = none */
	const struct stream_context *trace; /* NULL = none */
	const uint64_t *ips; /* the kernel's frames, innermost first */
	unsigned n_ips;
};

/* Sets reason and idle from class, status and stack. @thread: its name, "" = unknown. */
void offcpu_event_explain(struct offcpu_event *e, const struct stream *stream, const char *thread);
/* Is a time off the CPU for this reason, of a thread whose stack has no Java frame or is not known,
 * a wait for work of one of the JVM's own threads, as its name shows? Most of them wait in a futex;
 * some sleep until they look again, as Shenandoah's control thread does every 1 to 10 ms. */
bool offcpu_is_idle_vm_thread(enum offcpu_reason reason, const char *thread);
/* Sets reason and idle by the leaf's Java frame alone, for a thread whose status could not be read:
 * PARK, WAIT, SLEEP, or OTHER = it does not tell. @thread: its name, "" = unknown. */
void offcpu_event_by_leaf(struct offcpu_event *e, const struct stream *stream, const char *thread);
/*
 * For a thread whose status names a collection of which the times are not known, as in a JVM
 * without the variables that have them: if its leaf waits, e->reason and e->idle are those of the
 * wait. The agent cannot read the status of a thread that a collector moves, so that the wait ended
 * meanwhile and may have been much longer than the collection. So are those of a thread that waits
 * for work inside the JVM, as the one that handles references does until a collection ends.
 * @thread: its name, "" = unknown.
 */
void offcpu_event_by_wait(struct offcpu_event *e, const struct stream *stream, const char *thread);
/*
 * The reason by the native frames at the leaf, of a Java thread that waits for a futex and of which
 * nothing else tells why: LOCK = a mutex of the JVM or of a library, SAFEPOINT = an operation of
 * the VM thread, or OTHER. @name_of: the name of a frame that is no method, NULL = unknown.
 */
typedef const char *offcpu_name_fn(void *userdata, const struct stream_frame *f);
enum offcpu_reason offcpu_event_by_native(const struct offcpu_event *e, const struct stream *stream,
					  offcpu_name_fn *name_of, void *userdata);
/*
 * Before Linux 6.18 a thread that wakes up while its cgroup has no CPU quota stays off the CPU, and
 * the kernel's record goes on. If that was most of at least @min_ns in the run queue, this makes
 * two events of @e, as newer kernels do, and returns true: @e ends when the thread was woken, and
 * @ret is the rest. A wait that is a lock event, too, stays one.
 */
bool offcpu_event_split_quota(struct offcpu_event *e, uint64_t min_ns, struct offcpu_event *ret);
/* The frame that profiles have on top of the stack: "sleep", "lock org.shop.Cache", "other
 * futex". Returns @buf or a constant. */
#define OFFCPU_TEXT_MAX 320
const char *offcpu_event_text(const struct offcpu_event *e, char buf[OFFCPU_TEXT_MAX]);
/* The name of a system call of this machine; NULL = it is newer than the headers of the build. */
const char *offcpu_syscall_name(int nr);
