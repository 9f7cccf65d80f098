/* kindling report: a profile of a span of time, as a file. */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/core/clock.h"
#include "daemon/report/events.h"
#include "daemon/report/patterns.h"

static const char usage[] =
	"Usage: kindling report TARGET|--all [--last 60s | --from TIME [--to TIME]] -o FILE [OPTION...]\n"
	"\n"
	"Writes what JVMs did in the last seconds, minutes or hours to a file, from the history of kindlingd.\n"
	"TARGET is a pid, a container id, a container, a pod or a part of a name from `kindling status`.\n"
	"\n"
	"  -a, --all             all JVMs together\n"
	"  -l, --last DURATION   how far to look back: 30s, 2m30s, 1.5h (default 60s)\n"
	"      --from TIME       14:05, 14:05:30, \"2026-11-21 14:05\" or @SECONDS since 1970; a time of day\n"
	"                        later than now means yesterday's\n"
	"      --to TIME         in the same forms (default: now)\n"
	"  -o, --output FILE     format by suffix: .html (flame graph), .collapsed, .txt, .pb.gz (pprof),\n"
	"                        .json, .jfr (JDK Mission Control); \"-\" is stdout\n"
	"  -f, --format FORMAT   html, collapsed, txt, pb.gz, json or jfr, whatever FILE is called\n"
	"  -e, --type TYPE       cpu (the default), lock (time that threads waited), alloc (bytes allocated),\n"
	"                        wall (time, running or not), if it is collected; pb.gz and jfr files can\n"
	"                        hold several: cpu,lock\n"
	"      --idle            also waits for work (pool threads at empty queues, timers, selectors)\n"
	"  -t, --thread WORD     only threads whose name contains WORD\n"
	"      --threads         keep threads apart: one tower for each in the flame graph\n"
	"      --include REGEX   only stacks with a frame that matches, as in 'OrderService|^java.util.zip';\n"
	"                        a POSIX extended regular expression\n"
	"      --exclude REGEX   no stacks with a frame that matches; how much was left out is in the file\n"
	"      --reverse         leaf first: below each method those that called it; .html, .collapsed, .json\n"
	"      --annotate        .collapsed, .pb.gz: names end with how the frame ran, _[0] interpreted,\n"
	"                        _[1] C1, _[j] C2, _[i] inlined, _[k] kernel\n"
	"  -h, --help            show this text\n"
	"\n"
	"Examples: kindling report 4711 --last 5m -o flame.html\n"
	"          kindling report 4711 --type lock -o waits.html\n"
	"          kindling report 4711 --include 'java.util.HashMap' --reverse -o callers.html\n"
	"          kindling report --all --from 14:00 --to 14:10 -o - | head -30\n";

struct arguments {
	const char *target, *last, *from, *to, *output, *format, *thread, *type, *include, *exclude;
	unsigned events;
	bool all, threads, annotate, idle, reverse;
};

static int parse_options(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },
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
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char **texts[128] = {
		['e'] = &a->type,   ['l'] = &a->last,	 ['F'] = &a->from,
		['U'] = &a->to,	    ['o'] = &a->output,	 ['f'] = &a->format,
		['t'] = &a->thread, ['i'] = &a->include, ['x'] = &a->exclude,
	};
	int c;

	while ((c = getopt_long(argc, argv, "al:o:f:e:t:h", options, NULL)) != -1) {
		if (c == 'a')
			a->all = true;
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

static int parse(int argc, char **argv, struct arguments *a)
{
	uint64_t ns;
	int r = parse_options(argc, argv, a);

	if (r >= 0)
		return r;
	if (!a->target == !a->all)
		return cli_wrong("report", "name a TARGET, or --all, not both");
	if (!a->output)
		return cli_wrong("report", "-o FILE says where to write");
	if (a->last && (a->from || a->to))
		return cli_wrong("report", "take --last, or --from and --to");
	if (a->last && !parse_length(a->last, &ns))
		return cli_wrong("report", "--last takes a duration such as 60s");
	a->events = 1u << WIRE_EVENT_CPU;
	if (a->type && !report_events_by_name(a->type, &a->events))
		return cli_wrong("report", "--type takes cpu, lock, alloc or wall");
	a->format = format_of(a->format, a->output);
	return a->format ? check_view(a) : CLI_USAGE;
}

/* "2026-11-21 14:05:00" */
static void date_text(uint64_t ns, char *buf, size_t size)
{
	time_t s = (time_t)(ns / NS_PER_S);
	struct tm tm;

	strftime(buf, size, "%Y-%m-%d %H:%M:%S", localtime_r(&s, &tm));
}

/* -1 = go on, else the exit status. */
static int read_moment(const char *option, const char *word, uint64_t now_ns, uint64_t *ret_ns)
{
	char why[100];

	if (!word || parse_moment(word, now_ns, ret_ns))
		return -1;
	snprintf(why, sizeof(why), "%s takes 14:05, \"2026-11-21 14:05\" or @SECONDS", option);
	return cli_wrong("report", why);
}

/* A time of day that is still to come was taken as yesterday's: that is said. */
static void say_yesterday(const char *option, const char *word, uint64_t now_ns, uint64_t ns)
{
	char date[32], now[32];

	if (!word || strpbrk(word, "@-"))
		return;
	date_text(ns, date, sizeof(date));
	date_text(now_ns, now, sizeof(now));
	if (strncmp(date, now, 10) != 0)
		fprintf(stderr, "kindling: %s %s is still to come, it is %s: %s is taken\n", option,
			word, now + 11, date);
}

static int refuse_future(uint64_t from_ns, uint64_t now_ns)
{
	char why[128], from[32], now[32];

	date_text(from_ns, from, sizeof(from));
	date_text(now_ns, now, sizeof(now));
	snprintf(why, sizeof(why), "--from %s is in the future: it is %s", from, now);
	return cli_wrong("report", why);
}

/* --from and --to as the daemon takes them. -1 = go on, else the exit status. */
static int add_range(char *path, size_t size, const struct arguments *a)
{
	uint64_t now = clock_real_ns(), from = 0, to = now;
	char text[32];
	int r = read_moment("--from", a->from, now, &from);

	if (r < 0)
		r = read_moment("--to", a->to, now, &to);
	if (r >= 0)
		return r;
	if (from > now)
		return refuse_future(from, now);
	say_yesterday("--from", a->from, now, from);
	if (to < from && !strpbrk(a->to, "@-"))
		to = now; /* 14:10 of today, at 14:07 */
	else
		say_yesterday("--to", a->to, now, to);
	if (from >= to)
		return cli_wrong("report", "--from is not before --to");
	snprintf(text, sizeof(text), "%" PRIu64, from);
	path_add(path, size, "from", a->from ? text : NULL);
	snprintf(text, sizeof(text), "%" PRIu64, to);
	path_add(path, size, "to", a->to ? text : NULL);
	return -1;
}

int command_report(int argc, char **argv)
{
	char path[PATH_MAX_BYTES] = "/v1/profile";
	struct arguments a = { 0 };
	struct reply reply;
	int r = parse(argc, argv, &a);

	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "format", a.format);
	path_add(path, sizeof(path), "last", a.last);
	r = add_range(path, sizeof(path), &a);
	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a.target);
	path_add(path, sizeof(path), "thread", a.thread);
	path_add(path, sizeof(path), "type", a.type);
	path_add(path, sizeof(path), "idle", a.idle ? "1" : NULL);
	path_add(path, sizeof(path), "threads", a.threads ? "1" : NULL);
	path_add(path, sizeof(path), "annotate", a.annotate ? "1" : NULL);
	path_add(path, sizeof(path), "include", a.include);
	path_add(path, sizeof(path), "exclude", a.exclude);
	path_add(path, sizeof(path), "reverse", a.reverse ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	r = write_file(a.output, reply.body, reply.len);
	if (r == CLI_OK)
		say_written(a.output, a.format, a.events, reply.samples, reply.dropped);
	reply_free(&reply);
	return r;
}
