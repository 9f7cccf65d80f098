/* See changes.h. */
#include "daemon/cli/changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/mem.h"
#include "daemon/report/event_names.h"

/* ---- words ----------------------------------------------------------------------------------- */

/* Splits "FROM/TO", @len bytes; false: it is not a range. */
static bool changes_range(const char *word, size_t len, struct changes_side *ret)
{
	const char *slash = memchr(word, '/', len);
	uint64_t now = clock_real_ns(), ns;
	size_t from = slash ? (size_t)(slash - word) : 0, to = slash ? len - from - 1 : 0;

	if (!from || !to || from >= 64 || to >= 64)
		return false;
	snprintf(ret->from, sizeof(ret->from), "%.*s", (int)from, word);
	snprintf(ret->to, sizeof(ret->to), "%.*s", (int)to, slash + 1);
	return parse_moment(ret->from, now, &ns) && parse_moment(ret->to, now, &ns);
}

/* Splits "KEY=VALUE", @len bytes; false: it is not one, or KEY is not one of @keys. */
static bool changes_value(const char *word, size_t len, const char *const *keys,
			  struct changes_side *ret)
{
	const char *equals = memchr(word, '=', len);
	size_t key = equals ? (size_t)(equals - word) : 0, value = equals ? len - key - 1 : 0;

	if (!key || !value || value >= sizeof(ret->value))
		return false;
	for (; *keys; keys++)
		if (strlen(*keys) == key && strncmp(*keys, word, key) == 0)
			break;
	if (!*keys)
		return false;
	snprintf(ret->key, sizeof(ret->key), "%s", *keys);
	snprintf(ret->value, sizeof(ret->value), "%.*s", (int)value, equals + 1);
	return true;
}

static bool changes_side(const struct changes *c, const char *word, size_t len,
			 struct changes_side *ret)
{
	return changes_value(word, len, c->keys, ret) || changes_range(word, len, ret);
}

/* Says what --diff or --baseline takes. */
static int changes_wrong(const struct changes *c, const char *takes)
{
	char why[400];
	size_t n = (size_t)snprintf(why, sizeof(why),
				    "%s; a time is 14:05, \"2026-11-21 14:05\" or @SECONDS, and "
				    "KEY=VALUE is one of",
				    takes);

	for (const char *const *key = c->keys; *key && n < sizeof(why); key++)
		n += (size_t)snprintf(why + n, sizeof(why) - n, " %s=", *key);
	return cli_wrong(c->command, why);
}

static int changes_check_diff(struct changes *c, bool has_range)
{
	const char *dots = strstr(c->diff, "..");

	if (c->baseline)
		return cli_wrong(c->command, "use either --diff or --baseline");
	if (!dots || !changes_side(c, c->diff, (size_t)(dots - c->diff), &c->base) ||
	    !changes_side(c, dots + 2, strlen(dots + 2), &c->now) || !*c->base.key != !*c->now.key)
		return changes_wrong(c, "--diff takes two ranges, 14:00/14:10..15:00/15:10, or two "
					"values, version=1.4..version=1.5");
	if (has_range && !*c->base.key)
		return cli_wrong(c->command, "--diff gives both ranges; leave out --last, --from "
					     "and --to");
	return -1;
}

bool changes_select(const struct changes *c)
{
	struct changes_side side = { 0 };

	return c->diff && changes_value(c->diff, strcspn(c->diff, "."), c->keys, &side);
}

int changes_check(struct changes *c, const char *format, bool has_range)
{
	char why[160];

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
	if (changes_side(c, c->baseline, strlen(c->baseline), &c->base))
		return -1;
	c->base_is_file = report_format_by_path(c->baseline) >= 0;
	return c->base_is_file
		       ? -1
		       : changes_wrong(c,
				       "--baseline takes a range such as 14:00/14:10, a value such "
				       "as version=1.4, or a file (.json, .pb.gz or .collapsed)");
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
		fprintf(stderr, "kindling %s: %s has no %s events; choose others with --event\n",
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

/* Says so if one of the two profiles has no samples: a difference from nothing is hardly what was
 * meant. */
static void changes_warn(const struct changes *c, const struct changes_side *side,
			 const struct profile *p)
{
	bool is_base = side == &c->base;
	struct report_counts counts;

	report_count(p, &c->options, &counts);
	if (counts.samples)
		return;
	fprintf(stderr, "kindling %s: %s ", c->command,
		is_base ? "the baseline" : "what is compared");
	if (is_base && c->base_is_file)
		fprintf(stderr, "(%s) ", c->baseline);
	else if (*side->key)
		fprintf(stderr, "(%s=%s) ", side->key, side->value);
	else if (*side->from)
		fprintf(stderr, "(%s/%s) ", side->from, side->to);
	fprintf(stderr, "has no samples%s, so everything is %s\n",
		counts.filtered ? " that --thread, --include and --exclude leave" : "",
		is_base ? "new" : "gone");
}

int changes_write(struct changes *c, const char *format, const char *output)
{
	CLEANUP(profile_freep) struct profile *base = NULL, *now = NULL;
	CLEANUP(freep) char *out = NULL;
	size_t len;
	int r = c->fetch(c->userdata, &c->now, &now);

	if (r == CLI_OK)
		r = c->base_is_file ? changes_file(c, &base)
				    : c->fetch(c->userdata, &c->base, &base);
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
	if (r == CLI_OK) {
		changes_warn(c, &c->base, base);
		changes_warn(c, &c->now, now);
		output_profile_written(output, format, now, &c->options);
	}
	return r;
}
