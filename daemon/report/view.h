/*
 * The summary in the head of every format: samples, their sum, the mean interval, coverage, and
 * what was left out. It is computed only from the rows that are written, so all formats agree.
 */
#pragma once

#include "daemon/report/event_names.h"

#define REPORT_TEXT_MAX 600 /* enough for each of the texts below */

struct report_view {
	uint64_t samples, weight; /* of the rows */
	double mean; /* weight of a sample; without samples the interval of the settings */
	/* CPU samples: the time that the processes used, and the part of it that the samples of
	 * all their threads cover, whichever threads are shown; 0 = unknown */
	uint64_t process_cpu_ns;
	double coverage;
};
struct report_view report_view_of(const struct profile *p, enum wire_event event);

/* Writes "12.310 s of CPU". */
const char *report_sum_text(const struct profile *p, enum wire_event event, char *buf, size_t size);
/* Writes "1231 samples, mean interval 10 ms, coverage 99.2 % of the 12.409 s used", or "3 waits
 * of 1 ms and more, mean wait 30 ms". */
const char *report_rate_text(const struct profile *p, enum wire_event event, char *buf,
			     size_t size);
/*
 * Writes what was seen but is not in @p, one sentence in each line: waits below the threshold, and
 * waits for work and other threads that were left out. "" = nothing.
 */
const char *report_absent_text(const struct profile *p, enum wire_event event, char *buf,
			       size_t size);
/* The remark about a process for readers of @event, see struct profile_process; "" = none. */
const char *report_process_note(const struct profile *p, uint32_t process, enum wire_event event);
/* Writes the remarks about all processes, each once; "" = none. */
const char *report_note_text(const struct profile *p, enum wire_event event, char *buf,
			     size_t size);
