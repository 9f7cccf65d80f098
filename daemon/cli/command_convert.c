/* kindling convert: converts a file with a profile to another format; needs no kindlingd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/mem.h"
#include "daemon/report/diff.h"
#include "daemon/report/event_names.h"
#include "daemon/report/patterns.h"

struct conversion {
	const char *in, *out, *from, *format, *type, *interval, *baseline, *by;
	enum report_diff_by diff_by;
	struct report_reading reading;
	struct report_options options;
};

static const struct usage_row options[] = {
	OPTION_CHOICE('F', "from", "FORMAT", "json pb.gz collapsed", struct conversion, from,
		      "the format of IN, whatever its name: json, pb.gz or collapsed"),
	OPTION_CHOICE(
		'f', "format", "FORMAT", CLI_FORMATS, struct conversion, format,
		"the format of OUT: html, collapsed, txt, pb.gz, json, jfr, speedscope, otlp or "
		"otlp.json"),
	OPTION_CHOICE(
		'e', "event", "EVENT", "cpu lock alloc wall offcpu", struct conversion, type,
		"the type of event to take if IN has several: cpu, lock, alloc, wall or offcpu. For a "
		"collapsed file: what its numbers measure (default cpu), in ns or bytes"),
	OPTION_HIDDEN("type", struct conversion, type),
	OPTION_TEXT('i', "interval", "LENGTH", struct conversion, interval,
		    "the numbers of a collapsed file count samples, taken every LENGTH: 10ms"),
	OPTION_FLAG(0, "threads", struct conversion, options.threads,
		    "keep threads apart: the flame graph has a tower for each"),
	OPTION_FLAG('m', "merge", struct conversion, options.merge,
		    "merge JVMs: each method is one box, whichever JVM ran it"),
	OPTION_TEXT(0, "include", "REGEX", struct conversion, options.include,
		    "only stacks with a frame that matches, as with `kindling report`"),
	OPTION_TEXT(0, "exclude", "REGEX", struct conversion, options.exclude,
		    "no stacks with a frame that matches"),
	OPTION_FLAG(0, "reverse", struct conversion, options.reverse,
		    "leaf first: the callers of a method are below it; html, collapsed, json"),
	OPTION_FLAG(0, "annotate", struct conversion, options.annotate,
		    "collapsed, pb.gz: add to each name how the frame ran, as `kindling report` "
		    "does"),
	OPTION_TEXT(
		'b', "baseline", "FILE", struct conversion, baseline,
		"what changed since FILE (json, pb.gz or collapsed): OUT is html (red: more than "
		"before, blue: less), txt or json"),
	OPTION_CHOICE(
		0, "by", "WORD", "time total", struct conversion, by,
		"time (the default): FILE's numbers are multiplied so that both are of the same "
		"length; total: of the same total"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_convert = {
	"convert",
	"convert the file of a profile to another format",
	"kindling convert IN OUT [OPTION...]",
	"Reads the profile in IN and writes it to OUT in another format. IN is json, pb.gz or "
	"collapsed, written by kindling or another program; OUT is any format of `kindling "
	"report`. json and pb.gz hold a complete profile: converting between them loses nothing. "
	"collapsed holds only stacks and weights. \"-\" is stdin or stdout.",
	options,
	NULL,
	"kindling convert flame.json flame.pb.gz\n"
	"kindling convert --interval 10ms async.collapsed flame.html\n"
	"kindling convert --baseline monday.pb.gz tuesday.pb.gz changed.html\n"
	"kindling convert go.pb.gz - --format txt | head -30",
};

static int command_convert_parse_options(int argc, char **argv, struct conversion *c)
{
	int r = cli_parse(&usage_convert, argc, argv, c);

	if (r >= 0)
		return r;
	if (optind + 2 != argc)
		return cli_wrong("convert", "name IN and OUT");
	c->in = argv[optind];
	c->out = argv[optind + 1];
	return -1;
}

static int command_convert_check_options(struct conversion *c)
{
	const char *patterns[] = { c->options.include, c->options.exclude };
	unsigned events;
	char why[300];

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		if (patterns[i] && !report_pattern_is_fine(patterns[i], why, sizeof(why)))
			return cli_wrong("convert", why);
	c->reading.event = -1;
	if (c->type) {
		if (!report_events_by_name(c->type, &events) || events & (events - 1))
			return cli_wrong("convert",
					 "--event takes cpu, lock, alloc, wall or offcpu");
		c->reading.event = (int)report_event_of(events);
	}
	if (c->interval && parse_interval(c->interval, &c->reading.interval, why, sizeof(why)) < 0)
		return cli_wrong("convert",
				 *why ? why : "--interval takes a duration such as 10ms");
	c->format = format_of(c->format, c->out);
	if (!c->format)
		return CLI_USAGE;
	if (c->baseline &&
	    !report_diffs((enum report_format)report_format_by_name(c->format), why, sizeof(why)))
		return cli_wrong("convert", why);
	if (c->by && !report_diff_by_name(c->by, &c->diff_by))
		return cli_wrong("convert", "--by takes time or total");
	if (c->options.reverse &&
	    !report_reverses((enum report_format)report_format_by_name(c->format), why,
			     sizeof(why)))
		return cli_wrong("convert", why);
	return -1;
}

/* Chooses the events to write: all, if the format can hold them. */
static int choose_events(struct conversion *c, const struct profile *p)
{
	enum report_format f = (enum report_format)report_format_by_name(c->format);
	char why[160], list[64];

	c->options.events = profile_events(p);
	if (c->reading.event >= 0)
		c->options.events = 1u << c->reading.event;
	if (!c->options.events)
		c->options.events = 1u << WIRE_EVENT_CPU;
	c->options.idle = true;
	if (!report_takes(f, c->options.events, why, sizeof(why))) {
		fprintf(stderr, "kindling convert: %s: it has %s; %s; choose one with --event\n",
			c->in, report_events_list(c->options.events, list, sizeof(list)), why);
		return CLI_USAGE;
	}
	if (f == REPORT_JFR && p->n_rows && profile_samples(p) == 0) {
		fprintf(stderr,
			"kindling convert: %s does not give the number of samples, which jfr "
			"needs; use --interval if its numbers count samples\n",
			c->in);
		return CLI_USAGE;
	}
	return -1;
}

/* Makes the content of the file. CLI_OK, or an exit status after printing the error. */
static int command_convert_file(struct conversion *c, const struct profile *p, char **ret,
				size_t *ret_len)
{
	enum report_format f = (enum report_format)report_format_by_name(c->format);
	CLEANUP(profile_freep) struct profile *base = NULL;
	struct report_reading reading = c->reading;
	int r;

	if (c->baseline) {
		r = read_profile(c->baseline, NULL, &reading, &base);
		if (r != CLI_OK)
			return r;
		r = report_diff(base, p, f, &c->options, c->diff_by, ret, ret_len);
	} else {
		r = report_write(p, f, &c->options, ret, ret_len);
	}
	if (r == 0)
		return CLI_OK;
	fprintf(stderr, "kindling convert: %s: %s\n", c->out,
		r == -ETIME ? "matching --include and --exclude takes longer than 5 s"
			    : strerror(-r));
	return CLI_FAILED;
}

int command_convert(int argc, char **argv)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) char *out = NULL;
	struct conversion c = { 0 };
	int r = command_convert_parse_options(argc, argv, &c);
	size_t len;

	if (r < 0)
		r = command_convert_check_options(&c);
	if (r >= 0)
		return r;
	r = read_profile(c.in, c.from, &c.reading, &p);
	if (r != CLI_OK)
		return r;
	r = choose_events(&c, p);
	if (r >= 0)
		return r;
	r = command_convert_file(&c, p, &out, &len);
	if (r == CLI_OK)
		r = write_file(c.out, out, len);
	if (r != CLI_OK)
		return r;
	if (p->n_rows && profile_samples(p) == 0)
		fprintf(stderr,
			"%s: %u rows; %s does not give the number of samples; use --interval if its "
			"numbers count samples\n",
			c.out, p->n_rows, c.in);
	else
		output_profile_written(c.out, c.format, p, &c.options);
	return CLI_OK;
}
