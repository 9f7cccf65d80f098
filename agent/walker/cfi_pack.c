/* See cfi.h. */
#include <errno.h>
#include <string.h>
#include "agent/walker/cfi.h"

#define HASH_BITS  13
#define HASH_SLOTS (1u << HASH_BITS)

static uint16_t slots[HASH_SLOTS]; /* rule's number, by hash of the rule */

/* The rule's number, a new one if need be; 0 (CFI_NONE) when there are too many. */
static uint32_t rule_number(uint32_t *rules, uint32_t *n, uint32_t rule)
{
	uint32_t at = rule * 2654435761u >> (32 - HASH_BITS);

	if (rule == CFI_NONE)
		return 0;
	for (; slots[at]; at = (at + 1) % HASH_SLOTS)
		if (rules[slots[at]] == rule)
			return slots[at];
	if (*n == CFI_RULES_MAX)
		return 0;
	rules[*n] = rule;
	slots[at] = (uint16_t)*n;
	return (*n)++;
}

long cfi_pack(const struct cfi_row *rows, uint32_t n, struct cfi_table *t, size_t room)
{
	uint32_t rules[CFI_RULES_MAX] = { CFI_NONE }, n_rules = 1, block = 0;
	size_t words;

	if (!n)
		return -ENOSPC;
	memset(slots, 0, sizeof(slots));
	for (uint32_t i = 0; i < n; i++)
		(void)rule_number(rules, &n_rules, rows[i].rule);
	t->first_block = rows[0].pc >> 16;
	t->n_blocks = (rows[n - 1].pc >> 16) - t->first_block + 1;
	t->blocks_at = n_rules;
	t->rows_at = t->blocks_at + t->n_blocks + 1;
	words = (size_t)t->rows_at + n;
	if (sizeof(*t) + words * sizeof(t->words[0]) > room)
		return -ENOSPC;
	t->bytes = (uint32_t)(sizeof(*t) + words * sizeof(t->words[0]));
	memcpy(t->words, rules, n_rules * sizeof(rules[0]));
	for (uint32_t i = 0; i < n; i++) {
		for (; block <= (rows[i].pc >> 16) - t->first_block; block++)
			t->words[t->blocks_at + block] = i;
		t->words[t->rows_at + i] = (rows[i].pc & 0xffff) |
					   rule_number(rules, &n_rules, rows[i].rule) << 16;
	}
	t->words[t->blocks_at + block] = n;
	return (long)t->bytes;
}
