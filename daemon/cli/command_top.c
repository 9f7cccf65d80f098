/* kindling top: shows the methods with the most CPU time in the last seconds. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/lock_text.h"
#include "daemon/cli/source.h"

#define ROWS_PLAIN 10
#define ROWS_MIN   3

struct arguments {
	const char *seconds, *thread, *type, *sort, *rows_word;
	char *const *targets; /* NULL-terminated */
	bool once, idle, json, screen;
	int rows; /* 0 = as many as fit */
};

static const struct usage_row options[] = {
	OPTION_CHOICE('S', "sort", "KEY", "self total", struct arguments, sort,
		      "self (the default) or total"),
	OPTION_TEXT('s', "seconds", "N", struct arguments, seconds,
		    "look back N whole seconds (default 5, at most 20; up to 9 more where "
		    "only sums of them are left, as is said then)"),
	OPTION_TEXT('t', "thread", "WORD", struct arguments, thread,
		    "only threads whose name contains WORD"),
	OPTION_CHOICE(
		'e', "event", "EVENT", "cpu lock alloc wall offcpu", struct arguments, type,
		"cpu (the default), lock (time that threads waited), alloc (bytes allocated), "
		"wall (time, running or not) or offcpu (time that threads did not run, with the "
		"reason), if it is collected"),
	OPTION_HIDDEN("type", struct arguments, type),
	OPTION_FLAG(
		0, "idle", struct arguments, idle,
		"with -e lock and offcpu: also waits for work (pool threads at empty queues, timers, "
		"selectors)"),
	OPTION_TEXT('n', "rows", "N", struct arguments, rows_word,
		    "show N methods in each table (default: as many as fit)"),
	OPTION_FLAG(0, "once", struct arguments, once, "print once and exit"),
	OPTION_FLAG('j', "json", struct arguments, json,
		    "one JSON object per line every second; with --once a single one"),
	OPTION_ELSEWHERE("source", "URL",
			 "a whole cluster, from ClickHouse: `kindling top --source URL --help`"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_top = {
	"top",
	"the methods that use the most CPU time, live",
	"kindling top [OPTION...] [TARGET...]",
	"Shows which methods used the most CPU time in the last seconds, in all JVMs and in each one, again "
	"every second. self% is the share of a method itself, total% includes the methods that it calls.\n" CLI_TARGET_ABOUT
	".",
	options,
	"Keys: s sorts by the other column, q quits.",
	"kindling top\n"
	"kindling top --once -n 5 --thread http-nio 4711",
};

/* Prints "1.97 CPUs", "4.01 s/s of waiting" or "12.2 MiB/s of allocation", and the number of
 * samples. */
static void print_rate(FILE *to, const cJSON *top, const cJSON *o)
{
	double seconds = json_number_of(top, "seconds"), samples = json_number_of(o, "samples");
	double rate = seconds > 0 ? json_number_of(o, "weight") / seconds : 0;

	if (strcmp(json_text_of(top, "event"), "cpu") == 0) {
		fprintf(to, ": %.2f CPUs", rate / 1e9);
	} else {
		if (strcmp(json_text_of(top, "unit"), "bytes") == 0)
			fprintf(to, ": %.2f MiB/s of ", rate / 1048576);
		else
			fprintf(to, ": %.2f s/s of ", rate / 1e9);
		print_text(to, json_text_of(top, "of"));
	}
	fprintf(to, ", %.0f sample%s\n", samples, samples > 0.5 && samples < 1.5 ? "" : "s");
}

static void command_top_print_table(FILE *to, const cJSON *top, const cJSON *o, int rows)
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
	threads_times_print(to, json_get(o, "times"));
}

void top_print(FILE *to, const cJSON *top, int rows)
{
	const cJSON *targets = json_get(top, "targets"), *t;
	bool many =
		cJSON_GetArraySize(targets) != 1; /* with one JVM a sum over all is superfluous */

	if (many) {
		fputs("all JVMs", to);
		command_top_print_table(to, top, top, rows);
	}
	cJSON_ArrayForEach(t, targets)
	{
		fprintf(to, "%s%.0f ", many ? "\n" : "", json_number_of(t, "pid"));
		print_text(to, json_text_of(t, "name"));
		if (cJSON_IsTrue(json_get(t, "ended")))
			fputs(" (ended)", to);
		command_top_print_table(to, top, t, rows);
	}
	fprintf(to, "\nthe last %.0f s, sorted by %s%%", json_number_of(top, "seconds"),
		json_text_of(top, "sort"));
}

/* ---- the screen ----------------------------------------------------------------------------- */

/* How many rows each table may have so that all fit on the screen. */
static int rows_that_fit(const cJSON *top, unsigned short screen_rows)
{
	int n = cJSON_GetArraySize(json_get(top, "targets")), tables = n == 1 ? 1 : n + 1;

	n = (screen_rows - 3) / tables - 4;
	return n < ROWS_MIN ? ROWS_MIN : n;
}

static bool is_by_self(const char *sort)
{
	return strcmp(sort, "self") == 0;
}

static void command_top_show(const cJSON *top, int rows)
{
	unsigned short screen_rows, columns;
	size_t len = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	screen_size(&screen_rows, &columns);
	top_print(f, top, rows ? rows : rows_that_fit(top, screen_rows));
	fprintf(f, "; s: by %s, q: quit\n",
		is_by_self(json_text_of(top, "sort")) ? "total%" : "self%");
	if (fclose(f) == 0)
		screen_show(text);
	free(text);
}

static int command_top_parse(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_top, argc, argv, a);

	if (r >= 0)
		return r;
	a->rows = a->rows_word ? atoi(a->rows_word) : 0;
	if (a->rows_word && a->rows <= 0)
		return cli_wrong("top", "-n takes a number of rows");
	a->targets = argv + optind;
	if (!is_by_self(a->sort) && strcmp(a->sort, "total") != 0)
		return cli_wrong("top", "--sort takes self or total");
	return -1;
}

static int print_once(const struct arguments *a)
{
	char path[PATH_MAX_BYTES] = "/v1/top";
	struct reply reply;
	cJSON *json;
	int r;

	path_add(path, sizeof(path), "seconds", a->seconds);
	path_add(path, sizeof(path), "sort", a->sort);
	path_add(path, sizeof(path), "thread", a->thread);
	path_add(path, sizeof(path), "type", a->type);
	path_add(path, sizeof(path), "idle", a->idle ? "1" : NULL);
	for (char *const *target = a->targets; *target; target++)
		path_add(path, sizeof(path), "target", *target);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	json = cJSON_Parse(reply.body);
	if (a->json) {
		puts(reply.body);
	} else if (a->screen) {
		command_top_show(json, a->rows);
	} else {
		top_print(stdout, json, a->rows ? a->rows : ROWS_PLAIN);
		putchar('\n');
	}
	cJSON_Delete(json);
	reply_free(&reply);
	return fflush(stdout) == 0 && !ferror(stdout) ? CLI_OK : CLI_FAILED;
}

int command_top(int argc, char **argv)
{
	struct arguments a = { .seconds = "5", .sort = "self" };
	int key = 0, r;

	if (source_is_asked(argc, argv))
		return source_top(argc, argv);
	r = command_top_parse(argc, argv, &a);
	if (r >= 0)
		return r;
	a.screen = isatty(STDOUT_FILENO) && !a.once && !a.json;
	cli_catch_interrupt();
	if (a.screen)
		screen_open();
	do {
		if (key == 's')
			a.sort = is_by_self(a.sort) ? "total" : "self";
		r = print_once(&a);
		if (r == CLI_OK && !a.once)
			key = screen_key(1000);
	} while (r == CLI_OK && !a.once && key != 'q');
	if (a.screen)
		screen_close();
	return r;
}
