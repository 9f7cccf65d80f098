/*
 * Finds the return address of code without unwind rows by emulation: it follows the instructions
 * from the next one up to the `ret`, or to a jump out of the code, and applies only their effects
 * on the stack pointer, on general registers and on stack slots. Every path removes the frame in
 * the same way, so branches are not taken at first; if a path ends, or joins one that was followed
 * before, another path is tried.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/walker/native/instruction.h"

#define EMULATE_STORED_MAX 24 /* room for all registers and a few more words */

struct emulation {
	uint64_t pc;
	uint64_t reg[GPR_COUNT];
	uint32_t known; /* a bit per register */
	uint64_t low, high; /* bounds of the stack */
	/* stack slots that the emulated instructions have written; memory does not have these
	 * values */
	struct {
		uint64_t at, value;
	} stored[EMULATE_STORED_MAX];
	uint32_t stored_known; /* a bit per entry */
	uint32_t n_stored; /* if above EMULATE_STORED_MAX, some stores were not recorded */
	bool sender_unknown; /* the code jumps to the address that it popped into rdi; rsp is not
			      * the sender's yet */
};

enum emulation_end {
	EMULATE_LOST,
	EMULATE_RETURNED, /* pc = the return address, 0 = not known; rsp is that after the return */
	EMULATE_JUMPED, /* by a jump through a register or memory, in stubs only; pc = the target, 0
			 * = not known */
};

#define EMULATE_STEPS_STUB     320 /* instructions */
#define EMULATE_STEPS_FUNCTION 1500

/* Call it between guard_begin_sig() and the end of the walk. @f: pc, reg, known, low and high must
 * be set. */
enum emulation_end emulate_sig(struct emulation *f, uint32_t steps_max);

/* The same for straight-line code, up to the first jump to a constant address. false = there is
 * none. */
bool emulate_straight_sig(struct emulation *f, uint32_t steps_max);

static inline bool emulation_knows(const struct emulation *f, unsigned reg)
{
	return f->known >> reg & 1;
}
