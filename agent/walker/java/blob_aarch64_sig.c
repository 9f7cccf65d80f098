/*
 * arm64: finds the caller of code that is not a method: adapters, vtable stubs, intrinsics, runtime
 * stubs, the blobs for safepoints and deoptimisation. Code that makes calls begins with a push of
 * x29 and x30 and mov x29, sp, and does not change x29 afterwards. Code that makes no calls keeps
 * its return address in x30.
 */
#include "agent/hotspot/continuation.h"
#include "agent/walker/java/hotspot_priv.h"

#define FP_DISTANCE_MAX 0x4000
#define MOV_X0_SP	0x910003e0u /* mov x0, sp; the low bits are the register's number */
#define ENTRY_STEPS	4 /* instructions before the frame is built */
#define SPENT_BYTES	64
#define SAVED_LINK_MAX	48 /* bytes above sp */
#define CALL_STUB_BYTES 512 /* before and behind its call */

/* ---- by the position of the return address --------------------------------------------------- */

/* May @pc be the return address of this blob? C1 jumps to some runtime stubs with x30 set to the
 * address at which it continues, so there need not be a call before @pc. */
static bool blob_aarch64_fits(const struct hot *h, const struct blob *b, uint64_t pc, uint64_t fp,
			      uint64_t sp)
{
	struct blob caller;

	/* native code calls some code in StubRoutines, such as the call stub, and no other blobs */
	if (b->kind == BLOB_STUBS ? return_fits_sig(h, pc, fp, sp)
				  : return_fits_java_sig(h, pc, fp, sp))
		return true;
	pc = arch_code(pc);
	return b->kind == BLOB_RUNTIME && code_cache_has(pc) && code_blob_sig(pc, &caller) &&
	       caller.kind == BLOB_NMETHOD && pc >= caller.code;
}

/* Does x30 still hold the return address of a call that this code has made? */
static bool link_is_spent(const struct hot *h, const struct blob *b)
{
	if (h->link < b->code || h->link >= b->end)
		return false;
	return b->kind != BLOB_STUBS || h->at.pc - h->link < SPENT_BYTES;
}

static bool unwind_by_link(struct hot *h, const struct blob *b, uint64_t sp)
{
	return !link_is_spent(h, b) && blob_aarch64_fits(h, b, h->link, h->at.fp, sp) &&
	       hot_move(h, h->link, sp, h->at.fp);
}

/* A stub that has no frame but calls the VM has pushed x30 as the first register of a pair. */
static bool unwind_by_saved_link(struct hot *h)
{
	for (uint64_t slot = h->at.sp; slot <= h->at.sp + SAVED_LINK_MAX; slot += 16)
		if (return_fits_java_sig(h, hot_word(h, slot), h->at.fp, slot + 16))
			return hot_move(h, hot_word(h, slot), slot + 16, h->at.fp);
	return false;
}

/* The frame ends with the pair x29, x30 at @slot. */
static bool unwind_by_pair(struct hot *h, const struct blob *b, uint64_t slot)
{
	uint64_t fp = hot_word(h, slot), pc = hot_word(h, slot + 8);

	return slot >= h->at.sp && blob_aarch64_fits(h, b, pc, fp, slot + 16) &&
	       hot_move(h, pc, slot + 16, fp);
}

static bool blob_aarch64_unwind_by_size(struct hot *h, const struct blob *b)
{
	return b->frame_words > 1 &&
	       unwind_by_pair(h, b, h->at.sp + 8 * (uint64_t)b->frame_words - 16);
}

static bool unwind_by_fp(struct hot *h, const struct blob *b)
{
	return h->at.fp - h->at.sp <= FP_DISTANCE_MAX && unwind_by_pair(h, b, h->at.fp);
}

/* Will one of the next instructions push x29 and x30? */
static bool is_before_frame(const struct hot *h)
{
	for (uint64_t p = h->at.pc; p < h->at.pc + 4 * ENTRY_STEPS; p += 4) {
		uint32_t i = load32_sig(p);

		if (code_pushes_pair(i))
			return true;
		if (code_leaves(i))
			return false;
	}
	return false;
}

/* Does the call before @pc lead into this blob? Then @pc is certainly the return address. */
static bool blob_aarch64_calls(const struct blob *b, uint64_t pc)
{
	uint64_t target;

	pc = arch_code(pc);
	if (!code_cache_has(pc))
		return false;
	target = call_far_target_sig(pc);
	return target >= b->base && target < b->end;
}

/* ---- safepoint and deoptimisation ------------------------------------------------------------ */

/* The safepoint blob was entered by a poll, which is not a call. The poll's pc is in the JavaThread
 * until the blob has stored it in its frame. */
static bool blob_aarch64_unwind_safepoint(struct hot *h, const struct blob *b)
{
	uint64_t saved = load64_sig(h->thread + (uint32_t)vm_sig.thread_saved_pc);
	uint64_t fp = h->at.fp, sp = h->at.sp;
	struct blob polled;

	if (!code_cache_has(saved) || !code_blob_sig(saved, &polled) || polled.kind != BLOB_NMETHOD)
		return false;
	if (h->at.pc == b->code) { /* nothing is pushed yet: the top frame is still the nmethod's
				    * own */
		h->at.pc = saved;
		h->w->n--;
		return true;
	}
	if (h->at.pc == b->code + 4) { /* as above, after the pair was pushed */
		h->at = (struct regs){ saved, sp + 16, hot_word(h, sp) };
		h->link = arch_code(hot_word(h, sp + 8));
		h->w->n--;
		return true;
	}
	if (!hot_on_stack(h, fp) || fp < sp || fp - sp > FP_DISTANCE_MAX)
		return false;
	if (return_fits_sig(h, hot_word(h, fp + 8), hot_word(h, fp), fp + 16))
		return false; /* like any runtime stub */
	return hot_move(h, saved, fp + 16, hot_word(h, fp));
}

/* ---- exceptions ------------------------------------------------------------------------------ */

/* Exception stubs replace their return address by the pc that threw. */
static bool blob_aarch64_unwind_throw(struct hot *h, const struct blob *b)
{
	uint64_t end = h->at.sp + 8 * (uint64_t)b->frame_words;

	if (b->frame_words > 0 && return_is_throw_sig(hot_word(h, end - 8)))
		return hot_move(h, hot_word(h, end - 8), end, hot_word(h, end - 16));
	return h->leaf && return_is_throw_sig(h->regs.x3) &&
	       hot_move(h, h->regs.x3, h->at.sp, h->at.fp);
}

/* ---- interrupted stubs --------------------------------------------------------------- */

/* Does x29 point to a frame of the interpreter? */
static bool blob_aarch64_fp_is_interpreted(const struct hot *h)
{
	uint64_t fp = h->at.fp;

	return method_check_sig(hot_word(h, fp + 8 * (int64_t)vm_sig.method_words)) &&
	       hot_word(h, fp + 8 * (int64_t)vm_sig.sender_sp_words);
}

/* Does x29 point to this stub's own frame? Then the return address in it is equal to x30, or
 * belongs to a call of this stub. */
static bool has_frame(const struct hot *h, const struct blob *b)
{
	uint64_t fp = h->at.fp, pc = arch_code(hot_word(h, fp + 8));

	if (!hot_on_stack(h, fp) || fp < h->at.sp || fp - h->at.sp > FP_DISTANCE_MAX ||
	    blob_aarch64_fp_is_interpreted(h))
		return false;
	return pc == h->link || (blob_aarch64_calls(b, pc) && !blob_aarch64_calls(b, h->link));
}

/* The sp at entry. c2i saves it and then lowers sp for the arguments. i2c lowers sp below an
 * interpreted frame, whose caller is found by its fp alone. */
static uint64_t sp_before_arguments(const struct hot *h, const struct blob *b)
{
	for (uint64_t p = h->at.pc - 4; p >= b->code; p -= 4) {
		uint32_t i = load32_sig(p);

		if (i == MOV_X0_SP + machine_sender_sp_number())
			return h->regs.sender_sp;
		if (code_leaves(i))
			break;
	}
	return h->at.sp;
}

static bool blob_aarch64_unwind_adapter(struct hot *h, const struct blob *b)
{
	if (has_frame(h, b)) /* c2i is calling the VM, to have the call in its caller patched */
		return unwind_by_fp(h, b);
	return unwind_by_link(h, b, sp_before_arguments(h, b));
}

static bool blob_aarch64_is_call_stub(uint64_t pc)
{
	return pc > vm_sig.call_stub_return - CALL_STUB_BYTES &&
	       pc < vm_sig.call_stub_return + CALL_STUB_BYTES;
}

static bool unwind_by_emulation(struct hot *h, const struct blob *b)
{
	struct regs r;

	return emulate_return_sig(h, !link_is_spent(h, b), &r) && r.sp >= h->at.sp &&
	       blob_aarch64_fits(h, b, r.pc, r.fp, r.sp) && hot_move(h, r.pc, r.sp, r.fp);
}

static bool blob_aarch64_unwind_leaf_stub(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp;
	uint32_t before = load32_sig(h->at.pc - 4);

	if (b->kind == BLOB_RUNTIME && compiled_stub_prologue_sig(h, b))
		return true;
	if (!blob_aarch64_is_call_stub(h->at.pc) && unwind_by_emulation(h, b))
		return true;
	if (is_before_frame(h) || code_returns(load32_sig(h->at.pc)))
		return unwind_by_link(h, b, sp);
	/* the last instruction has pushed x29 and x30, or the next one pops them */
	if (code_pushes_pair(before) || code_pops_pair(load32_sig(h->at.pc)))
		return unwind_by_pair(h, b, sp);
	if (blob_aarch64_is_call_stub(h->at.pc))
		return unwind_by_fp(h, b);
	if (has_frame(h, b) && unwind_by_fp(h, b))
		return true;
	if (blob_aarch64_calls(b, h->link) || b->kind == BLOB_STUBS || b->frame_words <= 1)
		return unwind_by_link(h, b, sp) || unwind_by_saved_link(h) || unwind_by_fp(h, b);
	return blob_aarch64_unwind_by_size(h, b) || unwind_by_fp(h, b) ||
	       unwind_by_link(h, b, sp) || unwind_by_saved_link(h);
}

/* ---- stubs that made a call ------------------------------------------------------------------ */

static bool blob_aarch64_unwind_stub(struct hot *h, const struct blob *b)
{
	if (b->kind == BLOB_SAFEPOINT &&
	    (return_to_returning_sig(h, b) || return_to_poll_sig(h, b)))
		return true;
	if (b->kind == BLOB_DEOPT &&
	    (return_by_fp_sig(h, UINT64_MAX, true) || return_to_thrower_by_fp_sig(h)))
		return true;
	if (blob_aarch64_unwind_by_size(h, b))
		return true;
	if ((b->kind == BLOB_RUNTIME || b->kind == BLOB_EXCEPTION) &&
	    blob_aarch64_unwind_throw(h, b))
		return true;
	return (b->frame_words <= 1 && unwind_by_saved_link(h)) ||
	       return_by_fp_sig(h, UINT64_MAX, false) || unwind_by_saved_link(h);
}

bool blob_frame_sig(struct hot *h, const struct blob *b)
{
	bool left;

	hot_push_stub_sig(h, b);
	if (h->leaf && continuation_is_barrier_sig(h->at.pc))
		return unwind_by_emulation(h, b) || continuation_cross_sig(h);
	if ((b->kind == BLOB_DEOPT || b->kind == BLOB_UNCOMMON_TRAP) && deopt_frames_sig(h))
		return true;
	if (b->kind == BLOB_SAFEPOINT && h->leaf && h->thread &&
	    blob_aarch64_unwind_safepoint(h, b))
		return true;
	if (b->kind == BLOB_EXCEPTION && h->leaf && blob_aarch64_unwind_throw(h, b))
		return true;
	if (b->kind == BLOB_ADAPTER && h->leaf && blob_aarch64_unwind_adapter(h, b))
		left = true;
	else if ((b->kind == BLOB_VTABLE || b->kind == BLOB_INLINE_CACHE ||
		  b->kind == BLOB_METHOD_HANDLES) &&
		 h->leaf && unwind_by_link(h, b, h->at.sp))
		left = true;
	else if (h->leaf)
		left = blob_aarch64_unwind_leaf_stub(h, b);
	else
		left = blob_aarch64_unwind_stub(h, b);
	if (!left)
		h->broken = "stub_caller";
	return left;
}
