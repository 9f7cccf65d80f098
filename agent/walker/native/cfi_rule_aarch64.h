/* A rule on arm64. Bits 3-16: the CFA's offset / 8. Bits 17-30: number of words below the CFA at
 * which x30 is saved (0 = it is still in x30). Bit 31: x29 is saved in the word below x30, as stp
 * stores the pair. */
#pragma once

#define CFI_RULE_FIELD 0x3fffu

static inline uint64_t cfi_rule_offset(uint32_t rule)
{
	return (uint64_t)((rule >> 3) & CFI_RULE_FIELD) * 8;
}

static inline uint64_t cfi_rule_ra(uint32_t rule)
{
	return (uint64_t)((rule >> 17) & CFI_RULE_FIELD) * 8;
}

static inline uint64_t cfi_rule_fp(uint32_t rule)
{
	return rule >> 31 ? cfi_rule_ra(rule) + 8 : 0;
}

static inline uint32_t cfi_rule_pack(enum cfi_kind kind, uint64_t cfa, uint64_t ra, uint64_t fp)
{
	if (cfa % 8 || cfa / 8 > CFI_RULE_FIELD || ra % 8 || ra / 8 > CFI_RULE_FIELD)
		return CFI_NONE;
	if (fp && (!ra || fp != ra + 8))
		return CFI_NONE;
	return (uint32_t)kind | (uint32_t)(cfa / 8) << 3 | (uint32_t)(ra / 8) << 17 |
	       (fp ? 1u << 31 : 0);
}
