/*
 * Writes metrics for Prometheus in its text format 0.0.4, or in OpenMetrics 1.0 if requested
 * (families without _total, UNIT, # EOF). Names end with their base unit,
 * prometheus.io/docs/practices/naming.
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include "daemon/report/text_out.h"

struct metric_text {
	struct text_out out;
	bool openmetrics;
	char name[96]; /* of the current family's samples; a counter's ends with _total */
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO };

/* Does the client prefer OpenMetrics? @accept is its Accept header; NULL = it sent none. */
bool metric_wants_openmetrics(const char *accept);
/* Begins a family. A counter's @family comes without _total. @unit is "seconds" or "bytes",
 * which @family ends with, or NULL. @help is one line. */
void metric_family(struct metric_text *m, enum metric_type type, const char *family,
		   const char *unit, const char *help);
/* Adds one sample. @labels is like `state="found"`, each value made by metric_label(); NULL =
 * none. */
void metric_count(struct metric_text *m, const char *labels, uint64_t value);
void metric_seconds(struct metric_text *m, const char *labels, uint64_t ns);
void metric_number(struct metric_text *m, const char *labels, double value);
/* Returns @s escaped for use within quotes, in @buf. Invalid UTF-8, which would make the whole
 * answer unreadable, is removed. */
const char *metric_label(const char *s, char *buf, size_t size);
/* Ends the text; returns what text_take() does. */
int metric_take(struct metric_text *m, char **ret, size_t *ret_len);
const char *metric_content_type(const struct metric_text *m);
