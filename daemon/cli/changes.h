/*
 * Differences, for commands that fetch profiles: --diff A..B has two ranges, --baseline a range or
 * a file that is compared with what the other options select. A range is FROM/TO, each a moment as
 * in
 * --from and --to.
 */
#pragma once

#include "daemon/cli/cli.h"
#include "daemon/report/diff.h"

#define OPTIONS_OF_CHANGES(type_, member)                                                           \
	OPTION_TEXT(                                                                                \
		0, "diff", "A..B", type_, member.diff,                                              \
		"what changed from range A to range B: 14:00/14:10..15:00/15:10; .html (red: more " \
		"than before, blue: less), .txt or .json"),                                         \
		OPTION_TEXT(                                                                        \
			'b', "baseline", "WHAT", type_, member.baseline,                            \
			"what changed since WHAT: a range such as 14:00/14:10, or a file (.json, "  \
			".pb.gz, .collapsed), of this or another JVM"),                             \
		OPTION_CHOICE(                                                                      \
			0, "by", "WORD", "time total", type_, member.by,                            \
			"time (the default): the baseline's numbers are multiplied so that both "   \
			"are of the same length; total: of the same total")

struct changes {
	const char *command, *diff, *baseline, *by; /* arguments of the options; NULL = not given */
	/* Fetches the profile of a range, or, for NULL, of what the other options select.
	 * CLI_OK, or an exit status after printing the error. */
	int (*fetch)(void *userdata, const char *from, const char *to, struct profile **ret);
	void *userdata;
	const char *thread; /* only threads whose names contain this; NULL = all */
	struct report_options options;
	enum report_diff_by diff_by; /* set by changes_check() */
	char ranges[2][2][64]; /* FROM and TO of the baseline and of the current profile */
};

static inline bool changes_are_asked(const struct changes *c)
{
	return c->diff || c->baseline;
}
/* Checks the options. -1 = they are valid, else the exit status after printing the error.
 * @has_range: --last, --from or --to is given as well. */
int changes_check(struct changes *c, const char *format, bool has_range);
/* Part of fetch: makes a profile of kindlingd's json answer; frees @reply. */
int changes_read(const struct changes *c, struct reply *reply, struct profile **ret);
/* Fetches both profiles and writes their difference to @output. Returns the exit status. */
int changes_write(struct changes *c, const char *format, const char *output);
