/* See utf8.h. */
#include "daemon/core/utf8.h"

#include <stdint.h>
#include <string.h>

/* Bytes of the character at @s, 0 if it is none that may be printed. */
static size_t character(const unsigned char *s, size_t len)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t code;

	if (n == 1)
		return s[0] >= 0x20 && s[0] != 0x7f;
	if (n == 0 || n > len || s[0] > 0xf4)
		return 0;
	code = s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	/* U+0080..U+009F are control characters that terminals obey */
	return code < 0xa0 ? 0 : n;
}

size_t utf8_copy(char *dst, size_t dst_size, const char *src, size_t len)
{
	size_t out = 0;

	for (size_t in = 0; in < len;) {
		size_t n = character((const unsigned char *)src + in, len - in);

		if (out + (n ? n : 1) >= dst_size)
			break;
		if (n)
			memcpy(dst + out, src + in, n);
		else
			dst[out] = '?';
		out += n ? n : 1;
		in += n ? n : 1;
	}
	dst[out] = '\0';
	return out;
}
