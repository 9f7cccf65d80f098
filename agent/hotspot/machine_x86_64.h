/* HotSpot's use of x86-64 registers and instructions. */
#pragma once

#define RETURN_BYTES 8 /* a call pushes its return address */

/* Registers at the interrupted instruction from which the walker recognises a frame that is being
 * built or removed. */
struct machine {
	uint64_t rax, rbx, rdx, rdi, r13;
};

static inline struct machine machine_load(uint64_t context)
{
	return (struct machine){ load64_sig(context + arch_context_reg(REG_RAX)),
				 load64_sig(context + arch_context_reg(REG_RBX)),
				 load64_sig(context + arch_context_reg(REG_RDX)),
				 load64_sig(context + arch_context_reg(REG_RDI)),
				 load64_sig(context + arch_context_reg(REG_R13)) };
}

/* The interpreter's bytecode pointer. */
static inline uint64_t machine_bcp(const struct machine *m)
{
	return m->r13;
}

/* The sp of an interpreted frame's caller, from the slot that stores it. */
static inline uint64_t machine_sender_sp(uint64_t fp, uint64_t slot)
{
	(void)fp;
	return slot;
}

/* Is mov rsp, [r15 + *ret] at @pc? r15 is the thread. */
static inline bool machine_takes_sp_from_thread(uint64_t pc, int32_t *ret)
{
	*ret = (int32_t)load32_unaligned_sig(pc + 3);
	return (load_code_sig(pc) & 0xffffff) == 0xa78b49;
}

/* Generational ZGC: of the four remap bits the one that counts is set. */
static inline unsigned machine_z_remap(unsigned bits)
{
	return bits;
}

/* Generational ZGC: the shift of an address above its colour bits, by the index of its remap
 * bit. */
static inline unsigned machine_z_shift(unsigned index, uint64_t load_shift)
{
	(void)load_shift;
	return 13 + index;
}
