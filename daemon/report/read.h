/*
 * Files of reports back into profiles: those that hold all of it (json, pb.gz), and collapsed,
 * which holds stacks and weights. Files of other programs are read too, as far as a profile has
 * room for what they say. Trusts nothing: each reader is bounded and fuzzed.
 */
#pragma once

#include "daemon/report/report.h"

#define READ_BYTES_MAX	  (512ul << 20) /* of a file, and of what a compressed one holds */
#define READ_MEMORY_MAX	  (3ul << 30) /* of the profile, and of what is kept while it is read */
#define READ_SENTENCE_MAX 300

struct report_reading {
	/* collapsed: what its weights are of; others that hold it: this alone. -1 = not said */
	int event;
	uint64_t interval; /* collapsed: its numbers count samples with that weight; 0 = weights */
	char why[READ_SENTENCE_MAX]; /* what is wrong, and where */
	char note[READ_SENTENCE_MAX]; /* what the profile has no room for; "" = nothing */
};

bool report_reads(enum report_format format);
/* "json, pb.gz or collapsed", @buf */
const char *report_reads_list(char *buf, size_t size);
/* 0; -EBADMSG and r->why; -ENOMEM. */
int report_read(enum report_format format, const char *bytes, size_t len, struct report_reading *r,
		struct profile **ret);
