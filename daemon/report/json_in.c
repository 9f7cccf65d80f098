/* See json_in.h. */
#include "daemon/report/json_in.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/utf8.h"

int json_init(struct json_in *j, const char *bytes, size_t len)
{
	*j = (struct json_in){ .begin = bytes, .at = bytes, .end = bytes + len };
	j->text = calloc(1, JSON_TEXT_MAX + 8);
	return j->text ? 0 : -ENOMEM;
}

void json_deinit(struct json_in *j)
{
	free(j->text);
	j->text = NULL;
}

void json_fail(struct json_in *j, const char *what)
{
	if (j->failed)
		return;
	j->failed = true;
	snprintf(j->why, sizeof(j->why), "%s%s%s at byte %zu", j->key[0] ? j->key : "",
		 j->key[0] ? ": " : "", what, (size_t)(j->at - j->begin));
}

static bool json_is_ascii(char c, char first, char last)
{
	return c >= first && c <= last;
}

/* The next character that is not a space; '\0' = the end. */
static char json_peek(struct json_in *j)
{
	while (!j->failed && j->at < j->end &&
	       (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
		j->at++;
	return !j->failed && j->at < j->end ? *j->at : '\0';
}

static bool json_take(struct json_in *j, char c, const char *otherwise)
{
	if (json_peek(j) != c || j->at == j->end) {
		json_fail(j, otherwise);
		return false;
	}
	j->at++;
	return true;
}

/* ---- objects and arrays ---------------------------------------------------------------------- */

static void json_enter(struct json_in *j, char c, const char *otherwise)
{
	if (!json_take(j, c, otherwise))
		return;
	if (j->depth++ >= JSON_DEPTH_MAX)
		json_fail(j, "too deep");
	j->fresh = true;
}

/* Does another element follow before @close? */
static bool json_more(struct json_in *j, char close)
{
	if (json_peek(j) == close && !j->failed) {
		j->at++;
		j->depth--;
		j->fresh = false;
		return false;
	}
	if (!j->fresh)
		(void)json_take(j, ',', "no comma");
	j->fresh = false;
	return !j->failed;
}

void json_object(struct json_in *j)
{
	json_enter(j, '{', "no object");
}

void json_array(struct json_in *j)
{
	json_enter(j, '[', "no list");
}

bool json_key(struct json_in *j)
{
	if (!json_more(j, '}'))
		return false;
	snprintf(j->key, sizeof(j->key), "%.63s", json_text(j));
	(void)json_take(j, ':', "no colon");
	return !j->failed;
}

bool json_is(const struct json_in *j, const char *key)
{
	return strcmp(j->key, key) == 0;
}

bool json_item(struct json_in *j)
{
	return json_more(j, ']');
}

/* ---- strings --------------------------------------------------------------------------------- */

static unsigned json_hex4(struct json_in *j)
{
	unsigned code = 0;

	for (int i = 0; i < 4; i++, j->at++) {
		char c = j->at < j->end ? *j->at : '\0';

		if (!json_is_ascii(c, '0', '9') && !json_is_ascii((char)(c | 0x20), 'a', 'f')) {
			json_fail(j, "\\u without four digits");
			return 0;
		}
		code = code << 4 | (unsigned)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return code;
}

static size_t json_utf8(uint32_t code, char *to)
{
	if (code < 0x80) {
		to[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		to[0] = (char)(0xc0 | code >> 6);
		to[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 0x3f));
		to[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 0x3f));
	to[2] = (char)(0x80 | (code >> 6 & 0x3f));
	to[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* Reads what follows "\u". Invalid characters, and NUL, which would end the text, become U+FFFD. */
static size_t json_unicode(struct json_in *j, char *to)
{
	uint32_t code = json_hex4(j), low;

	if (code >= 0xd800 && code < 0xdc00 && j->end - j->at >= 6 && j->at[0] == '\\' &&
	    j->at[1] == 'u') {
		j->at += 2;
		low = json_hex4(j);
		code = low >= 0xdc00 && low < 0xe000
			       ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
			       : 0xfffd;
	}
	if (code == 0 || (code >= 0xd800 && code < 0xe000))
		code = 0xfffd;
	return json_utf8(code, to);
}

/* Reads what follows a backslash. */
static size_t json_escape(struct json_in *j, char *to)
{
	static const char from[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	char c = j->at < j->end ? *j->at : '\0';
	const char *found = c ? strchr(from, c) : NULL;

	if (c == 'u') {
		j->at++;
		return json_unicode(j, to);
	}
	if (!found) {
		json_fail(j, "not a valid character after \\");
		return 0;
	}
	j->at++;
	*to = means[found - from];
	return 1;
}

const char *json_text(struct json_in *j)
{
	size_t n = 0;

	j->text[0] = '\0';
	if (!json_take(j, '"', "no string"))
		return j->text;
	while (!j->failed && j->at < j->end && *j->at != '"') {
		char c = *j->at;

		if (n >= JSON_TEXT_MAX) {
			json_fail(j, "a string of more than 65536 bytes");
		} else if ((unsigned char)c < 0x20) {
			json_fail(j, "a control character in a string");
		} else {
			j->at++;
			if (c == '\\')
				n += json_escape(j, j->text + n);
			else
				j->text[n++] = c;
		}
	}
	j->text[j->failed ? 0 : n] = '\0';
	(void)utf8_mend(j->text);
	if (!j->failed && j->at == j->end)
		json_fail(j, "a string that does not end");
	else if (!j->failed)
		j->at++;
	return j->text;
}

/* ---- numbers and words ----------------------------------------------------------------------- */

uint64_t json_u64(struct json_in *j)
{
	uint64_t n = 0;

	if (!json_is_ascii(json_peek(j), '0', '9')) {
		json_fail(j, "not a whole number");
		return 0;
	}
	for (; j->at < j->end && json_is_ascii(*j->at, '0', '9'); j->at++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*j->at - '0'), &n)) {
			json_fail(j, "a number that is too large");
			return 0;
		}
	if (j->at < j->end && (*j->at == '.' || (*j->at | 0x20) == 'e')) {
		json_fail(j, "not a whole number");
		return 0;
	}
	return n;
}

int64_t json_i64(struct json_in *j)
{
	bool negative = json_peek(j) == '-';
	uint64_t n;

	if (negative)
		j->at++;
	n = json_u64(j);
	if (n > INT64_MAX) {
		json_fail(j, "a number that is too large");
		return 0;
	}
	return negative ? -(int64_t)n : (int64_t)n;
}

static bool json_word(struct json_in *j, const char *word)
{
	size_t len = strlen(word);

	if (json_peek(j) != *word || (size_t)(j->end - j->at) < len ||
	    memcmp(j->at, word, len) != 0)
		return false;
	j->at += len;
	return true;
}

bool json_bool(struct json_in *j)
{
	if (json_word(j, "true"))
		return true;
	if (!json_word(j, "false"))
		json_fail(j, "neither true nor false");
	return false;
}

bool json_null(struct json_in *j)
{
	return json_word(j, "null");
}

static void json_skip_number(struct json_in *j)
{
	const char *from = j->at;

	while (j->at < j->end && *j->at && strchr("+-.0123456789eE", *j->at))
		j->at++;
	if (j->at == from)
		json_fail(j, "no value");
}

/* Skips a value, as deep as json_enter() allows. */
void json_skip(struct json_in *j)
{
	char c = json_peek(j);

	if (c == '{') {
		json_object(j);
		while (json_key(j))
			json_skip(j);
	} else if (c == '[') {
		json_array(j);
		while (json_item(j))
			json_skip(j);
	} else if (c == '"') {
		(void)json_text(j);
	} else if (!json_word(j, "true") && !json_word(j, "false") && !json_null(j)) {
		json_skip_number(j);
	}
}

void json_end(struct json_in *j)
{
	(void)json_peek(j);
	if (!j->failed && j->at != j->end)
		json_fail(j, "data after the end");
}
