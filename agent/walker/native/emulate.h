/*
 * Where code without unwind rows returns to: its instructions are followed, from the one that would
 * run next, to the `ret` or the jump that leaves. What they do to the stack pointer and to what is
 * popped is done; nothing else is. Whichever way a branch goes, the frame is torn down alike: a
 * branch is not taken at first, and where a way ends, or has been gone before, another is tried.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "agent/walker/native/instruction.h"

#define EMULATE_STORED_MAX 24 /* all registers, and some */

struct emulation {
	uint64_t pc;
	uint64_t reg[GPR_COUNT];
	uint32_t known; /* a bit per register */
	uint64_t low, high; /* of the stack */
	/* what instructions on the way have put there, which memory does not hold yet */
	struct {
		uint64_t at, value;
	} stored[EMULATE_STORED_MAX];
	uint32_t stored_known; /* a bit per entry */
	uint32_t n_stored; /* above EMULATE_STORED_MAX: some were not kept */
	bool sender_unknown; /* jumped to what was popped into rdi; rsp has yet to be set to the
				sender's */
};

enum emulation_end {
	EMULATE_LOST,
	EMULATE_RETURNED, /* pc is where, 0 = not known; rsp as it is there */
	EMULATE_JUMPED, /* through a register or memory; pc is where, 0 = not known. Of stubs alone
			 */
};

#define EMULATE_STEPS_STUB     320 /* instructions */
#define EMULATE_STEPS_FUNCTION 1500

/* Between guard_begin_sig() and the end of the walk. @f: pc, reg, known, low and high. */
enum emulation_end emulate_sig(struct emulation *f, uint32_t steps_max);

/* The same without branches, to the first jump to a fixed place. false = there is none. */
bool emulate_straight_sig(struct emulation *f, uint32_t steps_max);

static inline bool emulation_knows(const struct emulation *f, unsigned reg)
{
	return f->known >> reg & 1;
}
