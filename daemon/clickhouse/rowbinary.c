/* See rowbinary.h. */
#include "daemon/clickhouse/rowbinary.h"

#include <endian.h>
#include <string.h>

void rowbinary_put_number(struct text_out *t, uint64_t value, size_t bytes)
{
	uint64_t little = htole64(value);

	text_bytes(t, &little, bytes);
}

void rowbinary_put_length(struct text_out *t, uint64_t n)
{
	uint8_t buf[10];
	size_t len = 0;

	for (; n >= 0x80; n >>= 7)
		buf[len++] = (uint8_t)n | 0x80;
	buf[len++] = (uint8_t)n;
	text_bytes(t, buf, len);
}

void rowbinary_put_string(struct text_out *t, const char *s)
{
	size_t len = strlen(s);

	rowbinary_put_length(t, len);
	text_bytes(t, s, len);
}

bool rowbinary_more(const struct rowbinary *in)
{
	return !in->bad && in->p < in->end;
}

static bool rowbinary_has(struct rowbinary *in, size_t bytes)
{
	if (in->bad || (size_t)(in->end - in->p) < bytes) {
		in->bad = true;
		return false;
	}
	return true;
}

uint64_t rowbinary_number(struct rowbinary *in, size_t bytes)
{
	uint64_t value = 0;

	if (!rowbinary_has(in, bytes))
		return 0;
	for (size_t i = 0; i < bytes; i++)
		value |= (uint64_t)in->p[i] << 8 * i;
	in->p += bytes;
	return value;
}

size_t rowbinary_length(struct rowbinary *in, size_t least)
{
	uint64_t n = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint64_t byte = rowbinary_number(in, 1);

		n |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (in->bad || n > (size_t)(in->end - in->p) / least)
			break;
		return (size_t)n;
	}
	in->bad = true;
	return 0;
}

struct rowbinary_string rowbinary_string(struct rowbinary *in)
{
	size_t len = rowbinary_length(in, 1);
	struct rowbinary_string s = { in->bad ? "" : (const char *)in->p, len };

	in->p += len;
	return s;
}
