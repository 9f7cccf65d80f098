/* See json_out.h. */
#include "daemon/report/json_out.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/utf8.h"

#define NUMBER_MAX 400 /* DBL_MAX with its digits before the point takes 309 */

static bool json_out_is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<';
}

/* Writes one character that is not plain. Returns its length in @s. */
static size_t json_out_character(struct text_out *t, const char *s, size_t left)
{
	unsigned char c = (unsigned char)*s;
	uint32_t code;
	size_t n = utf8_character(s, left, &code);

	if (n == 0) /* an incomplete character, where text was cut */
		return 1;
	if (c == '"' || c == '\\') {
		text_bytes(t, "\\", 1);
		text_bytes(t, s, 1);
	} else if (c < 0x20 || c == '<' || c == 0x7f) {
		text_printf(t, "\\u%04x", c);
	} else {
		text_bytes(t, s, n);
	}
	return n;
}

static void json_out_string(struct text_out *t, const char *s)
{
	const char *end = s + strlen(s);

	text_bytes(t, "\"", 1);
	while (s < end) {
		const char *plain = s;

		while (json_out_is_plain((unsigned char)*s))
			s++;
		if (s > plain)
			text_bytes(t, plain, (size_t)(s - plain));
		if (s < end)
			s += json_out_character(t, s, (size_t)(end - s));
	}
	text_bytes(t, "\"", 1);
}

static void json_out_indent(struct text_out *t)
{
	text_bytes(t, "\n", 1);
	for (unsigned i = 0; i < t->json_depth; i++)
		text_bytes(t, "\t", 1);
}

/* Writes what is before a value: the comma and the key. */
static void json_out_before(struct text_out *t, const char *key)
{
	if (t->json_comma)
		text_bytes(t, ", ", t->json_lines && !key ? 2 : 1);
	t->json_comma = true;
	if (!key)
		return;
	if (t->json_lines)
		json_out_indent(t);
	json_out_string(t, key);
	text_bytes(t, ":\t", t->json_lines ? 2 : 1);
}

static void json_out_begin(struct text_out *t, const char *key, const char *bracket)
{
	json_out_before(t, key);
	text_bytes(t, bracket, 1);
	t->json_comma = false;
	t->json_depth++;
}

void json_begin_object(struct text_out *t, const char *key)
{
	json_out_begin(t, key, "{");
}

void json_end_object(struct text_out *t)
{
	t->json_depth--;
	if (t->json_lines)
		json_out_indent(t);
	text_bytes(t, "}", 1);
	t->json_comma = true;
}

void json_begin_list(struct text_out *t, const char *key)
{
	json_out_begin(t, key, "[");
}

void json_end_list(struct text_out *t)
{
	t->json_depth--;
	text_bytes(t, "]", 1);
	t->json_comma = true;
}

void json_add_string(struct text_out *t, const char *key, const char *s)
{
	json_out_before(t, key);
	json_out_string(t, s);
}

void json_add_string_or_null(struct text_out *t, const char *key, const char *s)
{
	if (s && *s)
		json_add_string(t, key, s);
	else
		json_add_null(t, key);
}

/* Writes digits without printf, because most of a large profile is numbers. */
static void json_out_digits(struct text_out *t, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	text_bytes(t, digits + at, sizeof(digits) - at);
}

void json_add_u64(struct text_out *t, const char *key, uint64_t n)
{
	json_out_before(t, key);
	json_out_digits(t, n);
}

void json_add_i64(struct text_out *t, const char *key, int64_t n)
{
	json_out_before(t, key);
	if (n < 0)
		text_bytes(t, "-", 1);
	json_out_digits(t, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}

/* Are they the same but for the last bit? */
static bool json_out_is_equal(double a, double b)
{
	double size = fabs(a) > fabs(b) ? fabs(a) : fabs(b);

	return fabs(a - b) <= size * DBL_EPSILON;
}

static void json_out_number(struct text_out *t, const char *key, const char *text, double n)
{
	json_out_before(t, key);
	text_put(t, isfinite(n) ? text : "null");
}

void json_add_double(struct text_out *t, const char *key, double n)
{
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "%.15g", n);
	if (!json_out_is_equal(strtod(text, NULL), n))
		snprintf(text, sizeof(text), "%.17g", n);
	json_out_number(t, key, text, n);
}

void json_add_fixed(struct text_out *t, const char *key, double n, int decimals)
{
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "%.*f", decimals, n);
	json_out_number(t, key, text, n);
}

void json_add_rounded(struct text_out *t, const char *key, double n, int digits)
{
	char text[NUMBER_MAX];

	snprintf(text, sizeof(text), "%.*g", digits, n);
	json_out_number(t, key, text, n);
}

void json_add_bool(struct text_out *t, const char *key, bool b)
{
	json_out_before(t, key);
	text_put(t, b ? "true" : "false");
}

void json_add_null(struct text_out *t, const char *key)
{
	json_out_before(t, key);
	text_bytes(t, "null", 4);
}

void json_break_line(struct text_out *t)
{
	text_put(t, t->json_comma ? ",\n" : "\n");
	t->json_comma = false;
}

void json_end_line(struct text_out *t)
{
	text_bytes(t, "\n", 1);
	t->json_comma = false;
}

void json_put_on_lines(struct text_out *t)
{
	t->json_lines = true;
}
