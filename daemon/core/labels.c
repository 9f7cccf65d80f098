/* See labels.h. */
#include "daemon/core/labels.h"

#include <errno.h>
#include <string.h>
#include "daemon/ground/utf8.h"

static bool labels_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool labels_key_is_valid(const char *key)
{
	size_t len = strnlen(key, LABEL_KEY_SIZE);

	if (!len || len == LABEL_KEY_SIZE || !labels_is_letter(*key))
		return false;
	for (const char *p = key; *p; p++)
		if (!labels_is_letter(*p) && !(*p >= '0' && *p <= '9') && !memchr("./-", *p, 3))
			return false;
	return true;
}

bool labels_next(const char **text, struct label *ret)
{
	const char *begin = *text, *end, *equals;

	while (*begin) {
		end = strchrnul(begin, '\n');
		equals = memchr(begin, '=', (size_t)(end - begin));
		*text = *end ? end + 1 : end;
		if (equals) {
			*ret = (struct label){ begin, equals + 1, (size_t)(equals - begin),
					       (size_t)(end - equals - 1) };
			return true;
		}
		begin = *text; /* a line without = is no label: skipped */
	}
	return false;
}

bool labels_next_text(const char **text, char key[LABEL_KEY_SIZE], char value[LABEL_VALUE_SIZE])
{
	struct label label;

	if (!labels_next(text, &label))
		return false;
	utf8_copy(key, LABEL_KEY_SIZE, label.key, label.key_len);
	utf8_copy(value, LABEL_VALUE_SIZE, label.value, label.value_len);
	return true;
}

static bool labels_has_key(const struct label *label, const char *key)
{
	return strlen(key) == label->key_len && memcmp(key, label->key, label->key_len) == 0;
}

const char *labels_find(const char *text, const char *key, size_t *ret_len)
{
	struct label label;

	while (labels_next(&text, &label)) {
		if (!labels_has_key(&label, key))
			continue;
		*ret_len = label.value_len;
		return label.value;
	}
	return NULL;
}

const char *labels_get(const char *text, const char *key, char buf[LABEL_VALUE_SIZE])
{
	size_t len = 0;
	const char *value = labels_find(text, key, &len);

	utf8_copy(buf, LABEL_VALUE_SIZE, value ? value : "", len);
	return buf;
}

bool labels_is(const char *text, const char *key, const char *value)
{
	size_t len = 0;
	const char *found = labels_find(text, key, &len);

	return found && strlen(value) == len && memcmp(found, value, len) == 0;
}

/* ---- changing labels ------------------------------------------------------------------------ */

static void labels_cut(struct labels *l, size_t at, size_t len)
{
	memmove(l->text + at, l->text + at + len, l->len - at - len + 1);
	l->len -= len;
}

/* The offset of @key's line, or where it would be inserted; *ret_len: the line's length, 0 = there
 * is none. */
static size_t labels_find_line(const struct labels *l, const char *key, size_t *ret_len)
{
	const char *p = l->text, *line = p;
	struct label label;

	*ret_len = 0;
	while (labels_next(&p, &label)) {
		size_t n = strlen(key) < label.key_len ? strlen(key) : label.key_len;
		int order = memcmp(key, label.key, n);

		if (labels_has_key(&label, key))
			*ret_len = (size_t)(p - line);
		else if (order > 0 || (order == 0 && strlen(key) > n)) {
			line = p;
			continue;
		}
		break;
	}
	return (size_t)(line - l->text);
}

int labels_set(struct labels *l, const char *key, const char *value)
{
	char line[LABEL_KEY_SIZE + LABEL_VALUE_SIZE + 1];
	size_t at, len, key_len = strnlen(key, LABEL_KEY_SIZE);

	if (!labels_key_is_valid(key))
		return -EINVAL;
	at = labels_find_line(l, key, &len);
	labels_cut(l, at, len);
	if (!value || !*value)
		return 0;
	memcpy(line, key, key_len);
	line[key_len] = '=';
	len = key_len + 1;
	len += utf8_copy(line + len, LABEL_VALUE_SIZE, value, strlen(value));
	line[len++] = '\n';
	if (l->len + len >= sizeof(l->text)) {
		l->left_out++;
		return -ENOSPC;
	}
	memmove(l->text + at + len, l->text + at, l->len - at + 1);
	memcpy(l->text + at, line, len);
	l->len += len;
	return 0;
}

void labels_add(struct labels *l, const char *text)
{
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	while (labels_next_text(&text, key, value))
		(void)labels_set(l, key, value);
}
