/*
 * The value (si_value) of a signal that the host engine sends, shared by the BPF programs that
 * write it and the agent that reads it. Freestanding: no includes, no calls.
 *
 * Bit 63 clear: the thread used CPU, and the value is what its ticks stand for in ns (0 = the
 * kernel cannot say).
 * Bit 63 set: the thread runs again after a time off the CPU. Bits 0 to 50 are that time in ns;
 * bits 51 to 62 are the sampling intervals that its ticks stand for as well (0 = none), because two
 * pending signals of one number are one.
 *
 * Before Linux 6.13 a BPF program cannot give a signal a value. There the signal for a time off the
 * CPU has a number of its own (WIRE_START_OWN_SIGNAL), and the agent reports
 * HOST_COOKIE_OFFCPU_UNKNOWN_NS for it.
 */
#pragma once

#define HOST_COOKIE_OFFCPU	    (1ULL << 63)
#define HOST_COOKIE_OFFCPU_BITS	    51
#define HOST_COOKIE_OFFCPU_NS_MAX   ((1ULL << HOST_COOKIE_OFFCPU_BITS) - 1) /* 26 days */
#define HOST_COOKIE_OFFCPU_TICK_MAX 0xfffULL
/* no event is that short */
#define HOST_COOKIE_OFFCPU_UNKNOWN_NS 1ULL

/* @off_ns and @intervals saturate at their maxima. */
static inline unsigned long long host_cookie_offcpu(unsigned long long off_ns,
						    unsigned long long intervals)
{
	if (off_ns > HOST_COOKIE_OFFCPU_NS_MAX)
		off_ns = HOST_COOKIE_OFFCPU_NS_MAX;
	if (intervals > HOST_COOKIE_OFFCPU_TICK_MAX)
		intervals = HOST_COOKIE_OFFCPU_TICK_MAX;
	return HOST_COOKIE_OFFCPU | intervals << HOST_COOKIE_OFFCPU_BITS | off_ns;
}

static inline int host_cookie_is_offcpu(unsigned long long cookie)
{
	return (cookie & HOST_COOKIE_OFFCPU) != 0;
}

/* Of an off-CPU cookie: the time off the CPU in ns. */
static inline unsigned long long host_cookie_off_ns(unsigned long long cookie)
{
	return cookie & HOST_COOKIE_OFFCPU_NS_MAX;
}

/* Of an off-CPU cookie: the sampling intervals of CPU time that are owed as well. */
static inline unsigned long long host_cookie_intervals(unsigned long long cookie)
{
	return cookie >> HOST_COOKIE_OFFCPU_BITS & HOST_COOKIE_OFFCPU_TICK_MAX;
}
