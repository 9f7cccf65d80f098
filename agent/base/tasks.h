/* The threads of this process, as the kernel lists them. */
#pragma once

#include <stdint.h>

/* Only the agent's thread. Calls @on for each tid in /proc/self/task. */
void tasks_each(void (*on)(uint32_t tid, void *context), void *context);
