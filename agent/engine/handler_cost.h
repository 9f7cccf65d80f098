/*
 * Estimates the CPU time of the handler. A part of the samples is timed by the CPU clock of the
 * thread, which stands still while other threads have the CPU; reading it takes a system call, too
 * expensive for every sample. Every sample counts with the average of the recent timed ones. The
 * longest of those are capped, because now and then an interrupt or a hypervisor adds its own time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HANDLER_TIMED	   64u /* one sample in 64 is timed */
#define HANDLER_TIMED_SOON 8u /* one in 8 of the first HANDLER_FIRST samples */
#define HANDLER_FIRST	   512u
#define HANDLER_RECENT	   64u /* timed samples that are kept; power of two */

struct handler_cost {
	bool each; /* time every sample; START asks for it by DETAILS */
	uint32_t n; /* samples timed */
	uint32_t took_ns[HANDLER_RECENT]; /* a ring */
};
extern struct handler_cost handler_cost;

/* Handler: is the @n-th sample to be timed? */
static inline bool handler_is_timed_sig(uint64_t n)
{
	return n % (n < HANDLER_FIRST ? HANDLER_TIMED_SOON : HANDLER_TIMED) == 0 ||
	       __atomic_load_n(&handler_cost.each, __ATOMIC_RELAXED);
}
void handler_took_sig(uint64_t ns);

/* Agent's thread: average CPU time of one sample, in ns; 0 = none has been timed yet. */
uint64_t handler_sample_ns(void);
/* Agent's thread: brings agent.counters.handler_ns up to date. */
void handler_cost_account(void);
