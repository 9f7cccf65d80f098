/*
 * Interpreted frames (frame_x86.hpp, frame_aarch64.hpp): the return address is at fp + 8, the
 * sender's sp at fp - 8, the Method at fp - 24. The bytecode pointer is in a register while the
 * frame is on top of the stack. interpreter_prologue_*_sig.c handles frames that are being built or
 * removed.
 */
#include "agent/walker/java/hotspot_priv.h"

#define FRAME_MAX (1u << 20) /* the largest plausible interpreted frame, in bytes */

bool interpreter_frame_sig(struct hot *h)
{
	uint64_t fp = h->at.fp, method, sender_sp, pc;
	int32_t bci = -1;

	if (!hot_on_stack(h, fp) || fp < h->at.sp || fp - h->at.sp > FRAME_MAX)
		return false;
	method = hot_word(h, fp + 8 * (int64_t)vm_sig.method_words);
	if (!method_check_sig(method))
		return false;
	if (h->leaf)
		bci = method_bci_sig(method, machine_bcp(&h->regs));
	if (bci < 0) /* the frame is not on top, or the register does not fit: the slot holds the
		      * pointer */
		bci = method_bci_sig(method, hot_word(h, fp + 8 * (int64_t)vm_sig.bcp_words));
	pc = hot_word(h, fp + 8);
	sender_sp = machine_sender_sp(fp, hot_word(h, fp + 8 * (int64_t)vm_sig.sender_sp_words));
	if (!pc || !hot_on_stack(h, sender_sp) || sender_sp <= fp)
		return false;
	hot_push_method_sig(h, method, bci, WIRE_KIND_INTERPRETED);
	hot_move(h, pc, sender_sp, hot_word(h, fp));
	return true;
}

bool interpreter_resumes_sig(uint64_t pc)
{
	for (uint32_t i = 0; i < vm_sig.n_resume; i++)
		if (pc >= vm_sig.resume[i].low && pc < vm_sig.resume[i].high)
			return true;
	return false;
}
