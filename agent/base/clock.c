/* See clock.h. */
#include "agent/base/clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t clock_read(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return UINT64_MAX;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t mono_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(uint32_t tid)
{
	if (tid == 0)
		return clock_read(CLOCK_THREAD_CPUTIME_ID);
	return clock_read((~(clockid_t)tid << 3) | 6);
}

uint64_t process_cpu_ns(void)
{
	return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}
