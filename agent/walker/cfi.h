/*
 * Unwind rows: what .eh_frame says about each instruction, run beforehand and packed into eight
 * bytes, so that the signal handler only has to search. A row holds from its pc to the next row's.
 * Good for what compilers emit on x86-64: CFA = sp or fp + constant, return address below the CFA,
 * fp saved at a constant below the CFA or not touched. Everything else is CFI_NONE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cfi_row {
	uint32_t pc; /* from the library's base */
	uint32_t rule;
};

/* rule: bits 0-2 where the CFA is, 3-18 its offset / 8, 19-31 how many words below it fp is saved
 * (0 = fp still holds the caller's value) */
enum cfi_kind {
	CFI_NONE, /* no code here, or a rule we do not speak */
	CFI_SP,
	CFI_FP,
	CFI_PLT, /* lazy binding stubs: sp + 8, or + 16 in the last instructions of a slot */
	CFI_END, /* the thread starts here: there is no return address */
};

static inline enum cfi_kind cfi_rule_kind(uint32_t rule)
{
	return (enum cfi_kind)(rule & 7);
}
static inline uint64_t cfi_rule_offset(uint32_t rule)
{
	return (uint64_t)((rule >> 3) & 0xffff) * 8;
}
static inline uint64_t cfi_rule_fp(uint32_t rule)
{
	return (uint64_t)(rule >> 19) * 8;
}

/* Bytes copied out of a library, and where they lay there. */
struct cfi_bytes {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;
};

/* Where .eh_frame begins, told by .eh_frame_hdr: 0 and @ret, or -EBADMSG. */
int cfi_frame_address(const struct cfi_bytes *header, uint64_t *ret);

/*
 * Turn one library's unwind tables into rows, sorted by pc.
 *
 * @header, @frame: copies of .eh_frame_hdr and .eh_frame (may be longer than the section)
 * @base:           address the rows' pc counts from
 *
 * Returns the number of rows, -ENOSPC when @max is too small, -EBADMSG for tables we cannot read.
 * Pure: trusts nothing in the bytes.
 */
long cfi_build(const struct cfi_bytes *header, const struct cfi_bytes *frame, uint64_t base,
	       struct cfi_row *rows, size_t max);

/* The rule in force at @pc (counted from the base); CFI_NONE if there is none. Signal-safe. */
static inline uint32_t cfi_find(const struct cfi_row *rows, uint32_t n, uint32_t pc)
{
	uint32_t low = 0, high = n;

	if (!n || pc < rows[0].pc)
		return CFI_NONE;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (rows[middle].pc <= pc)
			low = middle;
		else
			high = middle;
	}
	return rows[low].rule;
}
