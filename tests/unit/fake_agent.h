/*
 * Stands in for the parts of the agent that the engine needs: clocks, a stack of one frame, no hook
 * for new threads. It contains definitions, so only one file of a program includes it.
 */
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "agent/base/agent.h"
#include "agent/engine/cpu_timer.h"

struct agent agent = { .wake_fd = -1 };

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts) < 0)
		return UINT64_MAX;
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t mono_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(uint32_t tid)
{
	return now_ns(tid ? (clockid_t)(~tid << 3 | 6) : CLOCK_THREAD_CPUTIME_ID);
}

uint32_t thread_id(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

void walk_sig(struct walk *w, void *ucontext)
{
	(void)ucontext;
	w->frames[0] = (struct walk_frame){ .where = 1, .bci = -1, .kind = WIRE_KIND_NATIVE };
	w->n = 1;
	w->broken = NULL;
	w->virtual_id = 0;
}

void thread_start_hook(void)
{
}
