/*
 * The summary in the header of every format, so that all agree: samples, their sum, the mean
 * interval, coverage, and what was left out. Numbers are computed from the rows that are written,
 * from nothing else.
 */
#pragma once

#include "daemon/report/events.h"

#define REPORT_TEXT_MAX 600 /* room for each of the texts below */

struct report_view {
	uint64_t samples, weight; /* of the rows */
	double mean; /* mean weight of a sample; without samples the configured interval */
	/* for CPU samples; 0 = unknown: time that the processes used, and the part of it that the
	 * samples of all their threads cover (a filter by thread changes neither) */
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
 * What was seen but is not in @p, one sentence a line, "" when there is nothing: waits below the
 * threshold, waits for work and other threads that were left out.
 */
const char *report_absent_text(const struct profile *p, enum wire_event event, char *buf,
			       size_t size);
/* A remark for readers of shares (struct profile_process); "" = none. */
const char *report_note_text(const struct profile *p, enum wire_event event, char *buf,
			     size_t size);
