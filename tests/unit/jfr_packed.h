/* Reads the packed numbers of a JFR file. */
#pragma once

#include <stdint.h>

/* Reads the number at *p and moves *p behind it: seven bits in a byte, the lowest first; a ninth
 * byte has eight. */
static inline uint64_t packed(const char **p)
{
	uint64_t v = 0;

	for (int i = 0; i < 9; i++) {
		uint8_t b = (uint8_t) * (*p)++;

		v |= (uint64_t)(i < 8 ? b & 0x7f : b) << 7 * i;
		if (i == 8 || !(b & 0x80))
			break;
	}
	return v;
}
