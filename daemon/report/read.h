/*
 * Reads files of reports back into profiles: complete ones (json, pb.gz), and collapsed, which has
 * only stacks and weights. Files of other programs are read too, as far as a profile has fields for
 * their data. Trusts nothing: each reader is bounded and fuzzed.
 */
#pragma once

#include "daemon/report/report.h"

#define READ_BYTES_MAX	  (512ul << 20) /* bytes of a file, and of the content of a compressed one */
#define READ_MEMORY_MAX	  (3ul << 30) /* memory of the profile, and of temporary data */
#define READ_SENTENCE_MAX 300

struct report_reading {
	/* collapsed: the event that the weights measure; other formats: only this event. -1 = not
	 * given */
	int event;
	uint64_t interval; /* collapsed: the numbers count samples of that weight; 0 = they are
			    * weights */
	char why[READ_SENTENCE_MAX]; /* the error, and its position */
	char note[READ_SENTENCE_MAX]; /* data that the profile has no room for; "" = none */
};

bool report_reads(enum report_format format);
/* "json, pb.gz or collapsed", @buf */
const char *report_reads_list(char *buf, size_t size);
/* 0; -EBADMSG and r->why; -ENOMEM. */
int report_read(enum report_format format, const char *bytes, size_t len, struct report_reading *r,
		struct profile **ret);
