/*
 * Which stacks a report shows: those with a frame that @include matches, and none that @exclude
 * does. POSIX extended regular expressions, regex(7), held against names as report_frame_name() has
 * them; upper and lower case differ.
 */
#pragma once

#include "daemon/report/report.h"

#define PATTERN_BYTES_MAX 256
/* Length times all bounds of a{n} multiplied, and two for each (a)+: glibc's matcher has a place
 * for each, and on names made for it goes through as many sets of them as there are letters. */
#define PATTERN_PLACES_MAX 2000
#define PATTERN_CPU_NS	   (5 * 1000000000ull) /* for all names together */

/* Can it be used? false: @why says what is wrong, and from where on. */
bool report_pattern_is_fine(const char *pattern, char *why, size_t why_size);
/* Rows of @p that the options' patterns show: one bool a row, malloc'ed; unchanged, and 0, when
 * there are no patterns. -EINVAL, -ENOMEM; -ETIME: one takes longer than PATTERN_CPU_NS. */
int report_pattern_rows(const struct profile *p, const struct report_options *o, bool **ret);
