/* What sampler.bpf.c and host_engine.c say to each other. Integer types come from the includer. */
#pragma once

#define SAMPLER_TARGETS_MAX 1024
#define SAMPLER_SLOTS	    4096 /* threads with a signal put off; power of two */
#define SAMPLER_STACK_MAX   64 /* frames of the kernel */
#define SAMPLER_RING_BYTES  (1 << 20)

/* One process that wants signals; the key is its pid as the first pid namespace counts. */
struct sampler_target {
	__u64 handler; /* address of the agent's signal handler */
	__u64 interval_ns;
	__u32 signo;
	__u32 unused;
};

/* On one CPU, of a target's ticks; ticks itself counts everybody's. */
struct sampler_counts {
	__u64 ticks;
	__u64 sent;
	__u64 foreign; /* the handler was not the agent's: another program, or another profiler */
	/* the thread blocks the signal just now, or is in a call that must not get it, or one is
	 * put off already */
	__u64 held;
	__u64 failed; /* the kernel refused: a thread that exits, mostly */
	__u64 stacks; /* of the kernel, taken */
	__u64 stacks_lost; /* the ring was full, or the kernel had no stack to give */
};

/* A tick that interrupted the kernel. In the ring without the frames that it has not. */
struct sampler_stack {
	__u64 mono_ns;
	__u32 pid; /* as the first pid namespace counts */
	__u32 tid; /* as the innermost one of the thread does: what the thread calls itself */
	__u64 ips[SAMPLER_STACK_MAX]; /* the innermost first */
};
