/* See text.h. */
#include "daemon/stream/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the well-formed sequence at @p, 0 if there is none (RFC 3629, table 3-7 of Unicode). */
static size_t sequence(const uint8_t *p, size_t len)
{
	uint8_t low = 0x80, high = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (len < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

/* C0, DEL, and C1, which terminals obey as well. */
static bool is_control(const uint8_t *p, size_t n)
{
	return (n == 1 && (p[0] < 0x20 || p[0] == 0x7f)) || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

size_t text_clean(char *dst, const char *src, size_t len)
{
	const uint8_t *p = (const uint8_t *)src;
	size_t out = 0;

	for (size_t i = 0; i < len;) {
		size_t n = sequence(p + i, len - i);

		if (n == 0) {
			memcpy(dst + out, "\xef\xbf\xbd", 3);
			out += 3;
			i++;
		} else if (is_control(p + i, n)) {
			dst[out++] = '?';
			i += n;
		} else {
			memcpy(dst + out, p + i, n);
			out += n;
			i += n;
		}
	}
	dst[out] = '\0';
	return out;
}
