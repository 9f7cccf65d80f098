/*
 * arm64: finds the return address of an interrupted stub by emulating its instructions up to the
 * ret. Only their effects on sp, x29 and x30 are applied. Branches are not taken at first; if a
 * path leads nowhere, the branches on it are tried.
 */
#include "agent/walker/java/hotspot_priv.h"

#define STEPS_MAX    512
#define BRANCHES_MAX 8 /* branches remembered on a path */
#define LINK	     30

struct path {
	uint64_t pc, sp, fp, link;
	bool link_known; /* false = a call on the path has overwritten x30 */
};

enum step {
	STEP_ON,
	STEP_RETURNS,
	STEP_LOST,
};

/* Bytes by which an instruction lowers sp (stp or str with writeback, sub); negative if it raises
 * sp. */
static int64_t bytes_pushed(uint32_t i)
{
	int64_t pair = (int64_t)(int32_t)(i << 10) >> 25; /* imm7, in registers */
	int64_t single = (int64_t)(int32_t)(i << 11) >> 23; /* imm9, in bytes */

	if ((i & 0xbe0003e0) == 0xa80003e0 && (i >> 23 & 1)) /* stp, ldp of x with writeback */
		return -8 * pair;
	if ((i & 0xfe0003e0) == 0x6c0003e0 && (i >> 23 & 1)) /* the same of d registers */
		return -8 * pair;
	if ((i & 0xfe0003e0) == 0xac0003e0 && (i >> 23 & 1)) /* the same of q registers */
		return -16 * pair;
	if ((i & 0xffa007e0) == 0xf80007e0) /* str, ldr */
		return -single;
	if ((i & 0xffc003ff) == 0xd10003ff) /* sub sp, sp, #n */
		return i >> 10 & 0xfff;
	if ((i & 0xffc003ff) == 0x910003ff) /* add sp, sp, #n */
		return -(int64_t)(i >> 10 & 0xfff);
	return 0;
}

/* Applies a load of x30 from the stack: an ldp with x30 as its first or second register, with or
 * without writeback, or an ldr. */
static void load_link(const struct hot *h, struct path *w, uint32_t i)
{
	bool ldp = (i & 0xfe4003e0) == 0xa84003e0;
	bool post = !(i >> 24 & 1);
	int64_t offset = post ? 0 : ((int64_t)(int32_t)(i << 10) >> 25) * 8;
	uint64_t at = w->sp + (uint64_t)offset;

	if (ldp && (i & 31) == LINK)
		w->link = arch_code(hot_word(h, at));
	else if (ldp && (i >> 10 & 31) == LINK)
		w->link = arch_code(hot_word(h, at + 8));
	else if ((i & 0xffe00fff) == (0xf84007e0 | LINK)) /* ldr x30, [sp], #n */
		w->link = arch_code(hot_word(h, at));
	else
		return;
	w->link_known = true;
	if (code_loads_pair(i) || code_pops_pair(i))
		w->fp = hot_word(h, at);
}

/* The target of a conditional branch; 0 = it is not one. */
static uint64_t branch_target(uint64_t pc, uint32_t i)
{
	if ((i & 0xff000010) == 0x54000000 || (i & 0x7e000000) == 0x34000000) /* b.cond, cbz */
		return pc + (uint64_t)((int64_t)(int32_t)(i << 8) >> 13 << 2);
	if ((i & 0x7e000000) == 0x36000000) /* tbz */
		return pc + (uint64_t)((int64_t)(int32_t)(i << 13) >> 18 << 2);
	return 0;
}

static enum step emulate_stub_aarch64_step(const struct hot *h, struct path *w, uint32_t i)
{
	if (code_returns(i) || code_pushes_pair(i)) /* a push of the pair: the frame is not built
						     * yet */
		return w->link_known ? STEP_RETURNS : STEP_LOST;
	if (code_jumps(i)) {
		w->pc += (uint64_t)((int64_t)(int32_t)(i << 6) >> 4);
		return STEP_ON;
	}
	if (code_calls_near(i) || code_calls_register(i))
		w->link_known = false;
	else if (code_leaves(i) || (i & 0xffe003ff) == 0x8b2003ff || i == 0)
		return STEP_LOST; /* br; add sp, sp, xn; no code */
	if (i == 0x910003bf) /* mov sp, x29 */
		w->sp = w->fp;
	else if (i == 0x910003fd) /* mov x29, sp */
		w->fp = w->sp;
	load_link(h, w, i);
	w->sp -= (uint64_t)bytes_pushed(i);
	w->pc += 4;
	return STEP_ON;
}

bool emulate_return_sig(const struct hot *h, bool link_known, struct regs *ret)
{
	struct path w = { h->at.pc, h->at.sp, h->at.fp, h->link, link_known },
		    branches[BRANCHES_MAX];
	int n_branches = 0;

	for (int steps = 0; steps < STEPS_MAX; steps++) {
		uint32_t i = load32_sig(w.pc);
		uint64_t target = branch_target(w.pc, i);

		if (target && n_branches < BRANCHES_MAX) {
			branches[n_branches] = w;
			branches[n_branches++].pc = target;
		}
		switch (emulate_stub_aarch64_step(h, &w, i)) {
		case STEP_RETURNS:
			*ret = (struct regs){ w.link, w.sp, w.fp };
			return true;
		case STEP_LOST:
			if (!n_branches)
				return false;
			w = branches[--n_branches];
			break;
		case STEP_ON:
			break;
		}
	}
	return false;
}

/* ---- emulated on x86-64 only ---- */

bool emulate_interpreter_sig(struct hot *h)
{
	(void)h;
	return false;
}

uint64_t emulate_pushed_sig(const struct hot *h, const struct blob *b)
{
	(void)h;
	(void)b;
	return 0;
}

bool emulate_dispatch_sig(struct hot *h)
{
	(void)h;
	return false;
}
