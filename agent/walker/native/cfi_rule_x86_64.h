/* A rule on x86-64. Bits 3-18: the CFA's offset / 8. Bits 19-31: number of words below the CFA at
 * which fp is saved (0 = it is still in rbp). The return address is always in the word below the
 * CFA. */
#pragma once

static inline uint64_t cfi_rule_offset(uint32_t rule)
{
	return (uint64_t)((rule >> 3) & 0xffff) * 8;
}

static inline uint64_t cfi_rule_ra(uint32_t rule)
{
	(void)rule;
	return 8;
}

static inline uint64_t cfi_rule_fp(uint32_t rule)
{
	return (uint64_t)(rule >> 19) * 8;
}

static inline uint32_t cfi_rule_pack(enum cfi_kind kind, uint64_t cfa, uint64_t ra, uint64_t fp)
{
	(void)ra;
	if (cfa % 8 || cfa / 8 > 0xffff || fp % 8 || fp / 8 > 0x1fff)
		return CFI_NONE;
	return (uint32_t)kind | (uint32_t)(cfa / 8) << 3 | (uint32_t)(fp / 8) << 19;
}
