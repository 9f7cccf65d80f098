/* x86-64. Where compiled code is in building its frame or tearing it down, by the instructions
 * around the interrupted one. */
#include "agent/walker/java/hotspot_priv.h"

#define PROLOGUE_STEPS	12
#define POPS_MAX	6
#define OSR_ENTRY_MAX	32 /* bytes */
#define WRAPPER_END_MAX 48 /* bytes from `leave` */
#define JB_BYTES	6
#define RESERVE_MAX	128 /* bytes of a question for the stack's reserve, with its call */

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

/* Length of an instruction that may stand before the frame is built and does nothing to it: the
 * stack bang, nops of alignment, a jump over them. 0 = another one. */
static uint64_t harmless_length(const uint8_t *i)
{
	if (i[0] == 0x89 && i[1] == 0x84 && i[2] == 0x24)
		return 7; /* mov [rsp - 0x14000], eax */
	if (i[0] == 0xe9 && i[6] == 0xff)
		return 7; /* the same with a jump written over it: not to be entered any more */
	if (i[0] == 0x0f && i[1] == 0x1f)
		return i[2] == 0x00   ? 3
		       : i[2] == 0x40 ? 4
		       : i[2] == 0x44 ? 5
		       : i[2] == 0x80 ? 7
				      : 8;
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

static uint64_t compiled_prologue_x86_64_verified_entry(const struct blob *b)
{
	return vm_sig.nm_verified_entry >= 0
		       ? load64_sig(b->base + (uint32_t)vm_sig.nm_verified_entry)
		       : b->code + load16_sig(b->base + (uint32_t)vm_sig.nm_verified_entry_offset);
}

/* Where the frame begins to be built: the stack bang and push rbp. Before it Object.hashCode's
 * wrapper looks into the object's header, and static methods may ask whether their class is
 * initialised. */
static uint64_t prologue_begin(const struct blob *b, uint64_t end)
{
	uint64_t entry = compiled_prologue_x86_64_verified_entry(b);

	for (uint64_t p = entry; p < end; p++)
		if ((load_code_sig(p) & 0xff00000000ffffff) == 0x5500000000248489)
			return p;
	return entry;
}

/* How far has the prologue come at @pc? Decoded from its begin at @p. */
static enum prologue compiled_prologue_x86_64_prologue_at(uint64_t p, uint64_t end, uint64_t pc)
{
	enum prologue state = PROLOGUE_BEFORE;
	uint64_t length;

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
			return state == PROLOGUE_PUSHED ? PROLOGUE_DONE
							: after_subtract(p + length, pc);
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
	uint64_t sp = h->at.sp, fp = h->at.fp, first = hot_word(h, sp),
		 second = hot_word(h, sp + 8);
	uint64_t end = sp + 8 * (uint64_t)(b->frame_words > 0 ? b->frame_words : 1);
	uint64_t pc = hot_word(h, end - 8);
	uint64_t complete = b->code + (uint64_t)(int64_t)b->frame_complete + 16;
	enum prologue state = b->frame_words > 1
				      ? compiled_prologue_x86_64_prologue_at(
						prologue_begin(b, complete), complete, h->at.pc)
				      : PROLOGUE_UNKNOWN;
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

/* Where the interpreter goes on in the middle of a loop (OSR): it has left its frame, and this one
 * is built as at any entry, far behind it. */
static bool leave_loop_entry(struct hot *h, const struct blob *b)
{
	uint64_t entry, sp = h->at.sp;

	if (vm_sig.nm_osr_entry < 0 || b->kind != BLOB_NMETHOD)
		return false;
	entry = load64_sig(b->base + (uint32_t)vm_sig.nm_osr_entry);
	if (entry < b->code || h->at.pc < entry || h->at.pc >= entry + OSR_ENTRY_MAX)
		return false;
	switch (compiled_prologue_x86_64_prologue_at(entry, entry + OSR_ENTRY_MAX, h->at.pc)) {
	case PROLOGUE_BEFORE:
		return return_known_sig(h, hot_word(h, sp)) &&
		       hot_move(h, hot_word(h, sp), sp + 8, h->at.fp);
	case PROLOGUE_PUSHED:
		return return_known_sig(h, hot_word(h, sp + 8)) &&
		       hot_move(h, hot_word(h, sp + 8), sp + 16, hot_word(h, sp));
	default:
		return false;
	}
}

/* ---- epilogue -------------------------------------------------------------------------------- */

/* cmp rsp, [r15 + x] */
static bool compares_sp(const uint8_t *i)
{
	return i[0] == 0x49 && i[1] == 0x3b && (i[2] == 0x67 || i[2] == 0xa7);
}

/* The poll between `pop rbp` and `ret`: cmp rsp, [r15 + x]; or a load through a page. @before: the
 * eight bytes before. Spellings of 8 to 28, C1 and C2. */
static bool is_return_poll(const uint8_t *i, const uint8_t *before)
{
	bool popped = before[7] == 0x5d || before[7] == 0xc9;

	if (popped &&
	    (compares_sp(i) || (i[0] == 0x4d && i[1] == 0x8b && i[2] == 0x97) ||
	     (i[0] == 0x85 && i[1] == 0x05) || (i[0] == 0x49 && i[1] == 0x8b && i[2] == 0x8f) ||
	     (i[0] == 0x4c && i[1] == 0x8b)))
		return true;
	if (before[7] == 0x5d && i[0] == 0xc5 && i[1] == 0xf8 && i[2] == 0x77)
		return true; /* vzeroupper */
	return (i[0] == 0x0f && i[1] == 0x87 && i[6] == 0xc3) ||
	       (i[0] == 0x41 && i[1] == 0x85 && i[2] == 0x02 && i[3] == 0xc3) ||
	       (i[0] == 0x85 && i[1] == 0x05 && i[6] == 0xc3) ||
	       (i[0] == 0x85 && i[1] == 0x01 && i[2] == 0xc3);
}

/* mov [r15 + x], r10 behind one that loads the pc of a poll: lea r10, [rip + x] or mov r10, N. The
 * length of that; 0 = neither, as an allocation stores r10 into the thread too. */
static uint64_t poll_load_length(uint64_t store)
{
	if ((load_code_sig(store) & 0xffffff) != 0x97894d)
		return 0;
	if ((load_code_sig(store - 7) & 0xffffff) == 0x158d4c)
		return 7;
	return (load_code_sig(store - 10) & 0xffff) == 0xba49 ? 10 : 0;
}

/* Where a poll that fired goes on: its pc is loaded, stored, then a jump. The frame is gone. */
static bool is_poll_stub(uint64_t pc)
{
	return poll_load_length(pc + 7) == 7 || poll_load_length(pc + 10) == 10 ||
	       poll_load_length(pc) ||
	       ((load_code_sig(pc) & 0xff) == 0xe9 && poll_load_length(pc - 7));
}

/* Length of an instruction that a native wrapper has between `leave` and its end: polls, the test
 * for an exception, the way to their handlers. 0 = another one. */
static uint64_t wrapper_end_length(const uint8_t *i)
{
	if (i[0] == 0x41 && i[1] == 0xf6) /* test byte [r15 + x], 1 */
		return i[2] == 0x47 ? 5 : i[2] == 0x87 ? 8 : 0;
	if (i[0] == 0x49 && i[1] == 0x3b) /* cmp rsp, [r15 + x] */
		return i[2] == 0x67 ? 4 : i[2] == 0xa7 ? 7 : 0;
	if (i[0] == 0x49 && i[1] == 0x83) /* cmp [r15 + x], 0 */
		return i[2] == 0x7f ? 5 : i[2] == 0xbf ? 8 : 0;
	if (i[0] == 0x49 && i[1] == 0xba)
		return 10; /* mov r10, N */
	if ((i[0] == 0x4c && i[1] == 0x8d && i[2] == 0x15) ||
	    (i[0] == 0x4d && i[1] == 0x89 && i[2] == 0x97))
		return 7; /* lea r10, [rip + x]; mov [r15 + x], r10 */
	if (i[0] == 0xc5 && i[1] == 0xf8 && i[2] == 0x77)
		return 3; /* vzeroupper */
	if (i[0] == 0x0f && (i[1] & 0xf0) == 0x80)
		return 6;
	return (i[0] & 0xf0) == 0x70 ? 2 : i[0] == 0xe9 ? 5 : i[0] == 0xc3 ? 1 : 0;
}

/* Does a `leave` shortly before lead to @pc by such instructions alone? What follows `ret` is one
 * jump to the exception's handler, then paths that still have the frame. */
static bool is_past_leave(uint64_t pc)
{
	for (uint64_t p, from = pc - 1; from >= pc - WRAPPER_END_MAX; from--) {
		bool returned = false;
		uint64_t length = 1;

		if ((load_code_sig(from) & 0xff) != 0xc9)
			continue;
		for (p = from + 1; p < pc && length; p += length) {
			struct code c = code_at(p);

			length = returned ? 0 : wrapper_end_length(c.b);
			returned = c.b[0] == 0xc3;
		}
		if (p == pc && length)
			return true;
	}
	return false;
}

/*
 * Code of methods that no stack overflow may cut short (@ReservedStackAccess: the locks of
 * java.util.concurrent), and of those they are inlined into, asks after `pop rbp` whether it used
 * the stack's reserve: cmp rsp, [r15 + x]; jb over a call. Where such a jb at @jump leads; 0 =
 * another instruction.
 */
static uint64_t reserve_check_end(uint64_t jump)
{
	if ((load_code_sig(jump) & 0xffff) != 0x820f ||
	    ((load_code_sig(jump - 5) & 0xffffffff) != 0x673b495d &&
	     (load_code_sig(jump - 8) & 0xffffffff) != 0xa73b495d))
		return 0;
	return jump + JB_BYTES + load32_unaligned_sig(jump + 2);
}

/* At the jb, or where it leads: the poll, or the jump to the stub that rethrows. */
static bool is_past_reserve_check(uint64_t pc, const uint8_t *i)
{
	if (i[0] == 0x0f && i[1] == 0x82)
		return reserve_check_end(pc) != 0;
	if (!compares_sp(i) && !(i[0] == 0x4d && i[1] == 0x8b && i[2] == 0x97) && i[0] != 0xe9)
		return false;
	for (uint64_t from = pc - JB_BYTES; from > pc - RESERVE_MAX; from--)
		if (reserve_check_end(from) == pc)
			return true;
	return false;
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
	if (i[0] == 0xc3 || i[0] == 0xc2 || is_return_poll(i, before) || is_poll_stub(h->at.pc) ||
	    (i[0] == 0xe9 && before[7] == 0x5d) || /* to the stub that rethrows */
	    is_past_reserve_check(h->at.pc, i))
		return hot_move(h, first, sp + 8, h->at.fp);
	if (b->kind == BLOB_NATIVE_NMETHOD &&
	    (before[7] == 0xc9 || (i[0] == 0x75 && i[2] == 0xc3) ||
	     (i[0] == 0x0f && i[1] == 0x85 && i[6] == 0xc3) || is_past_leave(h->at.pc)))
		return hot_move(h, first, sp + 8, h->at.fp);
	return false;
}

bool compiled_prologue_sig(struct hot *h, const struct blob *b)
{
	if ((int64_t)(h->at.pc - b->code) < b->frame_complete || b->frame_words <= 1)
		return leave_prologue(h, b);
	return leave_loop_entry(h, b) || leave_epilogue(h, b);
}

/* mov rbx, the Method; jmp to its adapter. */
bool compiled_call_stub_sig(struct hot *h, const struct blob *b)
{
	uint64_t pc = h->at.pc, to = hot_word(h, h->at.sp);
	struct code here = code_at(pc);

	if (here.b[0] == 0xe9)
		pc -= 10;
	if ((load_code_sig(pc) & 0xffff) != 0xbb48 || to < b->code || to >= b->end ||
	    call_target_sig(to) != pc)
		return false;
	return hot_move(h, to, h->at.sp + 8, h->at.fp);
}

/* ---- pushed words ---------------------------------------------------------------------------- */

uint64_t compiled_pops_sig(uint64_t pc)
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
