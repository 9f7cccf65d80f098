/* A buffer for output that grows. After a failure everything added is ignored, and text_take()
 * returns -ENOMEM. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct text_out {
	char *p;
	size_t len, cap;
	bool failed;
	bool json_comma, json_lines; /* json_out.h: a comma is due; each value has its line */
	unsigned json_depth; /* objects and lists that have not ended */
};

void text_put(struct text_out *t, const char *s);
void text_bytes(struct text_out *t, const void *p, size_t len);
void text_printf(struct text_out *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int text_take(struct text_out *t, char **ret, size_t *ret_len);
