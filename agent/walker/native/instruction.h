/* One instruction of x86-64, as far as its length and its operands' places go. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define INSTRUCTION_BYTES_MAX 15

enum instruction_map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER };

struct instruction {
	uint8_t length;
	uint8_t map; /* enum instruction_map */
	uint8_t op;
	bool wide; /* REX.W */
	bool vector; /* VEX or EVEX: no general register is written */
	bool has_modrm;
	uint8_t mod, reg, rm; /* reg and rm with their REX bits */
	uint8_t op_reg; /* of opcodes that carry a register in their low bits */
	/* memory operand [base + displacement], without an index; 0xff = another kind */
	uint8_t base;
	int32_t displacement;
	int64_t immediate; /* sign-extended */
};

#define INSTRUCTION_NO_BASE 0xff

/* false = no instruction that is known. @bytes: INSTRUCTION_BYTES_MAX + 1. */
bool instruction_decode_sig(const uint8_t *bytes, struct instruction *ret);
