/*
 * The difference between two profiles, a baseline and a current one: two ranges of time, two
 * versions, two JVMs. Threads with the same name are merged, whatever their numbers, and methods
 * however they ran. Weights of the baseline are multiplied by a factor, so that both profiles have
 * the same length or the same total; the output has both numbers.
 */
#pragma once

#include "daemon/report/report.h"

enum report_diff_by {
	REPORT_DIFF_TIME, /* the same length: shows what costs more per second */
	REPORT_DIFF_TOTAL, /* the same total: shows what has a larger share */
};

bool report_diff_by_name(const char *name, enum report_diff_by *ret); /* "time", "total" */
/* Whether a format can show a difference: html, txt, json; false: @why has a sentence. */
bool report_diffs(enum report_format format, char *why, size_t why_size);
/* Like report_write(). A baseline without a span (collapsed) is scaled by total, whatever @by
 * is. */
int report_diff(const struct profile *baseline, const struct profile *now,
		enum report_format format, const struct report_options *options,
		enum report_diff_by by, char **ret, size_t *ret_len);
