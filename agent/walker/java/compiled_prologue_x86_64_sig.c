/* x86-64: determines from the interrupted instruction and those around it how much of its frame
 * compiled code has built or removed. */
#include "agent/walker/java/hotspot_priv.h"
#include "agent/walker/native/instruction.h"

#define PROLOGUE_STEPS	12
#define PROLOGUE_SCAN	64 /* instructions */
#define POPS_MAX	6
#define OSR_ENTRY_MAX	32 /* bytes */
#define WRAPPER_END_MAX 48 /* bytes from `leave` */
#define BANG_BYTES	7
#define CALL_BYTES	5
#define JB_BYTES	2 /* the short one */
#define LEA_BYTES	7 /* lea r10, [rip + x] */
#define MOV_BYTES	10 /* mov r10, N */
#define STORE_BYTES	7 /* mov [r15 + x], r10 */
#define RESERVE_MAX	128 /* bytes of a check of the stack's reserved zone, with its call */

enum prologue {
	PROLOGUE_UNKNOWN = -1,
	PROLOGUE_BEFORE, /* nothing pushed */
	PROLOGUE_PUSHED, /* rbp pushed */
	PROLOGUE_SUBTRACTED, /* sp is lowered, rbp is not stored yet */
	PROLOGUE_DONE,
};

static uint8_t byte_at(uint64_t pc)
{
	return (uint8_t)load_code_sig(pc);
}

static bool is_pop_rbp(const struct instruction *i)
{
	return instruction_has_reg(i, OP_POP, GPR_RBP);
}

static bool is_vzeroupper(const struct instruction *i)
{
	return i->length && i->vector && i->map == MAP_0F && i->op == OP_0F_VZEROUPPER;
}

/* cmp rsp, [r15 + x] */
static bool compares_sp(const struct instruction *i)
{
	return instruction_is(i, OP_CMP_FROM) && i->wide && i->reg == GPR_RSP &&
	       instruction_has_base(i, GPR_THREAD);
}

/* mov @reg, [r15 + x], with a displacement of 32 bits */
static bool loads_from_thread(const struct instruction *i, uint8_t reg)
{
	return instruction_is(i, OP_MOV_FROM) && i->wide && i->mod == 2 && i->reg == reg &&
	       i->base == GPR_THREAD;
}

/* mov [rsp + x], rbp */
static bool stores_rbp(const struct instruction *i)
{
	return instruction_is(i, OP_MOV_TO) && i->wide && i->reg == GPR_RBP &&
	       instruction_has_base(i, GPR_RSP);
}

/* ---- prologue -------------------------------------------------------------------------------- */

/* Is it a stack bang, such as mov [rsp - 0x14000], eax? It touches the stack that the method may
 * need, so that an overflow is noticed early. */
static bool is_stack_bang(const struct instruction *i)
{
	return instruction_is(i, OP_MOV_TO) && !i->wide && i->reg == GPR_RAX && i->mod == 2 &&
	       i->base == GPR_RSP;
}

/* The length of an instruction that may be part of the prologue but does not change the stack: the
 * stack bang, alignment nops, a jump over them. 0 = another instruction. */
static uint64_t harmless_length(uint64_t pc, const struct instruction *i)
{
	if (is_stack_bang(i) || instruction_is_0f(i, OP_0F_NOP) || instruction_is(i, OP_NOP))
		return i->length;
	/* in a method that was made not entrant a jump overwrites the stack bang except for its
	 * last byte */
	if (instruction_is(i, OP_JMP) && byte_at(pc + BANG_BYTES - 1) == 0xff)
		return BANG_BYTES;
	if (instruction_is(i, OP_JMP_SHORT) && i->immediate == 5)
		return i->length + 5u;
	return 0;
}

/* The state at @pc, after sub rsp, N, which ends at @p. In C2's code the next instruction stores
 * rbp, which was not pushed. */
static enum prologue after_subtract(uint64_t p, uint64_t pc)
{
	struct instruction i;

	return instruction_at_sig(p, &i) && stores_rbp(&i) && pc < p + i.length
		       ? PROLOGUE_SUBTRACTED
		       : PROLOGUE_DONE;
}

static uint64_t compiled_prologue_x86_64_verified_entry(const struct blob *b)
{
	return vm_sig.nm_verified_entry >= 0
		       ? load64_sig(b->base + (uint32_t)vm_sig.nm_verified_entry)
		       : b->code + load16_sig(b->base + (uint32_t)vm_sig.nm_verified_entry_offset);
}

/* The address of the prologue's first instruction: the stack bang before push rbp. Other code may
 * come before it: the wrapper of Object.hashCode reads the object's header, and static methods may
 * check that their class is initialised. */
static uint64_t prologue_begin(const struct blob *b, uint64_t end)
{
	uint64_t entry = compiled_prologue_x86_64_verified_entry(b), p = entry;
	struct instruction i;

	for (int step = 0; step < PROLOGUE_SCAN && p < end && instruction_at_sig(p, &i);
	     step++, p += i.length)
		if (is_stack_bang(&i) && byte_at(p + i.length) == (OP_PUSH | GPR_RBP))
			return p;
	return entry;
}

/* How much of the prologue that begins at @p has run when @pc is the next instruction? */
static enum prologue compiled_prologue_x86_64_prologue_at(uint64_t p, uint64_t end, uint64_t pc)
{
	enum prologue state = PROLOGUE_BEFORE;
	struct instruction i;
	uint64_t length;

	if (pc <= p)
		return PROLOGUE_BEFORE;
	for (int step = 0; step < PROLOGUE_STEPS && p < end; step++, p += length) {
		enum prologue next = state;

		if (pc <= p)
			return state;
		if (!instruction_at_sig(p, &i))
			return PROLOGUE_UNKNOWN;
		length = i.length;
		if (instruction_has_reg(&i, OP_PUSH, GPR_RBP)) {
			next = PROLOGUE_PUSHED;
		} else if (instruction_computes(&i, ARITHMETIC_SUB, GPR_RSP)) {
			if (pc < p + length)
				return state;
			return state == PROLOGUE_PUSHED ? PROLOGUE_DONE
							: after_subtract(p + length, pc);
		} else if (!instruction_moves(&i, GPR_RBP, GPR_RSP)) {
			length = harmless_length(p, &i);
			if (!length)
				return PROLOGUE_UNKNOWN;
		}
		if (pc < p + length)
			return state;
		state = next;
	}
	return PROLOGUE_UNKNOWN;
}

static bool unwind_from_prologue(struct hot *h, const struct blob *b)
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
	struct instruction here;

	(void)instruction_at_sig(h->at.pc, &here);
	if (state == PROLOGUE_DONE && return_known_sig(h, pc))
		return hot_move(h, pc, end, hot_word(h, end - 16));
	if (state == PROLOGUE_SUBTRACTED && return_known_sig(h, pc))
		return hot_move(h, pc, end, fp);
	if (state == PROLOGUE_PUSHED && return_known_sig(h, second))
		return hot_move(h, second, sp + 16, first);
	if (state == PROLOGUE_BEFORE && return_known_sig(h, first))
		return hot_move(h, first, sp + 8, fp);
	if (first == fp && !instruction_has_reg(&here, OP_PUSH, GPR_RBP) &&
	    return_known_sig(h, second))
		return hot_move(h, second, sp + 16, fp);
	if (return_known_sig(h, first))
		return hot_move(h, first, sp + 8, fp);
	if (fp == sp && return_known_sig(h, second)) /* a native wrapper after mov rbp, rsp */
		return hot_move(h, second, sp + 16, first);
	if (!return_known_sig(h, pc))
		return false;
	if (stores_rbp(&here)) /* rbp is still the caller's */
		return hot_move(h, pc, end, fp);
	return hot_move(h, pc, end, hot_word(h, end - 16));
}

/* The method has a second prologue, far behind the first, where the interpreter enters it in the
 * middle of a loop (OSR), after it has removed its own frame. */
static bool unwind_from_loop_entry(struct hot *h, const struct blob *b)
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

/* Is it test [..], eax of a poll, with an address relative to rip, or in rcx (JDK 8) or r10
 * (17)? */
static bool is_poll_test(const struct instruction *i)
{
	if (!instruction_is(i, OP_TEST) || i->wide || i->reg != GPR_RAX || i->mod != 0)
		return false;
	return instruction_has_rip(i) || i->base == GPR_RCX || i->base == GPR_R10;
}

/* Does add rsp, @bytes end at @pc? */
static bool adds_to_sp(uint64_t pc, int64_t bytes)
{
	struct instruction i;

	for (uint8_t length = 4; length <= 7; length += 3) /* immediates of 8 and 32 bits */
		if (instruction_before_sig(pc, length, &i) &&
		    instruction_computes(&i, ARITHMETIC_ADD, GPR_RSP) && i.immediate == bytes)
			return true;
	return false;
}

/* Is the frame gone, by the instructions that end at @pc? The code of C1 and C2 adds the size of
 * all but rbp's slot, if there is more, and ends with `pop rbp`, whose byte alone may also be the
 * end of another instruction. That of GraalVM's compiler loads rbp from its slot and then adds the
 * frame's size. */
static bool is_removed_before(const struct blob *b, uint64_t pc)
{
	int64_t bytes = 8 * ((int64_t)b->frame_words - 1);

	if (byte_at(pc - 1) == (OP_POP | GPR_RBP) && (bytes <= 8 || adds_to_sp(pc - 1, bytes - 8)))
		return true;
	return adds_to_sp(pc, bytes);
}

/* Is there a `ret` at @pc, perhaps behind the vzeroupper of GraalVM's compiler? */
static bool is_return(uint64_t pc)
{
	struct instruction i;

	if (instruction_at_sig(pc, &i) && is_vzeroupper(&i))
		pc += i.length;
	return byte_at(pc) == OP_RET;
}

/* Is it mov r10, N with a load from there behind it? Code of JDK 8 polls like that if a part of its
 * code cache is 2 GB or more away from the polling page. */
static bool is_far_poll(const struct instruction *here, uint64_t pc)
{
	struct instruction test;

	return instruction_has_reg(here, OP_MOV_IMMEDIATE, GPR_R10) && here->wide &&
	       instruction_at_sig(pc + here->length, &test) && is_poll_test(&test);
}

/* Is it a part of the poll between the frame's removal and `ret`: cmp rsp, [r15 + x], or a load
 * from the polling page, as emitted by C1 and C2 of JDK 8 to 28? @removed: the frame was removed by
 * the instruction before @here. */
static bool is_return_poll(const struct instruction *here, uint64_t pc, bool removed)
{
	if (removed && (compares_sp(here) || loads_from_thread(here, GPR_R10) ||
			loads_from_thread(here, GPR_RCX) || is_far_poll(here, pc) ||
			(instruction_is(here, OP_TEST) && instruction_has_rip(here)) ||
			(instruction_is(here, OP_MOV_FROM) && here->wide && here->reg >= GPR_R8 &&
			 instruction_has_rip(here))))
		return true;
	if (is_vzeroupper(here) && (removed || is_return(pc)))
		return true;
	return (is_poll_test(here) || instruction_is_0f(here, OP_0F_JA)) &&
	       is_return(pc + here->length);
}

/* The register that holds a poll's pc; GraalVM's compiler takes rcx. */
static bool is_poll_register(uint8_t reg)
{
	return reg == GPR_R10 || reg == GPR_RCX;
}

/* mov [r15 + x], r10 */
static bool stores_poll_pc(uint64_t pc)
{
	struct instruction i;

	return instruction_at_sig(pc, &i) && instruction_is(&i, OP_MOV_TO) && i.wide &&
	       i.mod == 2 && is_poll_register(i.reg) && i.base == GPR_THREAD;
}

/* lea r10, [rip + x] or mov r10, N */
static bool loads_poll_pc(const struct instruction *i)
{
	return (instruction_is(i, OP_LEA) && i->wide && is_poll_register(i->reg) &&
		instruction_has_rip(i)) ||
	       (instruction_has_reg(i, OP_MOV_IMMEDIATE, GPR_R10) && i->wide);
}

/* Does a load of a poll's pc end at @pc? A store of r10 into the thread alone does not show a poll,
 * because allocations have one too. */
static bool is_poll_pc_loaded(uint64_t pc)
{
	struct instruction i;

	return (instruction_before_sig(pc, LEA_BYTES, &i) && loads_poll_pc(&i)) ||
	       (instruction_before_sig(pc, MOV_BYTES, &i) && loads_poll_pc(&i));
}

/* Is it in the code to which a triggered poll before a return jumps? It loads the poll's pc, stores
 * it in the thread and jumps away; the frame is already gone. */
static bool is_poll_stub(const struct instruction *here, uint64_t pc)
{
	if (loads_poll_pc(here))
		return stores_poll_pc(pc + here->length);
	if (instruction_is(here, OP_JMP))
		pc -= STORE_BYTES;
	else if (!instruction_is(here, OP_MOV_TO))
		return false;
	return stores_poll_pc(pc) && is_poll_pc_loaded(pc);
}

/* May this instruction follow the `leave` of a native wrapper? There are polls, the test for an
 * exception, and jumps to their handlers. */
static bool is_wrapper_end(const struct instruction *i)
{
	if (instruction_has_base(i, GPR_THREAD))
		return (instruction_is(i, OP_GROUP_3_BYTE) && i->reg == GROUP_3_TEST) ||
		       compares_sp(i) ||
		       (instruction_is(i, OP_ARITHMETIC_8) && i->reg == ARITHMETIC_CMP) ||
		       (instruction_is(i, OP_MOV_TO) && i->reg == GPR_R10);
	return loads_poll_pc(i) || is_vzeroupper(i) || instruction_is(i, OP_JMP) ||
	       instruction_is(i, OP_RET) || instruction_is_0f(i, OP_0F_JCC | (i->op & 15)) ||
	       instruction_is(i, OP_JCC_SHORT | (i->op & 15));
}

/* Are there only such instructions between the `leave` at @from and @pc? `ret` may only be the last
 * of them: it is followed by the jump to the exception's handler, and the code behind that still
 * has the frame. */
static bool is_wrapper_end_between(uint64_t from, uint64_t pc)
{
	bool returned = false;
	struct instruction i;
	uint64_t p;

	for (p = from + 1; p < pc; p += i.length) {
		if (returned || !instruction_at_sig(p, &i) || !is_wrapper_end(&i))
			return false;
		returned = instruction_is(&i, OP_RET);
	}
	return p == pc;
}

static bool is_past_leave(uint64_t pc)
{
	for (uint64_t from = pc - 1; from >= pc - WRAPPER_END_MAX; from--)
		if (byte_at(from) == OP_LEAVE && is_wrapper_end_between(from, pc))
			return true;
	return false;
}

static bool is_jb(const struct instruction *i)
{
	return instruction_is_0f(i, OP_0F_JB) || instruction_is(i, OP_JB_SHORT);
}

/*
 * Methods that a stack overflow must not interrupt (@ReservedStackAccess, such as the locks of
 * java.util.concurrent), and methods into which they are inlined, check after the frame's removal
 * whether they have used the stack's reserved zone: cmp rsp, [r15 + x]; jb over a call. Returns the
 * target of such a jb at @pc; 0 = another instruction.
 */
static uint64_t reserve_check_end(const struct blob *b, uint64_t pc)
{
	struct instruction jb, compare;

	if (!instruction_at_sig(pc, &jb) || !is_jb(&jb))
		return 0;
	for (uint8_t length = 4; length <= 7; length += 3) /* displacements of 8 and 32 bits */
		if (instruction_before_sig(pc, length, &compare) && compares_sp(&compare) &&
		    is_removed_before(b, pc - length))
			return pc + jb.length + (uint64_t)jb.immediate;
	return 0;
}

/* Is @pc at that jb or at its target, which is the poll or the jump to the stub that rethrows? */
static bool is_past_reserve_check(const struct blob *b, const struct instruction *here, uint64_t pc)
{
	if (is_jb(here))
		return reserve_check_end(b, pc) != 0;
	if (!compares_sp(here) && !loads_from_thread(here, GPR_R10) &&
	    !instruction_is(here, OP_JMP))
		return false;
	for (uint64_t from = pc - JB_BYTES; from > pc - RESERVE_MAX; from--)
		if ((byte_at(from) == OP_TWO_BYTES || byte_at(from) == OP_JB_SHORT) &&
		    reserve_check_end(b, from) == pc)
			return true;
	return false;
}

/* Has the native wrapper executed its `leave`? */
static bool is_wrapper_left(const struct instruction *here, uint64_t pc)
{
	bool is_jne = instruction_is(here, OP_JNE_SHORT) || instruction_is_0f(here, OP_0F_JNE);

	return byte_at(pc - 1) == OP_LEAVE || (is_jne && byte_at(pc + here->length) == OP_RET) ||
	       is_past_leave(pc);
}

static bool unwind_from_epilogue(struct hot *h, const struct blob *b)
{
	uint64_t sp = h->at.sp, pc = h->at.pc;
	uint64_t first = hot_word(h, sp), second = hot_word(h, sp + 8);
	bool removed = is_removed_before(b, pc);
	struct instruction here;

	(void)instruction_at_sig(pc, &here);
	if (is_pop_rbp(&here))
		return return_known_sig(h, second) && hot_move(h, second, sp + 16, first);
	if (!return_known_sig(h, first))
		return false;
	if (instruction_is(&here, OP_RET) || instruction_is(&here, OP_RET_N) ||
	    is_return_poll(&here, pc, removed) || is_poll_stub(&here, pc) ||
	    (instruction_is(&here, OP_JMP) && removed) || /* a rethrow */
	    is_past_reserve_check(b, &here, pc) ||
	    (b->kind == BLOB_NATIVE_NMETHOD && is_wrapper_left(&here, pc)))
		return hot_move(h, first, sp + 8, h->at.fp);
	return false;
}

/* ---- no frame -------------------------------------------------------------------------------- */

/* GraalVM's compiler builds no frame where a method needs none. It still reports a size of two
 * words, but no point at which the frame is complete: -1, as in CodeOffsets::frame_never_safe. */
static bool is_frame_omitted(const struct blob *b)
{
	return b->kind == BLOB_NMETHOD && b->frame_complete < 0;
}

bool compiled_prologue_sig(struct hot *h, const struct blob *b)
{
	uint64_t first = hot_word(h, h->at.sp);

	if (is_frame_omitted(b))
		return return_known_sig(h, first) && hot_move(h, first, h->at.sp + 8, h->at.fp);
	if ((int64_t)(h->at.pc - b->code) < b->frame_complete || b->frame_words <= 1)
		return unwind_from_prologue(h, b);
	return unwind_from_loop_entry(h, b) || unwind_from_epilogue(h, b);
}

/* The stub is mov rbx, the Method; jmp to the adapter. */
bool compiled_call_stub_sig(struct hot *h, const struct blob *b)
{
	uint64_t pc = h->at.pc, to = hot_word(h, h->at.sp);
	struct instruction i;

	if (instruction_at_sig(pc, &i) && instruction_is(&i, OP_JMP)) {
		pc -= MOV_BYTES;
		(void)instruction_at_sig(pc, &i);
	}
	if (!instruction_has_reg(&i, OP_MOV_IMMEDIATE, GPR_RBX) || !i.wide || to < b->code ||
	    to >= b->end || call_target_sig(to) != pc)
		return false;
	return hot_move(h, to, h->at.sp + 8, h->at.fp);
}

/* ---- pushed words ---------------------------------------------------------------------------- */

uint64_t compiled_pops_sig(uint64_t pc)
{
	struct instruction i;
	uint64_t n = 0;

	if (byte_at(pc) == OP_CALL)
		pc += CALL_BYTES;
	for (; n < POPS_MAX && instruction_at_sig(pc, &i); n++, pc += i.length)
		if (!instruction_has_reg(&i, OP_POP, i.op_reg) || is_pop_rbp(&i))
			break;
	return n;
}
