/* kindling tail: events as they arrive. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"

static const char usage[] =
	"Usage: kindling tail [OPTION...] [TARGET...]\n"
	"\n"
	"Events as they arrive, one line each: time, pid, tid, thread, event, weight, stack (leaf first).\n"
	"\n"
	"  -j, --json          one JSON object a line:\n"
	"                      {\"event\":\"cpu\",\"ts_ns\":,\"pid\":,\"tid\":,\"thread\":,\"weight_ns\":,\"stack\":[root...leaf]}\n"
	"  -e, --event EVENT   cpu (the default)\n"
	"  -n, --count N       end after N events\n"
	"  -h, --help\n";

struct tail {
	bool json;
	long left; /* -1 = no end */
};

static void print_event(const cJSON *e)
{
	const cJSON *stack = cJSON_GetObjectItemCaseSensitive(e, "stack");
	double ts_ns = json_number(e, "ts_ns");
	time_t seconds = (time_t)(ts_ns / 1e9);
	char clock[32];
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&seconds, &tm));
	printf("%s.%03d %.0f %.0f \"", clock, (int)((ts_ns - (double)seconds * 1e9) / 1e6),
	       json_number(e, "pid"), json_number(e, "tid"));
	print_cell(json_text(e, "thread"), 60, false);
	printf("\" %s %.3gms", json_text(e, "event"), json_number(e, "weight_ns") / 1e6);
	for (int i = cJSON_GetArraySize(stack); i-- > 0;) {
		fputs(" ", stdout);
		print_cell(cJSON_GetArrayItem(stack, i)->valuestring, 300, false);
	}
	putchar('\n');
}

static bool on_line(void *userdata, const char *line)
{
	struct tail *t = userdata;
	cJSON *e;

	if (t->json) {
		puts(line);
	} else {
		e = cJSON_Parse(line);
		if (strcmp(json_text(e, "event"), "dropped") == 0)
			fprintf(stderr, "kindling: %.0f events were dropped, this reader is too slow\n",
				json_number(e, "count"));
		else if (e)
			print_event(e);
		cJSON_Delete(e);
	}
	/* a reader behind a pipe that closed: end quietly */
	if (fflush(stdout) != 0)
		return false;
	return !cli_interrupted && (t->left < 0 || --t->left > 0);
}

int command_tail(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "event", required_argument, NULL, 'e' },
						 { "count", required_argument, NULL, 'n' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	struct tail t = { .left = -1 };
	char path[4096] = "/v1/events";
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
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? CLI_OK : CLI_USAGE;
		}
	}
	for (; optind < argc; optind++)
		path_add(path, sizeof(path), "target", argv[optind]);
	cli_catch_interrupt();
	return client_stream(path, on_line, &t);
}
