/* See utf8.h. */
#include "daemon/ground/utf8.h"

#include <string.h>

size_t utf8_character(const char *text, size_t len, uint32_t *ret_code)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t code;

	if (n == 0 || n > len || s[0] > 0xf4)
		return 0;
	code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if (code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	*ret_code = code;
	return n;
}

bool utf8_is_control(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

size_t utf8_copy(char *dst, size_t dst_size, const char *src, size_t len)
{
	size_t out = 0;
	uint32_t code;

	for (size_t in = 0; in < len;) {
		size_t n = utf8_character(src + in, len - in, &code);

		/* each byte of a control character becomes a '?', like any other invalid byte */
		if (n && utf8_is_control(code))
			n = 0;
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

size_t utf8_clean(char *dst, const char *src, size_t len)
{
	size_t out = 0;
	uint32_t code;

	for (size_t in = 0; in < len;) {
		size_t n = utf8_character(src + in, len - in, &code);

		if (n == 0) {
			memcpy(dst + out, "\xef\xbf\xbd", 3);
			out += 3;
		} else if (utf8_is_control(code)) {
			dst[out++] = '?';
		} else {
			memcpy(dst + out, src + in, n);
			out += n;
		}
		in += n ? n : 1;
	}
	dst[out] = '\0';
	return out;
}

/* The number of bytes before the first that is not ASCII. */
static size_t utf8_ascii(const char *s, size_t len)
{
	size_t n = 0;
	uint64_t word;

	for (; n + sizeof(word) <= len; n += sizeof(word)) {
		memcpy(&word, s + n, sizeof(word));
		if (word & 0x8080808080808080ull)
			break;
	}
	while (n < len && !(s[n] & 0x80))
		n++;
	return n;
}

size_t utf8_mend(char *s)
{
	size_t len = strlen(s), in = utf8_ascii(s, len), out = in;
	uint32_t code;

	while (in < len) {
		size_t n = utf8_character(s + in, len - in, &code);

		memmove(s + out, s + in, n);
		out += n;
		in += n ? n : 1;
	}
	s[out] = '\0';
	return out;
}
