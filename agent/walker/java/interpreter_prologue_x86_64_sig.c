/*
 * Interpreted frames on x86-64 while they are built or removed (templateInterpreterGenerator_x86,
 * remove_activation of the macro assembler): under -Xint one sample in twenty. The contents of the
 * registers distinguish the cases.
 */
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/native/instruction.h"

#define PART_MAX	0x10000ull /* bytes from sp to the sender's sp at entry and return */
#define ENTRY_FRAME_MAX 0x60ull /* bytes of the fixed part that an entry pushes */

/* Pushes the method that is being entered or left and moves to its caller. @method: 0 = do not push
 * it. */
static bool interpreter_prologue_x86_64_entered(struct hot *h, uint64_t method, uint64_t pc,
						uint64_t sp, uint64_t fp)
{
	if (method)
		hot_push_method_sig(h, method, 0, WIRE_KIND_INTERPRETED);
	hot_move(h, pc, sp, fp);
	return true;
}

/* From the entry point until the bytecode pointer is set, rbx is the Method and r13 the sender's
 * sp. */
static bool interpreter_x86_64_entry(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, r13 = h->regs.r13, top, second, pc;

	if (!method_check_sig(h->regs.rbx) || !hot_on_stack(h, r13) || r13 < sp ||
	    r13 - sp >= PART_MAX)
		return false;
	if (hot_on_stack(h, fp) && fp >= sp && fp < r13) { /* fp is already that of the new frame */
		pc = hot_word(h, fp + 8);
		return return_known_java_sig(h, pc) &&
		       interpreter_prologue_x86_64_entered(h, h->regs.rbx, pc, r13,
							   hot_word(h, fp));
	}
	top = hot_word(h, sp);
	second = hot_word(h, sp + 8);
	if (return_fits_java_sig(h, top, fp, sp))
		return interpreter_prologue_x86_64_entered(h, h->regs.rbx, top, r13, fp);
	if (top == fp && return_fits_java_sig(h, second, fp, sp))
		return interpreter_prologue_x86_64_entered(h, h->regs.rbx, second, r13, fp);
	if (return_fits_java_sig(h, h->regs.rax, fp, sp)) /* the entry has popped the return
							   * address, to reserve space for the
							   * locals */
		return interpreter_prologue_x86_64_entered(h, h->regs.rbx, h->regs.rax, r13, fp);
	return false;
}

/* Later in an entry: r13 already points to the ConstMethod or to the bytecodes (a native method has
 * none), but the Method is not pushed yet. */
static bool interpreter_x86_64_entry_late(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, method = h->regs.rbx, sender_sp, pc, code;

	if (!hot_on_stack(h, fp) || fp < sp || fp - sp > ENTRY_FRAME_MAX ||
	    !method_check_sig(method))
		return false;
	code = load64_sig(method + (uint32_t)vm_sig.method_const);
	if (h->regs.r13 != code && h->regs.r13 != code + (uint32_t)vm_sig.const_size &&
	    method_bci_sig(method, h->regs.r13) < 0)
		return false;
	if (fp - sp >= 24 && hot_word(h, fp + 8 * (int64_t)vm_sig.method_words) == method)
		return false; /* complete */
	pc = hot_word(h, fp + 8);
	sender_sp = hot_word(h, fp + 8 * (int64_t)vm_sig.sender_sp_words);
	if (!hot_on_stack(h, sender_sp) || sender_sp <= fp || !return_known_java_sig(h, pc))
		return false;
	return interpreter_prologue_x86_64_entered(h, method, pc, sender_sp, hot_word(h, fp));
}

/* Is it mov byte [r8 to r15 + x], N, by which JDK 25 clears a flag of the thread after `leave`? */
static bool interpreter_x86_64_sets_flag(const struct instruction *i)
{
	return instruction_is(i, OP_MOV_BYTE) && i->rm >= GPR_R8;
}

/* Is it mov rsp, rbx (or another register) or jmp rdi? The return address is then in rdi. */
static bool interpreter_x86_64_is_in_rdi(const struct instruction *i)
{
	return (instruction_is(i, OP_MOV_FROM) && i->wide && i->mod == 3 && i->reg == GPR_RSP) ||
	       instruction_goes_to(i, GROUP_5_JMP, GPR_RDI);
}

/* leave; (JDK 25: movb) pop r13; mov rsp, rbx; jmp r13: rbx is the sender's sp. Native methods use
 * rdi instead of r13, and their rbx may hold anything. */
static bool interpreter_x86_64_return(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, rbx = h->regs.rbx;
	bool left = (load_code_sig(h->at.pc - 1) & 0xff) == OP_LEAVE;
	struct instruction here;

	(void)instruction_at_sig(h->at.pc, &here);
	if (hot_on_stack(h, rbx) && rbx >= sp && rbx - sp < PART_MAX) {
		if ((left || instruction_has_reg(&here, OP_POP, GPR_R13)) &&
		    return_fits_java_sig(h, hot_word(h, sp), fp, sp))
			return interpreter_prologue_x86_64_entered(h, 0, hot_word(h, sp), rbx, fp);
		if (return_fits_java_sig(h, h->regs.r13, fp, rbx))
			return interpreter_prologue_x86_64_entered(h, 0, h->regs.r13, rbx, fp);
	}
	left = left && interpreter_x86_64_sets_flag(&here);
	if ((instruction_has_reg(&here, OP_POP, GPR_RDI) || left) &&
	    return_fits_java_sig(h, hot_word(h, sp), fp, sp))
		return interpreter_prologue_x86_64_entered(h, 0, hot_word(h, sp), sp + 8, fp);
	if (interpreter_x86_64_is_in_rdi(&here) && return_fits_java_sig(h, h->regs.rdi, fp, sp))
		return interpreter_prologue_x86_64_entered(h, 0, h->regs.rdi, sp, fp);
	return false;
}

static bool interpreter_prologue_x86_64_is_ordinary(const struct hot *h)
{
	uint64_t fp = h->at.fp;

	return hot_on_stack(h, fp) && fp >= h->at.sp &&
	       method_check_sig(hot_word(h, fp + 8 * (int64_t)vm_sig.method_words)) &&
	       hot_on_stack(h, hot_word(h, fp + 8 * (int64_t)vm_sig.sender_sp_words)) &&
	       return_known_java_sig(h, hot_word(h, fp + 8));
}

/* Entries of intrinsics (Math, CRC32, Reference.get), which build no frame. */
static bool interpreter_x86_64_frameless(struct hot *h)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, r13 = h->regs.r13;
	uint64_t method = method_check_sig(h->regs.rbx) ? h->regs.rbx : 0;
	bool r13_is_sp = hot_on_stack(h, r13) && r13 >= sp && r13 - sp < 0x1000;

	if (return_fits_java_sig(h, hot_word(h, sp), fp, sp))
		return interpreter_prologue_x86_64_entered(
			h, method, hot_word(h, sp), r13_is_sp && r13 > sp ? r13 : sp + 8, fp);
	if (return_fits_java_sig(h, h->regs.rax, fp, sp))
		return interpreter_prologue_x86_64_entered(h, 0, h->regs.rax, r13_is_sp ? r13 : sp,
							   fp);
	if (return_fits_java_sig(h, h->regs.rdi, fp, sp))
		return interpreter_prologue_x86_64_entered(h, 0, h->regs.rdi, sp, fp);
	return false;
}

bool interpreter_prologue_sig(struct hot *h)
{
	/* the end of a native method resembles a late entry, so returns are checked before late
	 * entries */
	if (interpreter_x86_64_entry(h) || interpreter_x86_64_return(h) ||
	    interpreter_x86_64_entry_late(h))
		return true;
	return !interpreter_prologue_x86_64_is_ordinary(h) && interpreter_x86_64_frameless(h);
}
