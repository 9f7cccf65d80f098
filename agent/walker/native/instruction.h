/* Decodes one x86-64 instruction: its length, its opcode and its operands. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define INSTRUCTION_BYTES_MAX 15

enum instruction_map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER };

/* General-purpose registers, as instructions number them. */
enum gpr {
	GPR_RAX,
	GPR_RCX,
	GPR_RDX,
	GPR_RBX,
	GPR_RSP,
	GPR_RBP,
	GPR_RSI,
	GPR_RDI,
	GPR_R8,
	GPR_R9,
	GPR_R10,
	GPR_R11,
	GPR_R12,
	GPR_R13,
	GPR_R14,
	GPR_R15,
	GPR_COUNT,
	GPR_THREAD = GPR_R15, /* in HotSpot's code */
};

/* Opcodes of the one-byte map by which HotSpot's code is recognised. */
enum opcode {
	OP_TWO_BYTES = 0x0f, /* the opcode is in the two-byte map */
	OP_CMP_FROM = 0x3b, /* cmp register, operand */
	OP_PUSH = 0x50, /* + register */
	OP_POP = 0x58, /* + register */
	OP_JCC_SHORT = 0x70, /* + condition */
	OP_JNE_SHORT = 0x75,
	OP_ARITHMETIC_32 = 0x81, /* operation in the ModRM byte, 32-bit immediate */
	OP_ARITHMETIC_8 = 0x83,
	OP_TEST = 0x85,
	OP_MOV_TO = 0x89, /* mov operand, register */
	OP_MOV_FROM = 0x8b, /* mov register, operand */
	OP_LEA = 0x8d,
	OP_NOP = 0x90,
	OP_MOV_IMMEDIATE = 0xb8, /* + register */
	OP_RET_N = 0xc2,
	OP_RET = 0xc3,
	OP_MOV_BYTE = 0xc6,
	OP_LEAVE = 0xc9,
	OP_CALL = 0xe8,
	OP_JMP = 0xe9,
	OP_JMP_SHORT = 0xeb,
	OP_TEST_BYTE = 0xf6,
	OP_GROUP_5 = 0xff, /* operation (call, jmp, push) in the ModRM byte */
};

enum { /* of the two-byte map */
       OP_0F_NOP = 0x1f,
       OP_0F_VZEROUPPER = 0x77, /* with VEX */
       OP_0F_JCC = 0x80, /* + condition */
       OP_0F_JB = 0x82,
       OP_0F_JNE = 0x85,
       OP_0F_JA = 0x87,
};

/* In the reg field of OP_ARITHMETIC_* and OP_GROUP_5. */
enum { ARITHMETIC_AND = 4, ARITHMETIC_SUB = 5, ARITHMETIC_CMP = 7 };
enum { GROUP_5_CALL = 2, GROUP_5_JMP = 4 };

struct instruction {
	uint8_t length; /* in bytes; 0 = unknown instruction */
	uint8_t map; /* enum instruction_map */
	uint8_t op;
	bool wide; /* REX.W */
	bool vector; /* VEX or EVEX: no general register is written */
	bool has_modrm;
	uint8_t mod, reg, rm; /* reg and rm include their REX bits */
	uint8_t op_reg; /* the register in the opcode's low bits, of opcodes that have one */
	/* of a memory operand [base + displacement] without an index; INSTRUCTION_NO_BASE = another
	 * kind */
	uint8_t base;
	int32_t displacement;
	int64_t immediate; /* sign-extended */
};

#define INSTRUCTION_NO_BASE 0xff

/* Decodes one instruction. @bytes: INSTRUCTION_BYTES_MAX + 1 bytes. false = an unknown
 * instruction. */
bool instruction_decode_sig(const uint8_t *bytes, struct instruction *ret);
/* Decodes the instruction at @pc. Call it between guard_begin_sig() and the end of the walk. Bytes
 * that cannot be read count as 0. false = an unknown instruction; then *ret has length 0 and
 * matches none of the functions below. */
bool instruction_at_sig(uint64_t pc, struct instruction *ret);
/* Decodes the @length bytes that end at @pc; false = they are not one instruction. */
bool instruction_before_sig(uint64_t pc, uint8_t length, struct instruction *ret);

static inline bool instruction_is(const struct instruction *i, uint8_t op)
{
	return i->length && i->map == MAP_ONE && !i->vector && i->op == op;
}

static inline bool instruction_is_0f(const struct instruction *i, uint8_t op)
{
	return i->length && i->map == MAP_0F && !i->vector && i->op == op;
}

/* Is it @op (OP_PUSH, OP_POP or OP_MOV_IMMEDIATE) of @reg? */
static inline bool instruction_has_reg(const struct instruction *i, uint8_t op, uint8_t reg)
{
	return instruction_is(i, op | (reg & 7)) && i->op_reg == reg;
}

/* Is it mov @to, @from, between 64-bit registers? */
static inline bool instruction_moves(const struct instruction *i, uint8_t to, uint8_t from)
{
	return i->wide && i->mod == 3 &&
	       ((instruction_is(i, OP_MOV_FROM) && i->reg == to && i->rm == from) ||
		(instruction_is(i, OP_MOV_TO) && i->rm == to && i->reg == from));
}

/* Does it have the operand [@base + a displacement]? */
static inline bool instruction_has_base(const struct instruction *i, uint8_t base)
{
	return i->has_modrm && (i->mod == 1 || i->mod == 2) && i->base == base;
}

/* Does it have the operand [rip + a displacement]? */
static inline bool instruction_has_rip(const struct instruction *i)
{
	return i->has_modrm && i->mod == 0 && (i->rm & 7) == GPR_RBP;
}

/* Is it @operation (ARITHMETIC_x) on the 64-bit register @reg and an immediate? */
static inline bool instruction_computes(const struct instruction *i, uint8_t operation, uint8_t reg)
{
	return i->wide && i->mod == 3 && i->reg == operation && i->rm == reg &&
	       (instruction_is(i, OP_ARITHMETIC_8) || instruction_is(i, OP_ARITHMETIC_32));
}

/* Is it a call or jump (@how: GROUP_5_CALL or GROUP_5_JMP) to the address in @reg? */
static inline bool instruction_goes_to(const struct instruction *i, uint8_t how, uint8_t reg)
{
	return instruction_is(i, OP_GROUP_5) && i->mod == 3 && i->reg == how && i->rm == reg;
}
