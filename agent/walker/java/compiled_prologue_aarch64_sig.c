/*
 * arm64: determines from the instructions around the interrupted one how much of its frame compiled
 * code has built or removed. C1 and C2 build a frame in one of two ways (macroAssembler_aarch64,
 * build_frame): below 512 bytes by sub sp, sp, #n; stp x29, x30, [sp, #n - 16]. Larger frames and
 * native wrappers begin with stp x29, x30, [sp, #-16]!; sub sp, sp, #n - 16. The epilogue takes the
 * same steps in reverse. In the method's body x29 is an ordinary register.
 */
#include "agent/walker/java/hotspot_priv.h"

#define PROLOGUE_STEPS 24
#define BUILD_STEPS    4
#define EPILOGUE_STEPS 8
#define POLL_STEPS     4
#define RESERVE_STEPS  40 /* with the call that enables the reserved zone again */
#define POPS_MAX       64 /* bytes */

enum frame_part {
	PART_NONE, /* the frame is whole */
	PART_LINK, /* there is no frame: the return address is in x30 */
	PART_ROOM, /* sp is lowered; x29 and x30 are still the caller's */
	PART_PUSHED, /* x29 and x30 are on top of the stack */
};

static uint64_t compiled_prologue_aarch64_verified_entry(const struct blob *b)
{
	if (vm_sig.nm_verified_entry >= 0)
		return load64_sig(b->base + (uint32_t)vm_sig.nm_verified_entry);
	return b->code + load16_sig(b->base + (uint32_t)vm_sig.nm_verified_entry_offset);
}

/* If the instruction at @p begins a frame: the address of the instruction that completes it, which
 * follows closely; else 0. */
static uint64_t frame_complete_at(uint64_t p)
{
	uint32_t first = load32_sig(p);
	bool pushes = code_pushes_pair(first);

	if (!pushes && !code_lowers_sp(first))
		return 0;
	for (uint64_t end = p + 4; end < p + 4 * BUILD_STEPS; end += 4) {
		uint32_t i = load32_sig(end);

		if (pushes ? code_lowers_sp(i) : code_stores_pair(i))
			return end;
	}
	return 0;
}

/* How much of the frame, which the instructions from @p to @end build, is there at @pc? */
static enum frame_part inside_prologue(uint64_t p, uint64_t end, uint64_t pc)
{
	if (pc <= p)
		return PART_LINK;
	if (pc > end)
		return PART_NONE;
	return code_pushes_pair(load32_sig(p)) ? PART_PUSHED : PART_ROOM;
}

/* How much of the frame has the prologue built at @pc? */
static enum frame_part compiled_prologue_at(const struct blob *b, uint64_t pc)
{
	uint64_t p = compiled_prologue_aarch64_verified_entry(b);

	if (pc <= p || b->frame_words <= 1)
		return PART_LINK; /* the check of the receiver's class precedes the frame */
	for (int step = 0; step < PROLOGUE_STEPS; step++, p += 4) {
		uint64_t end = frame_complete_at(p);

		if (end)
			return inside_prologue(p, end, pc);
	}
	return pc < p ? PART_LINK : PART_NONE;
}

/* The same for the second prologue of C1's code, where it takes over a running loop (OSR): it is
 * recognised only if @pc is near it. */
static enum frame_part second_prologue_at(uint64_t pc)
{
	for (uint64_t p = pc - 4 * BUILD_STEPS; p < pc + 4 * BUILD_STEPS; p += 4) {
		uint64_t end = frame_complete_at(p);

		if (end && end >= pc)
			return inside_prologue(p, end, pc);
		if (p >= pc && code_leaves(load32_sig(p)))
			break;
	}
	return PART_NONE;
}

/*
 * Methods that a stack overflow must not interrupt (@ReservedStackAccess, such as the locks of
 * java.util.concurrent), and methods into which they are inlined, check after their epilogue
 * whether they have used the stack's reserved zone: ldr x8, [x28, #n]; cmp sp, x8; b.lo to the
 * poll, over a call. Returns the begin of the check that ends at @poll; 0 = there is none.
 */
static uint64_t reserve_check_before(uint64_t poll)
{
	for (uint64_t p = poll - 4; p > poll - 4 * RESERVE_STEPS; p -= 4)
		if (code_branch_lower(p) == poll && code_compares_sp(load32_sig(p - 4)))
			return p - 8;
	return 0;
}

/* Returns @pc or, if that is in a poll after such a check, the beginning of the check. */
static uint64_t before_reserve_check(uint64_t pc)
{
	for (uint64_t p = pc; p + 4 * POLL_STEPS > pc; p -= 4) {
		uint32_t i = load32_sig(p);
		uint64_t begin = code_loads_thread_word(i) ? reserve_check_before(p) : 0;

		if (begin)
			return begin;
		if (p != pc && code_leaves(i))
			break;
	}
	return pc;
}

/* How much of the frame has the straight-line code before @pc removed? */
static enum frame_part epilogue_at(uint64_t pc)
{
	bool raised = false;

	if (code_pops_pair(load32_sig(pc)))
		return PART_PUSHED;
	pc = before_reserve_check(pc);
	for (uint64_t p = pc - 4; p >= pc - 4 * EPILOGUE_STEPS; p -= 4) {
		uint32_t i = load32_sig(p);

		if (code_pops_pair(i))
			return PART_LINK;
		if (code_loads_pair(i))
			return raised ? PART_LINK : PART_ROOM;
		if (code_leaves(i))
			return PART_NONE;
		raised |= code_raises_sp(i);
	}
	return PART_NONE;
}

/* The same for the code to which a triggered poll before a return jumps: adr x8, poll; str x8,
 * [x28, #n]; and a jump. */
static enum frame_part poll_stub_at(const struct blob *b, uint64_t pc)
{
	for (uint64_t p = pc; p + 4 * POLL_STEPS > pc; p -= 4) {
		uint64_t poll = code_adr_x8(p);

		if (poll >= b->code && poll < b->end)
			return epilogue_at(poll);
		if (p != pc && code_leaves(load32_sig(p)))
			break;
	}
	return PART_NONE;
}

static bool compiled_prologue_unwind(struct hot *h, const struct blob *b, enum frame_part part)
{
	uint64_t sp = h->at.sp, pc = h->link, fp = h->at.fp;

	if (part == PART_NONE)
		return false;
	if (part == PART_ROOM)
		sp += 8 * (uint64_t)b->frame_words;
	if (part == PART_PUSHED) {
		fp = hot_word(h, sp);
		pc = hot_word(h, sp + 8);
		sp += 16;
	}
	return return_known_sig(h, pc) && hot_move(h, pc, sp, fp);
}

bool compiled_prologue_sig(struct hot *h, const struct blob *b)
{
	enum frame_part part = compiled_prologue_at(b, h->at.pc);

	if (part == PART_NONE)
		part = second_prologue_at(h->at.pc);
	if (part == PART_NONE)
		part = epilogue_at(h->at.pc);
	if (part == PART_NONE)
		part = poll_stub_at(b, h->at.pc);
	return compiled_prologue_unwind(h, b, part);
}

bool compiled_stub_prologue_sig(struct hot *h, const struct blob *b)
{
	uint64_t p = b->code, end = 0;
	enum frame_part part;

	for (int step = 0; step < BUILD_STEPS && !end; step++, p += 4)
		end = frame_complete_at(p);
	if (!end || code_pushes_pair(load32_sig(p - 4)))
		return false;
	part = inside_prologue(p - 4, end, h->at.pc);
	return compiled_prologue_unwind(h, b, part == PART_NONE ? epilogue_at(h->at.pc) : part);
}

/* Recognises ldp xn, xm, [sp], #n and add sp, sp, #n at @pc, or after a call at @pc. */
uint64_t compiled_pops_sig(uint64_t pc)
{
	uint32_t i = load32_sig(pc);
	uint64_t bytes = 0;

	if (code_calls_near(i) || code_calls_register(i))
		i = load32_sig(pc += 4);
	if ((i & 0xffc003e0) == 0xa8c003e0 && !code_pops_pair(i))
		bytes = (uint64_t)(i >> 15 & 63) * 8;
	else if ((i & 0xffc003ff) == 0x910003ff && !code_pops_pair(load32_sig(pc + 4)))
		bytes = i >> 10 & 0xfff;
	return bytes <= POPS_MAX ? bytes / 8 : 0;
}

bool compiled_call_stub_sig(struct hot *h, const struct blob *b)
{
	(void)h;
	(void)b;
	return false; /* not found on arm64 so far */
}
