/* Reads from the kernel where a thread of this process is blocked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Is the thread asleep in a system call that returns to @pc (or is restarted there) with the stack
 * pointer @sp? The call's first argument must also equal *argument, because the threads of a JVM
 * all wait in the same futex call, often with stacks of the same depth. If *argument is 0 it is set
 * to that argument. Takes about 3 us; false also if the kernel does not show it. */
bool wall_is_blocked_at(uint32_t tid, uint64_t pc, uint64_t sp, uint64_t *argument);
/* The same check for one line of /proc/PID/task/TID/syscall, proc(5). */
bool wall_line_is_at(const char *line, uint64_t pc, uint64_t sp, uint64_t *argument);
