/*
 * What differs between the processors: where a signal's context keeps pc, sp and fp, and where the
 * return address of a frame may be while it is built or torn down.
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
