/*
 * Labels, by which users select JVMs: service=shop, pod=..., team=... All labels of a JVM are one
 * text of lines "key=value\n", sorted by key, so that they can be stored, hashed and compared like
 * any other string. Values contain no control characters, so a value cannot look like a second
 * label. The functions that read accept any text, because it may come from a file. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define LABEL_KEY_SIZE	 64 /* including the NUL */
#define LABEL_VALUE_SIZE 256 /* likewise; longer ones are cut */
#define LABELS_TEXT_SIZE 7680 /* a string of a profile can be as long */

/* A label inside the text that it was found in; key and value are not NUL-terminated. */
struct label {
	const char *key, *value;
	size_t key_len, value_len;
};

/* The next label of *text, which is moved past it; false at the end. */
bool labels_next(const char **text, struct label *ret);
/* The same, with copies of key and value, cut to the sizes. */
bool labels_next_text(const char **text, char key[LABEL_KEY_SIZE], char value[LABEL_VALUE_SIZE]);
/* The value of @key, *ret_len bytes inside of @text; NULL = there is no such label. */
const char *labels_find(const char *text, const char *key, size_t *ret_len);
/* The same, copied to @buf, "" = there is no such label; returns @buf. */
const char *labels_get(const char *text, const char *key, char buf[LABEL_VALUE_SIZE]);
/* Is the value of @key exactly @value? */
bool labels_is(const char *text, const char *key, const char *value);
/* Is @key a letter or _, then letters, digits and _ . - /, at most LABEL_KEY_SIZE - 1 in all? */
bool labels_key_is_valid(const char *key);

/* Labels that are being put together; zeroed at first. */
struct labels {
	size_t len;
	char text[LABELS_TEXT_SIZE]; /* always NUL-terminated */
	unsigned left_out; /* labels for which there was no room */
};
/* Sets all labels of @text; those with the same keys are replaced. */
void labels_add(struct labels *l, const char *text);
/*
 * Sets the label @key to @value; NULL and "" remove it. Invalid UTF-8 and control characters become
 * '?'. 0, -EINVAL (no valid key) or -ENOSPC (counted in left_out; the old value is removed).
 */
int labels_set(struct labels *l, const char *key, const char *value);
