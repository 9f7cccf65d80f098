/*
 * The call frame programs of .eh_frame (DWARF 4, section 6.4; LSB core, "Exception Frames"), run
 * for the three things a walk needs. FDEs are visited through the sorted table of .eh_frame_hdr, so
 * that rows come out sorted.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "agent/walker/arch.h"
#include "agent/walker/cfi.h"

#define REMEMBERED_MAX 8
#define DWARF_FP       ARCH_DWARF_FP
#define DWARF_SP       ARCH_DWARF_SP
#define DWARF_RA       ARCH_DWARF_RA

struct cursor {
	const uint8_t *p, *end;
	uint64_t address; /* of p[0] in the library, kept in step by take() */
	bool bad;
};

struct rules {
	uint64_t cfa_reg;
	int64_t cfa_offset;
	int64_t fp_offset, ra_offset;
	bool fp_saved, ra_saved;
	bool expression, plt, end;
};

struct output {
	struct cfi_row *rows;
	size_t n, max;
	uint64_t base;
	bool full;
};

/* What a CIE tells its FDEs. */
struct cie {
	uint64_t address; /* 0 = nothing was read yet */
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding;
	bool augmented, signal;
	struct rules initial;
};

static inline uint64_t take(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	if (n <= sizeof(v))
		memcpy(&v, c->p, n);
	c->p += n;
	c->address += n;
	return v;
}

static void skip(struct cursor *c, uint64_t n)
{
	if (c->bad || n > (uint64_t)(c->end - c->p))
		c->bad = true;
	else
		take(c, (size_t)n);
}

static uint64_t take_uleb(struct cursor *c)
{
	uint64_t v = 0, byte;

	if (!c->bad && c->p < c->end && *c->p < 128) { /* nearly all */
		c->address++;
		return *c->p++;
	}
	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = take(c, 1);
		v |= (byte & 127) << shift;
		if (!(byte & 128))
			return v;
	}
	c->bad = true;
	return 0;
}

static int64_t take_sleb(struct cursor *c)
{
	uint64_t v = 0, byte;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		byte = take(c, 1);
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

/* A pointer in one of the DW_EH_PE encodings; indirect ones are nothing we need. */
static uint64_t take_pointer(struct cursor *c, uint8_t encoding, uint64_t data_base)
{
	uint64_t here = c->address, v;

	if (encoding == 0xff)
		return 0;
	switch (encoding & 15) {
	case 0x00:
	case 0x04:
	case 0x0c:
		v = take(c, 8);
		break;
	case 0x01:
		v = take_uleb(c);
		break;
	case 0x02:
		v = take(c, 2);
		break;
	case 0x03:
		v = take(c, 4);
		break;
	case 0x09:
		v = (uint64_t)take_sleb(c);
		break;
	case 0x0a:
		v = (uint64_t)(int64_t)(int16_t)take(c, 2);
		break;
	case 0x0b:
		v = (uint64_t)(int64_t)(int32_t)take(c, 4);
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

static uint32_t pack(const struct rules *r)
{
	uint64_t fp = r->fp_saved ? (uint64_t)-r->fp_offset : 0;
	uint64_t ra = r->ra_saved ? (uint64_t)-r->ra_offset : 0;

	if (r->end)
		return CFI_END;
	if (r->plt)
		return CFI_PLT;
	if (r->expression || (r->cfa_reg != DWARF_SP && r->cfa_reg != DWARF_FP))
		return CFI_NONE;
	return cfi_rule_pack(r->cfa_reg == DWARF_SP ? CFI_SP : CFI_FP, (uint64_t)r->cfa_offset, ra,
			     fp);
}

static void emit(struct output *out, uint64_t pc, uint32_t rule)
{
	uint64_t offset = pc - out->base;
	struct cfi_row *last = out->n ? &out->rows[out->n - 1] : NULL;

	if (offset > UINT32_MAX || (last && offset < last->pc))
		return; /* overlaps an earlier function: keep what is there */
	if (last && last->pc == offset) {
		last->rule = rule;
		return;
	}
	if (last && last->rule == rule)
		return;
	if (out->n == out->max) {
		out->full = true;
		return;
	}
	out->rows[out->n++] = (struct cfi_row){ .pc = (uint32_t)offset, .rule = rule };
}

static void saved_at(struct rules *r, uint64_t reg, int64_t offset)
{
	if (reg == DWARF_FP) {
		r->fp_saved = true;
		r->fp_offset = offset;
	} else if (reg == DWARF_RA) {
		r->ra_saved = true;
		r->ra_offset = offset;
	}
}

static void not_saved(struct rules *r, uint64_t reg)
{
	if (reg == DWARF_FP)
		r->fp_saved = false;
	else if (reg == DWARF_RA)
		r->ra_saved = false;
}

static void restore(struct rules *r, const struct rules *initial, uint64_t reg)
{
	if (reg == DWARF_FP) {
		r->fp_saved = initial->fp_saved;
		r->fp_offset = initial->fp_offset;
	} else if (reg == DWARF_RA) {
		r->ra_saved = initial->ra_saved;
		r->ra_offset = initial->ra_offset;
	}
}

/* CFA = sp + 8 + ((pc & 15) >= 11) * 8: what linkers write for the PLT, always as these bytes */
static bool is_plt_expression(const struct cursor *c, uint64_t len)
{
	return len == 11 && (size_t)(c->end - c->p) >= 11 && c->p[0] == 0x77;
}

/* The instructions whose first byte has no operand in it. Returns false on an unknown one. */
static bool run_extended(struct cursor *c, uint8_t op, const struct cie *cie,
			 const struct rules *initial, struct rules *r)
{
	uint64_t reg, len;

	switch (op) {
	case 0x05: /* offset_extended */
		reg = take_uleb(c);
		saved_at(r, reg, (int64_t)take_uleb(c) * cie->data_align);
		break;
	case 0x06: /* restore_extended */
		restore(r, initial, take_uleb(c));
		break;
	case 0x07: /* undefined */
		reg = take_uleb(c);
		if (reg == DWARF_RA)
			r->end = true;
		not_saved(r, reg);
		break;
	case 0x08: /* same_value */
		not_saved(r, take_uleb(c));
		break;
	case 0x09: /* register */
		take_uleb(c);
		take_uleb(c);
		break;
	case 0x0c: /* def_cfa */
		r->cfa_reg = take_uleb(c);
		r->cfa_offset = (int64_t)take_uleb(c);
		r->expression = r->plt = false;
		break;
	case 0x0d: /* def_cfa_register */
		r->cfa_reg = take_uleb(c);
		break;
	case 0x0e: /* def_cfa_offset */
		r->cfa_offset = (int64_t)take_uleb(c);
		break;
	case 0x0f: /* def_cfa_expression */
		len = take_uleb(c);
		r->plt = is_plt_expression(c, len);
		r->expression = !r->plt;
		skip(c, len);
		break;
	case 0x10: /* expression */
	case 0x16: /* val_expression */
		reg = take_uleb(c);
		skip(c, take_uleb(c));
		if (reg == DWARF_FP || reg == DWARF_RA)
			r->expression = true;
		break;
	case 0x11: /* offset_extended_sf */
		reg = take_uleb(c);
		saved_at(r, reg, take_sleb(c) * cie->data_align);
		break;
	case 0x12: /* def_cfa_sf */
		r->cfa_reg = take_uleb(c);
		r->cfa_offset = take_sleb(c) * cie->data_align;
		r->expression = r->plt = false;
		break;
	case 0x13: /* def_cfa_offset_sf */
		r->cfa_offset = take_sleb(c) * cie->data_align;
		break;
	case 0x2d: /* AARCH64_negate_ra_state: the return address is signed, and is stripped anyway */
		break;
	case 0x2e: /* GNU_args_size */
		take_uleb(c);
		break;
	default:
		return op == 0;
	}
	return !c->bad;
}

/* How far the location moves by an advance instruction; false = it is none, @c is where it was. */
static bool take_advance(struct cursor *c, uint8_t op, const struct cie *cie, uint64_t *pc)
{
	if (op >> 6 == 1)
		*pc += (op & 63) * cie->code_align;
	else if (op == 0x01)
		*pc = take_pointer(c, cie->pointer_encoding, 0);
	else if (op == 0x02)
		*pc += take(c, 1) * cie->code_align;
	else if (op == 0x03)
		*pc += take(c, 2) * cie->code_align;
	else if (op == 0x04)
		*pc += take(c, 4) * cie->code_align;
	else
		return false;
	return true;
}

/* Runs a program; @out NULL for a CIE's, which only sets the initial rules. */
static void run(struct cursor *c, const struct cie *cie, uint64_t pc, struct rules *r,
		struct output *out)
{
	struct rules remembered[REMEMBERED_MAX], initial = *r;
	unsigned depth = 0;

	while (c->p < c->end && !c->bad) {
		uint8_t op = (uint8_t)take(c, 1);
		uint64_t from = pc;

		if (take_advance(c, op, cie, &pc)) {
			if (out)
				emit(out, from, pack(r));
		} else if (op >> 6 == 2) {
			saved_at(r, op & 63, (int64_t)take_uleb(c) * cie->data_align);
		} else if (op >> 6 == 3) {
			restore(r, &initial, op & 63);
		} else if (op == 0x0a) {
			if (depth == REMEMBERED_MAX)
				break;
			remembered[depth++] = *r;
		} else if (op == 0x0b) {
			if (depth)
				*r = remembered[--depth];
		} else if (!run_extended(c, op, cie, &initial, r)) {
			r->expression = true; /* not understood: no rule rather than a wrong one */
			break;
		}
	}
	if (out)
		emit(out, pc, pack(r));
}

/* A cursor over the record at @address: its content without the length. */
static struct cursor record_at(const struct cfi_bytes *frame, uint64_t address)
{
	struct cursor c = { .bad = true };
	uint64_t len;

	if (address < frame->address || address - frame->address >= frame->len)
		return c;
	c.p = frame->bytes + (address - frame->address);
	c.end = frame->bytes + frame->len;
	c.address = address;
	c.bad = false;
	len = take(&c, 4);
	if (!len || len == UINT32_MAX || len > (uint64_t)(c.end - c.p))
		c.bad = true;
	else if (!c.bad)
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
	skip(c, len);
	for (letters++; *letters && !data.bad; letters++) {
		if (*letters == 'R')
			ret->pointer_encoding = (uint8_t)take(&data, 1);
		else if (*letters == 'P')
			take_pointer(&data, (uint8_t)take(&data, 1) & 0x7f, 0);
		else if (*letters == 'L')
			take(&data, 1);
		else if (*letters == 'S')
			ret->signal = true;
		else if (*letters == 'B') /* arm64: signed with the other key */
			continue;
		else
			return false;
	}
	return !c->bad && !data.bad;
}

static bool read_cie(const struct cfi_bytes *frame, uint64_t address, struct cie *ret)
{
	struct cursor c = record_at(frame, address);
	char letters[8];
	size_t n = 0;

	memset(ret, 0, sizeof(*ret));
	if (take(&c, 4) != 0) /* the id of a CIE */
		return false;
	take(&c, 1);
	do {
		if (n == sizeof(letters))
			return false;
		letters[n] = (char)take(&c, 1);
	} while (letters[n++] && !c.bad);
	ret->code_align = take_uleb(&c);
	ret->data_align = take_sleb(&c);
	take_uleb(&c); /* number of the return address register */
	if (c.bad || !read_augmentation(&c, letters, ret))
		return false;
	run(&c, ret, 0, &ret->initial, NULL);
	ret->address = address;
	return true;
}

/* @cie: that of the FDE before, which is this one's too most often. */
static void read_fde(const struct cfi_bytes *frame, uint64_t address, struct cie *cie,
		     struct output *out)
{
	struct cursor c = record_at(frame, address);
	uint64_t here = c.address, start, len, cie_address;
	struct rules rules;

	cie_address = here - (uint32_t)take(&c, 4);
	if (c.bad || (cie->address != cie_address && !read_cie(frame, cie_address, cie)))
		return;
	start = take_pointer(&c, cie->pointer_encoding, 0);
	len = take_pointer(&c, cie->pointer_encoding & 15, 0);
	if (cie->augmented)
		skip(&c, take_uleb(&c));
	if (c.bad)
		return;
	rules = cie->initial;
	if (cie->signal) /* the kernel's signal frame: another layout altogether */
		emit(out, start, CFI_NONE);
	else
		run(&c, cie, start, &rules, out);
	emit(out, start + len, CFI_NONE);
}

static bool read_header(const struct cfi_bytes *header, struct cursor *ret, uint64_t *ret_frame,
			uint64_t *ret_count)
{
	struct cursor c = { .p = header->bytes,
			    .end = header->bytes + header->len,
			    .address = header->address };
	uint8_t version = (uint8_t)take(&c, 1), frame = (uint8_t)take(&c, 1);
	uint8_t count = (uint8_t)take(&c, 1), table = (uint8_t)take(&c, 1);

	if (c.bad || version != 1)
		return false;
	*ret_frame = take_pointer(&c, frame, header->address);
	*ret_count = take_pointer(&c, count, header->address);
	*ret = c;
	/* pairs of 32-bit offsets from the header: all that linkers write */
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
	       struct cfi_row *rows, size_t max)
{
	struct output out = { .rows = rows, .max = max, .base = base };
	struct cie cie = { 0 };
	uint64_t where, count;
	struct cursor c;

	if (!read_header(header, &c, &where, &count))
		return -EBADMSG;
	for (uint64_t i = 0; i < count && !out.full; i++) {
		uint64_t address;

		take(&c, 4);
		address = header->address + (uint64_t)(int64_t)(int32_t)take(&c, 4);
		if (c.bad)
			break;
		read_fde(frame, address, &cie, &out);
	}
	return out.full ? -ENOSPC : (long)out.n;
}
