/*
 * RowBinary, ClickHouse's binary format for rows: columns one after the other, numbers
 * little-endian, strings and arrays after their length. Reading accepts any bytes: at incomplete
 * data it sets `bad`, and everything that is read afterwards is zero or empty.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/report/text_out.h"

void rowbinary_put_number(struct text_out *t, uint64_t value, size_t bytes);
void rowbinary_put_length(struct text_out *t, uint64_t n); /* begins an array of @n elements */
void rowbinary_put_string(struct text_out *t, const char *s);

struct rowbinary {
	const uint8_t *p, *end;
	bool bad;
};

struct rowbinary_string {
	const char *p; /* not NUL-terminated */
	size_t len;
};

bool rowbinary_more(const struct rowbinary *in); /* is there another row? */
uint64_t rowbinary_number(struct rowbinary *in, size_t bytes);
struct rowbinary_string rowbinary_string(struct rowbinary *in);
/* The number of an array's elements. @least: the bytes of an element, at least; `bad` is set if the
 * rest of the data is too short for all of them. */
size_t rowbinary_length(struct rowbinary *in, size_t least);
