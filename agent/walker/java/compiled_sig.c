/*
 * Frames of compiled methods. The size of a frame is known, so the return address is at its end,
 * with three exceptions. While the frame is being built or removed, its state follows from the
 * interrupted instruction (compiled_prologue_*_sig.c). Where there is no exact debug information,
 * the code may have pushed words. A deoptimised frame keeps its real pc in a slot.
 */
#include "agent/hotspot/continuation.h"
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/java/scopes.h"

#define PUSHED_NEAR	64 /* bytes that code pushes around a call or a subtype check */
#define PUSHED_FAR	0x480 /* bytes: a ZGC barrier stub saves all vector registers */
#define SPILLED_MAX	0x1000 /* bytes */
#define WRAPPER_FRAME	256 /* bytes of arguments beyond the fixed frame of a native wrapper */
#define FP_DISTANCE_MAX 0x4000

/* ---- the caller of a whole frame ------------------------------------------------------------- */

struct caller {
	uint64_t pc, sp, fp;
	enum return_score score;
};

static uint64_t frame_end(const struct hot *h, const struct blob *b)
{
	return h->at.sp + 8 * (uint64_t)(b->frame_words > 0 ? b->frame_words : 1);
}

static struct caller caller_at(const struct hot *h, uint64_t end, uint64_t fp_if_small,
			       int32_t words)
{
	return (struct caller){ arch_code(hot_word(h, end - 8)), end,
				words > 1 ? hot_word(h, end - 16) : fp_if_small, RETURN_INVALID };
}

static void try_pops(const struct hot *h, const struct blob *b, uint64_t pc, struct caller *c)
{
	uint64_t n = compiled_pops_sig(pc);
	struct caller moved;

	if (!n)
		return;
	moved = caller_at(h, c->sp + 8 * n, 0, 2);
	if (return_score_sig(h, moved.pc, moved.fp, moved.sp, b) >= RETURN_ELSEWHERE &&
	    return_score_sig(h, c->pc, c->fp, c->sp, b) < RETURN_CALLS_US)
		*c = moved;
}

/* The intrinsic of String.indexOf copies short strings to the stack and stores the former sp on
 * top. */
static void try_saved_sp(const struct hot *h, const struct blob *b, struct caller *c)
{
	uint64_t saved = hot_word(h, h->at.sp);
	struct caller moved;

	if (saved <= h->at.sp || saved > h->at.sp + PUSHED_NEAR || saved % 8)
		return;
	moved = caller_at(h, c->sp + (saved - h->at.sp), 0, 2);
	if (return_score_sig(h, moved.pc, moved.fp, moved.sp, b) >
	    return_score_sig(h, c->pc, c->fp, c->sp, b))
		*c = moved;
}

/* Emulates the code to the next jump to find out how much it has pushed: GC barriers are behind the
 * method's code, pop what they have pushed and jump back. The space that they reserve may hold
 * stale return addresses, even of calls through stubs; a word found by emulation is preferred if
 * its call leads to this method, and inside a barrier if it is valid at all. */
static void try_emulation(const struct hot *h, const struct blob *b, struct caller *c)
{
	bool sure = h->behind || !h->leaf;
	struct caller moved;
	uint64_t pushed;

	if (!sure && c->score == RETURN_CALLS_US)
		return;
	pushed = emulate_pushed_sig(h, b);
	if (!pushed || pushed > SPILLED_MAX)
		return;
	moved = caller_at(h, frame_end(h, b) + pushed, 0, 2);
	moved.score = return_score_sig(h, moved.pc, moved.fp, moved.sp, b);
	if (moved.score > c->score || (sure && moved.score != RETURN_INVALID))
		*c = moved;
}

/* The frame may be gone although no instruction shows it: then the word on top is the return
 * address of a call to this method. */
static bool try_gone(const struct hot *h, const struct blob *b, struct caller *c)
{
	struct caller top = { arch_code(hot_word(h, h->at.sp)), h->at.sp + 8, h->at.fp,
			      RETURN_INVALID };

	if (return_score_sig(h, top.pc, top.fp, top.sp, b) < RETURN_CALLS_US)
		return false;
	*c = top;
	return true;
}

/* The slot at the frame's end does not seem to hold the return address, so the words above it are
 * searched. A word whose call does not lead to this method is accepted only if that slot holds no
 * return address at all. */
static void search_above(const struct hot *h, const struct blob *b, struct caller *c)
{
	struct caller best = *c;

	for (uint64_t k = 8; k <= PUSHED_FAR && best.score < RETURN_CALLS_US; k += 8) {
		struct caller t;

		if (k > PUSHED_NEAR &&
		    (best.score == RETURN_PLAUSIBLE || c->score == RETURN_ELSEWHERE))
			break;
		t = caller_at(h, c->sp + k, 0, 2);
		if (t.pc < GUARD_LOW)
			continue;
		t.score = return_score_sig(h, t.pc, t.fp, t.sp, b);
		if (t.score > best.score &&
		    (c->score == RETURN_INVALID || t.score == RETURN_CALLS_US))
			best = t;
	}
	*c = best;
}

static bool find_caller(struct hot *h, const struct blob *b, uint64_t pc)
{
	struct caller c = caller_at(h, frame_end(h, b), h->at.fp, b->frame_words);
	bool strict = h->leaf || !h->exact;

	if (strict && b->kind == BLOB_NMETHOD)
		try_pops(h, b, pc, &c);
	if (h->leaf && b->kind == BLOB_NMETHOD)
		try_saved_sp(h, b, &c);
	if (strict)
		c.score = return_score_sig(h, c.pc, c.fp, c.sp, b);
	else if (return_fits_java_sig(h, c.pc, c.fp, c.sp))
		c.score = RETURN_PLAUSIBLE;
	if (strict && b->kind == BLOB_NMETHOD)
		try_emulation(h, b, &c);
	if (c.score < RETURN_PLAUSIBLE &&
	    !(h->leaf && c.score == RETURN_INVALID && try_gone(h, b, &c)))
		search_above(h, b, &c);
	if (c.score != RETURN_INVALID)
		return hot_move(h, c.pc, c.sp, c.fp);
	if (!method_check_sig(hot_word(h, h->at.fp + 8 * (int64_t)vm_sig.method_words)) &&
	    return_by_fp_sig(h, FP_DISTANCE_MAX, true))
		return true;
	h->broken = "compiled_caller";
	return false;
}

uint64_t compiled_real_pc_sig(const struct blob *b, uint64_t pc, uint64_t sp)
{
	uint64_t slot, original;

	if (!return_is_deopt_sig(b, pc))
		return pc;
	slot = sp + load32_sig(b->base + (uint32_t)vm_sig.nm_orig_pc_offset);
	original = load64_sig(slot);
	return original > b->base && original < b->end ? original : pc;
}

/* Is @b the code of the method @name of Continuation? The JVM generates it when it is called for
 * the first time; until the agent's thread has found it, it is recognised by name. */
static bool is_code_of_continuation(const struct blob *b, const char *name)
{
	if (b->kind != BLOB_NATIVE_NMETHOD ||
	    !method_is_sig(load64_sig(b->base + (uint32_t)vm_sig.nm_method),
			   "jdk/internal/vm/Continuation", name))
		return false;
	__atomic_store_n(&code_places_sig.wanted, true, __ATOMIC_RELAXED);
	return true;
}

/* the root of a virtual thread */
static bool is_enter_special(const struct hot *h, const struct blob *b)
{
	if (code_places_sig.enter_special)
		return b->base == code_places_sig.enter_special;
	return h->thread && virtual_is_mounted_sig(h->thread) &&
	       is_code_of_continuation(b, "enterSpecial");
}

/* While the code of a virtual thread yields, the JVM already names its carrier, so whether it is
 * mounted does not matter here. */
static bool is_do_yield(const struct blob *b)
{
	if (code_places_sig.do_yield)
		return b->base == code_places_sig.do_yield;
	return code_places_sig.enter_special && is_code_of_continuation(b, "doYield");
}

static bool unwind_compiled_frame(struct hot *h, const struct blob *b, uint64_t pc)
{
	/* the dispatch code of a method handle has no frame and ends with a jump */
	if (b->kind == BLOB_NATIVE_NMETHOD && b->frame_words <= 1 && emulate_dispatch_sig(h))
		return true;
	if (h->leaf && compiled_prologue_sig(h, b))
		return true;
	if (b->kind == BLOB_NATIVE_NMETHOD && b->base != code_places_sig.enter_special &&
	    b->frame_words > 2 &&
	    return_by_fp_sig(h, 8 * (uint64_t)b->frame_words + WRAPPER_FRAME, true))
		return true;
	return find_caller(h, b, pc);
}

/* h->at is the caller of doYield. Chunks store its original pc, even if the frame has been
 * deoptimised since the call. */
static void remember_yield(struct hot *h)
{
	struct blob b;

	h->yield_n = h->w->n;
	h->yield_pc = h->at.pc;
	if (code_blob_sig(h->at.pc, &b) && code_is_nmethod(&b))
		h->yield_pc = compiled_real_pc_sig(&b, h->at.pc, h->at.sp);
}

bool compiled_frame_sig(struct hot *h, const struct blob *b)
{
	uint64_t pc = h->at.pc;
	bool left;

	if (h->leaf && compiled_call_stub_sig(h, b))
		pc = h->at.pc;
	if (!h->leaf)
		pc = compiled_real_pc_sig(b, pc, h->at.sp);
	scopes_push_sig(h, b, pc);
	h->java_seen = true;
	if (!h->leaf && is_enter_special(h, b)) {
		continuation_learn_sig(h);
		virtual_identity_sig(h->thread, h->w);
		return false; /* the root of a virtual thread */
	}
	left = unwind_compiled_frame(h, b, pc);
	if (left && is_do_yield(b))
		remember_yield(h);
	return left;
}

bool compiled_memo_sig(struct hot *h)
{
	struct scopes_memo memo, next;
	uint64_t end, pc;

	if (h->leaf || !scopes_memo_sig(h, h->at.pc, &memo) || !memo.exact || memo.frame_words <= 1)
		return false;
	end = h->at.sp + 8 * (uint64_t)memo.frame_words;
	pc = arch_code(hot_word(h, end - 8));
	/* a pc that is in the memo has been a return address before, so its code need not be
	 * examined again. Counts the frames first, because the second scopes_memo_sig() writes
	 * behind them */
	h->w->n += memo.n;
	if ((scopes_memo_sig(h, pc, &next) && next.exact) ||
	    return_fits_java_sig(h, pc, hot_word(h, end - 16), end)) {
		hot_move(h, pc, end, hot_word(h, end - 16));
		h->java_seen = true;
		return true;
	}
	h->w->n -= memo.n;
	return false;
}
