/* Numbers of a JFR file, as its readers take them. */
#pragma once

#include <stdint.h>

/* The one at @p, which moves behind it: seven bits a byte, the lowest first, the ninth byte whole.
 */
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
