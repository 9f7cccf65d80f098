/*
 * RowBinary, the form in which ClickHouse takes and gives rows: columns one after the other,
 * numbers little-endian, strings and arrays behind their length. Reading trusts nothing: what is
 * not whole sets `bad`, and everything after it is zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/report/text_out.h"

void rowbinary_put_number(struct text_out *t, uint64_t value, size_t bytes);
void rowbinary_put_length(struct text_out *t, uint64_t n); /* of an array: its elements follow */
void rowbinary_put_string(struct text_out *t, const char *s);

struct rowbinary {
	const uint8_t *p, *end;
	bool bad;
};

struct rowbinary_string {
	const char *p; /* not NUL-terminated */
	size_t len;
};

bool rowbinary_more(const struct rowbinary *in); /* another row? */
uint64_t rowbinary_number(struct rowbinary *in, size_t bytes);
struct rowbinary_string rowbinary_string(struct rowbinary *in);
/* How many elements follow, each of @least bytes or more: never more than fit. */
size_t rowbinary_length(struct rowbinary *in, size_t least);
