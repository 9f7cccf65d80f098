/* The table of threads, for the engine's own files: claim, arm, take, release. */
#pragma once

#include "agent/engine/cpu_timer.h"

struct slot *slot_claim(uint32_t tid); /* NULL = crowded */
/* Give a claimed slot its timer, or mark it as one without (-errno). */
int slot_arm(struct slot *s);
/* Take a slot away from whoever might also want to release it. */
bool slot_take(struct slot *s);
void slot_release(struct slot *s);

/* scan.c */
void scan_begin(void); /* before the engine runs: limits, the time */
void scan_first(void); /* all threads that live already */
