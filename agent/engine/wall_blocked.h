/* Where the kernel says that a thread of this process is blocked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Is it in a system call, asleep, and would it return to @pc (or begin the call there again) with
 * @sp? The call's first argument must be *argument too: a JVM's threads all wait in the same futex
 * call, and stacks of the same depth are no rarity. 0 = not known: *argument is set to what it is.
 * About 3 us; false where the kernel does not say. */
bool wall_is_blocked_at(uint32_t tid, uint64_t pc, uint64_t sp, uint64_t *argument);
/* The line of /proc/PID/task/TID/syscall, proc(5). */
bool wall_line_is_at(const char *line, uint64_t pc, uint64_t sp, uint64_t *argument);
