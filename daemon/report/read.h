/*
 * Reads reports from files back into profiles: whole profiles (json, pb.gz), and collapsed files,
 * which only have stacks and weights. Files of other programs can be read as far as a profile has
 * fields for their data. Trusts nothing: each reader is bounded and fuzzed.
 */
#pragma once

#include "daemon/report/report.h"

#define READ_BYTES_MAX	  (512ul << 20) /* of a file, compressed or not */
#define READ_MEMORY_MAX	  (3ul << 30) /* of the profile and of what reading needs */
#define READ_SENTENCE_MAX 300

struct report_reading {
	/* collapsed: the event that the weights belong to; other formats: read only this event.
	 * -1 = not given */
	int event;
	uint64_t interval; /* collapsed: weight of a sample, if the file has numbers of samples; 0 =
			      it has weights */
	char why[READ_SENTENCE_MAX]; /* the error and where it is */
	char note[READ_SENTENCE_MAX]; /* what the profile has no field for; "" = nothing */
};

bool report_reads(enum report_format format);
/* Writes "json, pb.gz or collapsed"; returns @buf. */
const char *report_reads_list(char *buf, size_t size);
/* 0, -EBADMSG with the reason in r->why, or -ENOMEM. */
int report_read(enum report_format format, const char *bytes, size_t len, struct report_reading *r,
		struct profile **ret);
