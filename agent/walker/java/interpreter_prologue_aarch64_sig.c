/*
 * Interpreted frames on arm64 while they are built or removed
 * (templateInterpreterGenerator_aarch64, generate_fixed_frame; interp_masm_aarch64,
 * remove_activation). The following instructions distinguish the cases: an entry still has to set
 * x29; a return only has a ret ahead.
 */
#include "agent/walker/java/hotspot_priv.h"

#define PART_MAX      0x10000ull /* bytes from sp to the sender's sp at entry and return */
#define ENTRY_STEPS   64 /* instructions of an entry before the one that sets x29 */
#define RETURN_STEPS  8
#define LAST_SP_WORDS (-2)
#define SENDER_STEPS  24 /* instructions from there up to the one that stores the sender's sp */

/* Is it add x29, sp, #n? Stubs use mov x29, sp, which is the same instruction with n = 0. */
static bool sets_fp(uint32_t i)
{
	return (i & 0xffc003ff) == 0x910003fd && (i >> 10 & 0xfff);
}

/* Is it stp xn, x19, [sp, #n]? (x13 up to JDK 19) */
static bool stores_sender_sp(uint32_t i)
{
	return (i & 0xffc07fe0) == (0xa90003e0 | machine_sender_sp_number() << 10);
}

static bool is_sender_sp(const struct hot *h, uint64_t sender_sp)
{
	return hot_on_stack(h, sender_sp) && sender_sp >= h->at.sp &&
	       sender_sp - h->at.sp < PART_MAX;
}

/* Pushes the method that is being entered or left, if it is valid, and moves to its caller. */
static bool interpreter_prologue_aarch64_entered(struct hot *h, uint64_t method, uint64_t pc,
						 uint64_t sp, uint64_t fp)
{
	if (method_check_sig(method))
		hot_push_method_sig(h, method, 0, WIRE_KIND_INTERPRETED);
	return hot_move(h, pc, sp, fp);
}

/* Is the frame at x29 that of the method in x12, and is this method not in a call (its last_sp is
 * 0)? */
static bool has_own_frame(const struct hot *h)
{
	uint64_t fp = h->at.fp;

	return hot_word(h, fp + 8 * (int64_t)vm_sig.method_words) == h->regs.method &&
	       !hot_word(h, fp + 8 * LAST_SP_WORDS);
}

/* From the entry point until x29 is set, the return address is in x30. */
static bool interpreter_aarch64_entry(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, p = h->at.pc;

	if (!method_check_sig(h->regs.method) || has_own_frame(h))
		return false;
	if (is_sender_sp(h, h->regs.sender_sp))
		sp = h->regs.sender_sp;
	for (int step = 0; step < ENTRY_STEPS; step++, p += 4) {
		uint32_t i = load32_sig(p);

		if (sets_fp(i))
			return return_fits_java_sig(h, h->link, fp, sp) &&
			       interpreter_prologue_aarch64_entered(h, h->regs.method, h->link, sp,
								    fp);
		if (code_leaves(i) && !code_jumps(i))
			return false;
	}
	return false;
}

/* From then until the slot of the sender's sp is written. */
static bool interpreter_aarch64_entry_late(struct hot *h)
{
	uint64_t fp = h->at.fp, method = h->regs.method, p = h->at.pc, pc;

	if (hot_word(h, fp + 8 * (int64_t)vm_sig.method_words) != method)
		return false;
	for (int step = 0; step < SENDER_STEPS; step++, p += 4) {
		uint32_t i = load32_sig(p);

		if (code_leaves(i))
			return false;
		if (!stores_sender_sp(i))
			continue;
		pc = hot_word(h, fp + 8);
		return return_known_java_sig(h, pc) &&
		       interpreter_prologue_aarch64_entered(
			       h, method, pc, machine_sender_sp(fp, h->regs.sender_sp),
			       hot_word(h, fp));
	}
	return false;
}

/* The value to which the code up to @end will set sp, the sender's sp; 0 = sp is already set. */
static uint64_t sender_sp_ahead(const struct hot *h, uint64_t end)
{
	uint64_t x20 = h->regs.x20;

	for (uint64_t p = h->at.pc; p < end; p += 4) {
		uint32_t i = load32_sig(p);

		if (i == 0xaa0903f4) /* mov x20, x9 */
			x20 = h->regs.x9;
		else if (i == 0x9100029f || i == 0x927cee9f) /* mov sp, x20; and sp, x20, #-16 */
			return x20;
		else if (i == 0x9100027f || i == 0x927cee7f) /* mov sp, x19; and sp, x19, #-16 */
			return h->regs.sender_sp;
	}
	return 0;
}

/* The address of a ret or br x30 to which straight-line code leads from @p; 0 = there is none. */
static uint64_t return_ahead(uint64_t p)
{
	for (int step = 0; step < RETURN_STEPS; step++, p += 4) {
		uint32_t i = load32_sig(p);

		if (code_returns(i) || i == 0xd61f03c0)
			return p;
		if (code_leaves(i) || code_pops_pair(i))
			return 0;
	}
	return 0;
}

/* A return: the caller's x29 and x30 are in the registers or on top of the stack. */
static bool interpreter_aarch64_return(struct hot *h)
{
	uint64_t pc = h->link, fp = h->at.fp, sp = h->at.sp, sender_sp;
	bool pushed = code_pops_pair(load32_sig(h->at.pc)) && sp == fp;
	uint64_t end = return_ahead(h->at.pc + 4 * (uint64_t)pushed);

	if (!end)
		return false;
	if (pushed) {
		fp = hot_word(h, sp);
		pc = hot_word(h, sp + 8);
		sp += 16;
	}
	sender_sp = sender_sp_ahead(h, end);
	if (is_sender_sp(h, sender_sp))
		sp = sender_sp;
	return return_fits_java_sig(h, pc, fp, sp) &&
	       interpreter_prologue_aarch64_entered(h, 0, pc, sp, fp);
}

static bool interpreter_prologue_aarch64_is_ordinary(const struct hot *h)
{
	uint64_t fp = h->at.fp;

	return hot_on_stack(h, fp) && fp >= h->at.sp &&
	       method_check_sig(hot_word(h, fp + 8 * (int64_t)vm_sig.method_words)) &&
	       return_known_java_sig(h, hot_word(h, fp + 8));
}

/* Entries of intrinsics (Math, CRC32, Reference.get), which build no frame. */
static bool interpreter_aarch64_frameless(struct hot *h)
{
	uint64_t sp = is_sender_sp(h, h->regs.sender_sp) ? h->regs.sender_sp : h->at.sp;
	uint64_t fp = h->at.fp;

	if (arch_code(hot_word(h, fp + 8)) == h->link) /* except for a pair of words around a call
							* of the collector */
		fp = hot_word(h, fp);
	return return_fits_java_sig(h, h->link, fp, sp) &&
	       interpreter_prologue_aarch64_entered(h, h->regs.method, h->link, sp, fp);
}

bool interpreter_prologue_sig(struct hot *h)
{
	if (interpreter_aarch64_entry(h) || interpreter_aarch64_entry_late(h) ||
	    interpreter_aarch64_return(h))
		return true;
	return !interpreter_prologue_aarch64_is_ordinary(h) && interpreter_aarch64_frameless(h);
}
