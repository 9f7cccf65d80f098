/*
 * Return addresses. Nearly every wrong stack comes from a word that was taken for one: a slot that
 * is off by what the code has pushed holds a stale return address which is as valid as the right
 * one. So a candidate is scored: does the call before it lead to the callee?
 */
#include "agent/walker/hotspot/hotspot_priv.h"

#define CALL_BYTES 5 /* e8 and a distance */

/* Is there a call instruction right before @pc? By the lengths a call can have: e8 rel32, and
 * ff /2 with register, memory, SIB and displacement. */
static bool follows_call(uint64_t pc)
{
	uint64_t word = load_code_sig(pc - 8);
	uint8_t b[8];

	__builtin_memcpy(b, &word, 8);
	return b[3] == 0xe8 || (b[6] == 0xff && (b[7] & 0x38) == 0x10) ||
	       (b[5] == 0xff && (b[6] & 0xf8) == 0x50) || (b[5] == 0xff && b[6] == 0x14) ||
	       (b[4] == 0xff && b[5] == 0x54) ||
	       (b[2] == 0xff && ((b[3] & 0xf8) == 0x90 || b[3] == 0x15)) ||
	       (b[1] == 0xff && b[2] == 0x94);
}

bool return_is_deopt_sig(const struct blob *b, uint64_t pc)
{
	uint64_t handler, mh = 0;

	if (vm_sig.nm_deopt_begin >= 0) {
		handler = load64_sig(b->base + (uint32_t)vm_sig.nm_deopt_begin);
		if (vm_sig.nm_deopt_mh_begin >= 0)
			mh = load64_sig(b->base + (uint32_t)vm_sig.nm_deopt_mh_begin);
	} else {
		handler = b->base + load32_sig(b->base + (uint32_t)vm_sig.nm_deopt_offset);
		if (vm_sig.nm_deopt_mh_offset >= 0)
			mh = b->base + load32_sig(b->base + (uint32_t)vm_sig.nm_deopt_mh_offset);
	}
	if (pc == handler || pc == mh)
		return true;
	/* from 25 on the handler begins with a call of its own and the frame shows where that returns */
	return vm_sig.version >= 25 && (pc == handler + 2 || pc == handler + 5 || pc == handler + 7);
}

/* In the code cache: valid without a look at the frame? The interpreter's are not. */
static bool is_valid_java(uint64_t pc)
{
	struct blob b;

	if (pc == vm_sig.call_stub_return || continuation_is_barrier_sig(pc))
		return true;
	if (!code_blob_sig(pc, &b) || pc < b.code)
		return false;
	return follows_call(pc) || (code_is_nmethod(&b) && return_is_deopt_sig(&b, pc));
}

bool return_fits_java_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	if (!unwind_in_code_cache_sig(pc))
		return false;
	if (!return_is_interpreter(pc))
		return is_valid_java(pc);
	if (fp < sp || !hot_on_stack(h, fp))
		return false;
	return method_check_sig(hot_word(h, fp + 8 * (int64_t)vm_sig.method_words));
}

bool return_fits_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	if (pc < GUARD_LOW)
		return false;
	if (unwind_in_code_cache_sig(pc))
		return return_fits_java_sig(h, pc, fp, sp);
	return unwind_is_code_sig(pc) && follows_call(pc);
}

bool return_known_sig(const struct hot *h, uint64_t pc)
{
	return return_is_interpreter(pc) || return_fits_sig(h, pc, 0, 0);
}

bool return_known_java_sig(const struct hot *h, uint64_t pc)
{
	return unwind_in_code_cache_sig(pc) && return_known_sig(h, pc);
}

bool return_by_fp_sig(struct hot *h, uint64_t distance_max, bool java_only)
{
	uint64_t fp = h->at.fp, pc, next;

	if (!hot_on_stack(h, fp) || fp < h->at.sp || fp - h->at.sp > distance_max)
		return false;
	pc = hot_word(h, fp + 8);
	next = hot_word(h, fp);
	if (!(java_only ? return_fits_java_sig(h, pc, next, fp + 16) :
			  return_fits_sig(h, pc, next, fp + 16)))
		return false;
	return hot_move(h, pc, fp + 16, next);
}

enum return_score return_score_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp,
				   const struct blob *callee)
{
	struct blob target, caller;
	uint64_t address;

	if (!return_fits_java_sig(h, pc, fp, sp))
		return RETURN_INVALID;
	if (return_is_interpreter(pc) || pc == vm_sig.call_stub_return ||
	    continuation_is_barrier_sig(pc))
		return RETURN_PLAUSIBLE;
	if ((load_code_sig(pc - CALL_BYTES) & 0xff) != 0xe8) {
		if (code_blob_sig(pc, &caller) && caller.kind == BLOB_NMETHOD)
			return return_is_deopt_sig(&caller, pc) ? RETURN_PLAUSIBLE :
								  RETURN_ELSEWHERE;
		return RETURN_PLAUSIBLE;
	}
	address = pc + (uint64_t)(int64_t)(int32_t)load32_unaligned_sig(pc - 4);
	if (!unwind_in_code_cache_sig(address) || !code_blob_sig(address, &target))
		return RETURN_ELSEWHERE;
	if (target.base == callee->base)
		return RETURN_CALLS_US;
	if (target.kind != BLOB_NMETHOD)
		return RETURN_PLAUSIBLE; /* a stub that resolves the call */
	return load64_sig(target.base + (uint32_t)vm_sig.nm_method) ==
			       load64_sig(callee->base + (uint32_t)vm_sig.nm_method) ?
		       RETURN_CALLS_US :
		       RETURN_ELSEWHERE;
}
