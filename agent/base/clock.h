/* Clocks in ns, and the number of the calling thread. Any thread, but no signal handler. */
#pragma once

#include <stdint.h>

#define NS_PER_S  1000000000ull
#define NS_PER_MS 1000000ull

uint64_t mono_ns(void); /* CLOCK_MONOTONIC */
/* CPU time of a thread; @tid 0 = the calling one. UINT64_MAX if the thread has ended. */
uint64_t thread_cpu_ns(uint32_t tid);
uint64_t process_cpu_ns(void);
uint32_t thread_id(void); /* gettid(2) */
