/* kindling locks: the locks with the longest waits, and who blocks whom. */
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/lock_text.h"
#include "daemon/cli/source.h"

#define ROWS_DEFAULT 20

struct arguments {
	const char *last, *by, *output, *rows_word, *target;
	bool graph, idle, json;
	int rows;
};

static const struct usage_row options[] = {
	OPTION_TEXT('l', "last", "DURATION", struct arguments, last,
		    "how far to look back: 30s, 5m (default 60s, at most 10m)"),
	OPTION_CHOICE(
		'b', "by", "lock|class", "lock class", struct arguments, by,
		"one row for each lock (default) or one for all locks of a class; LOCKS is then "
		"their number, with a + if there may be more"),
	OPTION_FLAG('g', "graph", struct arguments, graph,
		    "show who blocks whom right now: chains, and cycles, which are deadlocks"),
	OPTION_TEXT(
		'o', "output", "FILE", struct arguments, output,
		".html: a page with the locks, the stacks of waiters and owners, who kept whom "
		"waiting, and who blocks whom right now; .svg: the last of these alone; \"-\" is "
		"the svg on stdout"),
	OPTION_FLAG('i', "idle", struct arguments, idle, "show waits for work too"),
	OPTION_TEXT('n', "rows", "N", struct arguments, rows_word,
		    "show only the first N rows of each JVM (default 20)"),
	OPTION_FLAG('j', "json", struct arguments, json, "print everything as JSON"),
	OPTION_ELSEWHERE("source", "URL",
			 "a whole cluster, from ClickHouse: `kindling locks --source URL --help`"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_locks = {
	"locks",
	"the locks that threads wait for, who blocks whom, deadlocks",
	"kindling locks [OPTION...] [TARGET]",
	"Shows the locks that threads waited for longest: the class and identity of each lock (for a lock of "
	"java.util.concurrent the lock itself, not its Sync), how threads waited, how often and how long in "
	"all, who waited and who held it. WAITERS AT and OWNERS AT name the methods of the application that "
	"they were in; an owner's is known if the owner was sampled, waited itself or slept. NOW is the number of "
	"threads that wait at this moment. Waits for work (a pool's thread at an empty queue) are left out. "
	"The line above each table counts all waits of the same time. On a terminal of less than 160 columns "
	"names are shown without their packages.\n" CLI_TARGET_ABOUT
	"; without one, all JVMs that are being profiled are shown.",
	options,
	NULL,
	"kindling locks 4711 --last 5m\n"
	"kindling locks --by class org.shop.Main\n"
	"kindling locks --graph org.shop.Main\n"
	"kindling locks -o locks.html 4711",
};

const cJSON *targets_of(FILE *to, const cJSON *answer)
{
	const cJSON *targets = json_get(answer, "targets");

	if (!cJSON_GetArraySize(targets))
		fputs("no JVM is being profiled; `kindling status` says why\n", to);
	return targets;
}

static void command_locks_print_row(FILE *to, const struct graph_row *row, size_t width)
{
	char text[2048], clean[4096];
	size_t indent = 2 * (size_t)row->depth;

	graph_row_text(row, text, sizeof(text));
	text_clean(text, width > indent + 20 ? width - indent : 20, clean, sizeof(clean));
	fprintf(to, "%*s%s\n", (int)indent, "", clean);
}

static void print_graph(FILE *to, const cJSON *t, size_t width)
{
	const cJSON *graph = json_get(t, "graph");
	double deadlocks = json_number_of(graph, "deadlocks"), n = json_number_of(graph, "n_waits");
	struct graph_rows rows;

	if (!print_name_of_collected(to, t))
		return;
	if (n == 0)
		fputs("nobody waits for long right now", to);
	else
		fprintf(to, "%.0f thread%s long", n, n == 1 ? " waits" : "s wait");
	if (deadlocks > 0)
		fprintf(to, ", %.0f DEADLOCK%s", deadlocks, deadlocks == 1 ? "" : "S");
	fputc('\n', to);
	if (!graph_rows_new(graph, &rows))
		return;
	for (size_t i = 0; i < rows.n; i++)
		command_locks_print_row(to, &rows.rows[i], width);
	graph_rows_free(&rows);
}

void lock_graph_print(FILE *to, const cJSON *locks, size_t width)
{
	const cJSON *targets = targets_of(to, locks), *t;
	bool first = true;

	cJSON_ArrayForEach(t, targets)
	{
		if (!first)
			fputc('\n', to);
		first = false;
		print_graph(to, t, width);
	}
}

/* ---- the command ---- */

static int command_locks_parse(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_locks, argc, argv, a);
	uint64_t ns;

	if (r >= 0)
		return r;
	a->rows = a->rows_word ? atoi(a->rows_word) : ROWS_DEFAULT;
	a->target = optind < argc ? argv[optind] : NULL;
	if (optind + 1 < argc)
		return cli_wrong("locks", "name one TARGET only");
	if (a->rows <= 0)
		return cli_wrong("locks", "-n takes a number of rows");
	if (a->by && strcmp(a->by, "lock") != 0 && strcmp(a->by, "class") != 0)
		return cli_wrong("locks", "--by takes lock or class");
	if (a->last && (!parse_length(a->last, &ns) || ns > LAST_MAX_NS))
		return cli_wrong("locks", "--last takes a duration such as 60s, 10m at most");
	return -1;
}

static bool command_locks_ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static int command_locks_draw(const char *path, const cJSON *locks)
{
	size_t len = 0;
	char *text = command_locks_ends_with(path, ".html") ? lock_html(locks, &len)
							    : lock_svg(locks, &len);
	int r = text ? write_file(path, text, len) : CLI_FAILED;

	free(text);
	if (r == CLI_OK && strcmp(path, "-") != 0)
		fprintf(stderr, "%s: %s. Open it in a browser.\n", path,
			command_locks_ends_with(path, ".html")
				? "locks, where waiters and owners were, who blocks whom"
				: "who blocks whom now");
	return r;
}

static int command_locks_show(const struct arguments *a, const struct reply *reply)
{
	cJSON *json = reply_json(reply);
	int r = CLI_OK;

	if (!json)
		return CLI_FAILED;
	if (a->output)
		r = command_locks_draw(a->output, json);
	else if (a->json)
		puts(reply->body);
	else if (a->graph)
		lock_graph_print(stdout, json, terminal_width());
	else
		locks_print(stdout, json, a->rows, terminal_width());
	cJSON_Delete(json);
	return r;
}

int command_locks(int argc, char **argv)
{
	struct arguments a = { 0 };
	char path[PATH_MAX_BYTES] = "/v1/locks";
	struct reply reply;
	int r;

	if (source_is_asked(argc, argv))
		return source_locks(argc, argv);
	r = command_locks_parse(argc, argv, &a);
	if (r >= 0)
		return r;
	if (a.output && strcmp(a.output, "-") != 0 && !command_locks_ends_with(a.output, ".html") &&
	    !command_locks_ends_with(a.output, ".svg"))
		return cli_wrong("locks", "-o takes FILE.html or FILE.svg");
	path_add(path, sizeof(path), "target", a.target);
	path_add(path, sizeof(path), "last", a.last);
	path_add(path, sizeof(path), "by", a.by);
	path_add(path, sizeof(path), "graph", a.graph || a.output ? "1" : NULL);
	path_add(path, sizeof(path), "stacks", a.output ? "1" : NULL);
	path_add(path, sizeof(path), "idle", a.idle ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	r = command_locks_show(&a, &reply);
	reply_free(&reply);
	return r;
}
