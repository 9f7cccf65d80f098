/* kindling top: the hottest methods of the last seconds. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "daemon/cli/cli.h"

#define ROWS_PLAIN 10
#define ROWS_MIN   3
/* cleared once, no cursor that jumps about; it comes back at the end */
#define SCREEN_BEGIN "\033[2J\033[?25l"
#define SCREEN_END   "\033[?25h"

static const char usage[] =
	"Usage: kindling top [OPTION...] [TARGET]\n"
	"\n"
	"The hottest methods of the last seconds, over all JVMs and per JVM, once a second.\n"
	"TARGET is a pid, container id, container, pod or part of a name as `kindling status` shows it.\n"
	"\n"
	"  -s, --seconds N     look back N seconds (default 5, at most 20)\n"
	"  -t, --thread WORD   only threads whose name contains WORD\n"
	"  -e, --type TYPE     cpu (the default), lock (time that threads waited), alloc (bytes allocated)\n"
	"                      or wall (time, running or not), of those that are collected\n"
	"      --idle          also waits for work: of pool threads at empty queues, timers, selectors\n"
	"  -n, --rows N        methods per table (default: what fits)\n"
	"      --once          print once and end\n"
	"  -j, --json          one JSON object a second and line; with --once one\n"
	"  -h, --help\n"
	"\n"
	"Examples: kindling top\n"
	"          kindling top --once -n 5 --thread http-nio 4711\n";

/* How much of it a second: "1.97 CPUs", "4.01 s/s of waiting", "12.2 MiB/s of allocation" */
static void print_rate(FILE *to, const cJSON *top, const cJSON *o)
{
	double seconds = json_number_of(top, "seconds");
	double rate = seconds > 0 ? json_number_of(o, "weight") / seconds : 0;

	if (strcmp(json_text_of(top, "event"), "cpu") == 0) {
		fprintf(to, ": %.2f CPUs\n", rate / 1e9);
		return;
	}
	if (strcmp(json_text_of(top, "unit"), "bytes") == 0)
		fprintf(to, ": %.2f MiB/s of ", rate / 1048576);
	else
		fprintf(to, ": %.2f s/s of ", rate / 1e9);
	print_text(to, json_text_of(top, "of"));
	fputc('\n', to);
}

static void print_table(FILE *to, const cJSON *top, const cJSON *o, int rows)
{
	const cJSON *m;

	print_rate(to, top, o);
	fprintf(to, "%8s %8s  %s\n", "self%", "total%", "method");
	cJSON_ArrayForEach(m, json_get(o, "methods"))
	{
		if (rows-- <= 0)
			break;
		fprintf(to, "%8.2f %8.2f  ", 100 * json_number_of(m, "self"),
			100 * json_number_of(m, "total"));
		print_text(to, json_text_of(m, "name"));
		fputc('\n', to);
	}
}

void top_print(FILE *to, const cJSON *top, int rows)
{
	const cJSON *targets = json_get(top, "targets"), *t;
	bool many = cJSON_GetArraySize(targets) != 1; /* one JVM alone is all there is */

	if (many) {
		fputs("all JVMs", to);
		print_table(to, top, top, rows);
	}
	cJSON_ArrayForEach(t, targets)
	{
		fprintf(to, "%s%.0f ", many ? "\n" : "", json_number_of(t, "pid"));
		print_text(to, json_text_of(t, "name"));
		print_table(to, top, t, rows);
	}
	fprintf(to, "\nthe last %.0f s\n", json_number_of(top, "seconds"));
}

/* ---- the screen ----------------------------------------------------------------------------- */

/* As many rows a table as fit on the screen with all tables. */
static int rows_that_fit(const cJSON *top, unsigned short screen_rows)
{
	int n = cJSON_GetArraySize(json_get(top, "targets")), tables = n == 1 ? 1 : n + 1;

	n = (screen_rows - 3) / tables - 3;
	return n < ROWS_MIN ? ROWS_MIN : n;
}

/*
 * @text over what is on the screen: every line is cut at the width (a line that wraps would push
 * the others away) and clears what was behind it, so that nothing is empty in between and flickers.
 * The last row of the screen stays free: a newline there would scroll.
 */
void screen_print(FILE *to, const char *text, unsigned short rows, unsigned short columns)
{
	char line[1024], cut[4 * sizeof(line)];

	fputs("\033[H", to);
	for (unsigned short row = 1; *text && row < rows; row++) {
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text_clean(line, columns, cut, sizeof(cut));
		fprintf(to, "%s\033[K\n", cut);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", to);
}

static void screen_show(const cJSON *top, int rows)
{
	struct winsize size;
	size_t len = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	top_print(f, top, rows ? rows : rows_that_fit(top, size.ws_row));
	if (fclose(f) == 0)
		screen_print(stdout, text, size.ws_row, size.ws_col);
	free(text);
}

struct arguments {
	const char *seconds, *thread, *target, *type;
	bool once, idle, json;
	int rows; /* 0 = what fits */
};

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "thread", required_argument, NULL, 't' },
		{ "type", required_argument, NULL, 'e' },
		{ "idle", no_argument, NULL, 'I' },
		{ "rows", required_argument, NULL, 'n' },
		{ "once", no_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "s:t:e:n:jh", options, NULL)) != -1) {
		switch (c) {
		case 's':
			a->seconds = optarg;
			break;
		case 't':
			a->thread = optarg;
			break;
		case 'n':
			a->rows = atoi(optarg);
			if (a->rows <= 0)
				return cli_wrong("top", "-n takes a number of rows");
			break;
		case 'e':
			a->type = optarg;
			break;
		case 'I':
			a->idle = true;
			break;
		case 'o':
			a->once = true;
			break;
		case 'j':
			a->json = true;
			break;
		default:
			return cli_usage(usage, c);
		}
	}
	a->target = optind < argc ? argv[optind] : NULL;
	return optind + 1 < argc ? cli_wrong("top", "it takes one TARGET") : -1;
}

static int print_once(const char *path, const struct arguments *a, bool screen)
{
	struct reply reply;
	cJSON *json;
	int r = client_request("GET", path, &reply);

	if (r != CLI_OK)
		return r;
	json = cJSON_Parse(reply.body);
	if (a->json)
		puts(reply.body);
	else if (screen)
		screen_show(json, a->rows);
	else
		top_print(stdout, json, a->rows ? a->rows : ROWS_PLAIN);
	cJSON_Delete(json);
	reply_free(&reply);
	return fflush(stdout) == 0 && !ferror(stdout) ? CLI_OK : CLI_FAILED;
}

int command_top(int argc, char **argv)
{
	struct arguments a = { .seconds = "5" };
	char path[PATH_MAX_BYTES] = "/v1/top";
	bool screen;
	int r = parse(argc, argv, &a);

	if (r >= 0)
		return r;
	screen = isatty(STDOUT_FILENO) && !a.once && !a.json;
	path_add(path, sizeof(path), "seconds", a.seconds);
	path_add(path, sizeof(path), "thread", a.thread);
	path_add(path, sizeof(path), "type", a.type);
	path_add(path, sizeof(path), "idle", a.idle ? "1" : NULL);
	path_add(path, sizeof(path), "target", a.target);
	cli_catch_interrupt();
	if (screen)
		fputs(SCREEN_BEGIN, stdout);
	do {
		struct timespec second = { 1, 0 };

		r = print_once(path, &a, screen);
		if (r == CLI_OK && !a.once && !cli_interrupted)
			nanosleep(&second, NULL);
	} while (r == CLI_OK && !a.once && !cli_interrupted);
	if (screen)
		fputs(SCREEN_END, stdout);
	return r;
}
