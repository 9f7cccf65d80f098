/*
 * Finds the caller of a stub by emulating its instructions (emulate.h). This is used for exception
 * stubs, which jump to a handler with the pc that threw in rdx, for adapters that have saved all
 * registers around a call, and for intrinsics.
 */
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/native/emulate.h"

#define JUMPS_MAX      4 /* jumps through registers inside one stub */
#define ARGUMENT_WORDS 8 /* arguments of an interpreter's intrinsic, and padding */
#define STRAIGHT_STEPS 96 /* a GC barrier restores all vector registers */

/* The kernel context's index of each general register, in the order in which instructions number
 * them. */
static const uint8_t order[GPR_COUNT] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

static void emulate_stub_x86_64_begin(const struct hot *h, struct emulation *f)
{
	*f = (struct emulation){ .pc = h->at.pc, .low = h->low, .high = h->high };
	f->known = 1u << GPR_RSP | 1u << GPR_RBP;
	for (unsigned i = 0; h->leaf && i < GPR_COUNT; i++)
		f->reg[i] = load64_sig(h->context + arch_context_reg(order[i]));
	if (h->leaf)
		f->known = (1u << GPR_COUNT) - 1;
	f->reg[GPR_RSP] = h->at.sp;
	f->reg[GPR_RBP] = h->at.fp;
}

static uint64_t fp_after(const struct hot *h, const struct emulation *f)
{
	return emulation_knows(f, GPR_RBP) ? f->reg[GPR_RBP] : h->at.fp;
}

/* Is @pc in an nmethod, behind its prologue? Then it may be an exception handler, which is not
 * preceded by a call. */
static bool is_in_method(uint64_t pc)
{
	struct blob b;

	return code_cache_has(pc) && code_blob_sig(pc, &b) && b.kind == BLOB_NMETHOD &&
	       (int64_t)(pc - b.code) > b.frame_complete;
}

/* The stub returns to f->pc. Only stubs in StubRoutines may return to native code; C1's exception
 * stubs return to an exception handler. */
static bool emulate_stub_x86_64_returned(struct hot *h, const struct blob *b,
					 const struct emulation *f)
{
	uint64_t sp = f->reg[GPR_RSP], fp = fp_after(h, f);
	bool fits = b->kind == BLOB_STUBS ? return_fits_sig(h, f->pc, fp, sp)
					  : return_fits_java_sig(h, f->pc, fp, sp);

	return (fits || return_is_throw_sig(f->pc) ||
		(b->kind == BLOB_RUNTIME && is_in_method(f->pc))) &&
	       hot_move(h, f->pc, sp, fp);
}

/* The adapter jumps to a method: the return address is on top of the stack, or in rax with the
 * caller's sp in r13. */
static bool emulate_stub_x86_64_entered(struct hot *h, const struct emulation *f)
{
	uint64_t sp = f->reg[GPR_RSP], fp = fp_after(h, f), pc = hot_word(h, sp);

	if (emulation_knows(f, GPR_RAX) && emulation_knows(f, GPR_R13) && f->reg[GPR_R13] >= sp &&
	    return_fits_java_sig(h, f->reg[GPR_RAX], fp, f->reg[GPR_R13]))
		return hot_move(h, f->reg[GPR_RAX], f->reg[GPR_R13], fp);
	return return_fits_java_sig(h, pc, fp, sp + 8) && hot_move(h, pc, sp + 8, fp);
}

/* The stub jumps to an exception handler, in the frame that threw or in its caller. */
static bool emulate_stub_x86_64_threw(struct hot *h, const struct emulation *f)
{
	uint64_t sp = f->reg[GPR_RSP], fp = fp_after(h, f), pc = f->reg[GPR_RDX];

	if (emulation_knows(f, GPR_RDX) &&
	    (return_is_throw_sig(pc) || return_fits_java_sig(h, pc, fp, sp)))
		return hot_move(h, pc, sp, fp);
	return is_in_method(f->pc) && hot_move(h, f->pc, sp, fp);
}

bool emulate_stub_sig(struct hot *h, const struct blob *b)
{
	struct emulation f;

	emulate_stub_x86_64_begin(h, &f);
	for (int i = 0; i < JUMPS_MAX; i++)
		switch (emulate_sig(&f, EMULATE_STEPS_STUB)) {
		case EMULATE_RETURNED:
			return emulate_stub_x86_64_returned(h, b, &f);
		case EMULATE_JUMPED:
			if (b->kind == BLOB_ADAPTER)
				return emulate_stub_x86_64_entered(h, &f);
			if (f.pc < b->code || f.pc >= b->end)
				return emulate_stub_x86_64_threw(h, &f);
			break;
		default:
			return false;
		}
	return false;
}

/*
 * If a poll before a return is triggered, the frame is already gone and the blob returns to the
 * caller of the method that polled; the walk shows that method as about to return. After any other
 * poll the blob returns to the poll.
 */
bool emulate_safepoint_sig(struct hot *h, uint64_t poll, const struct blob *polled)
{
	struct emulation f;
	struct hot returning = *h;
	uint64_t sp, fp;

	emulate_stub_x86_64_begin(h, &f);
	switch (emulate_sig(&f, EMULATE_STEPS_STUB)) {
	case EMULATE_RETURNED:
		break;
	case EMULATE_JUMPED: /* the path for a pending exception was followed, whose stub pops the
			      * same pc into rdx */
		f.pc = emulation_knows(&f, GPR_RDX) ? f.reg[GPR_RDX] : 0;
		break;
	default:
		return false;
	}
	sp = f.reg[GPR_RSP];
	fp = fp_after(h, &f);
	if (!return_fits_sig(h, f.pc, fp, sp))
		return (f.pc == 0 || f.pc == poll) && hot_move(h, poll, sp, fp);
	returning.at = (struct regs){ poll, sp - 8, fp };
	returning.leaf = true;
	if (!compiled_prologue_sig(&returning, polled))
		return hot_move(h, f.pc, sp, fp);
	h->at = (struct regs){ poll, sp - 8, fp };
	h->leaf = true;
	return true;
}

/* The sp of the caller: an adapter leaves the return address where compiled code has put it, and
 * pushes a copy below the arguments. For an interpreted caller any sp will do, because its frame is
 * found by fp. */
static uint64_t sender_sp(const struct hot *h, const struct emulation *f)
{
	uint64_t sp = f->reg[GPR_RSP];

	for (uint64_t i = 0; i < ARGUMENT_WORDS; i++)
		if (hot_word(h, sp + 8 * i) == f->pc)
			return sp + 8 * i + 8;
	return sp;
}

bool emulate_interpreter_sig(struct hot *h)
{
	struct emulation f;
	uint64_t sp, fp;

	emulate_stub_x86_64_begin(h, &f);
	if (emulate_sig(&f, EMULATE_STEPS_STUB) == EMULATE_LOST)
		return false;
	sp = f.sender_unknown ? sender_sp(h, &f) : f.reg[GPR_RSP];
	fp = fp_after(h, &f);
	if (return_fits_java_sig(h, f.pc, fp, sp))
		return hot_move(h, f.pc, sp, fp);
	/* an exception leaves the method: the code jumps to a handler with the return address in
	 * rdx */
	return emulation_knows(&f, GPR_RDX) && return_fits_java_sig(h, f.reg[GPR_RDX], fp, sp) &&
	       hot_move(h, f.reg[GPR_RDX], sp, fp);
}

uint64_t emulate_pushed_sig(const struct hot *h, const struct blob *b)
{
	struct emulation f;

	emulate_stub_x86_64_begin(h, &f);
	if (!emulate_straight_sig(&f, STRAIGHT_STEPS) || f.pc < b->code || f.pc >= b->end)
		return 0;
	return f.reg[GPR_RSP] > h->at.sp ? f.reg[GPR_RSP] - h->at.sp : 0;
}

bool emulate_dispatch_sig(struct hot *h)
{
	struct emulation f;
	uint64_t sp, pc, fp;

	emulate_stub_x86_64_begin(h, &f);
	if (emulate_sig(&f, EMULATE_STEPS_STUB) != EMULATE_JUMPED)
		return false;
	sp = f.reg[GPR_RSP];
	pc = hot_word(h, sp);
	fp = fp_after(h, &f);
	return return_fits_java_sig(h, pc, fp, sp + 8) && hot_move(h, pc, sp + 8, fp);
}
