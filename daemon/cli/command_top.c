/* kindling top: the hottest methods of the last seconds. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "daemon/cli/cli.h"

static const char usage[] =
	"Usage: kindling top [OPTION...] [TARGET]\n"
	"\n"
	"The hottest methods of the last seconds, over all JVMs and per JVM, once a second.\n"
	"TARGET is a pid, container id, container, pod or part of a name as `kindling status` shows it.\n"
	"\n"
	"  -s, --seconds N     look back N seconds (default 5, at most 20)\n"
	"  -t, --thread WORD   only threads whose name contains WORD\n"
	"  -n, --rows N        methods per table (default: what fits)\n"
	"      --once          print once and end\n"
	"  -h, --help\n";

static void print_table(const char *title, const cJSON *o, double seconds, int rows)
{
	const cJSON *m;

	printf("%s: %.2f CPUs\n%8s %8s  %s\n", title, json_number(o, "cpu_ns") / 1e9 / seconds, "self",
	       "total", "method");
	cJSON_ArrayForEach(m, cJSON_GetObjectItemCaseSensitive(o, "methods"))
	{
		if (rows-- <= 0)
			break;
		printf("%7.2f%% %7.2f%%  ", 100 * json_number(m, "self"), 100 * json_number(m, "total"));
		print_cell(json_text(m, "name"), 100, false);
		putchar('\n');
	}
}

static void print_top(const cJSON *json, int rows, bool screen)
{
	const cJSON *targets = cJSON_GetObjectItemCaseSensitive(json, "targets"), *t;
	double seconds = json_number(json, "seconds");
	int tables = 1 + cJSON_GetArraySize(targets);
	struct winsize size;
	char title[400];

	if (screen)
		fputs("\033[H\033[2J", stdout);
	if (rows <= 0) {
		rows = 10;
		if (screen && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 10)
			rows = (size.ws_row - 1) / tables - 3;
		if (rows < 3)
			rows = 3;
	}
	print_table("all JVMs", json, seconds, rows);
	cJSON_ArrayForEach(t, targets)
	{
		putchar('\n');
		snprintf(title, sizeof(title), "%.0f %.300s", json_number(t, "pid"), json_text(t, "name"));
		print_table(title, t, seconds, rows);
	}
	putchar('\n');
	fflush(stdout);
}

int command_top(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' }, { "thread", required_argument, NULL, 't' },
		{ "rows", required_argument, NULL, 'n' },    { "once", no_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },	     { NULL, 0, NULL, 0 },
	};
	const char *seconds = "5", *thread = NULL;
	char path[1024] = "/v1/top";
	bool once = false, screen = isatty(STDOUT_FILENO);
	int c, r, rows = 0;

	while ((c = getopt_long(argc, argv, "s:t:n:h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			seconds = optarg;
			break;
		case 't':
			thread = optarg;
			break;
		case 'n':
			rows = atoi(optarg);
			break;
		case 'o':
			once = true;
			break;
		default:
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? CLI_OK : CLI_USAGE;
		}
	}
	path_add(path, sizeof(path), "seconds", seconds);
	path_add(path, sizeof(path), "thread", thread);
	path_add(path, sizeof(path), "target", optind < argc ? argv[optind] : NULL);
	cli_catch_interrupt();
	do {
		struct timespec second = { 1, 0 };
		struct reply reply;
		cJSON *json;

		r = client_request("GET", path, &reply);
		if (r != CLI_OK)
			return r;
		json = cJSON_Parse(reply.body);
		print_top(json, rows, screen && !once);
		cJSON_Delete(json);
		reply_free(&reply);
		if (once)
			break;
		nanosleep(&second, NULL);
	} while (!cli_interrupted);
	return CLI_OK;
}
