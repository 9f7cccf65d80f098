/* kindling locks: the locks that were waited for longest, and who blocks whom. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/lock_text.h"

#define ROWS_DEFAULT 20

static const char usage[] =
	"Usage: kindling locks [OPTION...] [TARGET]\n"
	"\n"
	"The locks that threads waited for longest: class and identity (of a lock of java.util.concurrent\n"
	"the lock, not its Sync), how they waited, how often and how long in all, who waited and who held it.\n"
	"NOW is how many wait this moment. Waits for want of work (a pool's thread at an empty queue) are\n"
	"left out. TARGET is a pid, container id, container, pod or part of a name as `kindling status`\n"
	"shows it; without it, all JVMs that stream.\n"
	"\n"
	"  -l, --last DURATION   how far to look back: 30s, 5m (default 60s, at most 10m)\n"
	"  -b, --by lock|class   a row for each lock (default) or for all locks of a class: LOCKS is how\n"
	"                        many they are, with a + where there may be more\n"
	"  -g, --graph           who blocks whom right now: chains, and circles, which are deadlocks\n"
	"  -o, --output FILE     draw that, as FILE.html or FILE.svg; \"-\" is svg on stdout\n"
	"  -i, --idle            waits for want of work too\n"
	"  -n, --rows N          rows per JVM (default 20)\n"
	"  -j, --json            everything, for machines\n"
	"  -h, --help\n"
	"\n"
	"Examples: kindling locks 4711 --last 5m\n"
	"          kindling locks --by class org.shop.Main\n"
	"          kindling locks --graph org.shop.Main\n"
	"          kindling locks -o locks.html 4711\n";

enum { LOCK, ID, KIND, WAITS, NOW, TOTAL, LONGEST, WAITERS, OWNERS, COLUMN_COUNT };
static const struct column columns[COLUMN_COUNT] = {
	[LOCK] = { "LOCK", false, 24 },	    [ID] = { "ID", false, 0 },
	[KIND] = { "KIND", false, 0 },	    [WAITS] = { "WAITS", true, 0 },
	[NOW] = { "NOW", true, 0 },	    [TOTAL] = { "TOTAL", true, 0 },
	[LONGEST] = { "LONGEST", true, 0 }, [WAITERS] = { "WAITERS", false, 10 },
	[OWNERS] = { "OWNERS", false, 10 },
};
/* The same with the number of a class's locks. */
static const struct column class_columns[COLUMN_COUNT] = {
	[LOCK] = { "CLASS", false, 24 },    [ID] = { "LOCKS", true, 0 },
	[KIND] = { "KIND", false, 0 },	    [WAITS] = { "WAITS", true, 0 },
	[NOW] = { "NOW", true, 0 },	    [TOTAL] = { "TOTAL", true, 0 },
	[LONGEST] = { "LONGEST", true, 0 }, [WAITERS] = { "WAITERS", false, 10 },
	[OWNERS] = { "OWNERS", false, 10 },
};

/* Names, the most important first: worker-1, worker-2, ... */
static void put_threads(const cJSON *list, bool more, char *cell)
{
	const cJSON *t;
	size_t len = 0;

	snprintf(cell, CELL_MAX, "-");
	cJSON_ArrayForEach(t, list)
	{
		const char *name = json_text_of(t, "thread");

		if (len >= CELL_MAX - 80)
			break;
		if (*name)
			len += (size_t)snprintf(cell + len, CELL_MAX - len, "%s%.60s",
						len ? ", " : "", name);
		else
			len += (size_t)snprintf(cell + len, CELL_MAX - len, "%s%.0f",
						len ? ", " : "", json_number_of(t, "tid"));
	}
	if (more && len < CELL_MAX - 10)
		snprintf(cell + len, CELL_MAX - len, ", ...");
}

/* What a row is about: one lock, or a class of locks. */
static void put_subject(const cJSON *r, char *name, char *id)
{
	const cJSON *lock = json_get(r, "lock");
	const char *class_name = json_text_of(lock ? lock : r, "class");

	snprintf(name, CELL_MAX, "%s", *class_name ? class_name : "(unknown)");
	if (!lock) {
		snprintf(id, CELL_MAX, "%.0f%s", json_number_of(r, "locks"),
			 cJSON_IsTrue(json_get(r, "more_locks")) ? "+" : "");
		return;
	}
	snprintf(id, CELL_MAX, "%s", *json_text_of(lock, "id") ? json_text_of(lock, "id") : "-");
}

static void put_row(struct table *table, const cJSON *r)
{
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	put_subject(r, row[LOCK], row[ID]);
	snprintf(row[KIND], CELL_MAX, "%s%s", json_text_of(r, "kind"),
		 cJSON_IsTrue(json_get(r, "idle")) ? " (idle)" : "");
	snprintf(row[WAITS], CELL_MAX, "%.0f", json_number_of(r, "waits"));
	snprintf(row[NOW], CELL_MAX, "%.0f", json_number_of(r, "open"));
	duration_text(json_number_of(r, "total_ns"), row[TOTAL], CELL_MAX);
	duration_text(json_number_of(r, "longest_ns"), row[LONGEST], CELL_MAX);
	put_threads(json_get(r, "waiters"), cJSON_IsTrue(json_get(r, "more_waiters")),
		    row[WAITERS]);
	put_threads(json_get(r, "owners"), cJSON_IsTrue(json_get(r, "more_owners")), row[OWNERS]);
}

/* "4711 org.shop.Main: " */
static void print_name(FILE *to, const cJSON *t)
{
	fprintf(to, "%.0f ", json_number_of(t, "pid"));
	print_text(to, json_text_of(t, "name"));
	fputs(": ", to);
}

static bool is_streaming(const cJSON *t)
{
	return strcmp(json_text_of(t, "state"), "streaming") == 0;
}

/* Why there is nothing to see, where that is so. */
static void print_why_nothing(FILE *to, const cJSON *t)
{
	if (!is_streaming(t)) {
		fputs("it is ", to);
		print_text(to, json_text_of(t, "state"));
		fputs("; `kindling status` says why\n", to);
	} else if (!cJSON_IsTrue(json_get(t, "collected"))) {
		fputs("waits are not collected in it; `kindling status` says what is, and events: in "
		      "kindlingd.yaml what shall be\n",
		      to);
	}
}

static void print_rest(FILE *to, const cJSON *t)
{
	double shorter = json_number_of(t, "short_waits"), lost = json_number_of(t, "lost");
	double min_ns = json_number_of(t, "min_wait_ns");
	char time[32];

	if (shorter > 0) {
		duration_text(json_number_of(t, "short_waits_ns"), time, sizeof(time));
		fprintf(to, "; %.0f too short to be told one by one since the attach, %s in all",
			shorter, time);
	}
	/* it may have been another when those were told */
	if (min_ns > 0) {
		duration_text(min_ns, time, sizeof(time));
		fprintf(to, "; now told from %s on", time);
	}
	if (lost > 0) {
		duration_text(json_number_of(t, "lost_ns"), time, sizeof(time));
		fprintf(to, "; %.0f lost on the way since the attach, %s in all", lost, time);
	}
	fputc('\n', to);
}

/* "6 waits and 2 that go on", "2 waits that go on" */
static void print_count(FILE *to, const cJSON *t)
{
	double waits = json_number_of(t, "waits"), open = json_number_of(t, "open");

	if (waits > 0 || open == 0)
		fprintf(to, "%.0f wait%s", waits, waits == 1 ? "" : "s");
	if (waits > 0 && open > 0)
		fprintf(to, " and %.0f that go%s on", open, open == 1 ? "es" : "");
	else if (open > 0)
		fprintf(to, "%.0f wait%s on", open, open == 1 ? " that goes" : "s that go");
}

static void print_target(FILE *to, const cJSON *t, int rows, size_t width)
{
	const cJSON *classes = json_get(t, "classes"), *r;
	const cJSON *all = classes ? classes : json_get(t, "locks");
	struct table table = { .columns = classes ? class_columns : columns,
			       .n_columns = COLUMN_COUNT };
	char time[32];

	print_name(to, t);
	if (!cJSON_GetArraySize(all)) {
		if (is_streaming(t) && cJSON_IsTrue(json_get(t, "collected"))) {
			fprintf(to, "nobody waited for a lock in the last %.0f s",
				json_number_of(t, "seconds"));
			print_rest(to, t);
		}
		print_why_nothing(to, t);
		return;
	}
	duration_text(json_number_of(t, "total_ns"), time, sizeof(time));
	print_count(to, t);
	fprintf(to, ", %s in all, in the last %.0f s", time, json_number_of(t, "seconds"));
	print_rest(to, t);
	cJSON_ArrayForEach(r, all) if (rows-- > 0) put_row(&table, r);
	table_print(to, &table, width);
	if (rows < 0)
		fprintf(to, "and %.0f more %s; -n shows more\n",
			json_number_of(t, classes ? "n_classes" : "n_locks") - (double)table.n_rows,
			classes ? "classes" : "locks");
	table_free(&table);
}

static const cJSON *targets_of(FILE *to, const cJSON *answer)
{
	const cJSON *targets = json_get(answer, "targets");

	if (!cJSON_GetArraySize(targets))
		fputs("no JVM is being profiled; `kindling status` says why\n", to);
	return targets;
}

void locks_print(FILE *to, const cJSON *locks, int rows, size_t width)
{
	const cJSON *targets = targets_of(to, locks), *t;
	bool first = true;

	cJSON_ArrayForEach(t, targets)
	{
		if (!first)
			fputc('\n', to);
		first = false;
		print_target(to, t, rows, width);
	}
}

static void print_row(FILE *to, const struct graph_row *row, size_t width)
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

	print_name(to, t);
	if (!is_streaming(t) || !cJSON_IsTrue(json_get(t, "collected"))) {
		print_why_nothing(to, t);
		return;
	}
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
		print_row(to, &rows.rows[i], width);
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

struct arguments {
	const char *last, *by, *output, *target;
	bool graph, idle, json;
	int rows;
};

static int parse(int argc, char **argv, struct arguments *a)
{
	static const struct option options[] = {
		{ "last", required_argument, NULL, 'l' },
		{ "graph", no_argument, NULL, 'g' },
		{ "by", required_argument, NULL, 'b' },
		{ "output", required_argument, NULL, 'o' },
		{ "idle", no_argument, NULL, 'i' },
		{ "rows", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t ns;
	int c;

	while ((c = getopt_long(argc, argv, "l:b:go:in:jh", options, NULL)) != -1) {
		if (c == 'l')
			a->last = optarg;
		else if (c == 'b')
			a->by = optarg;
		else if (c == 'g')
			a->graph = true;
		else if (c == 'o')
			a->output = optarg;
		else if (c == 'i')
			a->idle = true;
		else if (c == 'n')
			a->rows = atoi(optarg);
		else if (c == 'j')
			a->json = true;
		else
			return cli_usage(usage, c);
	}
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

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static int draw(const char *path, const cJSON *locks)
{
	size_t len = 0;
	char *text = ends_with(path, ".html") ? lock_html(locks, &len) : lock_svg(locks, &len);
	int r = text ? write_file(path, text, len) : CLI_FAILED;

	free(text);
	if (r == CLI_OK && strcmp(path, "-") != 0)
		fprintf(stderr, "%s: who blocks whom. Open it in a browser.\n", path);
	return r;
}

static int show(const struct arguments *a, const struct reply *reply)
{
	cJSON *json = reply_json(reply);
	int r = CLI_OK;

	if (!json)
		return CLI_FAILED;
	if (a->output)
		r = draw(a->output, json);
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
	struct arguments a = { .rows = ROWS_DEFAULT };
	char path[PATH_MAX_BYTES] = "/v1/locks";
	struct reply reply;
	int r = parse(argc, argv, &a);

	if (r >= 0)
		return r;
	if (a.output && strcmp(a.output, "-") != 0 && !ends_with(a.output, ".html") &&
	    !ends_with(a.output, ".svg"))
		return cli_wrong("locks", "-o draws FILE.html or FILE.svg");
	path_add(path, sizeof(path), "target", a.target);
	path_add(path, sizeof(path), "last", a.last);
	path_add(path, sizeof(path), "by", a.by);
	path_add(path, sizeof(path), "graph", a.graph || a.output ? "1" : NULL);
	path_add(path, sizeof(path), "idle", a.idle ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	r = show(&a, &reply);
	reply_free(&reply);
	return r;
}
