/* kindling tail: events as they arrive. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"

static const char usage[] =
	"Usage: kindling tail [OPTION...] [TARGET...]\n"
	"\n"
	"Events as they arrive, one line each: time, pid, tid, thread, event, weight, stack (leaf first).\n"
	"TARGET is a pid, container id, container, pod or part of a name as `kindling status` shows it.\n"
	"It ends when all that were named have ended; without a TARGET with Ctrl-C.\n"
	"\n"
	"  -j, --json          one JSON object a line: {\"event\":\"cpu\",\"ts_ns\":...,\"pid\":...,\n"
	"                      \"tid\":...,\"thread\":...,\"weight_ns\":...,\"stack\":[root...leaf]}\n"
	"  -e, --event EVENT   cpu (the default)\n"
	"  -n, --count N       end after N events\n"
	"  -h, --help\n"
	"\n"
	"Examples: kindling tail org.shop.Main\n"
	"          kindling tail --json -n 100 | jq -r '.stack[-1]' | sort | uniq -c\n";

struct tail {
	bool json;
	long left; /* -1 = no end */
};

void event_print(FILE *to, const cJSON *e)
{
	const cJSON *stack = json_get(e, "stack"), *frame;
	double ts_ns = json_number_of(e, "ts_ns");
	time_t seconds = (time_t)(ts_ns / 1e9);
	char clock[32];
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&seconds, &tm));
	fprintf(to, "%s.%03d %.0f %.0f \"", clock, (int)((ts_ns - (double)seconds * 1e9) / 1e6),
		json_number_of(e, "pid"), json_number_of(e, "tid"));
	print_text(to, json_text_of(e, "thread"));
	fputs("\" ", to);
	print_text(to, json_text_of(e, "event"));
	fprintf(to, " %.3gms", json_number_of(e, "weight_ns") / 1e6);
	for (int i = cJSON_GetArraySize(stack); i-- > 0;) {
		frame = cJSON_GetArrayItem(stack, i);
		fputc(' ', to);
		print_text(to, cJSON_IsString(frame) ? frame->valuestring : "?");
	}
	fputc('\n', to);
}

/* Lines about the stream itself go to stderr; false = it is an event. */
static bool is_notice(const cJSON *e)
{
	const char *event = json_text_of(e, "event");

	if (strcmp(event, "dropped") == 0) {
		fprintf(stderr, "kindling: %.0f events were dropped, this reader is too slow\n",
			json_number_of(e, "count"));
		return true;
	}
	if (strcmp(event, "end") != 0)
		return false;
	fputs("kindling: ", stderr);
	print_text(stderr, json_text_of(e, "reason"));
	fputc('\n', stderr);
	return true;
}

static bool on_line(void *userdata, const char *line)
{
	struct tail *t = userdata;
	cJSON *e = cJSON_Parse(line);
	const cJSON *left = json_get(e, "left");
	/* the end of the last JVM that was asked for; or of the daemon, which names none */
	bool end = strcmp(json_text_of(e, "event"), "end") == 0 &&
		   (cJSON_IsNumber(left) ? left->valuedouble == 0 : !json_get(e, "pid"));

	if (t->json)
		puts(line);
	if (e && !is_notice(e)) {
		if (!t->json)
			event_print(stdout, e);
		if (t->left > 0)
			t->left--;
	}
	cJSON_Delete(e);
	/* whoever reads behind a pipe may have closed it */
	return fflush(stdout) == 0 && !ferror(stdout) && !cli_interrupted && !end && t->left != 0;
}

int command_tail(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "event", required_argument, NULL, 'e' },
						 { "count", required_argument, NULL, 'n' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	char path[PATH_MAX_BYTES] = "/v1/events";
	struct tail t = { .left = -1 };
	int c;

	while ((c = getopt_long(argc, argv, "je:n:h", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			t.json = true;
			break;
		case 'e':
			path_add(path, sizeof(path), "event", optarg);
			break;
		case 'n':
			t.left = atol(optarg);
			if (t.left <= 0)
				return cli_wrong("tail", "-n takes a number of events");
			break;
		default:
			return cli_usage(usage, c);
		}
	}
	for (; optind < argc; optind++)
		path_add(path, sizeof(path), "target", argv[optind]);
	cli_catch_interrupt();
	return client_stream(path, on_line, &t);
}
