/*
 * What the handler costs, in CPU time. One sample in some is timed by its thread's clock, which
 * stands still while others have the CPU; reading it takes a system call, too much for each. All
 * samples are accounted at what the recent ones took on average, the longest held to the length of
 * the others: once in a while an interrupt lies in between, and a hypervisor takes the CPU away.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HANDLER_TIMED	   64u /* samples from one that is timed to the next */
#define HANDLER_TIMED_SOON 8u /* ... of the first HANDLER_FIRST */
#define HANDLER_FIRST	   512u
#define HANDLER_RECENT	   64u /* timed samples that are remembered; power of two */

struct handler_cost {
	bool each; /* time every sample: START with DETAILS */
	uint32_t n; /* samples timed */
	uint32_t took_ns[HANDLER_RECENT]; /* a ring */
};
extern struct handler_cost handler_cost;

/* Handler: is the @n-th sample one of those? */
static inline bool handler_is_timed_sig(uint64_t n)
{
	return n % (n < HANDLER_FIRST ? HANDLER_TIMED_SOON : HANDLER_TIMED) == 0 ||
	       __atomic_load_n(&handler_cost.each, __ATOMIC_RELAXED);
}
void handler_took_sig(uint64_t ns);

/* Agent's thread: what a sample costs now; 0 = none was timed yet. */
uint64_t handler_sample_ns(void);
/* Agent's thread: agent.counters.handler_ns up to now. */
void handler_cost_account(void);
