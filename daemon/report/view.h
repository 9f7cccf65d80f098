/*
 * What the header of every format says of what is in it, so that all of them say the same: samples,
 * their sum, the mean interval, coverage, what was left out. Numbers come from the rows that are
 * written, never from elsewhere.
 */
#pragma once

#include "daemon/report/events.h"

#define REPORT_TEXT_MAX 600 /* room for each of the texts below */

struct report_view {
	uint64_t samples, weight; /* of the rows */
	double mean; /* weight a sample; without samples the interval that was set */
	/* of CPU samples; 0 = unknown: time that the processes used, and how much of it the samples
	 * of all their threads stand for (a filter by thread changes neither) */
	uint64_t process_cpu_ns;
	double coverage;
};
struct report_view report_view_of(const struct profile *p, enum wire_event event);

/* "12.310 s of CPU" */
const char *report_sum_text(const struct profile *p, enum wire_event event, char *buf, size_t size);
/* "1231 samples, mean interval 10 ms, coverage 99.2 % of the 12.409 s used",
 * "3 waits of 1 ms and more, mean wait 30 ms" */
const char *report_rate_text(const struct profile *p, enum wire_event event, char *buf,
			     size_t size);
/*
 * What is not in @p though it was seen, a sentence a line, "" when there is nothing: waits below
 * the threshold, waits for work and other threads that were left out.
 */
const char *report_absent_text(const struct profile *p, enum wire_event event, char *buf,
			       size_t size);
/* What whoever reads shares should know (struct profile_process); "" = nothing. */
const char *report_note_text(const struct profile *p, enum wire_event event, char *buf,
			     size_t size);
