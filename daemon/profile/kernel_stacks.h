/*
 * Kernel stacks that wait for their sample. A tick that interrupts the kernel records its stack;
 * the agent's sample of that thread arrives later, through the pipe, and covers the time since the
 * thread's previous sample. Pure, bounded: at most KERNEL_STACKS_MAX stacks of a target wait, none
 * longer than KERNEL_STACKS_AGE_NS.
 */
#pragma once

#include <stdint.h>
#include "daemon/ground/mem.h"

#define KERNEL_STACKS_MAX      4096
#define KERNEL_STACKS_THREADS  4096
#define KERNEL_STACKS_AGE_NS   5000000000ull
#define KERNEL_STACKS_FRAMES   64
#define KERNEL_STACKS_A_SAMPLE 16 /* the newest ones share its weight */

struct kernel_stack {
	struct kernel_stack *next;
	uint64_t mono_ns;
	unsigned n;
	uint64_t ips[]; /* the innermost first */
};

/* For all targets; taken = matched + unmatched + lost + those that wait. */
struct kernel_stacks_counts {
	uint64_t taken, matched;
	uint64_t unmatched; /* no sample covers it */
	uint64_t lost; /* no room for it */
};

struct kernel_stacks;

int kernel_stacks_new(struct kernel_stacks_counts *counts, struct kernel_stacks **ret);
/* Stacks that still wait are counted as unmatched. */
struct kernel_stacks *kernel_stacks_free(struct kernel_stacks *s);
void kernel_stacks_add(struct kernel_stacks *s, uint32_t tid, uint64_t mono_ns, const uint64_t *ips,
		       unsigned n);
/*
 * The stacks of the ticks of @tid that its sample of @mono_ns covers: after its previous sample, up
 * to this one. The oldest first, at most KERNEL_STACKS_A_SAMPLE; returns their number, the caller
 * frees them with kernel_stack_free_all().
 */
unsigned kernel_stacks_take(struct kernel_stacks *s, uint32_t tid, uint64_t mono_ns,
			    struct kernel_stack **ret);
void kernel_stack_free_all(struct kernel_stack *first);
/* Drops stacks that are too old. */
void kernel_stacks_expire(struct kernel_stacks *s, uint64_t now_mono_ns);
