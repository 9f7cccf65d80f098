/* Finds formats by name, and names frames for all formats. */
#include "daemon/report/report.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/report/formats.h"
#include "daemon/report/patterns.h"
#include "daemon/ground/utf8.h"
#include "proto/wire.h"

static const struct {
	const char *name, *suffix, *content_type;
	bool several; /* one file can hold several events */
	bool reverses; /* can show the leaf first */
	bool ids; /* has a field for trace ids */
} formats[REPORT_FORMAT_COUNT] = {
	[REPORT_HTML] = { "html", ".html", "text/html; charset=utf-8", .reverses = true },
	[REPORT_COLLAPSED] = { "collapsed", ".collapsed", "text/plain; charset=utf-8",
			       .reverses = true },
	[REPORT_TXT] = { "txt", ".txt", "text/plain; charset=utf-8" },
	[REPORT_PPROF] = { "pb.gz", ".pb.gz", "application/octet-stream", .several = true,
			   .ids = true },
	[REPORT_JSON] = { "json", ".json", "application/json", .reverses = true, .ids = true },
	[REPORT_JFR] = { "jfr", ".jfr", "application/octet-stream", .several = true, .ids = true },
	[REPORT_OTLP] = { "otlp", ".otlp", "application/x-protobuf", .several = true, .ids = true },
	[REPORT_OTLP_JSON] = { "otlp.json", ".otlp.json", "application/json", .several = true,
			       .ids = true },
	[REPORT_SPEEDSCOPE] = { "speedscope", ".speedscope.json", "application/json",
				.several = true },
};

int report_format_by_name(const char *name)
{
	for (int i = 0; i < REPORT_FORMAT_COUNT; i++)
		if (strcmp(name, formats[i].name) == 0)
			return i;
	return strcmp(name, "pprof") == 0 ? REPORT_PPROF : -EINVAL;
}

int report_format_by_path(const char *path)
{
	size_t len = strlen(path), longest = 0;
	int found = -EINVAL;

	for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
		size_t n = strlen(formats[i].suffix);

		if (len <= n || n < longest || strcmp(path + len - n, formats[i].suffix) != 0)
			continue;
		longest = n;
		found = i;
	}
	return found;
}

const char *report_format_name(enum report_format format)
{
	return formats[format].name;
}

/* Lists the formats that @wanted accepts: "a, b or c". */
static const char *list_formats(bool (*wanted)(int format), bool suffixes, const char *last,
				char *buf, size_t size)
{
	size_t n = 0;
	int left = 0;

	*buf = '\0';
	for (int i = 0; i < REPORT_FORMAT_COUNT; i++)
		left += wanted(i);
	for (int i = 0; i < REPORT_FORMAT_COUNT && n < size; i++) {
		if (!wanted(i))
			continue;
		left--;
		n += (size_t)snprintf(buf + n, size - n, "%s%s",
				      suffixes ? formats[i].suffix : formats[i].name,
				      left == 0	  ? ""
				      : left == 1 ? last
						  : ", ");
	}
	return buf;
}

static bool is_any(int format)
{
	(void)format;
	return true;
}

static bool is_several(int format)
{
	return formats[format].several;
}

static bool is_reversible(int format)
{
	return formats[format].reverses;
}

const char *report_format_list(bool suffixes, char *buf, size_t size)
{
	return list_formats(is_any, suffixes, " or ", buf, size);
}

const char *report_content_type(enum report_format format)
{
	return formats[format].content_type;
}

static const char *report_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Names a library's function that has no name: without the offset, because one name for each
 * offset would hide how much time the library takes. */
static int report_unnamed(const char *module, char *buf, size_t size)
{
	const char *name = report_base_name(module);

	return snprintf(buf, size, name[0] == '[' ? "%s" : "[%s]", name);
}

/* Writes "class.method", as snprintf() does, which costs several times as much. */
static int report_method(const char *class_name, const char *method, char *buf, size_t size)
{
	size_t n = strlen(class_name), len = strlen(method);

	if (n + 1 + len >= size)
		return snprintf(buf, size, "%s.%s", class_name, method);
	memcpy(buf, class_name, n);
	buf[n] = '.';
	memcpy(buf + n + 1, method, len + 1);
	return (int)(n + 1 + len);
}

size_t report_frame_name(const struct profile *p, const struct profile_frame *f, char *buf,
			 size_t size)
{
	const char *method = p->strings[f->method];
	int n;

	if (wire_kind_is_method(f->kind) && f->class_name)
		n = report_method(p->strings[f->class_name], method, buf, size);
	else if (f->kind == WIRE_KIND_NATIVE && !f->method)
		n = report_unnamed(p->strings[f->module], buf, size);
	else
		n = snprintf(buf, size, "%s", method[0] ? method : "[unknown]");
	if (n >= 0 && (size_t)n >= size)
		return utf8_mend(buf);
	return n < 0 ? 0 : (size_t)n;
}

const char *report_kind_mark(unsigned kind)
{
	static const char *const marks[WIRE_KIND_COUNT] = {
		[WIRE_KIND_INTERPRETED] = "_[0]", [WIRE_KIND_C1] = "_[1]",
		[WIRE_KIND_C2] = "_[j]",	  [WIRE_KIND_INLINED] = "_[i]",
		[WIRE_KIND_KERNEL] = "_[k]",
	};

	return kind < WIRE_KIND_COUNT && marks[kind] ? marks[kind] : "";
}

bool report_is_of_nothing(const struct profile *p)
{
	return !p->n_processes && !p->n_rows && !p->end_real_ns;
}

void report_title(const struct profile *p, const struct report_options *o, char *buf, size_t size)
{
	size_t len = 0;

	if (o && o->title) {
		snprintf(buf, size, "%s", o->title);
		return;
	}
	snprintf(buf, size, "nothing recorded");
	for (uint32_t i = 0; i < p->n_processes && len + 1 < size; i++) {
		const struct profile_process *q = &p->processes[i];
		int n = snprintf(buf + len, size - len, "%s%u %s%s%s%s", i ? ", " : "", q->pid,
				 p->strings[q->name], q->pod ? " (" : "", p->strings[q->pod],
				 q->pod ? ")" : "");

		len += n > 0 ? (size_t)n : 0;
	}
}

static bool report_is_one(unsigned events)
{
	return (events & (events - 1)) == 0;
}

bool report_takes(enum report_format format, unsigned events, char *why, size_t why_size)
{
	char list[100];

	if (format == REPORT_JFR && events & 1u << WIRE_EVENT_WALL)
		snprintf(why, why_size,
			 "jfr has no event for wall-clock samples; use html, collapsed, txt, "
			 "pb.gz or json");
	else if (!formats[format].several && !report_is_one(events))
		snprintf(why, why_size, "%s holds one type of event; %s hold several",
			 formats[format].name,
			 list_formats(is_several, false, " and ", list, sizeof(list)));
	else
		return true;
	return false;
}

bool report_reverses(enum report_format format, char *why, size_t why_size)
{
	char list[100];

	if (formats[format].reverses)
		return true;
	snprintf(why, why_size, "%s can be reversed; %s cannot",
		 list_formats(is_reversible, false, " and ", list, sizeof(list)),
		 formats[format].name);
	return false;
}

static int write_rows(const struct profile *p, enum report_format format,
		      const struct report_options *o, char **ret, size_t *ret_len)
{
	struct text_out t = { 0 };

	switch (format) {
	case REPORT_HTML:
		write_html(&t, p, o);
		break;
	case REPORT_COLLAPSED:
		write_collapsed(&t, p, o);
		break;
	case REPORT_TXT:
		write_txt(&t, p, o);
		break;
	case REPORT_JSON:
		write_json(&t, p, o);
		break;
	case REPORT_JFR:
		write_jfr(&t, p, o);
		break;
	case REPORT_SPEEDSCOPE:
		write_speedscope(&t, p, o);
		break;
	case REPORT_OTLP:
	case REPORT_OTLP_JSON:
		return write_otlp(p, format == REPORT_OTLP_JSON, ret, ret_len);
	case REPORT_PPROF:
		return write_pprof(p, o, ret, ret_len);
	default:
		return -EINVAL;
	}
	return text_take(&t, ret, ret_len);
}

static unsigned events_of(const struct report_options *o)
{
	return o->events ? o->events : 1u << WIRE_EVENT_CPU;
}

static bool is_asked_for(const struct profile_row *r, const struct report_options *o)
{
	return events_of(o) & 1u << r->event && (o->idle || !r->idle);
}

static bool has_more(const struct profile *p, const struct report_options *o, const bool *shown)
{
	for (uint32_t i = 0; i < p->n_rows; i++)
		if (!is_asked_for(&p->rows[i], o) || (shown && !shown[i]))
			return true;
	return false;
}

void report_count(const struct profile *p, const struct report_options *o,
		  struct report_counts *ret)
{
	CLEANUP(freep) bool *shown = NULL;

	*ret = (struct report_counts){ 0 };
	(void)report_pattern_rows(p, o, &shown);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (!(events_of(o) & 1u << r->event))
			continue;
		if (!is_asked_for(r, o))
			ret->idle += r->samples;
		else if (shown && !shown[i])
			ret->filtered += r->samples;
		else
			ret->samples += r->samples;
	}
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (!(events_of(o) & 1u << e))
			continue;
		ret->dropped += p->accounts.of[e].dropped;
		ret->filtered += p->threads_left_out[e].samples + p->rows_left_out[e].samples;
		ret->idle += p->idle_left_out[e].samples;
	}
}

uint64_t report_samples(const struct profile *p, const struct report_options *o)
{
	struct report_counts c;

	report_count(p, o, &c);
	return c.samples;
}

static int part_of(const struct profile *p, const struct report_options *o, bool no_spans,
		   struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *part = NULL;
	CLEANUP(freep) bool *shown = NULL;
	int r = report_pattern_rows(p, o, &shown);

	if (r == 0 && (has_more(p, o, shown) || (no_spans && p->n_spans))) {
		const struct profile_filter filter = { .events = events_of(o),
						       .no_idle = !o->idle,
						       .no_spans = no_spans,
						       .rows = shown };

		r = profile_new(&part);
		if (r == 0)
			r = profile_merge(part, p, &filter);
	}
	if (r == 0)
		*ret = TAKE_PTR(part);
	return r;
}

int report_part(const struct profile *p, const struct report_options *o, struct profile **ret)
{
	return part_of(p, o, false, ret);
}

int report_write(const struct profile *p, enum report_format format, const struct report_options *o,
		 char **ret, size_t *ret_len)
{
	struct report_options options = o ? *o : (struct report_options){ 0 };
	CLEANUP(profile_freep) struct profile *part = NULL;
	char why[128];
	int r;

	options.events = events_of(&options);
	if (!report_takes(format, options.events, why, sizeof(why)))
		return -EINVAL;
	/* rows that a format would show as equal become one */
	r = part_of(p, &options, !formats[format].ids, &part);
	if (r < 0)
		return r;
	return write_rows(part ? part : p, format, &options, ret, ret_len);
}
