/* See otlp_answer.h. */
#include "daemon/upload/otlp_answer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/utf8.h"

struct otlp_bytes {
	const uint8_t *p, *end;
};

struct otlp_field {
	uint64_t number, type;
	uint64_t value; /* of varints */
	struct otlp_bytes bytes; /* of type 2 */
};

static bool otlp_varint(struct otlp_bytes *b, uint64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && b->p < b->end; shift += 7) {
		uint8_t byte = *b->p++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static bool otlp_skip(struct otlp_bytes *b, uint64_t n)
{
	if (n > (uint64_t)(b->end - b->p))
		return false;
	b->p += n;
	return true;
}

static bool otlp_next(struct otlp_bytes *b, struct otlp_field *ret)
{
	uint64_t tag, len;

	if (!otlp_varint(b, &tag))
		return false;
	ret->number = tag >> 3;
	ret->type = tag & 7;
	switch (ret->type) {
	case 0:
		return otlp_varint(b, &ret->value);
	case 1:
		return otlp_skip(b, 8);
	case 2:
		if (!otlp_varint(b, &len))
			return false;
		ret->bytes.p = b->p;
		if (!otlp_skip(b, len))
			return false;
		ret->bytes.end = b->p;
		return true;
	case 5:
		return otlp_skip(b, 4);
	default:
		return false;
	}
}

static int otlp_read_partial(struct otlp_bytes b, struct otlp_answer *ret)
{
	struct otlp_field f;

	while (b.p < b.end) {
		if (!otlp_next(&b, &f))
			return -EBADMSG;
		if (f.number == 1 && f.type == 0)
			ret->rejected = f.value;
		if (f.number == 2 && f.type == 2) {
			snprintf(ret->message, sizeof(ret->message), "%.*s",
				 (int)(f.bytes.end - f.bytes.p < 299 ? f.bytes.end - f.bytes.p
								     : 299),
				 (const char *)f.bytes.p);
			for (char *c = ret->message; *c; c++)
				if ((unsigned char)*c < ' ' || *c == 0x7f)
					*c = ' ';
			(void)utf8_mend(ret->message);
		}
	}
	return 0;
}

int otlp_answer_read(const uint8_t *p, size_t len, struct otlp_answer *ret)
{
	struct otlp_bytes b = { p, p + len };
	struct otlp_field f;
	int r = 0;

	*ret = (struct otlp_answer){ 0 };
	while (r == 0 && b.p < b.end) {
		if (!otlp_next(&b, &f))
			return -EBADMSG;
		if (f.number == 1 && f.type == 2)
			r = otlp_read_partial(f.bytes, ret);
	}
	return r;
}
