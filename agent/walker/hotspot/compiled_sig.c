/*
 * Frames of compiled methods: their size is known, so the caller is where the frame ends. Except
 * while the frame is being built or torn down (the interrupted instruction tells which), where the
 * code has pushed words of its own (only where there is no exact debug information), and where the
 * frame was deoptimised (its real pc is kept in the frame).
 */
#include "agent/walker/hotspot/hotspot_priv.h"
#include "agent/walker/hotspot/scopes.h"

#define PROLOGUE_STEPS	12
#define PUSHED_NEAR	64 /* bytes: what code pushes around a call or a subtype check */
#define PUSHED_FAR	0x480 /* bytes: a ZGC barrier stub saves all vector registers */
#define POPS_MAX	6
#define WRAPPER_FRAME	256 /* bytes beyond the fixed frame of a native wrapper: its arguments */
#define FP_DISTANCE_MAX 0x4000

enum prologue {
	PROLOGUE_UNKNOWN = -1,
	PROLOGUE_BEFORE, /* nothing pushed */
	PROLOGUE_PUSHED, /* rbp pushed */
	PROLOGUE_SUBTRACTED, /* room made, rbp not stored yet */
	PROLOGUE_DONE,
};

struct code {
	uint8_t b[8];
};

static struct code code_at(uint64_t pc)
{
	uint64_t word = load_code_sig(pc);
	struct code c;

	__builtin_memcpy(c.b, &word, 8);
	return c;
}

/* ---- prologue -------------------------------------------------------------------------------- */

/* Length of an instruction that may stand before the frame is built and does nothing to it: the stack
 * bang, nops of alignment, a jump over them. 0 = another one. */
static uint64_t harmless_length(const uint8_t *i)
{
	if (i[0] == 0x89 && i[1] == 0x84 && i[2] == 0x24)
		return 7; /* mov [rsp - 0x14000], eax */
	if (i[0] == 0x0f && i[1] == 0x1f)
		return i[2] == 0x00 ? 3 : i[2] == 0x40 ? 4 : i[2] == 0x44 ? 5 : i[2] == 0x80 ? 7 : 8;
	if (i[0] == 0x66 && i[1] == 0x0f && i[2] == 0x1f)
		return 6;
	if (i[0] == 0x66 && i[1] == 0x66 && i[2] == 0x90)
		return 3;
	if (i[0] == 0x66 && i[1] == 0x90)
		return 2;
	if (i[0] == 0x90)
		return 1;
	if (i[0] == 0xeb && i[1] == 5)
		return 7;
	return 0;
}

/* sub rsp, N at @p: what follows says whether rbp is stored by a mov (C2) or was pushed. */
static enum prologue after_subtract(uint64_t p, uint64_t pc)
{
	struct code next = code_at(p);
	const uint8_t *j = next.b;

	if (j[0] == 0x48 && j[1] == 0x89 && (j[2] == 0x6c || j[2] == 0xac) && j[3] == 0x24)
		return pc < p + (j[2] == 0x6c ? 5 : 8) ? PROLOGUE_SUBTRACTED : PROLOGUE_DONE;
	return PROLOGUE_DONE;
}

/* How far has the prologue come at @pc? Decoded from the verified entry point. */
static enum prologue prologue_at(const struct blob *b, uint64_t pc)
{
	uint64_t end = b->code + (uint64_t)(int64_t)b->frame_complete + 16, length, p;
	enum prologue state = PROLOGUE_BEFORE;

	p = vm_sig.nm_verified_entry >= 0 ?
		    load64_sig(b->base + (uint32_t)vm_sig.nm_verified_entry) :
		    b->code + load16_sig(b->base + (uint32_t)vm_sig.nm_verified_entry_offset);
	if (pc <= p)
		return PROLOGUE_BEFORE;
	for (int step = 0; step < PROLOGUE_STEPS && p < end; step++, p += length) {
		struct code c = code_at(p);
		const uint8_t *i = c.b;

		if (pc <= p)
			return state;
		if (i[0] == 0x55) { /* push rbp */
			length = 1;
			state = PROLOGUE_PUSHED;
		} else if (i[0] == 0x48 &&
			   ((i[1] == 0x8b && i[2] == 0xec) || (i[1] == 0x89 && i[2] == 0xe5))) {
			length = 3; /* mov rbp, rsp */
		} else if (i[0] == 0x48 && (i[1] == 0x83 || i[1] == 0x81) && i[2] == 0xec) {
			length = i[1] == 0x83 ? 4 : 7;
			if (pc < p + length)
				return state;
			return state == PROLOGUE_PUSHED ? PROLOGUE_DONE :
							  after_subtract(p + length, pc);
		} else {
			length = harmless_length(i);
			if (!length)
				return PROLOGUE_UNKNOWN;
		}
		if (pc < p + length)
			return i[0] == 0x55 ? PROLOGUE_BEFORE : state;
	}
	return PROLOGUE_UNKNOWN;
}

static bool leave_prologue(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp, fp = h->at.fp, first = hot_word(h, sp), second = hot_word(h, sp + 8);
	uint64_t end = sp + 8 * (uint64_t)(b->frame_words > 0 ? b->frame_words : 1);
	uint64_t pc = hot_word(h, end - 8);
	enum prologue state = b->frame_words > 1 ? prologue_at(b, h->at.pc) : PROLOGUE_UNKNOWN;
	struct code c = code_at(h->at.pc);

	if (state == PROLOGUE_DONE && return_known_sig(h, pc))
		return hot_move(h, pc, end, hot_word(h, end - 16));
	if (state == PROLOGUE_SUBTRACTED && return_known_sig(h, pc))
		return hot_move(h, pc, end, fp);
	if (state == PROLOGUE_PUSHED && return_known_sig(h, second))
		return hot_move(h, second, sp + 16, first);
	if (state == PROLOGUE_BEFORE && return_known_sig(h, first))
		return hot_move(h, first, sp + 8, fp);
	if (first == fp && c.b[0] != 0x55 && return_known_sig(h, second))
		return hot_move(h, second, sp + 16, fp);
	if (return_known_sig(h, first))
		return hot_move(h, first, sp + 8, fp);
	if (fp == sp && return_known_sig(h, second)) /* native wrapper: mov rbp, rsp is done */
		return hot_move(h, second, sp + 16, first);
	if (!return_known_sig(h, pc))
		return false;
	/* the next instruction stores rbp: it still is the caller's */
	if (c.b[0] == 0x48 && c.b[1] == 0x89 && (c.b[2] == 0x6c || c.b[2] == 0xac))
		return hot_move(h, pc, end, fp);
	return hot_move(h, pc, end, hot_word(h, end - 16));
}

/* ---- epilogue -------------------------------------------------------------------------------- */

/* The poll between `pop rbp` and `ret`: cmp rsp, [r15 + x]; or a load through a page. @before: the
 * eight bytes before. Spellings of 8 to 28, C1 and C2. */
static bool is_return_poll(const uint8_t *i, const uint8_t *before)
{
	bool popped = before[7] == 0x5d || before[7] == 0xc9;

	if (popped && ((i[0] == 0x49 && i[1] == 0x3b && (i[2] == 0x67 || i[2] == 0xa7)) ||
		       (i[0] == 0x4d && i[1] == 0x8b && i[2] == 0x97) ||
		       (i[0] == 0x85 && i[1] == 0x05) ||
		       (i[0] == 0x49 && i[1] == 0x8b && i[2] == 0x8f) ||
		       (i[0] == 0x4c && i[1] == 0x8b)))
		return true;
	if (before[7] == 0x5d && i[0] == 0xc5 && i[1] == 0xf8 && i[2] == 0x77)
		return true; /* vzeroupper */
	return (i[0] == 0x0f && i[1] == 0x87 && i[6] == 0xc3) ||
	       (i[0] == 0x41 && i[1] == 0x85 && i[2] == 0x02 && i[3] == 0xc3) ||
	       (i[0] == 0x85 && i[1] == 0x05 && i[6] == 0xc3) ||
	       (i[0] == 0x85 && i[1] == 0x01 && i[2] == 0xc3);
}

/* Where a poll that fired goes on: lea r10, [rip + x]; mov [r15 + x], r10; jmp. The frame is gone. */
static bool is_poll_stub(const uint8_t *i, const uint8_t *before)
{
	return (i[0] == 0x4c && i[1] == 0x8d && i[2] == 0x15) ||
	       (i[0] == 0x4d && i[1] == 0x89 && i[2] == 0x97) ||
	       (i[0] == 0xe9 && before[1] == 0x4d && before[2] == 0x89 && before[3] == 0x97);
}

static bool leave_epilogue(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp, first = hot_word(h, sp), second = hot_word(h, sp + 8);
	struct code here = code_at(h->at.pc), previous = code_at(h->at.pc - 8);
	const uint8_t *i = here.b, *before = previous.b;

	if (i[0] == 0x5d) /* pop rbp */
		return return_known_sig(h, second) && hot_move(h, second, sp + 16, first);
	if (!return_known_sig(h, first))
		return false;
	if (i[0] == 0xc3 || i[0] == 0xc2 || is_return_poll(i, before) || is_poll_stub(i, before))
		return hot_move(h, first, sp + 8, h->at.fp);
	/* native wrapper: leave; test for an exception; jne; ret */
	if (b->kind == BLOB_NATIVE_NMETHOD &&
	    (before[7] == 0xc9 || (i[0] == 0x75 && i[2] == 0xc3) ||
	     (i[0] == 0x0f && i[1] == 0x85 && i[6] == 0xc3)))
		return hot_move(h, first, sp + 8, h->at.fp);
	return false;
}

/* The interrupted instruction builds the frame or tears it down. */
static bool leave_edge(struct hot *h, const struct blob *b)
{
	if ((int64_t)(h->at.pc - b->code) < b->frame_complete || b->frame_words <= 1)
		return leave_prologue(h, b);
	return leave_epilogue(h, b);
}

/* ---- the caller of a whole frame ------------------------------------------------------------- */

struct caller {
	uint64_t pc, sp, fp;
	enum return_score score;
};

static struct caller caller_at(const struct hot *h, uint64_t end, uint64_t fp_if_small,
			       int32_t words)
{
	return (struct caller){ hot_word(h, end - 8), end,
				words > 1 ? hot_word(h, end - 16) : fp_if_small, RETURN_INVALID };
}

/* Pops that still lie ahead at the interrupted pc: so many words are on top of the frame. */
static uint64_t pops_ahead(uint64_t pc)
{
	uint64_t n = 0;

	if ((load_code_sig(pc) & 0xff) == 0xe8)
		pc += 5;
	for (; n < POPS_MAX; n++) {
		struct code c = code_at(pc);

		if (c.b[0] >= 0x58 && c.b[0] <= 0x5f && c.b[0] != 0x5d)
			pc++;
		else if (c.b[0] == 0x41 && (c.b[1] & 0xf8) == 0x58)
			pc += 2;
		else
			break;
	}
	return n;
}

static void try_pops(const struct hot *h, const struct blob *b, uint64_t pc, struct caller *c)
{
	uint64_t n = pops_ahead(pc);
	struct caller moved;

	if (!n)
		return;
	moved = caller_at(h, c->sp + 8 * n, 0, 2);
	if (return_score_sig(h, moved.pc, moved.fp, moved.sp, b) >= RETURN_ELSEWHERE &&
	    return_score_sig(h, c->pc, c->fp, c->sp, b) < RETURN_CALLS_US)
		*c = moved;
}

/* The nominal slot does not fit: look above it. A fit that is not exact is taken only where the
 * nominal one is no return address at all. */
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
	uint64_t end = h->at.sp + 8 * (uint64_t)(b->frame_words > 0 ? b->frame_words : 1);
	struct caller c = caller_at(h, end, h->at.fp, b->frame_words);
	bool strict = h->leaf || !h->exact;

	if (strict && b->kind == BLOB_NMETHOD)
		try_pops(h, b, pc, &c);
	if (strict)
		c.score = return_score_sig(h, c.pc, c.fp, c.sp, b);
	else if (return_fits_java_sig(h, c.pc, c.fp, c.sp))
		c.score = RETURN_PLAUSIBLE;
	if (c.score < RETURN_PLAUSIBLE)
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

bool compiled_frame_sig(struct hot *h, const struct blob *b)
{
	uint64_t pc = h->at.pc;

	if (!h->leaf)
		pc = compiled_real_pc_sig(b, pc, h->at.sp);
	scopes_push_sig(h, b, pc);
	h->java_seen = true;
	if (b->base == code_places_sig.enter_special && !h->leaf) {
		continuation_learn_sig(h);
		virtual_identity_sig(h);
		return false; /* a virtual thread's root */
	}
	h->yielding |= b->base == code_places_sig.do_yield;
	if (h->leaf && leave_edge(h, b))
		return true;
	if (b->kind == BLOB_NATIVE_NMETHOD && b->base != code_places_sig.enter_special &&
	    b->frame_words > 2 &&
	    return_by_fp_sig(h, 8 * (uint64_t)b->frame_words + WRAPPER_FRAME, true))
		return true;
	return find_caller(h, b, pc);
}

bool compiled_memo_sig(struct hot *h)
{
	struct scopes_memo memo, next;
	uint64_t end, pc;

	if (h->leaf || !scopes_memo_sig(h, h->at.pc, &memo) || !memo.exact || memo.frame_words <= 1)
		return false;
	end = h->at.sp + 8 * (uint64_t)memo.frame_words;
	pc = hot_word(h, end - 8);
	/* a pc that was met as a caller before is one: no need to look at the code again. The peek
	 * writes behind the frames that are counted next */
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
