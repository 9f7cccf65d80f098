/*
 * Finds where code without unwind rows returns to: follows its instructions from the next one to
 * the `ret` or the jump that leaves, and applies their effects on the stack pointer and on popped
 * registers only. The frame is torn down the same way on each path, so a branch is not taken at
 * first; when a path ends, or joins one that was followed before, another path is tried.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/walker/native/instruction.h"

#define EMULATE_STORED_MAX 24 /* all registers, and a few more words */

struct emulation {
	uint64_t pc;
	uint64_t reg[GPR_COUNT];
	uint32_t known; /* a bit per register */
	uint64_t low, high; /* of the stack */
	/* stack slots written by the followed instructions; memory does not hold these values
	 * yet */
	struct {
		uint64_t at, value;
	} stored[EMULATE_STORED_MAX];
	uint32_t stored_known; /* a bit per entry */
	uint32_t n_stored; /* above EMULATE_STORED_MAX: some stores were not recorded */
	bool sender_unknown; /* the code jumps to what it popped into rdi; rsp is not yet the
			      * sender's */
};

enum emulation_end {
	EMULATE_LOST,
	EMULATE_RETURNED, /* pc = the return address, 0 = not known; rsp as it is after the
			   * return */
	EMULATE_JUMPED, /* through a register or memory, only in stubs; pc = the target, 0 = not
			 * known */
};

#define EMULATE_STEPS_STUB     320 /* instructions */
#define EMULATE_STEPS_FUNCTION 1500

/* Call it between guard_begin_sig() and the end of the walk. @f: with pc, reg, known, low and
 * high. */
enum emulation_end emulate_sig(struct emulation *f, uint32_t steps_max);

/* The same for straight-line code, to the first jump to a fixed place. false = there is none. */
bool emulate_straight_sig(struct emulation *f, uint32_t steps_max);

static inline bool emulation_knows(const struct emulation *f, unsigned reg)
{
	return f->known >> reg & 1;
}
