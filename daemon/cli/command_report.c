/* kindling report: a profile of a span of time, as a file. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "daemon/cli/cli.h"

static const char usage[] =
	"Usage: kindling report TARGET|--all [--last 60s] -o FILE [OPTION...]\n"
	"\n"
	"What the JVMs did in the last seconds, minutes or hours, from the daemon's history.\n"
	"TARGET is a pid, container id, container, pod or part of a name as `kindling status` shows it.\n"
	"\n"
	"  -a, --all             all JVMs together\n"
	"  -l, --last DURATION   how far to look back: 30s, 5m, 2h (default 60s)\n"
	"  -o, --output FILE     format by suffix: .html (flame graph), .collapsed, .txt, .pb.gz (pprof),\n"
	"                        .json; \"-\" is stdout\n"
	"  -f, --format FORMAT   html, collapsed, txt, pb.gz or json, whatever the file is called\n"
	"  -t, --thread WORD     only threads whose name contains WORD\n"
	"      --threads         one tower per thread\n"
	"  -h, --help\n"
	"\n"
	"Example: kindling report 4711 --last 5m -o flame.html\n";

struct arguments {
	const char *target, *last, *output, *format, *thread;
	bool all, threads;
};

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "all", no_argument, NULL, 'a' },	 { "last", required_argument, NULL, 'l' },
		{ "output", required_argument, NULL, 'o' }, { "format", required_argument, NULL, 'f' },
		{ "thread", required_argument, NULL, 't' }, { "threads", no_argument, NULL, 'T' },
		{ "help", no_argument, NULL, 'h' },	 { NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "al:o:f:t:h", options, NULL)) != -1) {
		switch (c) {
		case 'a':
			a->all = true;
			break;
		case 'l':
			a->last = optarg;
			break;
		case 'o':
			a->output = optarg;
			break;
		case 'f':
			a->format = optarg;
			break;
		case 't':
			a->thread = optarg;
			break;
		case 'T':
			a->threads = true;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? CLI_OK : CLI_USAGE;
		}
	}
	a->target = optind < argc ? argv[optind] : NULL;
	if (!a->output || (!a->target && !a->all)) {
		fprintf(stderr, "kindling report: %s\n\n%s",
			a->output ? "name a TARGET, or --all" : "-o FILE says where to write", usage);
		return CLI_USAGE;
	}
	return -1;
}

int command_report(int argc, char **argv)
{
	struct arguments a = { .last = "60s" };
	char path[2048] = "/v1/profile";
	const char *format;
	struct reply reply;
	int r = parse(argc, argv, &a);

	if (r >= 0)
		return r;
	format = format_of(a.format, a.output);
	if (!format)
		return CLI_USAGE;
	path_add(path, sizeof(path), "format", format);
	path_add(path, sizeof(path), "last", a.last);
	path_add(path, sizeof(path), "target", a.all ? NULL : a.target);
	path_add(path, sizeof(path), "thread", a.thread);
	path_add(path, sizeof(path), "threads", a.threads ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	r = write_file(a.output, reply.body ? reply.body : "", reply.len);
	if (r == CLI_OK && strcmp(a.output, "-") != 0)
		fprintf(stderr, "%s written, %zu bytes\n", a.output, reply.len);
	reply_free(&reply);
	return r;
}
