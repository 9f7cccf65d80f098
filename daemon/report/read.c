/* See read.h: the formats that can be read, and how printed names become frames again. */
#include "daemon/report/readers.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 8000

static int (*const read_formats[REPORT_FORMAT_COUNT])(const char *bytes, size_t len,
						      struct report_reading *r,
						      struct profile *p) = {
	[REPORT_JSON] = read_json,
	[REPORT_PPROF] = read_pprof,
	[REPORT_COLLAPSED] = read_collapsed,
};

bool report_reads(enum report_format format)
{
	return read_formats[format] != NULL;
}

const char *report_reads_list(char *buf, size_t size)
{
	snprintf(buf, size, "json, pb.gz or collapsed");
	return buf;
}

int read_wrong(struct report_reading *r, const char *fmt, ...)
{
	va_list ap;

	if (*r->why)
		return -EBADMSG;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

int report_read(enum report_format format, const char *bytes, size_t len, struct report_reading *r,
		struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	int e;

	r->why[0] = r->note[0] = '\0';
	if (len > READ_BYTES_MAX)
		return read_wrong(r, "it is larger than %lu MiB", READ_BYTES_MAX >> 20);
	e = profile_new(&p);
	if (e < 0)
		return e;
	profile_limit(p, READ_MEMORY_MAX, 1);
	e = read_formats[format](bytes, len, r, p);
	if (e < 0)
		return e;
	*ret = TAKE_PTR(p);
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

int read_kind_by_name(const char *name)
{
	for (int i = 0; i < WIRE_KIND_COUNT; i++)
		if (strcmp(name, wire_kind_names[i]) == 0)
			return i;
	return -1;
}

int read_kind_mark(char *name)
{
	size_t len = strlen(name);

	for (unsigned i = 0; i < WIRE_KIND_COUNT; i++) {
		const char *mark = report_kind_mark(i);
		size_t n = strlen(mark);

		if (!n || len <= n || strcmp(name + len - n, mark) != 0)
			continue;
		name[len - n] = '\0';
		return (int)i;
	}
	return -1;
}

/* The dot before a method's name; NULL = the name is not a method's. */
static char *read_dot(char *name)
{
	char *dot = strrchr(name, '.');

	return dot && dot > name && dot[1] ? dot : NULL;
}

/* The kind of a frame in another program's file, or without a mark, judged by its name. ".so" in
 * brackets is a library's function without a name. */
static int read_kind_guess(char *name)
{
	const char *dot = read_dot(name);

	if (name[0] == '[')
		return strstr(name, ".so") ? WIRE_KIND_NATIVE : WIRE_KIND_SYNTHETIC;
	if (!dot || strpbrk(name, "(:@ ") || (dot[1] >= '0' && dot[1] <= '9') ||
	    strcmp(dot, ".part") == 0 || strcmp(dot, ".cold") == 0)
		return WIRE_KIND_NATIVE;
	return WIRE_KIND_JAVA;
}

struct profile_frame read_frame_name(struct profile *p, const char *name, int kind)
{
	char buf[NAME_MAX_BYTES + 1], *dot;
	struct profile_frame f = { .line = -1 };
	size_t len;
	int mark;

	snprintf(buf, sizeof(buf), "%s", name);
	mark = read_kind_mark(buf);
	kind = mark >= 0 ? mark : kind >= 0 ? kind : read_kind_guess(buf);
	f.kind = (uint8_t)kind;
	len = strlen(buf);
	dot = wire_kind_is_method(f.kind) ? read_dot(buf) : NULL;
	if (kind == WIRE_KIND_NATIVE && buf[0] == '[' && len > 2 && buf[len - 1] == ']') {
		buf[len - 1] = '\0';
		f.module = profile_string(p, buf + 1);
		return f;
	}
	if (dot) {
		*dot = '\0';
		f.class_name = profile_string(p, buf);
	}
	if (strcmp(buf, "[unknown]") != 0)
		f.method = profile_string(p, dot ? dot + 1 : buf);
	return f;
}
