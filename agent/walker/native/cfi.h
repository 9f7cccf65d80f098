/*
 * Unwind rows: the rules of .eh_frame for each instruction, computed in advance and packed into
 * four bytes, so that the signal handler only has to search. A row is valid from its pc to the pc
 * of the next row. It can express the rules that compilers emit: CFA = sp or fp + constant; return
 * address and fp saved at constant offsets below the CFA, or still in their registers. Everything
 * else is CFI_NONE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi_row {
	uint32_t pc; /* offset from the library's base */
	uint32_t rule;
};

/* bits 0-2 of a rule: how the CFA is computed. The other bits depend on the processor, see
 * cfi_rule_*.h */
enum cfi_kind {
	CFI_NONE, /* no code, or a rule that a row cannot express */
	CFI_SP,
	CFI_FP,
	CFI_PLT, /* PLT stubs: sp + 8, or sp + 16 in the last instructions of a slot */
	CFI_END, /* a thread's first function: there is no return address */
};

static inline enum cfi_kind cfi_rule_kind(uint32_t rule)
{
	return (enum cfi_kind)(rule & 7);
}
/* For each processor cfi_rule_pack() makes a rule, or CFI_NONE if the values do not fit; the other
 * functions read its parts. @cfa: offset of the CFA; @ra, @fp: bytes below the CFA at which return
 * address and fp are saved, 0 = still in their registers. */
#if defined(__aarch64__)
#include "agent/walker/native/cfi_rule_aarch64.h"
#else
#include "agent/walker/native/cfi_rule_x86_64.h"
#endif

/* Bytes of a library, perhaps a copy, and their address in the library. */
struct cfi_bytes {
	const uint8_t *bytes;
	size_t len;
	uint64_t address;
};

/* Reads the address of .eh_frame from .eh_frame_hdr. 0 or -EBADMSG. */
int cfi_frame_address(const struct cfi_bytes *header, uint64_t *ret);

/*
 * The table that the handler searches, in one piece of memory. A row has four bytes: the low 16
 * bits of its pc and the number of its rule. Blocks give the first row for each 64 KiB of code. A
 * library with 13 MiB of code has some 140,000 rows and some hundred different rules.
 */
#define CFI_RULES_MAX  4096 /* different rules; code with any further rule gets CFI_NONE */
#define CFI_BLOCKS_MAX 4096 /* 256 MiB of code; more rows would not fit anyway */

struct cfi_table {
	uint32_t bytes; /* size of the table */
	uint32_t first_block, n_blocks;
	uint32_t blocks_at, rules_at; /* indexes into words[] */
	uint32_t words[]; /* rows, blocks (n_blocks + 1), rules */
};

/*
 * Turns one library's unwind tables into rows, sorted by pc.
 *
 * @header, @frame: .eh_frame_hdr and .eh_frame (may be longer than the section)
 * @base: address from which the rows' pc counts @to, @room: memory for the table; written only as
 * far as needed
 *
 * Returns the table's size in bytes (0 = there are no rows), -ENOSPC if @room is too small,
 * -EBADMSG if the tables cannot be read. The bytes are not trusted. Not reentrant.
 */
long cfi_build(const struct cfi_bytes *header, const struct cfi_bytes *frame, uint64_t base,
	       struct cfi_table *to, size_t room);

/* Fills a table: begin, each row in order of pc, end. cfi_pack_row(): false = the table is full.
 * cfi_pack_end(): the table's size in bytes, or -ENOSPC. */
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
	/* the last row at or before the pc; if the block has none, the last one of the previous
	 * blocks */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((pc >> 16) - t->first_block > block || (rows[middle] & 0xffff) <= (pc & 0xffff))
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->words[t->rules_at + (rows[low - 1] >> 16)] : CFI_NONE;
}
