/*
 * What the history keeps of times off the CPU. All of them would be most of what it has of a JVM
 * that waits a lot. So of one process's window the stacks with the most time stay; the time of the
 * others stays by thread and reason, without a stack. Those are always waits for work, and for a
 * CPU, which come to a thread anywhere, as CPU samples do. No time and no count is lost. Pure.
 */
#pragma once

#include "daemon/profile/profile.h"

#define OFFCPU_HISTORY_STACKS 100u /* of a process, in a window */
/* Further threads of a process are one, for those rows without a stack. */
#define OFFCPU_HISTORY_THREADS	     256u
#define OFFCPU_HISTORY_OTHER_THREADS "[other threads]"

/* Copies @src, no two entries of which are equal, so to a new profile; @stacks: of each process. */
int offcpu_history_copy(const struct profile *src, uint64_t stacks, struct profile **ret);
