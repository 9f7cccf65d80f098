/* kindling convert: a file of a profile in another format, without kindlingd. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/core/mem.h"
#include "daemon/report/diff.h"
#include "daemon/report/events.h"
#include "daemon/report/patterns.h"

static const char usage[] =
	"Usage: kindling convert IN OUT [OPTION...]\n"
	"\n"
	"Writes a profile that is in a file in another format. IN is json, pb.gz or collapsed, of kindling or of\n"
	"another program; OUT is any format of `kindling report`. json and pb.gz hold all of a profile: from one to\n"
	"the other and back nothing is lost. collapsed holds stacks and weights. \"-\" is stdin or stdout.\n"
	"\n"
	"  -F, --from FORMAT      what IN is, whatever it is called: json, pb.gz or collapsed\n"
	"  -f, --format FORMAT    what OUT is: html, collapsed, txt, pb.gz, json, jfr, speedscope, otlp or otlp.json\n"
	"  -e, --type TYPE        of several types of events in IN this one: cpu, lock, alloc or wall;\n"
	"                         of a collapsed file: what its numbers are of (default cpu), in ns or bytes\n"
	"  -i, --interval LENGTH  the numbers of a collapsed file count samples, one each LENGTH: 10ms\n"
	"      --threads, --merge, --include, --exclude, --reverse, --annotate\n"
	"                         as of kindling report\n"
	"  -b, --baseline FILE    what changed since FILE (json, pb.gz or collapsed): OUT is html (red: more than\n"
	"                         before, blue: less), txt or json\n"
	"      --by WORD          time (the default): FILE's numbers are multiplied so that both are of the same\n"
	"                         length; total: of the same total\n"
	"  -h, --help             show this text\n"
	"\n"
	"Examples: kindling convert flame.json flame.pb.gz\n"
	"          kindling convert --interval 10ms async.collapsed flame.html\n"
	"          kindling convert --baseline monday.pb.gz tuesday.pb.gz changed.html\n"
	"          kindling convert go.pb.gz - --format txt | head -30\n";

struct conversion {
	const char *in, *out, *from, *format, *type, *interval, *baseline, *by;
	enum report_diff_by diff_by;
	struct report_reading reading;
	struct report_options options;
};

static int parse_options(int argc, char **argv, struct conversion *c)
{
	static const struct option options[] = {
		{ "from", required_argument, NULL, 'F' },
		{ "format", required_argument, NULL, 'f' },
		{ "type", required_argument, NULL, 'e' },
		{ "interval", required_argument, NULL, 'i' },
		{ "baseline", required_argument, NULL, 'b' },
		{ "by", required_argument, NULL, 'B' },
		{ "threads", no_argument, NULL, 'T' },
		{ "merge", no_argument, NULL, 'm' },
		{ "annotate", no_argument, NULL, 'A' },
		{ "include", required_argument, NULL, 'I' },
		{ "exclude", required_argument, NULL, 'X' },
		{ "reverse", no_argument, NULL, 'R' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool *flags[128] = { ['T'] = &c->options.threads,
			     ['m'] = &c->options.merge,
			     ['A'] = &c->options.annotate,
			     ['R'] = &c->options.reverse };
	const char **texts[128] = { ['F'] = &c->from,
				    ['f'] = &c->format,
				    ['e'] = &c->type,
				    ['i'] = &c->interval,
				    ['I'] = &c->options.include,
				    ['X'] = &c->options.exclude,
				    ['b'] = &c->baseline,
				    ['B'] = &c->by };
	int o;

	while ((o = getopt_long(argc, argv, "F:f:e:i:b:mh", options, NULL)) != -1) {
		if (o < 128 && flags[o])
			*flags[o] = true;
		else if (o < 128 && texts[o])
			*texts[o] = optarg;
		else
			return cli_usage(usage, o);
	}
	if (optind + 2 != argc)
		return cli_wrong("convert", "name IN and OUT");
	c->in = argv[optind];
	c->out = argv[optind + 1];
	return -1;
}

static int check_options(struct conversion *c)
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
			return cli_wrong("convert", "--type takes cpu, lock, alloc or wall");
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

/* What of it is written: all, where the format can hold it. */
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
		fprintf(stderr, "kindling convert: %s: it has %s; %s; choose one with --type\n",
			c->in, report_events_list(c->options.events, list, sizeof(list)), why);
		return CLI_USAGE;
	}
	if (f == REPORT_JFR && p->n_rows && profile_samples(p) == 0) {
		fprintf(stderr,
			"kindling convert: %s does not say how many samples its weights are, which jfr needs; "
			"--interval says that its numbers count them\n",
			c->in);
		return CLI_USAGE;
	}
	return -1;
}

/* @ret is the bytes of the file; CLI_OK, or an exit status after saying why. */
static int convert(struct conversion *c, const struct profile *p, char **ret, size_t *ret_len)
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
		r == -ETIME ? "--include or --exclude takes longer than 5 s" : strerror(-r));
	return CLI_FAILED;
}

int command_convert(int argc, char **argv)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(freep) char *out = NULL;
	struct conversion c = { 0 };
	int r = parse_options(argc, argv, &c);
	size_t len;

	if (r < 0)
		r = check_options(&c);
	if (r >= 0)
		return r;
	r = read_profile(c.in, c.from, &c.reading, &p);
	if (r != CLI_OK)
		return r;
	r = choose_events(&c, p);
	if (r >= 0)
		return r;
	r = convert(&c, p, &out, &len);
	if (r == CLI_OK)
		r = write_file(c.out, out, len);
	if (r == CLI_OK)
		say_written(c.out, c.format, c.options.events, report_samples(p, &c.options),
			    report_dropped(p, &c.options));
	return r;
}
