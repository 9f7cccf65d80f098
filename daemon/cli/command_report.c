/* kindling report: writes a profile of a span of time to a file. */
#include <string.h>
#include "daemon/cli/report_rows.h"
#include "daemon/cli/cli.h"
#include "daemon/cli/source.h"
#include "daemon/report/event_names.h"
#include "daemon/report/patterns.h"

struct arguments {
	struct changes changes;
	const char *target, *last, *from, *to, *output, *format, *thread, *type, *include, *exclude;
	const char *service, *namespace, *version, *image, *pod, *container, *trace;
	unsigned events;
	bool all, merge, threads, annotate, idle, reverse;
};

static const struct usage_row options[] = {
	OPTION_FLAG('a', "all", struct arguments, all,
		    "all JVMs, a tower for each in the flame graph"),
	OPTION_TEXT(0, "service", "NAME", struct arguments, service,
		    "all JVMs of a service in that time, including those that have ended"),
	OPTION_TEXT(0, "namespace", "NAME", struct arguments, namespace, "all JVMs of a namespace"),
	OPTION_TEXT(0, "version", "NAME", struct arguments, version, "all JVMs of a version"),
	OPTION_TEXT(0, "image", "NAME", struct arguments, image, "all JVMs of an image"),
	OPTION_TEXT(0, "pod", "NAME", struct arguments, pod,
		    "all JVMs of a pod, with or without its namespace"),
	OPTION_TEXT(0, "container", "NAME", struct arguments, container,
		    "all JVMs of a container, by name or id; if several of these options are "
		    "given, a JVM must match all of them"),
	OPTION_TEXT(
		0, "trace", "ID", struct arguments, trace,
		"only events of the trace with this id (`kindling traces` lists some), of the last five "
		"minutes at most"),
	OPTIONS_OF_REPORT(struct arguments),
	OPTION_ELSEWHERE("source", "URL",
			 "a whole cluster, from ClickHouse: `kindling report --source URL --help`"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_report = {
	"report",
	"a flame graph (or pprof, text, ...) of the last minutes",
	"kindling report TARGET|--all|--service NAME [--last 60s | --from TIME [--to TIME]] -o FILE [OPTION...]",
	"Writes what JVMs did in the last seconds, minutes or hours to a file, from the history of kindlingd.\n" CLI_TARGET_ABOUT
	"; if no running JVM matches, the exact name of a JVM in `kindling history`.",
	options,
	NULL,
	"kindling report 4711 --last 5m -o flame.html\n"
	"kindling report 4711 --event lock -o waits.html\n"
	"kindling report 4711 --diff 14:00/14:10..15:00/15:10 -o changed.html\n"
	"kindling report --service shop --diff version=1.4..version=1.5 --last 1h -o changed.html\n"
	"kindling report 4711 --include 'java.util.HashMap' --reverse -o callers.html\n"
	"kindling report --service shop --from \"2026-11-20 09:00\" --to \"2026-11-22 09:00\" -o x.html\n"
	"kindling report --all --from 14:00 --to 14:10 -o - | head -30",
};

static int command_report_parse_options(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_report, argc, argv, a);

	if (r >= 0)
		return r;
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

/* Checks the options of the report. -1 = go on, else the exit status. */
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

/* The options that select JVMs by a label, which the API takes under the same names. */
static const char *const command_report_keys[] = {
	"service", "namespace", "version", "image", "pod", "container", NULL,
};

/* The value of the option @key, which is one of command_report_keys. */
static const char **command_report_value(struct arguments *a, const char *key)
{
	const char **values[] = { &a->service, &a->namespace, &a->version,
				  &a->image,   &a->pod,	      &a->container };
	size_t i = 0;

	while (strcmp(command_report_keys[i], key) != 0)
		i++;
	return values[i];
}

static bool command_report_selects(struct arguments *a)
{
	for (const char *const *key = command_report_keys; *key; key++)
		if (*command_report_value(a, *key))
			return true;
	a->changes.keys = command_report_keys;
	return !a->target && !a->all && changes_select(&a->changes);
}

/* Compares what the report would contain with a baseline (--diff, --baseline). */
static int check_changes(struct arguments *a)
{
	struct changes *c = &a->changes;

	c->command = "report";
	c->keys = command_report_keys;
	c->thread = a->thread;
	c->options = (struct report_options){ .events = a->events,
					      .threads = a->threads,
					      .idle = a->idle,
					      .reverse = a->reverse,
					      .include = a->include,
					      .exclude = a->exclude };
	return changes_check(c, a->format, a->last || a->from || a->to);
}

static int command_report_parse(int argc, char **argv, struct arguments *a)
{
	int r = command_report_parse_options(argc, argv, a);

	if (r >= 0)
		return r;
	if (a->all + !!a->target + command_report_selects(a) != 1)
		return cli_wrong("report", "name a TARGET, or --all, or --service, --namespace, "
					   "--version, --image, --pod, --container");
	if (!a->output)
		return cli_wrong("report", "-o FILE is missing: the file to write");
	/* the timeline, where traces come from, holds no more */
	if (a->trace && !a->last && !a->from && !a->to)
		a->last = "5m";
	a->events = 1u << WIRE_EVENT_CPU;
	if (a->type && !report_events_by_name(a->type, &a->events))
		return cli_wrong("report", "--event takes cpu, lock, alloc, wall or offcpu");
	a->format = format_of(a->format, a->output);
	if (!a->format)
		return CLI_USAGE;
	r = check_view(a);
	return r < 0 ? check_changes(a) : r;
}

static int command_report_fetch(struct arguments *a, const char *format, struct reply *ret)
{
	char path[PATH_MAX_BYTES] = "/v1/profile";
	int r;

	path_add(path, sizeof(path), "format", format);
	r = path_add_span(path, sizeof(path),
			  &(struct span_words){ "report", a->last, a->from, a->to });
	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a->target);
	for (const char *const *key = command_report_keys; *key; key++)
		path_add(path, sizeof(path), *key, *command_report_value(a, *key));
	path_add(path, sizeof(path), "trace", a->trace);
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

/* changes.fetch: fetches the profile of one side. */
static int fetch_profile(void *userdata, const struct changes_side *side, struct profile **ret)
{
	struct arguments a = *(const struct arguments *)userdata;
	struct reply reply;
	int r;

	if (*side->from) {
		a.from = side->from;
		a.to = side->to;
		a.last = NULL;
	}
	if (*side->key) {
		a.all = false;
		*command_report_value(&a, side->key) = side->value;
	}
	r = command_report_fetch(&a, "json", &reply);
	return r == CLI_OK ? changes_read(&a.changes, &reply, ret) : r;
}

int command_report(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct reply reply;
	int r;

	if (source_is_asked(argc, argv))
		return source_report(argc, argv);
	r = command_report_parse(argc, argv, &a);
	if (r >= 0)
		return r;
	if (changes_are_asked(&a.changes)) {
		a.changes.fetch = fetch_profile;
		a.changes.userdata = &a;
		return changes_write(&a.changes, a.format, a.output);
	}
	r = command_report_fetch(&a, a.format, &reply);
	if (r != CLI_OK)
		return r;
	r = write_file(a.output, reply.body, reply.len);
	if (r == CLI_OK)
		output_report_written(a.output, a.format, a.events, &reply.counts);
	reply_free(&reply);
	return r;
}
