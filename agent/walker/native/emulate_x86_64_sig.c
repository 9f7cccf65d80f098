/* See emulate.h. */
#include "agent/walker/native/emulate.h"

#include "agent/base/guard.h"
#include "agent/walker/native/instruction.h"

#define PATHS_MAX 24 /* branches that are still to be tried */
#define SEEN_MAX  64 /* jump targets met so far; power of two */

/* Registers that a called function leaves as they were. */
#define CALLEE_SAVED                                                                     \
	(1u << GPR_RSP | 1u << GPR_RBP | 1u << GPR_RBX | 1u << GPR_R12 | 1u << GPR_R13 | \
	 1u << GPR_R14 | 1u << GPR_R15)

enum step { STEP_ON, STEP_LOST, STEP_RETURNED, STEP_JUMPED };

static uint64_t emulate_x86_64_get(const struct emulation *f, unsigned reg)
{
	return emulation_knows(f, reg) ? f->reg[reg] : 0;
}

static void emulate_x86_64_set(struct emulation *f, unsigned reg, uint64_t value)
{
	f->reg[reg] = value;
	f->known |= 1u << reg;
}

static void emulate_x86_64_forget(struct emulation *f, unsigned reg)
{
	f->known &= ~(1u << reg);
}

/* ---- the stack ------------------------------------------------------------------------------- */

static bool emulate_x86_64_on_stack(const struct emulation *f, uint64_t address)
{
	return address >= f->low && address < f->high && address % 8 == 0;
}

static void emulate_x86_64_store(struct emulation *f, uint64_t at, uint64_t value, bool known)
{
	uint32_t i = 0;

	while (i < f->n_stored && i < EMULATE_STORED_MAX && f->stored[i].at != at)
		i++;
	if (i == f->n_stored)
		f->n_stored++;
	if (i == EMULATE_STORED_MAX)
		return;
	f->stored[i].at = at;
	f->stored[i].value = value;
	f->stored_known = (f->stored_known & ~(1u << i)) | (uint32_t)known << i;
}

static bool emulate_x86_64_load(const struct emulation *f, uint64_t at, uint64_t *ret)
{
	for (uint32_t i = 0; i < f->n_stored && i < EMULATE_STORED_MAX; i++)
		if (f->stored[i].at == at) {
			*ret = f->stored[i].value;
			return f->stored_known >> i & 1;
		}
	if (!emulate_x86_64_on_stack(f, at) || f->n_stored > EMULATE_STORED_MAX)
		return false;
	*ret = load64_sig(at);
	return true;
}

static void emulate_x86_64_push(struct emulation *f, uint64_t value, bool known)
{
	f->reg[GPR_RSP] -= 8;
	emulate_x86_64_store(f, f->reg[GPR_RSP], value, known);
}

static bool emulate_x86_64_pop(struct emulation *f, uint64_t *ret)
{
	bool known = emulate_x86_64_load(f, f->reg[GPR_RSP], ret);

	f->reg[GPR_RSP] += 8;
	return known;
}

static void pop_into(struct emulation *f, unsigned reg)
{
	uint64_t value = 0;
	bool known = emulate_x86_64_pop(f, &value);

	if (reg == GPR_RSP)
		f->known &= ~(1u << GPR_RSP);
	else if (known)
		emulate_x86_64_set(f, reg, value);
	else
		emulate_x86_64_forget(f, reg);
}

/* ---- what an instruction does ---------------------------------------------------------------- */

/* The address of a memory operand; false = it is not relative to rsp or rbp. */
static bool emulate_x86_64_operand(const struct emulation *f, const struct instruction *i,
				   uint64_t *ret)
{
	if (i->mod == 3 || (i->base != GPR_RSP && i->base != GPR_RBP) ||
	    !emulation_knows(f, i->base))
		return false;
	*ret = f->reg[i->base] + (uint64_t)(int64_t)i->displacement;
	return true;
}

static void move_from(struct emulation *f, const struct instruction *i)
{
	uint64_t at, value;

	/* HotSpot's exception stubs save the pc that threw in the thread and load it into rdx
	 * again, so rdx keeps its value */
	if (i->mod != 3 && i->base == GPR_THREAD && i->reg == GPR_RDX)
		return;
	if (i->wide && i->mod == 3 && emulation_knows(f, i->rm))
		emulate_x86_64_set(f, i->reg, f->reg[i->rm]);
	else if (i->wide && emulate_x86_64_operand(f, i, &at) && emulate_x86_64_load(f, at, &value))
		emulate_x86_64_set(f, i->reg, value);
	else
		emulate_x86_64_forget(f, i->reg);
}

static void move_to(struct emulation *f, const struct instruction *i)
{
	uint64_t at;

	if (i->mod == 3 && i->wide && emulation_knows(f, i->reg))
		emulate_x86_64_set(f, i->rm, f->reg[i->reg]);
	else if (i->mod == 3)
		emulate_x86_64_forget(f, i->rm);
	else if (i->wide && emulate_x86_64_operand(f, i, &at))
		emulate_x86_64_store(f, at, emulate_x86_64_get(f, i->reg),
				     emulation_knows(f, i->reg));
}

/* lea reg, [rsp or rbp + displacement] */
static void load_address(struct emulation *f, const struct instruction *i)
{
	uint64_t at;

	if (i->wide && emulate_x86_64_operand(f, i, &at))
		emulate_x86_64_set(f, i->reg, at);
	else
		emulate_x86_64_forget(f, i->reg);
}

/* OP_ARITHMETIC_32 and _8: an operation on a register and an immediate. */
static void emulate_x86_64_arithmetic(struct emulation *f, const struct instruction *i)
{
	unsigned operation = i->reg & 7;

	if (i->mod != 3 || operation == ARITHMETIC_CMP)
		return;
	if (!i->wide || !emulation_knows(f, i->rm))
		emulate_x86_64_forget(f, i->rm);
	else if (operation == ARITHMETIC_ADD)
		f->reg[i->rm] += (uint64_t)i->immediate;
	else if (operation == ARITHMETIC_SUB)
		f->reg[i->rm] -= (uint64_t)i->immediate;
	else if (operation == ARITHMETIC_AND)
		f->reg[i->rm] &= (uint64_t)i->immediate;
	else
		emulate_x86_64_forget(f, i->rm);
}

static enum step emulate_x86_64_go(struct emulation *f, uint64_t to)
{
	f->pc = to;
	return STEP_ON;
}

/* OP_GROUP_5: call, jmp, push, inc and dec. */
static enum step group_five(struct emulation *f, const struct instruction *i)
{
	switch (i->reg & 7) {
	case GROUP_5_CALL:
	case GROUP_5_CALL_FAR:
		f->known &= CALLEE_SAVED;
		return STEP_ON;
	case GROUP_5_JMP:
		if (i->mod != 3 && i->base == INSTRUCTION_NO_BASE)
			return STEP_LOST; /* the jump table of a switch */
		f->pc = i->mod == 3 ? emulate_x86_64_get(f, i->rm) : 0;
		return STEP_JUMPED;
	case GROUP_5_JMP_FAR:
		return STEP_LOST;
	case GROUP_5_PUSH:
		emulate_x86_64_push(f, 0, false);
		return STEP_ON;
	default:
		if (i->mod == 3)
			emulate_x86_64_forget(f, i->rm);
		return STEP_ON;
	}
}

/* Does it write rax or a part of it, without naming it as an operand? */
static bool writes_rax(uint8_t op)
{
	bool computes =
		op < OP_ARITHMETIC_END && (op & 7) == ARITHMETIC_FORM_RAX && op != OP_CMP_RAX;

	return computes || op == OP_CDQE || op == OP_LODS_BYTE || op == OP_LODS;
}

/* Compares, tests and x87 instructions write no general register. */
static bool writes_none(const struct instruction *i)
{
	switch (i->op) {
	case OP_CMP_TO_BYTE ... OP_CMP_FROM:
	case OP_TEST_BYTES:
	case OP_TEST:
	case OP_X87_FIRST ... OP_X87_LAST:
		return true;
	default:
		return !i->has_modrm;
	}
}

/* OP_GROUP_3: test, not, neg, and mul to idiv, which write rax and rdx. */
static void group_three(struct emulation *f, const struct instruction *i)
{
	unsigned operation = i->reg & 7;

	if (operation >= GROUP_3_MUL) {
		emulate_x86_64_forget(f, GPR_RAX);
		emulate_x86_64_forget(f, GPR_RDX);
	} else if (operation >= GROUP_3_NOT && i->mod == 3) {
		emulate_x86_64_forget(f, i->rm);
	}
}

/* Handles the other opcodes of the one-byte map: a general register that the instruction writes
 * becomes unknown. */
static void forget_written(struct emulation *f, const struct instruction *i)
{
	uint8_t op = i->op;

	if (op >= OP_MOV_IMMEDIATE_BYTE && op <= OP_MOV_IMMEDIATE_LAST) {
		emulate_x86_64_forget(f, i->op_reg);
	} else if (op > OP_XCHG_RAX && op <= OP_XCHG_RAX_LAST) {
		emulate_x86_64_forget(f, i->op_reg);
		emulate_x86_64_forget(f, GPR_RAX);
	} else if (writes_rax(op)) {
		emulate_x86_64_forget(f, GPR_RAX);
	} else if (writes_none(i)) {
		return;
	} else if (op == OP_MOVSXD || op == OP_IMUL_32 || op == OP_IMUL_8 ||
		   (op < OP_ARITHMETIC_END && (op & 7) >= ARITHMETIC_FORM_FROM_BYTE)) {
		emulate_x86_64_forget(f, i->reg);
	} else if (op == OP_XCHG_BYTE || op == OP_XCHG) {
		emulate_x86_64_forget(f, i->reg);
		if (i->mod == 3)
			emulate_x86_64_forget(f, i->rm);
	} else if (op == OP_GROUP_3_BYTE || op == OP_GROUP_3) {
		group_three(f, i);
	} else if (i->mod == 3) {
		emulate_x86_64_forget(f, i->rm);
	}
}

static enum step step_0f(struct emulation *f, const struct instruction *i)
{
	switch (i->op) {
	case OP_0F_UD0:
	case OP_0F_UD1:
	case OP_0F_UD2:
		return STEP_LOST;
	case OP_0F_CVTTSS2SI:
	case OP_0F_CVTSS2SI:
	case OP_0F_CMOV ... OP_0F_CMOV_LAST:
	case OP_0F_MOVMSKPS:
	case OP_0F_IMUL:
	case OP_0F_MOVZX_BYTE ... OP_0F_POPCNT:
	case OP_0F_BSF ... OP_0F_MOVSX:
	case OP_0F_PMOVMSKB:
		emulate_x86_64_forget(f, i->reg);
		return STEP_ON;
	case OP_0F_MOVD_TO:
	case OP_0F_SET ... OP_0F_SET_LAST:
	case OP_0F_BT ... OP_0F_SHRD_CL:
	case OP_0F_CMPXCHG_BYTE:
	case OP_0F_CMPXCHG:
	case OP_0F_BITS_IMMEDIATE:
	case OP_0F_XADD_BYTE:
	case OP_0F_XADD:
		emulate_x86_64_forget(f, i->mod == 3 ? i->rm : GPR_RAX);
		return STEP_ON;
	case OP_0F_GROUP_7:
	case OP_0F_SYSCALL:
	case OP_0F_RDTSC:
	case OP_0F_CPUID:
		f->known &= CALLEE_SAVED;
		return STEP_ON;
	default:
		return STEP_ON;
	}
}

static enum step emulate_x86_64_leave(struct emulation *f)
{
	if (!emulation_knows(f, GPR_RBP))
		return STEP_LOST;
	f->reg[GPR_RSP] = f->reg[GPR_RBP];
	pop_into(f, GPR_RBP);
	return STEP_ON;
}

static enum step return_from(struct emulation *f, const struct instruction *i)
{
	if (!emulate_x86_64_pop(f, &f->pc))
		f->pc = 0;
	f->reg[GPR_RSP] += i->op == OP_RET_N ? (uint64_t)i->immediate & 0xffff : 0;
	return STEP_RETURNED;
}

static enum step step_one(struct emulation *f, const struct instruction *i)
{
	uint64_t next = f->pc;

	switch (i->op) {
	case OP_PUSH ... OP_PUSH_LAST:
		emulate_x86_64_push(f, emulate_x86_64_get(f, i->op_reg),
				    emulation_knows(f, i->op_reg));
		return STEP_ON;
	case OP_POP ... OP_POP_LAST:
		pop_into(f, i->op_reg);
		return STEP_ON;
	case OP_PUSH_32:
	case OP_PUSH_8:
		emulate_x86_64_push(f, (uint64_t)i->immediate, true);
		return STEP_ON;
	case OP_PUSHF:
		emulate_x86_64_push(f, 0, false);
		return STEP_ON;
	case OP_POP_TO:
	case OP_POPF:
		f->reg[GPR_RSP] += 8;
		return STEP_ON;
	case OP_ARITHMETIC_32:
	case OP_ARITHMETIC_8:
		emulate_x86_64_arithmetic(f, i);
		return STEP_ON;
	case OP_MOV_TO:
		move_to(f, i);
		return STEP_ON;
	case OP_MOV_FROM:
		move_from(f, i);
		return STEP_ON;
	case OP_LEA:
		load_address(f, i);
		return STEP_ON;
	case OP_RET_N:
	case OP_RET:
		return return_from(f, i);
	case OP_LEAVE:
		return emulate_x86_64_leave(f);
	case OP_CALL: /* it returns */
		f->known &= CALLEE_SAVED;
		return STEP_ON;
	case OP_JMP:
	case OP_JMP_SHORT:
		return emulate_x86_64_go(f, next + (uint64_t)i->immediate);
	case OP_INT3:
	case OP_IRET:
	case OP_HLT:
		return STEP_LOST; /* not on the path of a return */
	case OP_GROUP_5:
		return group_five(f, i);
	default:
		forget_written(f, i);
		return STEP_ON;
	}
}

/* ---- all paths ------------------------------------------------------------------------------- */

static bool is_branch(const struct instruction *i)
{
	return (i->map == MAP_ONE && i->op >= OP_JCC_SHORT && i->op <= OP_JCC_SHORT_LAST) ||
	       (i->map == MAP_0F && !i->vector && i->op >= OP_0F_JCC && i->op <= OP_0F_JCC_LAST);
}

/* Is it the mov of pop rdi; mov rsp, r13; jmp rdi, while r13 is unknown? So end the interpreter's
 * intrinsics, which keep the sender's sp in r13. */
static bool is_lost_sender(struct emulation *f, const struct instruction *i)
{
	return instruction_moves(i, GPR_RSP, GPR_R13) && !emulation_knows(f, GPR_R13) &&
	       emulation_knows(f, GPR_RDI);
}

static enum step emulate_x86_64_step(struct emulation *f, const struct instruction *i)
{
	enum step s = STEP_ON;

	if (is_lost_sender(f, i)) {
		f->sender_unknown = true;
		f->pc = f->reg[GPR_RDI];
		return STEP_JUMPED;
	}
	f->pc += i->length;
	if (!i->vector && i->map == MAP_ONE)
		s = step_one(f, i);
	else if (!i->vector && i->map == MAP_0F)
		s = step_0f(f, i);
	else if (i->vector && i->map != MAP_0F)
		emulate_x86_64_forget(f, i->reg); /* BMI instructions: some of them write a general
						   * register */
	/* rsp must be known and point into the stack */
	if (s != STEP_LOST && (!emulation_knows(f, GPR_RSP) || f->reg[GPR_RSP] % 8 ||
			       f->reg[GPR_RSP] < f->low - 4096 || f->reg[GPR_RSP] > f->high))
		return STEP_LOST;
	return s;
}

/* The state at a branch, from which another path is tried. The depth of the stack at an instruction
 * is the same on each path, so it is enough to try each target once. */
struct path {
	uint64_t pc, rax, rdx, rsp, rbp, r13;
	uint32_t known, n_stored;
};

struct paths {
	struct path open[PATHS_MAX]; /* a ring: branches are tried in the order they were met */
	uint32_t first, n;
	uint64_t seen[SEEN_MAX];
	uint32_t n_seen;
};

/* Records @pc; false = it was recorded before, or there is no room. */
static bool is_new(struct paths *w, uint64_t pc)
{
	uint32_t i = (uint32_t)(pc ^ pc >> 6) % SEEN_MAX;

	while (w->seen[i] && w->seen[i] != pc)
		i = (i + 1) % SEEN_MAX;
	if (w->seen[i] == pc || w->n_seen >= SEEN_MAX - 1)
		return false;
	w->seen[i] = pc;
	w->n_seen++;
	return true;
}

static void keep_path(struct paths *w, const struct emulation *f, uint64_t pc)
{
	if (w->n >= PATHS_MAX || !is_new(w, pc))
		return;
	w->open[(w->first + w->n++) % PATHS_MAX] = (struct path){
		pc,
		f->reg[GPR_RAX],
		f->reg[GPR_RDX],
		f->reg[GPR_RSP],
		f->reg[GPR_RBP],
		f->reg[GPR_R13],
		f->known,
		f->n_stored,
	};
}

static bool next_path(struct paths *w, struct emulation *f)
{
	const struct path *path = &w->open[w->first];

	if (!w->n)
		return false;
	w->first = (w->first + 1) % PATHS_MAX;
	w->n--;
	f->pc = path->pc;
	f->reg[GPR_RAX] = path->rax;
	f->reg[GPR_RDX] = path->rdx;
	f->reg[GPR_RSP] = path->rsp;
	f->reg[GPR_RBP] = path->rbp;
	f->reg[GPR_R13] = path->r13;
	f->known = path->known &
		   (1u << GPR_RAX | 1u << GPR_RDX | 1u << GPR_RSP | 1u << GPR_RBP | 1u << GPR_R13);
	f->n_stored = path->n_stored;
	return true;
}

enum emulation_end emulate_sig(struct emulation *f, uint32_t steps_max)
{
	struct paths paths = { .n = 0 };

	for (uint32_t steps = 0; steps < steps_max; steps++) {
		struct instruction i;
		enum step s = STEP_LOST;
		uint64_t next = f->pc;

		if (instruction_at_sig(f->pc, &i)) {
			next += i.length;
			if (is_branch(&i))
				keep_path(&paths, f, next + (uint64_t)i.immediate);
			s = emulate_x86_64_step(f, &i);
		}
		if (s == STEP_RETURNED)
			return EMULATE_RETURNED;
		if (s == STEP_JUMPED && steps_max <= EMULATE_STEPS_STUB)
			return EMULATE_JUMPED;
		if (s == STEP_JUMPED) { /* a switch in compiled code: its cases follow the jump */
			f->pc = next;
			s = STEP_ON;
		}
		if (s == STEP_ON && f->pc != next && !is_new(&paths, f->pc))
			s = STEP_LOST; /* a loop */
		if (s == STEP_LOST && !next_path(&paths, f))
			return EMULATE_LOST;
	}
	return EMULATE_LOST;
}

bool emulate_straight_sig(struct emulation *f, uint32_t steps_max)
{
	for (uint32_t steps = 0; steps < steps_max; steps++) {
		struct instruction i;
		uint64_t next;

		if (!instruction_at_sig(f->pc, &i))
			return false;
		next = f->pc + i.length;
		if (emulate_x86_64_step(f, &i) != STEP_ON)
			return false;
		if (f->pc != next)
			return true;
	}
	return false;
}
