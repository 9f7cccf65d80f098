/* See changes.h. */
#include "daemon/cli/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "daemon/report/events.h"

/* ---- words ----------------------------------------------------------------------------------- */

/* Splits "FROM/TO", @len bytes, into @ret; false: it is not a range. */
static bool changes_range(const char *word, size_t len, char ret[2][64])
{
	const char *slash = memchr(word, '/', len);
	uint64_t now = clock_real_ns(), ns;
	size_t from = slash ? (size_t)(slash - word) : 0, to = slash ? len - from - 1 : 0;

	if (!from || !to || from >= 64 || to >= 64)
		return false;
	snprintf(ret[0], 64, "%.*s", (int)from, word);
	snprintf(ret[1], 64, "%.*s", (int)to, slash + 1);
	return parse_moment(ret[0], now, &ns) && parse_moment(ret[1], now, &ns);
}

static int changes_check_diff(struct changes *c, bool has_range)
{
	const char *dots = strstr(c->diff, "..");

	if (c->baseline)
		return cli_wrong(c->command, "use either --diff or --baseline");
	if (has_range)
		return cli_wrong(c->command, "--diff gives both ranges; leave out --last, --from "
					     "and --to");
	if (!dots || !changes_range(c->diff, (size_t)(dots - c->diff), c->ranges[0]) ||
	    !changes_range(dots + 2, strlen(dots + 2), c->ranges[1]))
		return cli_wrong(
			c->command,
			"--diff takes two ranges: 14:00/14:10..15:00/15:10, where a time is 14:05, "
			"\"2026-11-21 14:05\" or @SECONDS");
	return -1;
}

int changes_check(struct changes *c, const char *format, bool has_range)
{
	char why[160];
	int r = -1;

	if (!changes_are_asked(c))
		return c->by ? cli_wrong(c->command, "--by goes with --diff or --baseline") : -1;
	if (!report_diffs((enum report_format)report_format_by_name(format), why, sizeof(why)))
		return cli_wrong(c->command, why);
	if (!report_takes(REPORT_JSON, c->options.events, why, sizeof(why)))
		return cli_wrong(c->command, "--diff and --baseline show one type of event");
	if (c->by && !report_diff_by_name(c->by, &c->diff_by))
		return cli_wrong(c->command, "--by takes time or total");
	if (c->diff)
		return changes_check_diff(c, has_range);
	if (!changes_range(c->baseline, strlen(c->baseline), c->ranges[0])) {
		c->ranges[0][0][0] = '\0'; /* the baseline is a file */
		if (report_format_by_path(c->baseline) < 0)
			r = cli_wrong(
				c->command,
				"--baseline takes a range such as 14:00/14:10, or a file: .json, "
				".pb.gz or "
				".collapsed");
	}
	return r;
}

/* ---- profiles -------------------------------------------------------------------------------- */

int changes_read(const struct changes *c, struct reply *reply, struct profile **ret)
{
	struct report_reading reading = { .event = -1 };
	int r = report_read(REPORT_JSON, reply->body, reply->len, &reading, ret);

	reply_free(reply);
	if (r == 0)
		return CLI_OK;
	fprintf(stderr,
		"kindling %s: the answer cannot be read: %s; kindling and kindlingd may be of different versions\n",
		c->command, r == -EBADMSG ? reading.why : strerror(-r));
	return CLI_FAILED;
}

static int changes_fetch(const struct changes *c, const char range[2][64], struct profile **ret)
{
	return c->fetch(c->userdata, *range[0] ? range[0] : NULL, *range[1] ? range[1] : NULL, ret);
}

/* Reads a baseline from a file and filters it by thread, as the daemon does for a range. The other
 * options are applied by report_diff(). */
static int changes_file(const struct changes *c, struct profile **ret)
{
	const struct profile_filter filter = { .thread = c->thread };
	struct report_reading reading = { .event = (int)report_event_of(c->options.events) };
	CLEANUP(profile_freep) struct profile *all = NULL, *part = NULL;
	int r = read_profile(c->baseline, NULL, &reading, &all);

	if (r != CLI_OK)
		return r;
	if (all->n_rows && !(profile_events(all) & c->options.events)) {
		fprintf(stderr, "kindling %s: %s has no %s events; choose others with --type\n",
			c->command, c->baseline,
			wire_event_names[report_event_of(c->options.events)]);
		return CLI_FAILED;
	}
	if (!c->thread) {
		*ret = TAKE_PTR(all);
		return CLI_OK;
	}
	if (profile_new(&part) < 0 || profile_merge(part, all, &filter) < 0) {
		fprintf(stderr, "kindling %s: %s\n", c->command, strerror(ENOMEM));
		return CLI_FAILED;
	}
	*ret = TAKE_PTR(part);
	return CLI_OK;
}

int changes_write(struct changes *c, const char *format, const char *output)
{
	CLEANUP(profile_freep) struct profile *base = NULL, *now = NULL;
	CLEANUP(freep) char *out = NULL;
	size_t len;
	int r = changes_fetch(c, c->ranges[1], &now);

	if (r == CLI_OK)
		r = *c->ranges[0][0] ? changes_fetch(c, c->ranges[0], &base)
				     : changes_file(c, &base);
	if (r != CLI_OK)
		return r;
	r = report_diff(base, now, (enum report_format)report_format_by_name(format), &c->options,
			c->diff_by, &out, &len);
	if (r < 0) {
		fprintf(stderr, "kindling %s: %s: %s\n", c->command, output,
			r == -ETIME ? "matching --include and --exclude takes longer than 5 s"
				    : strerror(-r));
		return CLI_FAILED;
	}
	r = write_file(output, out, len);
	if (r == CLI_OK)
		output_report_written(output, format, c->options.events,
				      report_samples(now, &c->options),
				      report_dropped(now, &c->options));
	return r;
}
