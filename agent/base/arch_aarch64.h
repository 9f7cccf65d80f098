/* arm64: a call leaves the return address in x30; a function that makes calls stores it beside
 * x29. */
#pragma once

#define ARCH_RED_ZONE	 0 /* the kernel's signal frame begins right below sp */
#define ARCH_ELF	 183 /* EM_AARCH64 */
#define ARCH_ADDRESS_MAX 0xffffffffffffull /* user space, 48 bits */
#define ARCH_DWARF_FP	 29
#define ARCH_DWARF_SP	 31
#define ARCH_DWARF_RA	 30
/* Position of the JavaCallWrapper in HotSpot's call stub, in words from its frame pointer. */
#define ARCH_WRAPPER_WORDS (-8)
/* Words that interpreted frames have above the bytecode pointer since JDK 11: the class, and
 * another word for alignment. */
#define ARCH_MIRROR_WORDS 2

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

/* A signal handler returns to the vDSO: mov x8, #139; svc #0. The kernel's frame begins with the
 * siginfo_t, which always takes 128 bytes. */
#define ARCH_SIGRETURN_CODE    0xd4000001d2801168ull
#define ARCH_SIGRETURN_SECOND  4 /* offset of its second instruction */
#define ARCH_SIGRETURN_CONTEXT 128

static inline size_t arch_context_reg(int number)
{
	return offsetof(ucontext_t, uc_mcontext.regs) + 8 * (size_t)number;
}
#define ARCH_CONTEXT_PC offsetof(ucontext_t, uc_mcontext.pc)
#define ARCH_CONTEXT_SP offsetof(ucontext_t, uc_mcontext.sp)
#define ARCH_CONTEXT_FP arch_context_reg(29)

/* A return address may be signed in its high bits (pointer authentication). */
static inline uint64_t arch_code(uint64_t word)
{
	return word & ARCH_ADDRESS_MAX;
}

static inline uint64_t regs_link(const ucontext_t *uc)
{
	return arch_code(uc->uc_mcontext.regs[30]);
}

static inline uint64_t regs_link_at(uint64_t context, uint64_t (*load)(uint64_t))
{
	return arch_code(load(context + arch_context_reg(30)));
}

/* For a loop that waits for another CPU. */
static inline void arch_pause(void)
{
	__asm__ volatile("yield" ::: "memory");
}
