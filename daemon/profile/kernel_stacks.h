/*
 * Kernel stacks that wait for their sample. A tick that interrupts the kernel records the kernel's
 * stack. The agent's sample of that thread comes later, through the pipe, and covers the time since
 * the thread's previous sample. Pure and bounded: at most KERNEL_STACKS_MAX stacks of one target
 * wait, none longer than KERNEL_STACKS_AGE_NS.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

#define KERNEL_STACKS_MAX      4096
#define KERNEL_STACKS_THREADS  4096
#define KERNEL_STACKS_AGE_NS   5000000000ull
#define KERNEL_STACKS_FRAMES   64
#define KERNEL_STACKS_A_SAMPLE 16 /* this many of the newest share the sample's weight */

struct kernel_stack {
	struct kernel_stack *next;
	uint64_t mono_ns;
	unsigned n;
	uint64_t ips[]; /* the innermost first */
};

/* Numbers of stacks of all targets: taken = matched + unmatched + lost + those that still wait. */
struct kernel_stacks_counts {
	uint64_t taken, matched;
	uint64_t unmatched; /* no sample covers them */
	uint64_t lost; /* there was no room for them */
};

struct kernel_stacks;

int kernel_stacks_new(struct kernel_stacks_counts *counts, struct kernel_stacks **ret);
/* Frees @s; stacks that still wait become unmatched. */
struct kernel_stacks *kernel_stacks_free(struct kernel_stacks *s);
void kernel_stacks_add(struct kernel_stacks *s, uint32_t tid, uint64_t mono_ns, const uint64_t *ips,
		       unsigned n);
/*
 * Takes the stacks of @tid's ticks that its sample of @mono_ns covers: those after the thread's
 * previous sample and not after this one. Oldest first, at most KERNEL_STACKS_A_SAMPLE. Returns
 * their number; the caller frees them with kernel_stack_free_all().
 */
unsigned kernel_stacks_take(struct kernel_stacks *s, uint32_t tid, uint64_t mono_ns,
			    struct kernel_stack **ret);
void kernel_stack_free_all(struct kernel_stack *first);
/* Drops stacks older than KERNEL_STACKS_AGE_NS, which become unmatched. */
void kernel_stacks_expire(struct kernel_stacks *s, uint64_t now_mono_ns);
