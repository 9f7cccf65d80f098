/* See class_text.h. */
#include "daemon/profile/class_text.h"

#include <stdio.h>
#include <string.h>

static const char *class_text_primitive(char letter)
{
	switch (letter) {
	case 'B':
		return "byte";
	case 'C':
		return "char";
	case 'D':
		return "double";
	case 'F':
		return "float";
	case 'I':
		return "int";
	case 'J':
		return "long";
	case 'S':
		return "short";
	case 'Z':
		return "boolean";
	default:
		return NULL;
	}
}

/* The element type of an array, whose descriptor @text is without its "[": "I", or
 * "Ljava.lang.String;". Returns the length of its name in *ret; 0 = not a type. */
static size_t class_text_element(const char *text, const char **ret)
{
	size_t len = strlen(text);

	if (len == 1) {
		*ret = class_text_primitive(*text);
		return *ret ? strlen(*ret) : 0;
	}
	*ret = text + 1;
	return len > 2 && *text == 'L' && text[len - 1] == ';' ? len - 2 : 0;
}

const char *class_text(const char *name, char buf[CLASS_TEXT_MAX])
{
	size_t dimensions = strspn(name, "["), len, n;
	const char *of;

	len = dimensions && dimensions <= 255 ? class_text_element(name + dimensions, &of) : 0;
	n = (size_t)snprintf(buf, CLASS_TEXT_MAX, "%.*s", (int)(len ? len : strlen(name)),
			     len ? of : name);
	for (; len && dimensions && n + 2 < CLASS_TEXT_MAX; dimensions--, n += 2)
		memcpy(buf + n, "[]", 3);
	for (char *c = buf; *c; c++)
		if (*c == '/')
			*c = '.';
	return buf;
}
