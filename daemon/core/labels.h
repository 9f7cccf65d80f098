/*
 * Labels: what a JVM is found by among many, service=shop, pod=..., team=... They are one text,
 * "key=value\n" after "key=value\n", sorted by key, so that they are kept, hashed and compared as
 * any other string is. Values hold no control character, so none can pretend to be two. Reading
 * trusts nothing: the text may come from a file. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LABEL_KEY_SIZE	 64 /* with its NUL */
#define LABEL_VALUE_SIZE 256 /* likewise; longer ones are cut */
#define LABELS_TEXT_SIZE 7680 /* fits a string of a profile */

/* One of them, inside the text it was found in: neither is NUL-terminated. */
struct label {
	const char *key, *value;
	size_t key_len, value_len;
};

/* The next label of @*text, which is moved past it; false at the end. */
bool labels_next(const char **text, struct label *ret);
/* The same, both as texts of their own. */
bool labels_next_text(const char **text, char key[LABEL_KEY_SIZE], char value[LABEL_VALUE_SIZE]);
/* The value of @key, of *ret_len bytes in @text; NULL = it has none. */
const char *labels_find(const char *text, const char *key, size_t *ret_len);
/* The same, copied to @buf, "" = there is no such label; returns @buf. */
const char *labels_get(const char *text, const char *key, char buf[LABEL_VALUE_SIZE]);
/* Is the value of @key exactly @value? */
bool labels_is(const char *text, const char *key, const char *value);
/* A letter or _, then letters, digits and _ . - / */
bool labels_key_is_valid(const char *key);

/* While they are made. */
struct labels {
	size_t len;
	char text[LABELS_TEXT_SIZE]; /* always NUL-terminated */
	unsigned left_out; /* found no room */
};
/* All of @text; what has the same keys is replaced. */
void labels_add(struct labels *l, const char *text);
/*
 * @key has @value from now on; NULL and "" take it out. What is not UTF-8 and control characters
 * become '?'. 0, -EINVAL (no valid key) or -ENOSPC (counted in left_out; the old value is gone).
 */
int labels_set(struct labels *l, const char *key, const char *value);
