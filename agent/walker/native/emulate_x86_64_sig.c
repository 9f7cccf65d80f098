/* See emulate.h. */
#include "agent/walker/native/emulate.h"

#include "agent/base/guard.h"
#include "agent/walker/native/instruction.h"

#define PATHS_MAX 24 /* branches that are still to be tried */
#define SEEN_MAX  64 /* jump targets met so far; power of two */

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

/* Opcodes 81 and 83: an operation on a register and an immediate. */
static void emulate_x86_64_arithmetic(struct emulation *f, const struct instruction *i)
{
	unsigned operation = i->reg & 7;

	if (i->mod != 3 || operation == 7 /* cmp */)
		return;
	if (!i->wide || !emulation_knows(f, i->rm))
		emulate_x86_64_forget(f, i->rm);
	else if (operation == 0)
		f->reg[i->rm] += (uint64_t)i->immediate;
	else if (operation == 5)
		f->reg[i->rm] -= (uint64_t)i->immediate;
	else if (operation == 4)
		f->reg[i->rm] &= (uint64_t)i->immediate;
	else
		emulate_x86_64_forget(f, i->rm);
}

static enum step emulate_x86_64_go(struct emulation *f, uint64_t to)
{
	f->pc = to;
	return STEP_ON;
}

/* Opcode ff: call, jmp, push, inc and dec. */
static enum step group_five(struct emulation *f, const struct instruction *i)
{
	switch (i->reg & 7) {
	case 2:
	case 3:
		f->known &= 1u << GPR_RSP | 1u << GPR_RBP | 1u << 3 |
			    0xf000u; /* callee-saved registers keep their values */
		return STEP_ON;
	case 4:
		if (i->mod != 3 && i->base == INSTRUCTION_NO_BASE)
			return STEP_LOST; /* the jump table of a switch */
		f->pc = i->mod == 3 ? emulate_x86_64_get(f, i->rm) : 0;
		return STEP_JUMPED;
	case 5:
		return STEP_LOST;
	case 6:
		emulate_x86_64_push(f, 0, false);
		return STEP_ON;
	default:
		if (i->mod == 3)
			emulate_x86_64_forget(f, i->rm);
		return STEP_ON;
	}
}

/* Handles the other opcodes of the one-byte map: a general register that the instruction writes
 * becomes unknown. */
static void forget_written(struct emulation *f, const struct instruction *i)
{
	uint8_t op = i->op;

	if (op >= 0xb0 && op <= 0xbf) {
		emulate_x86_64_forget(f, i->op_reg);
	} else if (op >= 0x90 && op <= 0x97) {
		if (op > 0x90) {
			emulate_x86_64_forget(f, i->op_reg);
			emulate_x86_64_forget(f, GPR_RAX);
		}
	} else if (op == 0x98 || (op < 0x40 && (op & 7) == 5 && op != 0x3d) || op == 0xac ||
		   op == 0xad) {
		emulate_x86_64_forget(f, GPR_RAX);
	} else if (!i->has_modrm || op == 0x84 || op == 0x85 || (op >= 0x38 && op <= 0x3b) ||
		   (op >= 0xd8 && op <= 0xdf)) {
		return; /* compares and tests write only flags */
	} else if (op == 0x63 || op == 0x69 || op == 0x6b || (op < 0x40 && (op & 2))) {
		emulate_x86_64_forget(f, i->reg);
	} else if (op == 0x86 || op == 0x87) {
		emulate_x86_64_forget(f, i->reg);
		if (i->mod == 3)
			emulate_x86_64_forget(f, i->rm);
	} else if ((op == 0xf6 || op == 0xf7) && (i->reg & 7) >= 4) {
		emulate_x86_64_forget(f, GPR_RAX);
		emulate_x86_64_forget(f, GPR_RDX);
	} else if ((op == 0xf6 || op == 0xf7) && (i->reg & 7) < 2) {
		return;
	} else if (i->mod == 3) {
		emulate_x86_64_forget(f, i->rm);
	}
}

static enum step step_0f(struct emulation *f, const struct instruction *i)
{
	uint8_t op = i->op;

	if (op == 0x0b || op == 0xff || op == 0xb9)
		return STEP_LOST; /* ud2 */
	if ((op >= 0x40 && op <= 0x4f) || op == 0xaf || (op >= 0xb6 && op <= 0xb8) ||
	    (op >= 0xbc && op <= 0xbf) || op == 0x50 || op == 0xd7 || op == 0x2c || op == 0x2d)
		emulate_x86_64_forget(f, i->reg);
	else if ((op >= 0x90 && op <= 0x9f) || (op >= 0xa3 && op <= 0xad) || op == 0xba ||
		 op == 0x7e || op == 0xb0 || op == 0xb1 || op == 0xc0 || op == 0xc1)
		emulate_x86_64_forget(f, i->mod == 3 ? i->rm : GPR_RAX);
	else if (op == 0xa2 || op == 0x01 || op == 0x31 || op == 0x05)
		f->known &= 1u << GPR_RSP | 1u << GPR_RBP | 1u << 3 | 0xf000u;
	return STEP_ON;
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
	f->reg[GPR_RSP] += i->op == 0xc2 ? (uint64_t)i->immediate & 0xffff : 0;
	return STEP_RETURNED;
}

static enum step step_one(struct emulation *f, const struct instruction *i)
{
	uint64_t next = f->pc;

	switch (i->op) {
	case 0x50 ... 0x57:
		emulate_x86_64_push(f, emulate_x86_64_get(f, i->op_reg),
				    emulation_knows(f, i->op_reg));
		return STEP_ON;
	case 0x58 ... 0x5f:
		pop_into(f, i->op_reg);
		return STEP_ON;
	case 0x68:
	case 0x6a:
		emulate_x86_64_push(f, (uint64_t)i->immediate, true);
		return STEP_ON;
	case 0x9c:
		emulate_x86_64_push(f, 0, false);
		return STEP_ON;
	case 0x8f:
	case 0x9d:
		f->reg[GPR_RSP] += 8;
		return STEP_ON;
	case 0x81:
	case 0x83:
		emulate_x86_64_arithmetic(f, i);
		return STEP_ON;
	case 0x89:
		move_to(f, i);
		return STEP_ON;
	case 0x8b:
		move_from(f, i);
		return STEP_ON;
	case 0x8d:
		load_address(f, i);
		return STEP_ON;
	case 0xc2:
	case 0xc3:
		return return_from(f, i);
	case 0xc9:
		return emulate_x86_64_leave(f);
	case 0xe8: /* the call returns, with the callee-saved registers unchanged */
		f->known &= 1u << GPR_RSP | 1u << GPR_RBP | 1u << 3 | 0xf000u;
		return STEP_ON;
	case 0xe9:
	case 0xeb:
		return emulate_x86_64_go(f, next + (uint64_t)i->immediate);
	case 0xcc:
	case 0xcf:
	case 0xf4:
		return STEP_LOST; /* int3, iret, hlt: not on the path of a return */
	case 0xff:
		return group_five(f, i);
	default:
		forget_written(f, i);
		return STEP_ON;
	}
}

/* ---- all paths ------------------------------------------------------------------------------- */

static bool is_branch(const struct instruction *i)
{
	return (i->map == MAP_ONE && i->op >= 0x70 && i->op <= 0x7f) ||
	       (i->map == MAP_0F && !i->vector && i->op >= 0x80 && i->op <= 0x8f);
}

/* Is it the mov of pop rdi; mov rsp, r13; jmp rdi, while r13 is unknown? So end the interpreter's
 * intrinsics, which keep the sender's sp in r13. */
static bool is_lost_sender(struct emulation *f, const struct instruction *i)
{
	bool moves = !i->vector && i->map == MAP_ONE && i->mod == 3 && i->wide &&
		     ((i->op == 0x8b && i->reg == GPR_RSP && i->rm == GPR_R13) ||
		      (i->op == 0x89 && i->rm == GPR_RSP && i->reg == GPR_R13));

	return moves && !emulation_knows(f, GPR_R13) && emulation_knows(f, GPR_RDI);
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
