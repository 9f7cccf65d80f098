/* Where the kernel says that a thread of this process is blocked. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Is it in a system call, asleep, and would it return to @pc (or begin the call there again) with
 * @sp? About 3 us; false where the kernel does not say. */
bool wall_is_blocked_at(uint32_t tid, uint64_t pc, uint64_t sp);
/* The line of /proc/PID/task/TID/syscall, proc(5). */
bool wall_line_says(const char *line, uint64_t pc, uint64_t sp);
