/*
 * Unwind rows: the rules of .eh_frame for each instruction, computed in advance and packed into
 * four bytes, so that the signal handler only has to search. A row is valid from its pc to the pc
 * of the next row. It can express what compilers emit: CFA = sp or fp + constant, return address
 * and fp saved at constants below the CFA or untouched. Everything else is CFI_NONE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_row {
	uint32_t pc; /* from the library's base */
	uint32_t rule;
};

/* rule: bits 0-2 where the CFA is; the rest is the processor's, below */
enum cfi_kind {
	CFI_NONE, /* no code here, or a rule that a row cannot express */
	CFI_SP,
	CFI_FP,
	CFI_PLT, /* PLT stubs: sp + 8, or sp + 16 in the last instructions of a slot */
	CFI_END, /* a thread's first function: there is no return address */
};

static inline enum cfi_kind cfi_rule_kind(uint32_t rule)
{
	return (enum cfi_kind)(rule & 7);
}
/* cfi_rule_pack() of each processor makes a rule, or CFI_NONE if it does not fit; the other
 * functions read one. @ra, @fp: how many bytes below the CFA they are saved, 0 = they are still in
 * their registers. */
#if defined(__aarch64__)
#include "agent/walker/native/cfi_rule_aarch64.h"
#else
#include "agent/walker/native/cfi_rule_x86_64.h"
#endif

/* Bytes copied out of a library, and their address there. */
struct cfi_bytes {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;
};

/* The address of .eh_frame, out of .eh_frame_hdr: 0 and @ret, or -EBADMSG. */
int cfi_frame_address(const struct cfi_bytes *header, uint64_t *ret);

/*
 * The table that the handler searches. A row has four bytes: the low half of the pc and the number
 * of its rule; blocks give the first row of each 64 KiB of code. A library of 13 MiB of code has
 * some 140,000 rows and some hundred different rules. The table is one piece of memory.
 */
#define CFI_RULES_MAX  4096 /* different rules; code with a further one gets no row */
#define CFI_BLOCKS_MAX 4096 /* 256 MiB of code; more rows would not fit anyway */

struct cfi_table {
	uint32_t bytes; /* of all of it */
	uint32_t first_block, n_blocks;
	uint32_t blocks_at, rules_at; /* indexes into words[] */
	uint32_t words[]; /* rows, blocks (n_blocks + 1), rules */
};

/*
 * Turn one library's unwind tables into rows, sorted by pc.
 *
 * @header, @frame: .eh_frame_hdr and .eh_frame (may be longer than the section)
 * @base:           address the rows' pc counts from
 * @to, @room:      memory for the table; touched as far as it fills
 *
 * Returns the table's bytes (0 = there are no rows), -ENOSPC when @room is too small, -EBADMSG for
 * tables we cannot read. Trusts nothing in the bytes. Not reentrant.
 */
long cfi_build(const struct cfi_bytes *header, const struct cfi_bytes *frame, uint64_t base,
	       struct cfi_table *to, size_t room);

/* Fills a table in three steps, rows by rising pc. false = it is full, which cfi_pack_end()
 * reports, too. */
void cfi_pack_begin(struct cfi_table *to, size_t room);
bool cfi_pack_row(const struct cfi_row *row);
long cfi_pack_end(void);

/* The rule that applies at @pc (counted from the base); CFI_NONE if there is none. Signal-safe. */
static inline uint32_t cfi_find(const struct cfi_table *t, uint32_t pc)
{
	uint32_t block = pc >> 16, low, high;
	const uint32_t *blocks, *rows;

	if (!t || block < t->first_block)
		return CFI_NONE;
	block -= t->first_block;
	if (block >= t->n_blocks)
		block = t->n_blocks - 1;
	blocks = t->words + t->blocks_at;
	rows = t->words;
	low = blocks[block];
	high = blocks[block + 1];
	/* the last row at or before the pc; if the block has none, the last row of the blocks
	 * before */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((pc >> 16) - t->first_block > block || (rows[middle] & 0xffff) <= (pc & 0xffff))
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->words[t->rules_at + (rows[low - 1] >> 16)] : CFI_NONE;
}
