/* x86-64: the call pushes the return address; libraries carry unwind rows (cfi.h). */
#pragma once

#define ARCH_HAS_CFI  1
#define ARCH_RED_ZONE 128 /* below sp, and rows after `pop rbp` still refer to that slot */
#define ARCH_ELF      62 /* EM_X86_64 */

static inline struct regs regs_get(const ucontext_t *uc)
{
	const greg_t *g = uc->uc_mcontext.gregs;

	return (struct regs){ (uint64_t)g[REG_RIP], (uint64_t)g[REG_RSP], (uint64_t)g[REG_RBP] };
}

static inline void regs_set(ucontext_t *uc, struct regs regs)
{
	uc->uc_mcontext.gregs[REG_RIP] = (greg_t)regs.pc;
	uc->uc_mcontext.gregs[REG_RSP] = (greg_t)regs.sp;
	uc->uc_mcontext.gregs[REG_RBP] = (greg_t)regs.fp;
}

/* The code a signal handler returns to, in every libc: mov $15, %rax; syscall. The eight bytes at
 * its begin as a little-endian word. The interrupted context lies where the stack pointer is then.
 */
#define ARCH_SIGRETURN_CODE   0x0f0000000fc0c748ull
#define ARCH_SIGRETURN_SECOND 7 /* bytes to its second instruction */

/* Where a function without a frame returns to, when not on the stack; 0 = always on the stack. */
static inline uint64_t regs_link(const ucontext_t *uc)
{
	(void)uc;
	return 0;
}
