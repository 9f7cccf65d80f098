/* The registers a walk needs, per architecture. */
#pragma once

#include <stdint.h>
#include <ucontext.h>

struct regs {
	uint64_t pc, sp, fp;
};

#if defined(__x86_64__)
static inline struct regs regs_get(const ucontext_t *uc)
{
	return (struct regs){ (uint64_t)uc->uc_mcontext.gregs[REG_RIP],
			      (uint64_t)uc->uc_mcontext.gregs[REG_RSP],
			      (uint64_t)uc->uc_mcontext.gregs[REG_RBP] };
}

static inline void regs_set(ucontext_t *uc, struct regs r)
{
	uc->uc_mcontext.gregs[REG_RIP] = (long long)r.pc;
	uc->uc_mcontext.gregs[REG_RSP] = (long long)r.sp;
	uc->uc_mcontext.gregs[REG_RBP] = (long long)r.fp;
}
#elif defined(__aarch64__)
static inline struct regs regs_get(const ucontext_t *uc)
{
	return (struct regs){ uc->uc_mcontext.pc, uc->uc_mcontext.sp, uc->uc_mcontext.regs[29] };
}

static inline void regs_set(ucontext_t *uc, struct regs r)
{
	uc->uc_mcontext.pc = r.pc;
	uc->uc_mcontext.sp = r.sp;
	uc->uc_mcontext.regs[29] = r.fp;
}
#endif
