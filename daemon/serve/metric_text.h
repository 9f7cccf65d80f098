/*
 * Metrics for Prometheus: the text format 0.0.4, or OpenMetrics 1.0 if requested (a family without
 * _total, UNIT, # EOF). Names end with the base unit, prometheus.io/docs/practices/naming.
 */
#pragma once

#include <inttypes.h>
#include <stdbool.h>
#include "daemon/report/text_out.h"

struct metric_text {
	struct text_out out;
	bool openmetrics;
	char name[96]; /* suffix of the samples of the current family: a counter's is _total */
};

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_INFO };

/* Which of the two a client prefers, by its Accept header; NULL = it sent none. */
bool metric_wants_openmetrics(const char *accept);
/* A counter's @family is given without its _total. @unit: "seconds", "bytes", and @family ends with
 * it; or NULL. @help: one line. */
void metric_family(struct metric_text *m, enum metric_type type, const char *family,
		   const char *unit, const char *help);
/* One sample. @labels: `state="found"`, each value through metric_label(); NULL = none. */
void metric_count(struct metric_text *m, const char *labels, uint64_t value);
void metric_seconds(struct metric_text *m, const char *labels, uint64_t ns);
void metric_number(struct metric_text *m, const char *labels, double value);
/* @s for use within quotes; invalid UTF-8 is removed, because it would make the whole answer
 * unreadable. */
const char *metric_label(const char *s, char *buf, size_t size);
/* Ends the text. Returns as text_take(). */
int metric_take(struct metric_text *m, char **ret, size_t *ret_len);
const char *metric_content_type(const struct metric_text *m);
