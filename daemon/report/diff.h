/*
 * The difference between a current profile and a baseline: of two spans of time, two versions, two
 * JVMs. Threads with the same name are merged, whatever their numbers, and so are the frames of a
 * method, however it ran. The baseline's weights are multiplied by a factor, which makes both
 * profiles equally long, or their totals equal; the output has the weights of both.
 */
#pragma once

#include "daemon/report/report.h"

enum report_diff_by {
	REPORT_DIFF_TIME, /* equally long: shows what costs more per second */
	REPORT_DIFF_TOTAL, /* equal totals: shows what has a larger share */
};

bool report_diff_by_name(const char *name, enum report_diff_by *ret); /* parses "time" or "total" */
/* Can the format show a difference? html, txt and json can; false: @why has a sentence. */
bool report_diffs(enum report_format format, char *why, size_t why_size);
/* Like report_write(). A baseline without a span, as in collapsed files, is scaled by total
 * whatever @by is. */
int report_diff(const struct profile *baseline, const struct profile *now,
		enum report_format format, const struct report_options *options,
		enum report_diff_by by, char **ret, size_t *ret_len);
