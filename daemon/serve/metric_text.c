/* See metric_text.h. */
#include "daemon/serve/metric_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "daemon/ground/utf8.h"

/* The quality value of a media range, RFC 9110 12.4.2; 1 without one. */
static double metric_quality(const char *range, size_t len)
{
	char copy[160];
	char *q;

	snprintf(copy, sizeof(copy), "%.*s", (int)len, range);
	q = strstr(copy, "q=");
	return q ? strtod(q + 2, NULL) : 1;
}

bool metric_wants_openmetrics(const char *accept)
{
	double open = 0, plain = 0;

	for (size_t len; accept && *accept; accept += len + (accept[len] == ',')) {
		double q;

		accept += strspn(accept, " \t");
		len = strcspn(accept, ",");
		q = metric_quality(accept, len);
		if (strncasecmp(accept, "application/openmetrics-text", 28) == 0)
			open = q > open ? q : open;
		else if (strncasecmp(accept, "text/plain", 10) == 0)
			plain = q > plain ? q : plain;
	}
	return open > 0 && open >= plain;
}

void metric_family(struct metric_text *m, enum metric_type type, const char *family,
		   const char *unit, const char *help)
{
	const char *suffix = type == METRIC_COUNTER ? "_total" : type == METRIC_INFO ? "_info" : "";
	const char *types[] = { [METRIC_COUNTER] = "counter",
				[METRIC_GAUGE] = "gauge",
				[METRIC_INFO] = m->openmetrics ? "info" : "gauge" };

	snprintf(m->name, sizeof(m->name), "%s%s", family, suffix);
	if (!m->openmetrics)
		family = m->name;
	text_printf(&m->out, "# HELP %s %s\n# TYPE %s %s\n", family, help, family, types[type]);
	if (m->openmetrics && unit)
		text_printf(&m->out, "# UNIT %s %s\n", family, unit);
}

static void metric_begin(struct metric_text *m, const char *labels)
{
	if (labels)
		text_printf(&m->out, "%s{%s} ", m->name, labels);
	else
		text_printf(&m->out, "%s ", m->name);
}

void metric_count(struct metric_text *m, const char *labels, uint64_t value)
{
	metric_begin(m, labels);
	text_printf(&m->out, "%" PRIu64 "\n", value);
}

void metric_seconds(struct metric_text *m, const char *labels, uint64_t ns)
{
	metric_begin(m, labels);
	text_printf(&m->out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

void metric_number(struct metric_text *m, const char *labels, double value)
{
	metric_begin(m, labels);
	text_printf(&m->out, "%.15g\n", value);
}

const char *metric_label(const char *s, char *buf, size_t size)
{
	size_t n = 0;

	for (; *s && n + 2 < size; s++) {
		if (*s == '"' || *s == '\\')
			buf[n++] = '\\';
		buf[n++] = *s == '\n' ? ' ' : *s;
	}
	buf[n] = '\0';
	(void)utf8_mend(buf);
	return buf;
}

int metric_take(struct metric_text *m, char **ret, size_t *ret_len)
{
	if (m->openmetrics)
		text_put(&m->out, "# EOF\n");
	return text_take(&m->out, ret, ret_len);
}

const char *metric_content_type(const struct metric_text *m)
{
	return m->openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			      : "text/plain; version=0.0.4; charset=utf-8";
}
