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

/* Opcodes of the one-byte map by which HotSpot's code is recognised, or that the emulation follows.
 * _BYTE: of 8-bit operands; _8 and _32: with an immediate of so many bits; _LAST: the last of
 * several that differ in a register or a condition. */
enum opcode {
	OP_TWO_BYTES = 0x0f, /* the opcode is in the two-byte map */
	OP_CMP_TO_BYTE = 0x38,
	OP_CMP_FROM = 0x3b, /* cmp register, operand */
	OP_CMP_RAX = 0x3d, /* cmp rax, immediate */
	OP_ARITHMETIC_END = 0x40, /* below it: eight operations, each in the forms below */
	OP_PUSH = 0x50, /* + register */
	OP_PUSH_LAST = 0x57,
	OP_POP = 0x58, /* + register */
	OP_POP_LAST = 0x5f,
	OP_MOVSXD = 0x63,
	OP_PUSH_32 = 0x68,
	OP_IMUL_32 = 0x69,
	OP_PUSH_8 = 0x6a,
	OP_IMUL_8 = 0x6b,
	OP_JCC_SHORT = 0x70, /* + condition */
	OP_JB_SHORT = 0x72,
	OP_JNE_SHORT = 0x75,
	OP_JCC_SHORT_LAST = 0x7f,
	OP_ARITHMETIC_32 = 0x81, /* operation in the ModRM byte */
	OP_ARITHMETIC_8 = 0x83,
	OP_TEST_BYTES = 0x84,
	OP_TEST = 0x85,
	OP_XCHG_BYTE = 0x86,
	OP_XCHG = 0x87,
	OP_MOV_TO = 0x89, /* mov operand, register */
	OP_MOV_FROM = 0x8b, /* mov register, operand */
	OP_LEA = 0x8d,
	OP_POP_TO = 0x8f, /* pop operand */
	OP_NOP = 0x90,
	OP_XCHG_RAX = 0x90, /* + register */
	OP_XCHG_RAX_LAST = 0x97,
	OP_CDQE = 0x98,
	OP_PUSHF = 0x9c,
	OP_POPF = 0x9d,
	OP_LODS_BYTE = 0xac,
	OP_LODS = 0xad,
	OP_MOV_IMMEDIATE_BYTE = 0xb0, /* + register */
	OP_MOV_IMMEDIATE = 0xb8, /* + register */
	OP_MOV_IMMEDIATE_LAST = 0xbf,
	OP_RET_N = 0xc2,
	OP_RET = 0xc3,
	OP_MOV_BYTE = 0xc6,
	OP_LEAVE = 0xc9,
	OP_INT3 = 0xcc,
	OP_IRET = 0xcf,
	OP_X87_FIRST = 0xd8,
	OP_X87_LAST = 0xdf,
	OP_CALL = 0xe8,
	OP_JMP = 0xe9,
	OP_JMP_SHORT = 0xeb,
	OP_HLT = 0xf4,
	OP_GROUP_3_BYTE = 0xf6, /* operation (test to idiv) in the ModRM byte */
	OP_GROUP_3 = 0xf7,
	OP_GROUP_5 = 0xff, /* operation (call, jmp, push) in the ModRM byte */
};

/* Operands of an opcode below OP_ARITHMETIC_END, in its low three bits; the first is written. */
enum {
	ARITHMETIC_FORM_TO_BYTE,
	ARITHMETIC_FORM_TO, /* memory or register, register */
	ARITHMETIC_FORM_FROM_BYTE,
	ARITHMETIC_FORM_FROM, /* register, memory or register */
	ARITHMETIC_FORM_AL,
	ARITHMETIC_FORM_RAX, /* rax, immediate */
};

enum { /* of the two-byte map */
       OP_0F_GROUP_7 = 0x01, /* xgetbv, rdtscp, ... */
       OP_0F_SYSCALL = 0x05,
       OP_0F_UD2 = 0x0b,
       OP_0F_NOP = 0x1f,
       OP_0F_CVTTSS2SI = 0x2c,
       OP_0F_CVTSS2SI = 0x2d,
       OP_0F_RDTSC = 0x31,
       OP_0F_CMOV = 0x40, /* + condition */
       OP_0F_CMOV_LAST = 0x4f,
       OP_0F_MOVMSKPS = 0x50,
       OP_0F_VZEROUPPER = 0x77, /* with VEX */
       OP_0F_MOVD_TO = 0x7e, /* movd operand, vector register */
       OP_0F_JCC = 0x80, /* + condition */
       OP_0F_JB = 0x82,
       OP_0F_JNE = 0x85,
       OP_0F_JA = 0x87,
       OP_0F_JCC_LAST = 0x8f,
       OP_0F_SET = 0x90, /* + condition */
       OP_0F_SET_LAST = 0x9f,
       OP_0F_CPUID = 0xa2,
       OP_0F_BT = 0xa3, /* from here: bt, bts, shld, shrd */
       OP_0F_SHRD_CL = 0xad,
       OP_0F_IMUL = 0xaf,
       OP_0F_CMPXCHG_BYTE = 0xb0,
       OP_0F_CMPXCHG = 0xb1,
       OP_0F_MOVZX_BYTE = 0xb6,
       OP_0F_POPCNT = 0xb8,
       OP_0F_UD1 = 0xb9,
       OP_0F_BITS_IMMEDIATE = 0xba, /* bt to btc, by an immediate */
       OP_0F_BSF = 0xbc, /* from here: bsf, bsr, movsx */
       OP_0F_MOVSX = 0xbf,
       OP_0F_XADD_BYTE = 0xc0,
       OP_0F_XADD = 0xc1,
       OP_0F_PMOVMSKB = 0xd7,
       OP_0F_UD0 = 0xff,
};

/* In the reg field of OP_ARITHMETIC_*, OP_GROUP_3 and OP_GROUP_5. */
enum { ARITHMETIC_ADD = 0, ARITHMETIC_AND = 4, ARITHMETIC_SUB = 5, ARITHMETIC_CMP = 7 };
enum { GROUP_3_TEST = 0, GROUP_3_NOT = 2, GROUP_3_MUL = 4 };
enum {
	GROUP_5_CALL = 2,
	GROUP_5_CALL_FAR = 3,
	GROUP_5_JMP = 4,
	GROUP_5_JMP_FAR = 5,
	GROUP_5_PUSH = 6
};

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
