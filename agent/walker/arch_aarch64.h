/* arm64: the call leaves the return address in x30; frames are walked by their frame pointers. */
#pragma once

#define ARCH_HAS_CFI  0
#define ARCH_RED_ZONE 0
#define ARCH_ELF      183 /* EM_AARCH64 */

static inline struct regs regs_get(const ucontext_t *uc)
{
	return (struct regs){ uc->uc_mcontext.pc, uc->uc_mcontext.sp, uc->uc_mcontext.regs[29] };
}

static inline void regs_set(ucontext_t *uc, struct regs regs)
{
	uc->uc_mcontext.pc = regs.pc;
	uc->uc_mcontext.sp = regs.sp;
	uc->uc_mcontext.regs[29] = regs.fp;
}

/* Not looked for: frames are walked by their frame pointers. */
#define ARCH_SIGRETURN_CODE   0ull
#define ARCH_SIGRETURN_SECOND 0

static inline uint64_t regs_link(const ucontext_t *uc)
{
	return uc->uc_mcontext.regs[30];
}
