/*
 * What changed between two profiles, a baseline and what is looked at now: two ranges of time, two
 * versions, two JVMs. Threads of one name are one, whatever their numbers, and so are methods,
 * however they ran. Weights of the baseline are multiplied by a factor, so that both are of the same
 * length or of the same total; both numbers are shown.
 */
#pragma once

#include "daemon/report/report.h"

enum report_diff_by {
	REPORT_DIFF_TIME, /* per second: what costs more than before */
	REPORT_DIFF_TOTAL, /* shares: what of it costs more than before */
};

bool report_diff_by_name(const char *name, enum report_diff_by *ret); /* "time", "total" */
/* Which formats can show it: html, txt, json; false: @why has a sentence. */
bool report_diffs(enum report_format format, char *why, size_t why_size);
/* As report_write(). Where a baseline has no span (collapsed) it is by total, whatever @by says. */
int report_diff(const struct profile *baseline, const struct profile *now,
		enum report_format format, const struct report_options *options,
		enum report_diff_by by, char **ret, size_t *ret_len);
