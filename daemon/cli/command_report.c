/* kindling report: a profile of a span of time, as a file. */
#include <getopt.h>
#include <string.h>
#include "daemon/cli/changes.h"
#include "daemon/cli/cli.h"
#include "daemon/cli/source.h"
#include "daemon/report/events.h"
#include "daemon/report/patterns.h"

static const char usage[] =
	"Usage: kindling report TARGET|--all|--service NAME [--last 60s | --from TIME [--to TIME]] -o FILE [OPTION...]\n"
	"\n"
	"Writes what JVMs did in the last seconds, minutes or hours to a file, from the history of kindlingd.\n"
	"TARGET is a pid, a container or its id, a pod, a service or part of a name from `kindling status`, or,\n"
	"where that names none that is there now, exactly what `kindling history` calls one.\n"
	"\n"
	"  -a, --all             all JVMs, a tower for each in the flame graph\n"
	"      --service NAME    all JVMs of a service in that time, also those that have ended since\n"
	"      --pod NAME        the same of a pod, with or without its namespace\n"
	"      --container NAME  the same of a container, or its id; several of the three must all fit\n"
	"  -m, --merge           several JVMs as one: a method is one box, whichever ran it\n"
	"  -l, --last DURATION   how far to look back: 30s, 2m30s, 1.5h (default 60s)\n"
	"      --from TIME       14:05, 14:05:30, \"2026-11-21 14:05\" or @SECONDS since 1970; a time of day\n"
	"                        later than now means yesterday's\n"
	"      --to TIME         in the same forms (default: now)\n"
	"  -o, --output FILE     format by suffix: .html (flame graph), .collapsed, .txt, .pb.gz (pprof),\n"
	"                        .json, .jfr (JDK Mission Control), .speedscope.json,\n"
	"                        .otlp (the request of OTLP profiles, opentelemetry-proto 1.11) or\n"
	"                        .otlp.json; \"-\" is stdout\n"
	"  -f, --format FORMAT   html, collapsed, txt, pb.gz, json, jfr, speedscope, otlp or otlp.json,\n"
	"                        whatever FILE is called\n"
	"  -e, --type TYPE       cpu (the default), lock (time that threads waited), alloc (bytes allocated),\n"
	"                        wall (time, running or not), if it is collected; pb.gz, jfr,\n"
	"                        speedscope and otlp files can hold several: cpu,lock\n"
	"      --idle            also waits for work (pool threads at empty queues, timers, selectors)\n"
	"  -t, --thread WORD     only threads whose name contains WORD\n"
	"      --threads         keep threads apart: one tower for each in the flame graph\n"
	"      --include REGEX   only stacks with a frame that matches, as in 'OrderService|^java.util.zip';\n"
	"                        a POSIX extended regular expression\n"
	"      --exclude REGEX   no stacks with a frame that matches; how much was left out is in the file\n" CHANGES_USAGE
	"      --reverse         leaf first: below each method those that called it; .html, .collapsed, .json\n"
	"      --annotate        .collapsed, .pb.gz: names end with how the frame ran, _[0] interpreted,\n"
	"                        _[1] C1, _[j] C2, _[i] inlined, _[k] kernel\n"
	"      --source URL      a whole cluster, from ClickHouse: --source URL --help\n"
	"  -h, --help            show this text\n"
	"\n"
	"Examples: kindling report 4711 --last 5m -o flame.html\n"
	"          kindling report 4711 --type lock -o waits.html\n"
	"          kindling report 4711 --diff 14:00/14:10..15:00/15:10 -o changed.html\n"
	"          kindling report 4711 --include 'java.util.HashMap' --reverse -o callers.html\n"
	"          kindling report --service shop --from \"2026-11-20 09:00\" --to \"2026-11-22 09:00\" -o x.html\n"
	"          kindling report --all --from 14:00 --to 14:10 -o - | head -30\n";

struct arguments {
	struct changes changes;
	const char *target, *last, *from, *to, *output, *format, *thread, *type, *include, *exclude;
	const char *service, *pod, *container;
	unsigned events;
	bool all, merge, threads, annotate, idle, reverse;
};

static int parse_options(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "merge", no_argument, NULL, 'm' },
		{ "service", required_argument, NULL, 'S' },
		{ "pod", required_argument, NULL, 'P' },
		{ "container", required_argument, NULL, 'C' },
		{ "last", required_argument, NULL, 'l' },
		{ "from", required_argument, NULL, 'F' },
		{ "to", required_argument, NULL, 'U' },
		{ "output", required_argument, NULL, 'o' },
		{ "format", required_argument, NULL, 'f' },
		{ "type", required_argument, NULL, 'e' },
		{ "idle", no_argument, NULL, 'I' },
		{ "thread", required_argument, NULL, 't' },
		{ "threads", no_argument, NULL, 'T' },
		{ "annotate", no_argument, NULL, 'A' },
		{ "include", required_argument, NULL, 'i' },
		{ "exclude", required_argument, NULL, 'x' },
		{ "reverse", no_argument, NULL, 'R' },
		{ "diff", required_argument, NULL, 'D' },
		{ "baseline", required_argument, NULL, 'b' },
		{ "by", required_argument, NULL, 'B' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char **texts[128] = {
		['e'] = &a->type,
		['l'] = &a->last,
		['F'] = &a->from,
		['U'] = &a->to,
		['o'] = &a->output,
		['f'] = &a->format,
		['t'] = &a->thread,
		['i'] = &a->include,
		['x'] = &a->exclude,
		['D'] = &a->changes.diff,
		['b'] = &a->changes.baseline,
		['B'] = &a->changes.by,
		['S'] = &a->service,
		['P'] = &a->pod,
		['C'] = &a->container,
	};
	int c;

	while ((c = getopt_long(argc, argv, "aml:o:f:e:t:b:h", options, NULL)) != -1) {
		if (c == 'a')
			a->all = true;
		else if (c == 'm')
			a->merge = true;
		else if (c == 'T')
			a->threads = true;
		else if (c == 'A')
			a->annotate = true;
		else if (c == 'I')
			a->idle = true;
		else if (c == 'R')
			a->reverse = true;
		else if (c < 128 && texts[c])
			*texts[c] = optarg;
		else
			return cli_usage(usage, c);
	}
	a->target = optind < argc ? argv[optind] : NULL;
	return optind + 1 < argc ? cli_wrong("report", "name one TARGET, or use --all") : -1;
}

static int check_pattern(const char *option, const char *pattern)
{
	char why[300], sentence[340];

	if (!pattern || report_pattern_is_fine(pattern, why, sizeof(why)))
		return -1;
	snprintf(sentence, sizeof(sentence), "%s %s", option, why);
	return cli_wrong("report", sentence);
}

/* -1 = go on, else the exit status. */
static int check_view(const struct arguments *a)
{
	char why[128];
	int r = check_pattern("--include", a->include);

	if (r < 0)
		r = check_pattern("--exclude", a->exclude);
	if (r < 0 && a->reverse &&
	    !report_reverses((enum report_format)report_format_by_name(a->format), why,
			     sizeof(why)))
		r = cli_wrong("report", why);
	return r;
}

/* What --diff and --baseline are about is what the report would have been. */
static int check_changes(struct arguments *a)
{
	struct changes *c = &a->changes;

	c->command = "report";
	c->thread = a->thread;
	c->options = (struct report_options){ .events = a->events,
					      .threads = a->threads,
					      .idle = a->idle,
					      .reverse = a->reverse,
					      .include = a->include,
					      .exclude = a->exclude };
	return changes_check(c, a->format, a->last || a->from || a->to);
}

static int parse(int argc, char **argv, struct arguments *a)
{
	int r = parse_options(argc, argv, a);

	if (r >= 0)
		return r;
	if (a->all + !!a->target + (a->service || a->pod || a->container) != 1)
		return cli_wrong("report",
				 "name a TARGET, or --all, or --service, --pod, --container");
	if (!a->output)
		return cli_wrong("report", "-o FILE says where to write");
	a->events = 1u << WIRE_EVENT_CPU;
	if (a->type && !report_events_by_name(a->type, &a->events))
		return cli_wrong("report", "--type takes cpu, lock, alloc or wall");
	a->format = format_of(a->format, a->output);
	if (!a->format)
		return CLI_USAGE;
	r = check_view(a);
	return r < 0 ? check_changes(a) : r;
}

static int fetch(const struct arguments *a, const char *format, struct reply *ret)
{
	char path[PATH_MAX_BYTES] = "/v1/profile";
	int r;

	path_add(path, sizeof(path), "format", format);
	r = path_add_span(path, sizeof(path),
			  &(struct span_words){ "report", a->last, a->from, a->to });
	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a->target);
	path_add(path, sizeof(path), "service", a->service);
	path_add(path, sizeof(path), "pod", a->pod);
	path_add(path, sizeof(path), "container", a->container);
	path_add(path, sizeof(path), "thread", a->thread);
	path_add(path, sizeof(path), "type", a->type);
	path_add(path, sizeof(path), "idle", a->idle ? "1" : NULL);
	path_add(path, sizeof(path), "merge", a->merge ? "1" : NULL);
	path_add(path, sizeof(path), "threads", a->threads ? "1" : NULL);
	path_add(path, sizeof(path), "annotate", a->annotate ? "1" : NULL);
	path_add(path, sizeof(path), "include", a->include);
	path_add(path, sizeof(path), "exclude", a->exclude);
	path_add(path, sizeof(path), "reverse", a->reverse ? "1" : NULL);
	return client_request("GET", path, ret);
}

/* changes.h: the same of another range, as a profile. */
static int fetch_profile(void *userdata, const char *from, const char *to, struct profile **ret)
{
	struct arguments a = *(const struct arguments *)userdata;
	struct reply reply;
	int r;

	if (from) {
		a.from = from;
		a.to = to;
		a.last = NULL;
	}
	r = fetch(&a, "json", &reply);
	return r == CLI_OK ? changes_read(&a.changes, &reply, ret) : r;
}

int command_report(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct reply reply;
	int r;

	if (source_is_asked(argc, argv))
		return source_report(argc, argv);
	r = parse(argc, argv, &a);
	if (r >= 0)
		return r;
	if (changes_are_asked(&a.changes)) {
		a.changes.fetch = fetch_profile;
		a.changes.userdata = &a;
		return changes_write(&a.changes, a.format, a.output);
	}
	r = fetch(&a, a.format, &reply);
	if (r != CLI_OK)
		return r;
	r = write_file(a.output, reply.body, reply.len);
	if (r == CLI_OK)
		say_written(a.output, a.format, a.events, reply.samples, reply.dropped);
	reply_free(&reply);
	return r;
}
