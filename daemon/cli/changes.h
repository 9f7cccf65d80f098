/*
 * Differences, for commands that fetch profiles: --diff A..B has two ranges, or two values of one
 * option that selects JVMs; --baseline has one of these, or a file, and is compared with what the
 * other options select. A range is FROM/TO, each a moment as in --from and --to; a value is
 * version=1.4, as in --version 1.4.
 */
#pragma once

#include "daemon/cli/cli.h"
#include "daemon/report/diff.h"

#define OPTIONS_OF_CHANGES(type_, member)                                                           \
	OPTION_TEXT(                                                                                \
		0, "diff", "A..B", type_, member.diff,                                              \
		"what changed from A to B: two ranges, 14:00/14:10..15:00/15:10, or two versions, " \
		"images, pods ..., version=1.4..version=1.5; .html (red: more than before, blue: "  \
		"less), .txt or .json"),                                                            \
		OPTION_TEXT(                                                                        \
			'b', "baseline", "WHAT", type_, member.baseline,                            \
			"what changed since WHAT: a range such as 14:00/14:10, a version, image, "  \
			"pod ... such as version=1.4, or a file (.json, .pb.gz, .collapsed), of "   \
			"this or another JVM"),                                                     \
		OPTION_CHOICE(                                                                      \
			0, "by", "WORD", "time total", type_, member.by,                            \
			"time (the default): the baseline's numbers are multiplied so that both "   \
			"are of the same length; total: of the same total")

/* What distinguishes one of the two profiles: a range, a value, or nothing. */
struct changes_side {
	char from[64], to[64]; /* "" = the range of the other options */
	char key[16], value[256]; /* an option that selects JVMs, and its value; "" = none */
};

struct changes {
	const char *command, *diff, *baseline, *by; /* arguments of the options; NULL = not given */
	const char *const *keys; /* the options that a value may be of, NULL-terminated */
	/* Fetches the profile that the other options select, with the range or the value of @side
	 * instead of theirs. CLI_OK, or an exit status after printing the error. */
	int (*fetch)(void *userdata, const struct changes_side *side, struct profile **ret);
	void *userdata;
	const char *thread; /* only threads whose names contain this; NULL = all */
	struct report_options options;
	enum report_diff_by diff_by; /* set by changes_check() */
	struct changes_side base, now; /* set by changes_check() */
	bool base_is_file; /* likewise */
};

static inline bool changes_are_asked(const struct changes *c)
{
	return c->diff || c->baseline;
}
/* Do both sides of --diff select JVMs by a value, so that no other option has to? */
bool changes_select(const struct changes *c);
/* Checks the options. -1 = they are valid, else the exit status after printing the error.
 * @has_range: --last, --from or --to is given as well. */
int changes_check(struct changes *c, const char *format, bool has_range);
/* Part of fetch: makes a profile of kindlingd's json answer; frees @reply. */
int changes_read(const struct changes *c, struct reply *reply, struct profile **ret);
/* Fetches both profiles and writes their difference to @output. Returns the exit status. */
int changes_write(struct changes *c, const char *format, const char *output);
