/* The interface between sampler.bpf.c and host_engine.c. The including file defines the integer
 * types. */
#pragma once

#define SAMPLER_TARGETS_MAX 1024
#define SAMPLER_SLOTS	    16384 /* threads with a delayed signal; power of two */
#define SAMPLER_STACK_MAX   64 /* frames of the kernel */
#define SAMPLER_RING_BYTES  (1 << 20)

/* One process that wants signals; the key is its pid in the first pid namespace. */
struct sampler_target {
	__u64 handler; /* address of the agent's signal handler */
	__u64 interval_ns;
	__u32 signo;
	__u32 off_signo; /* for times off the CPU, if that is another signal; 0 = it is not */
};

#define SAMPLER_CALLS 512 /* system calls; those with higher numbers are no waits */

/* What a system call does to a tick before Linux 6.18; see is_wait(). */
enum sampler_wait {
	SAMPLER_NO_WAIT,
	SAMPLER_WAIT,
	SAMPLER_WAIT_FUTEX, /* by its operation */
	SAMPLER_WAIT_POLL, /* unless the third argument, a timeout, is 0 */
	SAMPLER_WAIT_EPOLL, /* unless the fourth argument, a timeout, is 0 */
};

/*
 * Before Linux 6.18: a thread that the off-CPU programs see at its context switches, and which
 * therefore can get the signals of its ticks when it returns to user mode.
 */
struct sampler_stay {
	__u64 seen_ns; /* CLOCK_MONOTONIC, when it last got a CPU */
	__u32 tid;
	__u16 ticks; /* that were put off; more than 65,535 begin at 0 again */
	/* a program runs at its return from the kernel, because it got the CPU there */
	__u8 returns;
	__u8 exits; /* a program runs at the end of each system call */
};

/* Counters of one CPU. Except for `ticks`, they count only ticks in threads of targets. */
struct sampler_counts {
	__u64 ticks;
	__u64 sent;
	/* the handler was not the agent's: the process runs another program, or another profiler
	 * has replaced it */
	__u64 foreign;
	/* not sent: the thread blocks the signal, is in a system call that must not get it,
	 * already has a delayed signal, or it was put off in a call that then did not wait */
	__u64 held;
	__u64 failed; /* the kernel refused, usually because the thread exits */
	__u64 stacks; /* kernel stacks recorded */
	__u64 stacks_lost; /* the ring was full, or the kernel had no stack */
	__u64 off_sent; /* signals that reported a time off the CPU, with or without ticks */
	/* such signals that were delayed and then not sent: foreign, held or failed, or their
	 * system call is made again or already over */
	__u64 off_dropped;
};

/* A tick that interrupted the kernel. In the ring only the used frames are stored. */
struct sampler_stack {
	__u64 mono_ns;
	__u32 pid; /* pid in the first pid namespace */
	__u32 tid; /* tid in the thread's innermost namespace: the thread's own number */
	__u64 ips[SAMPLER_STACK_MAX]; /* innermost first */
};
