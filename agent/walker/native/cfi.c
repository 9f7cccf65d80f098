/*
 * Runs the call frame programs of .eh_frame (DWARF 4, section 6.4; LSB core, "Exception Frames")
 * and keeps the rules that a walk needs: for the CFA, the return address and fp. FDEs are visited
 * in the order of the sorted table of .eh_frame_hdr, so that the rows are sorted too.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "agent/base/arch.h"
#include "agent/walker/native/cfi.h"

#define REMEMBERED_MAX 8
#define FUNCTION_ALIGN 16
#define DWARF_FP       ARCH_DWARF_FP
#define DWARF_SP       ARCH_DWARF_SP
#define DWARF_RA       ARCH_DWARF_RA

struct cursor {
	const uint8_t *p, *end;
	uint64_t shift; /* address in the library = p + shift */
	bool bad; /* a read has failed; then p = end */
};

/* Offsets from the CFA in bytes; 0 = not saved. ODD, an offset that no compiler emits, stands for a
 * rule that cannot be packed. */
#define ODD 1
struct rules {
	int32_t cfa_offset, fp_offset, ra_offset;
	uint8_t cfa_reg;
	bool expression, plt, end;
};

struct output {
	uint64_t base;
	struct cfi_row last; /* not packed yet, because the next row may begin at the same pc and
			      * replace it */
	uint32_t packed_rule; /* the rule that was packed last */
	bool any, full;
	bool ended; /* the last row marks the end of a function */
};

/* The part of a CIE that its FDEs inherit. */
struct cie {
	uint64_t address; /* 0 = no CIE was read yet */
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding;
	bool augmented, signal;
	struct rules initial;
};

static inline uint64_t cfi_take(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		c->p = c->end;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return v;
}

static void cfi_skip(struct cursor *c, uint64_t n)
{
	if (n > (uint64_t)(c->end - c->p)) {
		c->bad = true;
		n = (uint64_t)(c->end - c->p);
	}
	c->p += n;
}

static uint64_t take_long_uleb(struct cursor *c)
{
	uint64_t v = 0, byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = cfi_take(c, 1);
		v |= (byte & 127) << shift;
		if (!(byte & 128))
			return v;
	}
	c->bad = true;
	return 0;
}

static inline uint64_t take_uleb(struct cursor *c)
{
	if (c->p < c->end && *c->p < 128) /* nearly all numbers have one byte */
		return *c->p++;
	return take_long_uleb(c);
}

static int64_t take_sleb(struct cursor *c)
{
	uint64_t v = 0, byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = cfi_take(c, 1);
		v |= (byte & 127) << shift;
		if (byte & 128)
			continue;
		if ((byte & 64) && shift + 7 < 64)
			v |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)v;
	}
	c->bad = true;
	return 0;
}

/* Reads a pointer in one of the DW_EH_PE encodings; indirect ones are never needed. */
static uint64_t take_pointer(struct cursor *c, uint8_t encoding, uint64_t data_base)
{
	uint64_t here = (uint64_t)(uintptr_t)c->p + c->shift, v;

	if (encoding == 0xff)
		return 0;
	switch (encoding & 15) {
	case 0x00:
	case 0x04:
	case 0x0c:
		v = cfi_take(c, 8);
		break;
	case 0x01:
		v = take_uleb(c);
		break;
	case 0x02:
		v = cfi_take(c, 2);
		break;
	case 0x03:
		v = cfi_take(c, 4);
		break;
	case 0x09:
		v = (uint64_t)take_sleb(c);
		break;
	case 0x0a:
		v = (uint64_t)(int64_t)(int16_t)cfi_take(c, 2);
		break;
	case 0x0b:
		v = (uint64_t)(int64_t)(int32_t)cfi_take(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	if ((encoding & 0x70) == 0x10)
		v += here;
	else if ((encoding & 0x70) == 0x30)
		v += data_base;
	return v;
}

static inline uint32_t cfi_pack(const struct rules *r)
{
	if (r->end)
		return CFI_END;
	if (r->plt)
		return CFI_PLT;
	if (r->expression || (r->cfa_reg != DWARF_SP && r->cfa_reg != DWARF_FP))
		return CFI_NONE;
	return cfi_rule_pack(r->cfa_reg == DWARF_SP ? CFI_SP : CFI_FP, (uint64_t)r->cfa_offset,
			     (uint64_t)-r->ra_offset, (uint64_t)-r->fp_offset);
}

static void pack_last(struct output *out)
{
	if (out->last.rule == out->packed_rule)
		return;
	out->packed_rule = out->last.rule;
	out->full |= !cfi_pack_row(&out->last);
}

static inline void cfi_emit(struct output *out, uint64_t pc, uint32_t rule)
{
	uint64_t offset = pc - out->base;

	if (offset > UINT32_MAX || (out->any && offset < out->last.pc))
		return; /* the function overlaps an earlier one, whose rows are kept */
	/* a new row replaces the last one if that has no bytes, or is only the padding after a
	 * function's end, which is never executed */
	if (out->any && offset - out->last.pc >= (out->ended ? FUNCTION_ALIGN : 1)) {
		if (out->last.rule == rule)
			return;
		pack_last(out);
	}
	out->last = (struct cfi_row){ .pc = (uint32_t)offset, .rule = rule };
	out->any = true;
	out->ended = false;
}

static void emit_end(struct output *out, uint64_t pc)
{
	cfi_emit(out, pc, CFI_NONE);
	out->ended = out->last.pc == pc - out->base;
}

static int32_t offset_of(int64_t v)
{
	return v > INT32_MIN && v <= INT32_MAX ? (int32_t)v : ODD;
}

static inline void saved_at(struct rules *r, uint64_t reg, int64_t offset)
{
	if (reg == DWARF_FP)
		r->fp_offset = offset_of(offset);
	else if (reg == DWARF_RA)
		r->ra_offset = offset_of(offset);
}

static inline void cfi_restore(struct rules *r, const struct rules *initial, uint64_t reg)
{
	if (reg == DWARF_FP)
		r->fp_offset = initial->fp_offset;
	else if (reg == DWARF_RA)
		r->ra_offset = initial->ra_offset;
}

/* Operands count in units of the CIE's data alignment factor. */
static inline int64_t cfi_scaled(const struct cie *cie, uint64_t n)
{
	return (int64_t)(n * (uint64_t)cie->data_align);
}

static void set_cfa(struct rules *r, uint64_t reg, int64_t offset)
{
	r->cfa_reg = reg < UINT8_MAX ? (uint8_t)reg : UINT8_MAX;
	r->cfa_offset = offset_of(offset);
	r->expression = r->plt = false;
}

/* Is it CFA = sp + 8 + ((pc & 15) >= 11) * 8? Linkers emit this expression for the PLT, always as
 * the same 11 bytes. */
static bool is_plt_expression(const struct cursor *c, uint64_t len)
{
	return len == 11 && (size_t)(c->end - c->p) >= 11 && c->p[0] == 0x77;
}

/* Applies one instruction that sets rules; cfi_run() handles the most frequent ones itself. false =
 * the instruction is unknown. */
static bool run_one(struct cursor *c, uint8_t op, const struct cie *cie,
		    const struct rules *initial, struct rules *r)
{
	uint64_t reg, len;

	if (op >> 6 == 2) { /* offset */
		saved_at(r, op & 63, cfi_scaled(cie, take_uleb(c)));
		return !c->bad;
	}
	switch (op) {
	case 0x05: /* offset_extended */
		reg = take_uleb(c);
		saved_at(r, reg, cfi_scaled(cie, take_uleb(c)));
		break;
	case 0x06: /* restore_extended */
		cfi_restore(r, initial, take_uleb(c));
		break;
	case 0x07: /* undefined */
		reg = take_uleb(c);
		if (reg == DWARF_RA)
			r->end = true;
		saved_at(r, reg, 0);
		break;
	case 0x08: /* same_value */
		saved_at(r, take_uleb(c), 0);
		break;
	case 0x09: /* register */
		take_uleb(c);
		take_uleb(c);
		break;
	case 0x0c: /* def_cfa */
		reg = take_uleb(c);
		set_cfa(r, reg, (int64_t)take_uleb(c));
		break;
	case 0x0d: /* def_cfa_register */
		reg = take_uleb(c);
		r->cfa_reg = reg < UINT8_MAX ? (uint8_t)reg : UINT8_MAX;
		break;
	case 0x0e: /* def_cfa_offset */
		r->cfa_offset = offset_of((int64_t)take_uleb(c));
		break;
	case 0x0f: /* def_cfa_expression */
		len = take_uleb(c);
		r->plt = is_plt_expression(c, len);
		r->expression = !r->plt;
		cfi_skip(c, len);
		break;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		reg = take_uleb(c);
		cfi_skip(c, take_uleb(c));
		if (reg == DWARF_FP || reg == DWARF_RA)
			r->expression = true;
		break;
	case 0x11: /* offset_extended_sf */
		reg = take_uleb(c);
		saved_at(r, reg, cfi_scaled(cie, (uint64_t)take_sleb(c)));
		break;
	case 0x12: /* def_cfa_sf */
		reg = take_uleb(c);
		set_cfa(r, reg, cfi_scaled(cie, (uint64_t)take_sleb(c)));
		break;
	case 0x13: /* def_cfa_offset_sf */
		r->cfa_offset = offset_of(cfi_scaled(cie, (uint64_t)take_sleb(c)));
		break;
	case 0x2d: /* AARCH64_negate_ra_state: the return address is signed; the walker strips
		    * signatures anyway */
		break;
	case 0x2e: /* GNU_args_size */
		take_uleb(c);
		break;
	default:
		return op == 0;
	}
	return !c->bad;
}

/* The new location after an advance instruction whose operand is not in its first byte. */
static uint64_t take_advance(struct cursor *c, uint8_t op, const struct cie *cie, uint64_t pc)
{
	if (op == 0x01)
		return take_pointer(c, cie->pointer_encoding, 0);
	return pc + cfi_take(c, op == 0x02 ? 1 : op == 0x03 ? 2 : 4) * cie->code_align;
}

static inline bool is_short(const struct cursor *c)
{
	return c->p < c->end && *c->p < 128;
}

/*
 * Runs a program with the initial rules @r and returns the rules at its end. @out: gets the rows;
 * NULL for the program of a CIE, which has none. Nearly all instructions are handled here, where @c
 * and @r stay in registers; the functions for the rest get copies.
 */
static inline struct rules cfi_run(struct cursor c, const struct cie *cie, uint64_t pc,
				   struct rules r, struct output *out)
{
	struct rules remembered[REMEMBERED_MAX];
	const struct rules initial = r;
	unsigned depth = 0;

	while (c.p < c.end) {
		uint8_t op = *c.p++;
		uint64_t to = pc;

		if (op >> 6 == 1) {
			to = pc + (op & 63) * cie->code_align;
		} else if (op >> 6 == 2 && is_short(&c)) {
			saved_at(&r, op & 63, cfi_scaled(cie, *c.p++));
		} else if (op == 0) {
			continue;
		} else if (op == 0x0c && c.end - c.p >= 2 && (c.p[0] | c.p[1]) < 128) {
			r.cfa_reg = c.p[0];
			r.cfa_offset = c.p[1];
			r.expression = r.plt = false;
			c.p += 2;
		} else if (op == 0x0d && is_short(&c)) {
			r.cfa_reg = *c.p++;
		} else if (op == 0x0e && is_short(&c)) {
			r.cfa_offset = *c.p++;
		} else if (op == 0x0a) {
			if (depth == REMEMBERED_MAX)
				break;
			remembered[depth++] = r;
		} else if (op == 0x0b) {
			if (depth)
				r = remembered[--depth];
		} else if (op >> 6 == 3) {
			cfi_restore(&r, &initial, op & 63);
		} else if (op == 0x02 && c.p < c.end) {
			to = pc + *c.p++ * cie->code_align;
		} else if (op >= 0x01 && op <= 0x04) {
			struct cursor rest = c;

			to = take_advance(&rest, op, cie, pc);
			c = rest;
		} else {
			struct cursor rest = c;
			struct rules then = r;
			bool known = run_one(&rest, op, cie, &initial, &then);

			c = rest;
			r = then;
			r.expression |= !known; /* no rule is better than a wrong one */
			if (!known)
				break;
		}
		if (to != pc && out)
			cfi_emit(out, pc, cfi_pack(&r));
		pc = to;
	}
	if (out)
		cfi_emit(out, pc, cfi_pack(&r));
	return r;
}

/* A cursor over the content of the record at @address, without its length. */
static inline struct cursor cfi_record_at(const struct cfi_bytes *frame, uint64_t address)
{
	struct cursor c = { .p = frame->bytes, .end = frame->bytes, .bad = true };
	uint64_t len;

	if (address < frame->address || address - frame->address >= frame->len)
		return c;
	c.p = frame->bytes + (address - frame->address);
	c.end = frame->bytes + frame->len;
	c.shift = address - (uint64_t)(uintptr_t)c.p;
	c.bad = false;
	len = cfi_take(&c, 4);
	if (!len || len > (uint64_t)(c.end - c.p)) {
		c.bad = true;
		len = 0;
	}
	c.end = c.p + len;
	return c;
}

static bool read_augmentation(struct cursor *c, const char *letters, struct cie *ret)
{
	struct cursor data = *c;
	uint64_t len;

	ret->pointer_encoding = 0;
	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	ret->augmented = true;
	len = take_uleb(c);
	data = *c;
	cfi_skip(c, len);
	for (letters++; *letters && !data.bad; letters++) {
		if (*letters == 'R')
			ret->pointer_encoding = (uint8_t)cfi_take(&data, 1);
		else if (*letters == 'P')
			take_pointer(&data, (uint8_t)cfi_take(&data, 1) & 0x7f, 0);
		else if (*letters == 'L')
			cfi_take(&data, 1);
		else if (*letters == 'S')
			ret->signal = true;
		else if (*letters == 'B') /* arm64: return addresses are signed with the B key */
			continue;
		else
			return false;
	}
	return !c->bad && !data.bad;
}

static bool read_cie(const struct cfi_bytes *frame, uint64_t address, struct cie *ret)
{
	struct cursor c = cfi_record_at(frame, address);
	char letters[8];
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	if (cfi_take(&c, 4) != 0) /* the id of a CIE */
		return false;
	cfi_take(&c, 1);
	do {
		if (n == sizeof(letters))
			return false;
		letters[n] = (char)cfi_take(&c, 1);
	} while (letters[n++]);
	ret->code_align = take_uleb(&c);
	ret->data_align = take_sleb(&c);
	take_uleb(&c); /* skip the number of the return address register */
	if (c.bad || !read_augmentation(&c, letters, ret))
		return false;
	ret->initial = cfi_run(c, ret, 0, ret->initial, NULL);
	ret->address = address;
	return true;
}

/* @cie: that of the previous FDE, which most often is also that of this one. */
static void read_fde(const struct cfi_bytes *frame, uint64_t address, struct cie *cie,
		     struct output *out)
{
	struct cursor c = cfi_record_at(frame, address);
	uint64_t here = (uint64_t)(uintptr_t)c.p + c.shift, start, len, cie_address;

	cie_address = here - (uint32_t)cfi_take(&c, 4);
	if (c.bad || (cie->address != cie_address && !read_cie(frame, cie_address, cie)))
		return;
	start = take_pointer(&c, cie->pointer_encoding, 0);
	len = take_pointer(&c, cie->pointer_encoding & 15, 0);
	if (cie->augmented)
		cfi_skip(&c, take_uleb(&c));
	if (c.bad)
		return;
	if (cie->signal) /* the kernel's signal frame has a different layout */
		cfi_emit(out, start, CFI_NONE);
	else
		(void)cfi_run(c, cie, start, cie->initial, out);
	emit_end(out, start + len);
}

static bool read_header(const struct cfi_bytes *header, struct cursor *ret, uint64_t *ret_frame,
			uint64_t *ret_count)
{
	struct cursor c = { .p = header->bytes,
			    .end = header->bytes + header->len,
			    .shift = header->address - (uint64_t)(uintptr_t)header->bytes };
	uint8_t version = (uint8_t)cfi_take(&c, 1), frame = (uint8_t)cfi_take(&c, 1);
	uint8_t count = (uint8_t)cfi_take(&c, 1), table = (uint8_t)cfi_take(&c, 1);

	if (c.bad || version != 1)
		return false;
	*ret_frame = take_pointer(&c, frame, header->address);
	*ret_count = take_pointer(&c, count, header->address);
	*ret = c;
	/* linkers emit only tables of pairs of 32-bit offsets from the header */
	return !c.bad && table == 0x3b;
}

int cfi_frame_address(const struct cfi_bytes *header, uint64_t *ret)
{
	uint64_t frame, count;
	struct cursor c;

	if (!read_header(header, &c, &frame, &count))
		return -EBADMSG;
	*ret = frame;
	return 0;
}

long cfi_build(const struct cfi_bytes *header, const struct cfi_bytes *frame, uint64_t base,
	       struct cfi_table *to, size_t room)
{
	struct output out = { .base = base };
	struct cie cie = { 0 };
	uint64_t where, count;
	struct cursor c;

	if (!read_header(header, &c, &where, &count))
		return -EBADMSG;
	cfi_pack_begin(to, room);
	for (uint64_t i = 0; i < count && !out.full; i++) {
		uint64_t address;

		cfi_take(&c, 4);
		address = header->address + (uint64_t)(int64_t)(int32_t)cfi_take(&c, 4);
		if (c.bad)
			break;
		read_fde(frame, address, &cie, &out);
	}
	if (out.any)
		pack_last(&out);
	return out.full ? -ENOSPC : cfi_pack_end();
}
