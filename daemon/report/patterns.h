/*
 * Selects the stacks of a report: those with a frame that matches @include, and without a frame
 * that matches @exclude. POSIX extended regular expressions, regex(7), for names as
 * report_frame_name() prints them; case-sensitive.
 */
#pragma once

#include "daemon/report/report.h"

#define PATTERN_BYTES_MAX 256
/* Limit for the length times all bounds of a{n} multiplied, and two for each (a)+: glibc's matcher
 * has a state for each, and names made for it can lead through as many sets of states as they have
 * letters. */
#define PATTERN_PLACES_MAX 2000
#define PATTERN_CPU_NS	   (5 * 1000000000ull) /* for all names together */

/* Can the pattern be used? false: @why has the error and its position. */
bool report_pattern_is_fine(const char *pattern, char *why, size_t why_size);
/* The rows of @p that the patterns select: one bool for each row, malloc'ed; without patterns
 * returns 0 and leaves *ret unchanged. -EINVAL, -ENOMEM; -ETIME: matching takes longer than
 * PATTERN_CPU_NS. */
int report_pattern_rows(const struct profile *p, const struct report_options *o, bool **ret);
