/* The table of threads, for the engine's own files. */
#pragma once

#include "agent/engine/cpu_timer.h"

/* slots that a tid may use: some in each part of the table */
#define SLOT_PROBES_EACH 32u
#define SLOT_PROBES	 (SLOT_PARTS * SLOT_PROBES_EACH)

struct slot *slot_probe_sig(uint32_t tid, uint32_t i); /* the @i-th of these slots */
struct slot *slot_claim(uint32_t tid); /* NULL = none of these slots is free */
uint32_t slots_end(void); /* slots from this one on have never been used */
/* Gives a claimed slot its timer, or marks it as the host engine's. If the kernel refuses a timer,
 * returns -errno and marks the slot as SLOT_UNTIMED. @used_ns: the thread's CPU time, which needs
 * no accounting. */
int slot_arm(struct slot *s, uint64_t used_ns);
/* Claims a slot in use, so that no other thread releases it too. false = another one was faster. */
bool slot_take(struct slot *s);
void slot_release(struct slot *s);
/* In the handler, in the slot's own thread: one sample of @weight_ns of CPU time, and one of the
 * @off_ns off the CPU that have just ended; 0 = no such sample. */
void slot_sample_sig(struct slot *slot, uint64_t weight_ns, uint64_t off_ns, void *ucontext);

/* scan.c */
void scan_begin(void); /* before the engine runs: reads the limit of timers and the time */
void scan_first(void); /* takes in all threads that live already */
