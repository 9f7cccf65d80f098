/*
 * The parts of the agent that differ between processors: the position of pc, sp and fp in a
 * signal's context, and that of the return address while a frame is built or removed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

struct regs {
	uint64_t pc, sp, fp;
};

#if defined(__x86_64__)
#include "agent/base/arch_x86_64.h"
#elif defined(__aarch64__)
#include "agent/base/arch_aarch64.h"
#else
#error "kindling walks stacks on x86-64 and arm64"
#endif
