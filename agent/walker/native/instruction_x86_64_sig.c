/* See instruction.h. Intel's manual, volume 2: chapter 2 for prefixes and ModRM, appendix A for the
 * opcode maps. */
#include "agent/walker/native/instruction.h"

#include "agent/base/guard.h"

struct decoder {
	const uint8_t *bytes;
	uint32_t at;
	bool narrow; /* prefix 66: immediates have 16 bits */
	uint8_t rex_r, rex_x, rex_b; /* 8 or 0 */
};

/* ---- opcode maps ----------------------------------------------------------------------------- */

static bool has_modrm_one(uint8_t op)
{
	switch (op) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xf6:
	case 0xf7:
	case 0xfe:
	case 0xff:
		return true;
	default:
		return (op < 0x40 && (op & 7) < 4) || (op >= 0x80 && op <= 0x8f) ||
		       (op >= 0xd0 && op <= 0xd3) || (op >= 0xd8 && op <= 0xdf);
	}
}

static bool has_modrm_0f(uint8_t op)
{
	if ((op >= 0x80 && op <= 0x8f) || (op >= 0xc8 && op <= 0xcf) || (op >= 0x30 && op <= 0x37))
		return false;
	switch (op) {
	case 0x04 ... 0x0c:
	case 0x0e:
	case 0x77:
	case 0xa0 ... 0xa2:
	case 0xa8 ... 0xaa:
		return false;
	default:
		return true;
	}
}

/* Bytes of the immediate operand of an opcode in the one-byte map; @four: 4, or 2 with prefix
 * 66. */
static uint32_t immediate_one(const struct instruction *i, uint32_t four)
{
	uint8_t op = i->op;

	if (op < 0x40)
		return (op & 7) == 4 ? 1 : (op & 7) == 5 ? four : 0;
	switch (op) {
	case 0x68:
	case 0x69:
	case 0x81:
	case 0xa9:
	case 0xc7:
		return four;
	case 0xe8:
	case 0xe9:
		return 4;
	case 0xb8 ... 0xbf:
		return i->wide ? 8 : four;
	case 0xa0 ... 0xa3:
		return 8;
	case 0xf6:
		return (i->reg & 7) < 2 ? 1 : 0;
	case 0xf7:
		return (i->reg & 7) < 2 ? four : 0;
	case 0xc2:
	case 0xca:
		return 2;
	case 0xc8:
		return 3;
	case 0x6a:
	case 0x6b:
	case 0x70 ... 0x7f:
	case 0x80:
	case 0x83:
	case 0xa8:
	case 0xb0 ... 0xb7:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xcd:
	case 0xd4:
	case 0xd5:
	case 0xe0 ... 0xe7:
	case 0xeb:
		return 1;
	default:
		return 0;
	}
}

static uint32_t immediate_0f(const struct instruction *i)
{
	switch (i->op) {
	case 0x70 ... 0x73:
	case 0xc2:
	case 0xc4 ... 0xc6:
		return 1;
	case 0xa4:
	case 0xac:
	case 0xba:
		return i->vector ? 0 : 1;
	case 0x80 ... 0x8f:
		return i->vector ? 0 : 4; /* with VEX: operations on mask registers */
	default:
		return 0;
	}
}

/* ---- parts of an instruction ----------------------------------------------------------------- */

static int64_t instruction_x86_64_take(struct decoder *d, uint32_t n)
{
	uint64_t value = 0;

	for (uint32_t k = 0; k < n && d->at < INSTRUCTION_BYTES_MAX; k++)
		value |= (uint64_t)d->bytes[d->at++] << 8 * k;
	if (n && n < 8)
		return (int64_t)(value << (64 - 8 * n)) >> (64 - 8 * n);
	return (int64_t)value;
}

static void take_prefixes(struct decoder *d, struct instruction *i)
{
	for (; d->at < INSTRUCTION_BYTES_MAX; d->at++) {
		uint8_t b = d->bytes[d->at];

		if (b == 0x66)
			d->narrow = true;
		else if (b != 0x67 && b != 0xf0 && b != 0xf2 && b != 0xf3 && b != 0x2e &&
			 b != 0x36 && b != 0x3e && b != 0x26 && b != 0x64 && b != 0x65)
			break;
	}
	if ((d->bytes[d->at] & 0xf0) == 0x40) {
		uint8_t rex = d->bytes[d->at++];

		i->wide = rex & 8;
		d->rex_r = (uint8_t)(rex << 1 & 8);
		d->rex_x = (uint8_t)(rex << 2 & 8);
		d->rex_b = (uint8_t)(rex << 3 & 8);
	}
}

/* VEX and EVEX; their REX bits are inverted. */
static bool take_vector_prefix(struct decoder *d, struct instruction *i)
{
	uint8_t first = d->bytes[d->at], second = d->bytes[d->at + 1];

	if (first != 0xc5 && first != 0xc4 && first != 0x62)
		return false;
	i->vector = true;
	i->map = first == 0xc5 ? MAP_0F : first == 0xc4 ? second & 31 : second & 7;
	if (i->map > MAP_0F3A || i->map == MAP_ONE)
		i->map = MAP_OTHER;
	d->rex_r = second & 0x80 ? 0 : 8;
	if (first != 0xc5) {
		d->rex_x = second & 0x40 ? 0 : 8;
		d->rex_b = second & 0x20 ? 0 : 8;
		i->wide = d->bytes[d->at + 2] & 0x80;
	}
	d->at += first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4;
	i->op = (uint8_t)instruction_x86_64_take(d, 1);
	return true;
}

static void take_opcode(struct decoder *d, struct instruction *i)
{
	if (take_vector_prefix(d, i))
		return;
	i->op = (uint8_t)instruction_x86_64_take(d, 1);
	if (i->op != 0x0f)
		return;
	i->map = MAP_0F;
	i->op = (uint8_t)instruction_x86_64_take(d, 1);
	if (i->op == 0x38 || i->op == 0x3a) {
		i->map = i->op == 0x38 ? MAP_0F38 : MAP_0F3A;
		i->op = (uint8_t)instruction_x86_64_take(d, 1);
	}
}

static void take_modrm(struct decoder *d, struct instruction *i)
{
	uint8_t b = (uint8_t)instruction_x86_64_take(d, 1), rm = b & 7, base = rm | d->rex_b;

	i->has_modrm = true;
	i->mod = b >> 6;
	i->reg = (uint8_t)((b >> 3 & 7) | d->rex_r);
	i->rm = base;
	if (i->mod == 3)
		return;
	if (rm == 4) {
		uint8_t sib = (uint8_t)instruction_x86_64_take(d, 1);

		rm = sib & 7;
		base = (uint8_t)(rm | d->rex_b);
		if ((sib >> 3 & 7) != 4 || d->rex_x)
			base = INSTRUCTION_NO_BASE;
	}
	if (i->mod == 0 && rm == 5) { /* relative to rip, or an absolute address */
		i->displacement = (int32_t)instruction_x86_64_take(d, 4);
		return;
	}
	i->base = base;
	i->displacement = (int32_t)instruction_x86_64_take(d, i->mod == 1   ? 1
							      : i->mod == 2 ? 4
									    : 0);
}

static bool wants_modrm(const struct instruction *i)
{
	if (i->vector)
		return !(i->map == MAP_0F && i->op == 0x77); /* vzeroupper */
	return i->map == MAP_ONE  ? has_modrm_one(i->op)
	       : i->map == MAP_0F ? has_modrm_0f(i->op)
				  : true;
}

static uint32_t immediate_bytes(const struct decoder *d, const struct instruction *i)
{
	switch (i->map) {
	case MAP_ONE:
		return immediate_one(i, d->narrow ? 2 : 4);
	case MAP_0F:
		return immediate_0f(i);
	case MAP_0F3A:
		return 1;
	default:
		return 0;
	}
}

bool instruction_decode_sig(const uint8_t *bytes, struct instruction *ret)
{
	struct decoder d = { .bytes = bytes };

	*ret = (struct instruction){ .base = INSTRUCTION_NO_BASE };
	take_prefixes(&d, ret);
	take_opcode(&d, ret);
	ret->op_reg = (uint8_t)((ret->op & 7) | d.rex_b);
	if (wants_modrm(ret))
		take_modrm(&d, ret);
	ret->immediate = instruction_x86_64_take(&d, immediate_bytes(&d, ret));
	ret->length = (uint8_t)d.at;
	return d.at < INSTRUCTION_BYTES_MAX;
}

bool instruction_at_sig(uint64_t pc, struct instruction *ret)
{
	uint64_t words[2] = { load_code_sig(pc), load_code_sig(pc + 8) };
	uint8_t bytes[INSTRUCTION_BYTES_MAX + 1];

	__builtin_memcpy(bytes, words, sizeof(bytes));
	if ((words[0] || words[1]) && instruction_decode_sig(bytes, ret))
		return true;
	*ret = (struct instruction){ .base = INSTRUCTION_NO_BASE };
	return false;
}

bool instruction_before_sig(uint64_t pc, uint8_t length, struct instruction *ret)
{
	return instruction_at_sig(pc - length, ret) && ret->length == length;
}
