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

/* Counters of one CPU. Except for `ticks`, they count only ticks in threads of targets. */
struct sampler_counts {
	__u64 ticks;
	__u64 sent;
	/* the handler was not the agent's: the process runs another program, or another profiler
	 * has replaced it */
	__u64 foreign;
	/* not sent: the thread blocks the signal, is in a system call that must not get it, or
	 * already has a delayed signal */
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
