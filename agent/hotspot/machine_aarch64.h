/* HotSpot's use of arm64 registers and instructions. */
#pragma once

#define RETURN_BYTES 0 /* a call leaves its return address in x30 */
/* from this JDK on the sender's sp is passed in x19, not x13 (JDK-8288971) */
#define SENDER_SP_X19 20

/* Registers at the interrupted instruction from which the walker recognises a frame that is being
 * built or removed. */
struct machine {
	uint64_t x3; /* in exception stubs: the pc that threw */
	uint64_t x9, x20; /* the sender's sp while an interpreted frame is torn down */
	uint64_t method; /* x12: the Method, while it is being called */
	uint64_t sender_sp; /* the sp at the call */
	uint64_t bcp; /* x22 */
	uint64_t link; /* x30 */
};

static inline uint32_t machine_sender_sp_number(void)
{
	return vm_sig.version >= SENDER_SP_X19 ? 19 : 13;
}

static inline struct machine machine_load(uint64_t context)
{
	int sender_sp = (int)machine_sender_sp_number();

	return (struct machine){ load64_sig(context + arch_context_reg(3)),
				 load64_sig(context + arch_context_reg(9)),
				 load64_sig(context + arch_context_reg(20)),
				 load64_sig(context + arch_context_reg(12)),
				 load64_sig(context + arch_context_reg(sender_sp)),
				 load64_sig(context + arch_context_reg(22)),
				 regs_link_at(context, load64_sig) };
}

/* The interpreter's bytecode pointer. */
static inline uint64_t machine_bcp(const struct machine *m)
{
	return m->bcp;
}

/* The sp of an interpreted frame's caller, from the slot that stores it. An interpreted caller
 * reserves room for its largest expression stack, and the callee's frame begins inside that room;
 * the stored sp is then not above the callee's frame. */
static inline uint64_t machine_sender_sp(uint64_t fp, uint64_t slot)
{
	return slot > fp ? slot : fp + 16;
}

/* Always false on arm64, where walks find the field (continuation_learn_sig()). */
static inline bool machine_takes_sp_from_thread(uint64_t pc, int32_t *ret)
{
	(void)pc;
	(void)ret;
	return false;
}

/* ---- instructions, by the Arm Architecture Reference Manual; pair = x29, x30 --------------- */

/* stp pair, [sp, #n]! */
static inline bool code_pushes_pair(uint32_t i)
{
	return (i & 0xffc07fff) == 0xa9807bfd;
}

/* stp pair, [sp, #n] */
static inline bool code_stores_pair(uint32_t i)
{
	return (i & 0xffc07fff) == 0xa9007bfd;
}

/* ldp pair, [sp, #n] */
static inline bool code_loads_pair(uint32_t i)
{
	return (i & 0xffc07fff) == 0xa9407bfd;
}

/* ldp pair, [sp], #n */
static inline bool code_pops_pair(uint32_t i)
{
	return (i & 0xffc07fff) == 0xa8c07bfd;
}

/* sub sp, sp, #n; sub sp, sp, xn */
static inline bool code_lowers_sp(uint32_t i)
{
	return (i & 0xff8003ff) == 0xd10003ff || (i & 0xffe003ff) == 0xcb2003ff;
}

/* add sp, sp, #n; add sp, sp, xn */
static inline bool code_raises_sp(uint32_t i)
{
	return (i & 0xff8003ff) == 0x910003ff || (i & 0xffe003ff) == 0x8b2003ff;
}

/* ret, retaa, retab */
static inline bool code_returns(uint32_t i)
{
	return i == 0xd65f03c0 || i == 0xd65f0bff || i == 0xd65f0fff;
}

/* bl */
static inline bool code_calls_near(uint32_t i)
{
	return (i & 0xfc000000) == 0x94000000;
}

/* blr, blraa and the like */
static inline bool code_calls_register(uint32_t i)
{
	return (i & 0xfefff000) == 0xd63f0000;
}

/* b */
static inline bool code_jumps(uint32_t i)
{
	return (i & 0xfc000000) == 0x14000000;
}

/* Is it a b, br, ret or call, after which the next instruction is not executed, or not at once? */
static inline bool code_leaves(uint32_t i)
{
	return (i & 0x7c000000) == 0x14000000 || (i & 0xfe9f0000) == 0xd61f0000;
}

/* ldr x8, [x28, #n]: a word of the thread */
static inline bool code_loads_thread_word(uint32_t i)
{
	return (i & 0xffc003ff) == 0xf9400388;
}

/* cmp sp, x8 */
static inline bool code_compares_sp(uint32_t i)
{
	return i == 0xeb2863ff;
}

/* The target of b.lo; 0 = another instruction. */
static inline uint64_t code_branch_lower(uint64_t pc)
{
	uint32_t i = load32_sig(pc);

	return (i & 0xff00001f) == 0x54000003
		       ? pc + (uint64_t)(int64_t)((int32_t)(i << 8) >> 13 << 2)
		       : 0;
}

/* The address that adr x8 computes; 0 = another instruction. */
static inline uint64_t code_adr_x8(uint64_t pc)
{
	uint32_t i = load32_sig(pc);
	int64_t distance = (int64_t)(int32_t)(i << 8) >> 13 << 2 | (i >> 29 & 3);

	return (i & 0x9f00001f) == 0x10000008 ? pc + (uint64_t)distance : 0;
}

/* Generational ZGC: of the four remap bits the one that counts is clear, and the others are set. */
static inline unsigned machine_z_remap(unsigned bits)
{
	return ~bits & 15;
}

/* Generational ZGC: the shift of an address above its colour bits. */
static inline unsigned machine_z_shift(unsigned index, uint64_t load_shift)
{
	(void)index;
	return (unsigned)load_shift & 63;
}
