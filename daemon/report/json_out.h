/*
 * Writes JSON into a text_out. All that kindlingd and the command line print as JSON is written
 * with these functions; cJSON is only for reading.
 *
 * @key is the value's key in an object; it is NULL in a list and for the outermost value. The
 * writer puts the commas. Nothing fails here: what fails without memory is text_take().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/report/text_out.h"

void json_begin_object(struct text_out *t, const char *key);
void json_end_object(struct text_out *t);
void json_begin_list(struct text_out *t, const char *key);
void json_end_list(struct text_out *t);

/* Bytes that are not UTF-8 are left out, such as the rest of a character where @s was cut. "<" is
 * escaped, so that the JSON can be in a script element of a page. */
void json_add_string(struct text_out *t, const char *key, const char *s);
/* Writes null for NULL and "". */
void json_add_string_or_null(struct text_out *t, const char *key, const char *s);
void json_add_u64(struct text_out *t, const char *key, uint64_t n);
void json_add_i64(struct text_out *t, const char *key, int64_t n);
/* With as many digits as it takes to read the same number back; null if @n is not finite. */
void json_add_double(struct text_out *t, const char *key, double n);
/* With @decimals digits after the point. */
void json_add_fixed(struct text_out *t, const char *key, double n, int decimals);
/* With @digits significant digits at most. */
void json_add_rounded(struct text_out *t, const char *key, double n, int digits);
void json_add_bool(struct text_out *t, const char *key, bool b);
void json_add_null(struct text_out *t, const char *key);

/* Begins a new line before the next value, which must exist. */
void json_break_line(struct text_out *t);
/* Ends a line that is a whole JSON value, as in JSON lines. */
void json_end_line(struct text_out *t);
/* From here on each value of an object gets a line of its own, for people who read the text. */
void json_put_on_lines(struct text_out *t);
