/* See cfi.h. Only the agent's thread makes tables, so there is one packer. */
#include <errno.h>
#include <string.h>
#include "agent/walker/native/cfi.h"

#define HASH_BITS  13
#define HASH_SLOTS (1u << HASH_BITS)

static struct {
	struct cfi_table *to;
	uint32_t words_max; /* number of to->words, which hold only rows until cfi_pack_end() */
	uint32_t n_rows, n_blocks, n_rules;
	uint32_t first_block;
	uint32_t rules[CFI_RULES_MAX];
	uint32_t blocks[CFI_BLOCKS_MAX]; /* index of the first row of each block */
	uint16_t slots[HASH_SLOTS]; /* hash table: the numbers of rules; 0 = free */
} packer;

/* The number of a rule, which is assigned if the rule is new. 0 (CFI_NONE) = there are too many
 * rules. */
static uint32_t rule_number(uint32_t rule)
{
	uint32_t at = rule * 2654435761u >> (32 - HASH_BITS);

	if (rule == CFI_NONE)
		return 0;
	for (; packer.slots[at]; at = (at + 1) % HASH_SLOTS)
		if (packer.rules[packer.slots[at]] == rule)
			return packer.slots[at];
	if (packer.n_rules == CFI_RULES_MAX)
		return 0;
	packer.rules[packer.n_rules] = rule;
	packer.slots[at] = (uint16_t)packer.n_rules;
	return packer.n_rules++;
}

void cfi_pack_begin(struct cfi_table *to, size_t room)
{
	size_t words = room < sizeof(*to) ? 0 : (room - sizeof(*to)) / sizeof(to->words[0]);

	packer.to = to;
	packer.words_max = words < UINT32_MAX ? (uint32_t)words : UINT32_MAX;
	packer.n_rows = packer.n_blocks = 0;
	packer.n_rules = 1; /* CFI_NONE */
	memset(packer.slots, 0, sizeof(packer.slots));
}

bool cfi_pack_row(const struct cfi_row *row)
{
	uint32_t block = row->pc >> 16;

	if (!packer.n_rows)
		packer.first_block = block;
	block -= packer.first_block;
	if (block >= CFI_BLOCKS_MAX || packer.n_rows == packer.words_max)
		return false;
	while (packer.n_blocks <= block)
		packer.blocks[packer.n_blocks++] = packer.n_rows;
	packer.to->words[packer.n_rows++] = (row->pc & 0xffff) | rule_number(row->rule) << 16;
	return true;
}

/* Writes the blocks and the rules, which follow the rows. */
long cfi_pack_end(void)
{
	struct cfi_table *t = packer.to;
	size_t words = (size_t)packer.n_rows + packer.n_blocks + 1 + packer.n_rules;

	if (!packer.n_rows)
		return 0;
	if (words > packer.words_max)
		return -ENOSPC;
	t->first_block = packer.first_block;
	t->n_blocks = packer.n_blocks;
	t->blocks_at = packer.n_rows;
	t->rules_at = packer.n_rows + packer.n_blocks + 1;
	memcpy(t->words + t->blocks_at, packer.blocks, packer.n_blocks * sizeof(t->words[0]));
	t->words[t->rules_at - 1] = packer.n_rows;
	memcpy(t->words + t->rules_at, packer.rules, packer.n_rules * sizeof(t->words[0]));
	t->bytes = (uint32_t)(sizeof(*t) + words * sizeof(t->words[0]));
	return (long)t->bytes;
}
