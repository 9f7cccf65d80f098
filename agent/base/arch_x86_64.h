/* x86-64: a call pushes the return address; libraries have unwind tables (cfi.h). */
#pragma once

/* bytes below sp that code may use; unwind rows after `pop rbp` still refer to them */
#define ARCH_RED_ZONE	 128
#define ARCH_ELF	 62 /* EM_X86_64 */
#define ARCH_ADDRESS_MAX 0x7fffffffffffull /* user space */
#define ARCH_DWARF_FP	 6
#define ARCH_DWARF_SP	 7
#define ARCH_DWARF_RA	 16
/* Position of the JavaCallWrapper in HotSpot's call stub, in words from its frame pointer. */
#define ARCH_WRAPPER_WORDS (-6)
/* Words that interpreted frames have above the bytecode pointer since JDK 11: the class. */
#define ARCH_MIRROR_WORDS 1

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

/* The code to which a signal handler returns, in every libc: mov $15, %rax; syscall. These are its
 * first eight bytes as a little-endian word. The interrupted context is this far above the stack
 * pointer then. */
#define ARCH_SIGRETURN_CODE    0x0f0000000fc0c748ull
#define ARCH_SIGRETURN_SECOND  7 /* offset of its second instruction */
#define ARCH_SIGRETURN_CONTEXT 0

/* The offset of a general register in a context. */
static inline size_t arch_context_reg(int number)
{
	return offsetof(ucontext_t, uc_mcontext.gregs) + 8 * (size_t)number;
}
#define ARCH_CONTEXT_PC arch_context_reg(REG_RIP)
#define ARCH_CONTEXT_SP arch_context_reg(REG_RSP)
#define ARCH_CONTEXT_FP arch_context_reg(REG_RBP)

/* The return address of a function without a frame, if it is in a register; 0 = it is always on the
 * stack. */
static inline uint64_t regs_link(const ucontext_t *uc)
{
	(void)uc;
	return 0;
}

/* The same for a context at an address, read by a load that may fail. */
static inline uint64_t regs_link_at(uint64_t context, uint64_t (*load)(uint64_t))
{
	(void)context;
	(void)load;
	return 0;
}

/* The address in a word that was saved as a return address. */
static inline uint64_t arch_code(uint64_t word)
{
	return word;
}

/* For a loop that waits for another CPU. */
static inline void arch_pause(void)
{
	__asm__ volatile("pause" ::: "memory");
}
