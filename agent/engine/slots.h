/* The table of threads, for the engine's own files: claim, arm, take, release. */
#pragma once

#include "agent/engine/cpu_timer.h"

#define SLOT_PROBES 192u /* places where a tid's slot may lie: 64 in each part of the table */

struct slot *slot_probe_sig(uint32_t tid, uint32_t i); /* the @i-th of them */
struct slot *slot_claim(uint32_t tid); /* NULL = crowded */
uint32_t slots_end(void); /* none from here on was ever claimed */
/* Give a claimed slot its timer, or mark it as one without (-errno), or as the host's. @used_ns:
 * the thread's clock, up to which nothing is to be accounted for. */
int slot_arm(struct slot *s, uint64_t used_ns);
/* Take a slot away from whoever might also want to release it. */
bool slot_take(struct slot *s);
void slot_release(struct slot *s);
/* In the handler of its thread: one sample that stands for @weight_ns of CPU, and one for the time
 * of @off_ns off the CPU that has just ended; 0 = none of it. */
void slot_sample_sig(struct slot *slot, uint64_t weight_ns, uint64_t off_ns, void *ucontext);

/* scan.c */
void scan_begin(void); /* before the engine runs: limits, the time */
void scan_first(void); /* all threads that live already */
