/*
 * Selects the stacks of a report: those with a frame that matches @include and without one that
 * matches @exclude. Patterns are POSIX extended regular expressions, regex(7), for names as
 * report_frame_name() writes them; case matters.
 */
#pragma once

#include "daemon/report/report.h"

#define PATTERN_BYTES_MAX 256
/* Limits a pattern's length multiplied by the bounds of each a{n}, and by two for each (a)+.
 * glibc's matcher has a state for each of these places, and hostile names can lead through as
 * many sets of states as they have letters. */
#define PATTERN_PLACES_MAX 2000
#define PATTERN_CPU_NS	   (5 * 1000000000ull) /* for all names together */

/* Can the pattern be used? false: @why has the error and where it is. */
bool report_pattern_is_fine(const char *pattern, char *why, size_t why_size);
/* Finds the rows of @p that the patterns select: a malloc'ed bool for each row; without patterns
 * *ret is unchanged. 0, -EINVAL, -ENOMEM, or -ETIME: matching takes longer than PATTERN_CPU_NS. */
int report_pattern_rows(const struct profile *p, const struct report_options *o, bool **ret);
