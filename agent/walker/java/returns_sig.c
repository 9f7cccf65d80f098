/*
 * Decides which words of the stack are return addresses. Nearly every wrong stack comes from a
 * mistake here: if the code has pushed words, the expected slot may hold a stale return address
 * that looks as valid as the right one. So each candidate gets a score, by whether the call before
 * it leads to the callee.
 */
#include "agent/hotspot/continuation.h"
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/java/scopes.h"

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
	return pc == mh || call_is_deopt_sig(pc, handler);
}

/* Is @pc, in the code cache, a valid return address whatever its frame holds? False for the
 * interpreter's, where the frame must be checked. */
static bool is_valid_java(uint64_t pc)
{
	struct blob b;

	if (pc == vm_sig.call_stub_return || continuation_is_barrier_sig(pc))
		return true;
	if (!code_blob_sig(pc, &b) || pc < b.code)
		return false;
	return call_before_sig(pc) || (code_is_nmethod(&b) && return_is_deopt_sig(&b, pc));
}

bool return_fits_java_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	pc = arch_code(pc);
	if (!code_cache_has(pc))
		return false;
	if (!return_is_interpreter(pc))
		return is_valid_java(pc);
	if (fp < sp || !hot_on_stack(h, fp))
		return false;
	return method_check_sig(hot_word(h, fp + 8 * (int64_t)vm_sig.method_words));
}

bool return_fits_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp)
{
	pc = arch_code(pc);
	if (pc < GUARD_LOW)
		return false;
	if (code_cache_has(pc))
		return return_fits_java_sig(h, pc, fp, sp);
	return unwind_is_code_sig(pc) && call_before_sig(pc);
}

bool return_known_sig(const struct hot *h, uint64_t pc)
{
	pc = arch_code(pc);
	return return_is_interpreter(pc) || return_fits_sig(h, pc, 0, 0);
}

bool return_known_java_sig(const struct hot *h, uint64_t pc)
{
	return code_cache_has(arch_code(pc)) && return_known_sig(h, pc);
}

bool return_by_fp_sig(struct hot *h, uint64_t distance_max, bool java_only)
{
	uint64_t fp = h->at.fp, pc, next;

	if (!hot_on_stack(h, fp) || fp < h->at.sp || fp - h->at.sp > distance_max)
		return false;
	pc = hot_word(h, fp + 8);
	next = hot_word(h, fp);
	if (!(java_only ? return_fits_java_sig(h, pc, next, fp + 16)
			: return_fits_sig(h, pc, next, fp + 16)))
		return false;
	return hot_move(h, pc, fp + 16, next);
}

bool return_is_throw_sig(uint64_t pc)
{
	struct blob thrower;

	pc = arch_code(pc);
	return code_cache_has(pc) && code_blob_sig(pc, &thrower) && thrower.kind == BLOB_NMETHOD &&
	       scopes_are_exact_sig(&thrower, pc);
}

/* While the blob builds its frame, the slot of the return address is 0 and the JavaThread has the
 * pc. */
static uint64_t thrower_pc(const struct hot *h, uint64_t slot)
{
	uint64_t pc = arch_code(hot_word(h, slot));

	if (!h->leaf)
		return pc;
	return pc == 0 && h->thread && vm_sig.thread_exception_pc >= 0
		       ? arch_code(load64_sig(h->thread + (uint32_t)vm_sig.thread_exception_pc))
		       : 0;
}

bool return_to_thrower_by_fp_sig(struct hot *h)
{
	uint64_t fp = h->at.fp, pc;

	if (!hot_on_stack(h, fp) || fp < h->at.sp)
		return false;
	pc = thrower_pc(h, fp + 8);
	return return_is_throw_sig(pc) && hot_move(h, pc, fp + 16, hot_word(h, fp));
}

bool return_to_poll_sig(struct hot *h, const struct blob *b)
{
	uint64_t end = h->at.sp + 8 * (uint64_t)b->frame_words, pc;
	struct blob polled;

	if (b->frame_words <= 0)
		return false;
	pc = arch_code(hot_word(h, end - 8));
	return code_cache_has(pc) && code_blob_sig(pc, &polled) && polled.kind == BLOB_NMETHOD &&
	       pc >= polled.code && hot_move(h, pc, end, hot_word(h, end - 16));
}

enum return_score return_score_sig(const struct hot *h, uint64_t pc, uint64_t fp, uint64_t sp,
				   const struct blob *callee)
{
	struct blob target, caller;
	uint64_t address;

	pc = arch_code(pc);
	if (!return_fits_java_sig(h, pc, fp, sp))
		return RETURN_INVALID;
	if (return_is_interpreter(pc) || pc == vm_sig.call_stub_return ||
	    continuation_is_barrier_sig(pc))
		return RETURN_PLAUSIBLE;
	address = call_target_sig(pc);
	if (!address) {
		if (!code_blob_sig(pc, &caller))
			return RETURN_PLAUSIBLE;
		if (caller.kind == BLOB_NMETHOD)
			return return_is_deopt_sig(&caller, pc) ? RETURN_PLAUSIBLE
								: RETURN_ELSEWHERE;
		/* runtime stubs call no compiled method */
		if (caller.kind == BLOB_RUNTIME && callee->kind == BLOB_NMETHOD)
			return RETURN_ELSEWHERE;
		return RETURN_PLAUSIBLE;
	}
	if (!code_cache_has(address) || !code_blob_sig(address, &target))
		return RETURN_ELSEWHERE;
	if (target.base == callee->base)
		return RETURN_CALLS_US;
	if (target.kind != BLOB_NMETHOD)
		return RETURN_PLAUSIBLE; /* a stub that resolves the call */
	return load64_sig(target.base + (uint32_t)vm_sig.nm_method) ==
			       load64_sig(callee->base + (uint32_t)vm_sig.nm_method)
		       ? RETURN_CALLS_US
		       : RETURN_ELSEWHERE;
}

bool return_to_returning_sig(struct hot *h, const struct blob *b)
{
	uint64_t poll = h->thread ? load64_sig(h->thread + (uint32_t)vm_sig.thread_saved_pc) : 0;
	uint64_t end = h->at.sp + 8 * (uint64_t)b->frame_words;
	uint64_t pc = hot_word(h, end - 8), fp = hot_word(h, end - 16);
	struct hot returning = *h, after;
	struct blob polled;

	if (b->frame_words <= 1 || !code_cache_has(poll) || !code_blob_sig(poll, &polled) ||
	    polled.kind != BLOB_NMETHOD ||
	    return_score_sig(h, pc, fp, end, &polled) < RETURN_PLAUSIBLE)
		return false;
	returning.at = (struct regs){ poll, end - RETURN_BYTES, fp };
	returning.link = RETURN_BYTES ? 0 : arch_code(pc);
	returning.leaf = true;
	after = returning;
	if (!compiled_prologue_sig(&after, &polled) || after.at.sp != end)
		return false;
	*h = returning;
	return true;
}
