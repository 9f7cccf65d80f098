/*
 * The interface between offcpu.bpf.c and offcpu_engine.c, and the classes that both use. The
 * including file defines the integer types (linux/types.h, or vmlinux_min.h).
 */
#pragma once

/* in the table, of all targets, by the host's memory; powers of two */
#define OFFCPU_THREADS_MIN 16384
#define OFFCPU_THREADS_MAX 65536
#define OFFCPU_PROBES	   8 /* slots of the table in which a thread may be */
#define OFFCPU_TARGETS_MAX 1024 /* as SAMPLER_TARGETS_MAX */
#define OFFCPU_STACK_MAX   64 /* frames of the kernel */
#define OFFCPU_RING_BYTES  (1 << 20)
#define OFFCPU_TENANTS_MAX OFFCPU_TARGETS_MAX
#define OFFCPU_COST_EVERY  64 /* one run of the programs in so many is timed */
#define OFFCPU_PIDS	   (1 << 22) /* PID_MAX_LIMIT, include/linux/threads.h */

/* a thread's first slot in the table: the upper bits of a product */
#define OFFCPU_HASH 2654435761u

#define OFFCPU_CALLS   512 /* system calls that have a class */
#define OFFCPU_CALL_FD 0x40 /* the class depends on the file descriptor in the first argument */

/* Why a thread was off the CPU, as far as the kernel knows. Counters have the same order. */
enum offcpu_class {
	OFFCPU_FUTEX,
	OFFCPU_SLEEP,
	OFFCPU_POLL, /* poll, select, epoll_wait */
	OFFCPU_SOCKET, /* reads and writes of sockets */
	OFFCPU_ACCEPT,
	OFFCPU_CONNECT,
	OFFCPU_FILE,
	OFFCPU_FSYNC,
	OFFCPU_PIPE,
	OFFCPU_FAULT, /* a page fault */
	OFFCPU_DISK, /* a wait for a disk within another system call */
	OFFCPU_THROTTLED, /* the cgroup's CPU quota was used up */
	OFFCPU_OTHER,
	OFFCPU_RUNQUEUE, /* runnable, but another thread ran; its time is in runqueue_ns */
	OFFCPU_CLASS_COUNT
};

/* Waits and times in the run queue have minimums and numbers of their own: on a busy host there are
 * so many of the latter that nothing would be left for waits. */
enum offcpu_part {
	OFFCPU_WAITS, /* all classes but OFFCPU_RUNQUEUE */
	OFFCPU_QUEUED,
	OFFCPU_PARTS
};
#define OFFCPU_QUEUED_PART 8 /* an eighth is for the latter in any case */

/* Where a thread is now. */
enum offcpu_now {
	OFFCPU_NOW_RUNS,
	OFFCPU_NOW_OFF,
};

/*
 * One thread of a target. The BPF programs write it, the daemon reads it in mapped memory. From
 * first_ns to since_ns, oncpu_ns + runqueue_ns + the sum of off_ns is the time that passed.
 */
struct offcpu_thread {
	/* What each switch reads or writes: the first cache line. */
	__u32 tid; /* in the first pid namespace; 0 = free */
	__u32 pid; /* of its process, in the first pid namespace */
	__s32 syscall_nr; /* -1 = none: a fault, or user mode */
	__u8 now; /* enum offcpu_now */
	__u8 class; /* enum offcpu_class of the present or last time off the CPU */
	__u8 state; /* 'S', 'D', 'R' (preempted), 'T' (stopped and the like); 0 = not known */
	__u8 unused;
	__u64 since_ns; /* CLOCK_MONOTONIC, when `now` began */
	__u64 oncpu_ns;
	__u64 runqueue_ns;
	/* When it was woken, while it is off the CPU, or up to a tick before; 0 = not yet. It tells
	 * how long it is in the run queue now; for a time that ended the kernel's own count does.
	 */
	__u64 woken_ns;
	__u64 ran_ns; /* se.sum_exec_runtime when the thread last left the CPU */
	__u64 delayed_ns; /* sched_info.run_delay then */

	__u64 short_count; /* times off the CPU that were too short for a record */
	/* the thread that was running when it was woken; waker_tid 0 = one of the kernel */
	__u32 waker_tid;
	__u32 waker_pid;
	__s32 waker_syscall_nr; /* -1 = none */
	__u32 own_tid; /* in its innermost namespace */
	/* before Linux 6.18, when it became runnable without the CPU: the run queue of its group
	 * (half of the address), and for how long that had been without quota; see
	 * offcpu_throttled.bpf.h */
	__u32 group_queue;
	__u32 group_throttled; /* in units of 1 << OFFCPU_THROTTLED_SHIFT ns */
	__u64 off_ns[OFFCPU_RUNQUEUE]; /* by class, run queue not included */
	__u64 owed_ns; /* rseq: the time off the CPU that its next signal reports */
	__u16 target; /* index of its process among the targets */
	__u8 waker_exits; /* the waker was ending */
	/* What the thread slept in when its process became a target, for as long as `state` is not
	 * known: enum offcpu_class + 1, 0 = not known either; and the system call. */
	__u8 asleep_class;
	__s16 asleep_syscall_nr;
	__u16 idle_class; /* see idle_ns */
	__u64 first_ns;
	__u64 stay_ns; /* see struct offcpu_record */
	/* Set by the daemon, see offcpu_engine_idle_habit(): a time off the CPU of idle_class that
	 * ended then was idle, as usual. */
	__u64 idle_ns;
	__u64 asked_ns; /* it was asked then, by a signal, whether this is still so */
	__u16 tenant; /* that this slot is counted for */
	__u16 bare_stacks; /* counted by the daemon; see offcpu_engine_bare_stack() */
	/* Set by the daemon, see offcpu_engine_told_habit(): when a wait in a futex ended that a
	 * lock event told of, as usual; 0 = none. */
	__u32 told; /* in units of 1 << OFFCPU_TOLD_SHIFT ns */
};

/* From these multiples of the minimum for signals on a time off the CPU is long, and very long. */
#define OFFCPU_LONG_MINIMUMS	  16
#define OFFCPU_VERY_LONG_MINIMUMS 256

#define OFFCPU_BARE_STACKS_ENOUGH 3
/* A habit holds for so long after the stack that showed it; up to the maximum while more threads
 * would ask than may. Then the thread's next wait asks, by a signal, whether it goes on. */
#define OFFCPU_HABIT_NS	    1000000000ull
#define OFFCPU_HABIT_NS_MAX 8000000000ull
/* It goes on until the answer comes, but no longer than this after the signal. */
#define OFFCPU_ANSWER_NS 1000000000ull
/* If there is no signal to ask with, it ends so long after the last stack. */
#define OFFCPU_UNCONFIRMED_NS 16000000000ull

#define OFFCPU_THROTTLED_SHIFT 10 /* about 1 us */

#define OFFCPU_TOLD_SHIFT 20 /* about 1 ms */
#define OFFCPU_TOLD_UNITS 1000u /* for so long the next waits are taken to be told of, too */
/* A part of such waits has its record and signal all the same, to learn whether that is still so.
 */
#define OFFCPU_TOLD_PART 32
/* Longer waits have records: they are reported while they go on, and by several lock events. */
#define OFFCPU_TOLD_NS_MAX 500000000ull

enum offcpu_kind {
	OFFCPU_INTERVAL, /* struct offcpu_record */
	OFFCPU_ENDED, /* struct offcpu_end: the final times of a thread that ended */
};

/*
 * What threads that wait for work again and again are spared. In each step they get a signal a
 * second (OFFCPU_HABIT_NS): its stack confirms that they still do, or ends it. Threads whose waits
 * in futexes are lock events again and again are spared signals, from the first step on, and
 * records, where those that wait for work are: the lock event has the duration and the stack.
 */
enum offcpu_spares {
	OFFCPU_SPARES_NOTHING,
	/* signals for their waits below OFFCPU_LONG_MINIMUMS, which have records without a stack:
	 * it would be the same again, and costs more than the record */
	OFFCPU_SPARES_SIGNALS,
	/* these, too; so are the JVM's own threads, which have no signals anyway */
	OFFCPU_SPARES_RECORDS,
	OFFCPU_SPARES_LONG, /* and longer waits have no signals */
	OFFCPU_SPARES_LONG_RECORDS /* nor records, below OFFCPU_VERY_LONG_MINIMUMS */
};

enum offcpu_flag {
	OFFCPU_SIGNALLED = 1, /* the agent gets a signal with this duration, or a later one of the
			       * same stay */
	OFFCPU_OVER_BUDGET = 2, /* no signal: the target has used up its share of this window */
	OFFCPU_UNREACHABLE = 4, /* no signal: blocked, another handler, no slot, no rseq */
	OFFCPU_IOWAIT = 8,
	/* no signal: the thread's stack would tell nothing, or what is known (enum offcpu_spares)
	 */
	OFFCPU_UNNEEDED = 16,
};

/* A time off the CPU that was long enough for a record. The ring stores only the used frames. */
struct offcpu_record {
	__u32 kind;
	__u32 pid; /* in the first pid namespace */
	__u32 tid; /* in the first pid namespace */
	__u32 own_tid; /* in the thread's innermost pid namespace */
	__u64 end_ns; /* CLOCK_MONOTONIC, when the thread ran again */
	__u64 duration_ns; /* run queue included */
	__u64 runqueue_ns;
	/* end_ns of the first one since the thread was in user mode: all with one value have the
	 * same stack of user mode, and the agent hears of one: of the last before its signal was
	 * sent. 0 = no signal. */
	__u64 stay_ns;
	__u32 waker_pid; /* in the first pid namespace; 0 = unknown, or the kernel */
	__u32 waker_tid; /* in the first pid namespace */
	/* in its innermost pid namespace, if it is a thread of a target; else 0 */
	__u32 waker_own_tid;
	__s32 syscall_nr; /* -1 = none: a fault, or preempted in user mode */
	__u8 class; /* enum offcpu_class */
	__u8 state; /* as in struct offcpu_thread */
	__u8 flags; /* enum offcpu_flag */
	__u8 unused;
	/* the part of runqueue_ns in which the cgroup's CPU quota was used up; before Linux 6.18 */
	__u32 throttled_us;
	__u64 ips[OFFCPU_STACK_MAX]; /* innermost first */
};

struct offcpu_end {
	__u32 kind;
	__u32 unused;
	struct offcpu_thread thread;
};

/* What the targets of one tenant use of what all targets share. */
struct offcpu_tenant {
	__s64 threads; /* slots of the table of threads */
	__u64 drains; /* number of the drain since which ring_bytes counts */
	__u64 ring_bytes; /* put into the ring while that was half full */
};

/* What one part of a target's times off the CPU may have, and had. The daemon writes the first five
 * members, the BPF programs the others. */
struct offcpu_quota {
	__u64 min_ns; /* the minimum now; shorter times off the CPU are only added up */
	__u64 signal_min_ns; /* at least as long: shorter ones have a record without a signal */
	__u64 signals_max, records_max; /* per window */
	__u64 own_max; /* signals per window that no other target can use */
	__u64 in_window, signals_in_window; /* in the present one */
	__u64 intervals; /* long enough for a record */
	__u64 signalled, over_budget; /* long enough for a signal: with one, and without */
};

/* One target process. The daemon writes the first eight members, and of `parts` what is said there;
 * the BPF programs the others. */
struct offcpu_target {
	__u32 pid; /* in the first pid namespace; 0 = free */
	__u32 tenant; /* index of its tenant */
	__u64 since_ns; /* CLOCK_MONOTONIC, when it became a target */
	__u64 signals_max; /* per window, of all parts */
	__u64 records_max; /* per window; twice as many with long times */
	__u64 spares; /* enum offcpu_spares: what threads that wait for work again and again are
		       * spared */
	__u64 habit_ns; /* OFFCPU_HABIT_NS up to OFFCPU_HABIT_NS_MAX */
	struct offcpu_quota parts[OFFCPU_PARTS];
	__u64 window; /* number of the present window */
	__u64 in_window; /* times off the CPU in it */
	__u64 signals_in_window; /* those of them for which there was a signal */
	__u64 asked_in_window; /* those of them whose stack tells whether a habit goes on */
	__u64 intervals, interval_ns; /* times off the CPU that were long enough for a record */
	__u64 signalled, signalled_ns;
	__u64 over_budget, over_budget_ns; /* no signal: see enum offcpu_flag */
	__u64 unreachable, unreachable_ns;
	__u64 unneeded, unneeded_ns;
	__u64 spared; /* signals that were not sent because of `spares` */
	/* how often threads were asked whether a habit goes on, and how often one had to go on
	 * unasked */
	__u64 asked, unasked;
	__u64 lost, lost_ns; /* no record: the ring was full, or too many in this window */
	__u64 crowded; /* times that a thread found no free slot in the table */
	__u64 timed_ns; /* of the timed runs: those for this target */
};
