/* See text_out.h. */
#include "daemon/report/text_out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_out_room(struct text_out *t, size_t more)
{
	size_t cap;
	char *p;

	if (t->failed)
		return false;
	if (t->len + more + 1 <= t->cap)
		return true;
	cap = 2 * t->cap + more + 4096;
	p = realloc(t->p, cap);
	if (!p) {
		t->failed = true;
		return false;
	}
	t->p = p;
	t->cap = cap;
	return true;
}

void text_bytes(struct text_out *t, const void *p, size_t len)
{
	if (!text_out_room(t, len))
		return;
	memcpy(t->p + t->len, p, len);
	t->len += len;
	t->p[t->len] = '\0';
}

void text_put(struct text_out *t, const char *s)
{
	text_bytes(t, s, strlen(s));
}

void text_printf(struct text_out *t, const char *fmt, ...)
{
	char buf[2048];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (n > 0)
		text_bytes(t, buf, (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}

int text_take(struct text_out *t, char **ret, size_t *ret_len)
{
	if (t->failed || !text_out_room(t, 0)) {
		free(t->p);
		return -ENOMEM;
	}
	t->p[t->len] = '\0';
	*ret = t->p;
	*ret_len = t->len;
	return 0;
}
