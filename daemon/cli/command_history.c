/* kindling history: lists what the history contains, JVM by JVM. */
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"

struct arguments {
	struct span_words span;
	const char *target, *service, *namespace, *version, *image, *pod, *container;
	bool json;
};

static const struct usage_row options[] = {
	OPTION_TEXT('l', "last", "DURATION", struct arguments, span.last,
		    "how far to look back: 30m, 24h"),
	OPTION_TEXT(0, "from", "TIME", struct arguments, span.from,
		    "14:05, 14:05:30, \"2026-11-21 14:05\" or @SECONDS since 1970"),
	OPTION_TEXT(0, "to", "TIME", struct arguments, span.to, "in the same forms (default: now)"),
	OPTION_TEXT(0, "service", "NAME", struct arguments, service, "only JVMs of a service"),
	OPTION_TEXT(0, "namespace", "NAME", struct arguments, namespace,
		    "only JVMs of a namespace"),
	OPTION_TEXT(0, "version", "NAME", struct arguments, version, "only JVMs of a version"),
	OPTION_TEXT(0, "image", "NAME", struct arguments, image, "only JVMs of an image"),
	OPTION_TEXT(0, "pod", "NAME", struct arguments, pod,
		    "only JVMs of a pod, with or without its namespace"),
	OPTION_TEXT(0, "container", "NAME", struct arguments, container,
		    "only JVMs of a container, by name or id"),
	OPTION_FLAG('j', "json", struct arguments, json, "print everything as JSON"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_history = {
	"history",
	"what the history holds: JVMs, times, samples, bytes",
	"kindling history [OPTION...] [TARGET]",
	"Shows what kindlingd keeps on disk: for every JVM the first and the last time, the "
	"samples of all events, and the bytes they take. `kindling report --from TIME --to TIME` "
	"makes a profile of them.\n"
	"TARGET is a pid, a container or its id, a pod, a service or a name; without one, all are shown.",
	options,
	NULL,
	"kindling history\n"
	"kindling history --service shop --last 7d",
};

enum { PID, NAME, SERVICE, PLACE, FROM, TO, SAMPLES, BYTES, COLUMN_COUNT };
static const unsigned char leave_out[COLUMN_COUNT] = { [PLACE] = 1, [SERVICE] = 2 };
static const struct column columns[COLUMN_COUNT] = {
	[PID] = { "PID", true, 0 },	     [NAME] = { "NAME", false, 12 },
	[SERVICE] = { "SERVICE", false, 8 }, [PLACE] = { "PLACE", false, 10 },
	[FROM] = { "FROM", false, 0 },	     [TO] = { "TO", false, 0 },
	[SAMPLES] = { "SAMPLES", true, 0 },  [BYTES] = { "BYTES", true, 0 },
};

static int command_history_parse(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_history, argc, argv, a);

	if (r >= 0)
		return r;
	a->target = optind < argc ? argv[optind] : NULL;
	return optind + 1 < argc ? cli_wrong("history", "name one TARGET") : -1;
}

/* ---- the table ------------------------------------------------------------------------------- */

static void put_moment(double s, char *cell)
{
	time_t t = (time_t)s;
	struct tm tm;

	if (!strftime(cell, CELL_MAX, "%m-%d %H:%M", localtime_r(&t, &tm)))
		*cell = '\0';
}

/* Writes 999, 12.3k or 1.2M. */
static void command_history_put_count(double n, char *buf, size_t size)
{
	static const char units[] = " kMGT";
	int unit = 0;

	for (; n >= 999.5 && units[unit + 1]; unit++)
		n /= 1000;
	if (unit)
		snprintf(buf, size, "%.*f%c", n < 99.95 ? 1 : 0, n, units[unit]);
	else
		snprintf(buf, size, "%.0f", n);
}

static void command_history_put_process(struct table *table, const cJSON *p)
{
	const char *pod = json_text_of(p, "pod"), *container = json_text_of(p, "container");
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	snprintf(row[PID], CELL_MAX, "%.0f", json_number_of(p, "pid"));
	snprintf(row[NAME], CELL_MAX, "%s", json_text_of(p, "name"));
	snprintf(row[SERVICE], CELL_MAX, "%s", json_text_of(p, "service"));
	snprintf(row[PLACE], CELL_MAX, "%s",
		 *pod	      ? pod
		 : *container ? container
			      : json_text_of(p, "container_id"));
	put_moment(json_number_of(p, "begin_s"), row[FROM]);
	if (cJSON_IsTrue(json_get(p, "alive")))
		snprintf(row[TO], CELL_MAX, "now");
	else
		put_moment(json_number_of(p, "end_s"), row[TO]);
	command_history_put_count(json_number_of(p, "samples"), row[SAMPLES], CELL_MAX);
	command_history_put_count(json_number_of(p, "bytes"), row[BYTES], CELL_MAX);
}

void history_print(FILE *to, const cJSON *history, size_t width)
{
	struct table table = { .columns = columns,
			       .leave_out = leave_out,
			       .n_columns = COLUMN_COUNT };
	const cJSON *list = json_get(history, "processes"), *p;
	char bytes[32], most[32];
	int alive = 0;

	cJSON_ArrayForEach(p, list)
	{
		command_history_put_process(&table, p);
		alive += cJSON_IsTrue(json_get(p, "alive"));
	}
	command_history_put_count(json_number_of(history, "bytes"), bytes, sizeof(bytes));
	command_history_put_count(json_number_of(history, "max_bytes"), most, sizeof(most));
	if (table.n_rows)
		table_print(to, &table, width);
	fprintf(to,
		"%d JVM%s, %d alive; the history takes %sB of %sB, and goes back %.0f h at most\n",
		cJSON_GetArraySize(list), cJSON_GetArraySize(list) == 1 ? "" : "s", alive, bytes,
		most, json_number_of(history, "retention_s") / 3600);
	table_free(&table);
}

int command_history(int argc, char **argv)
{
	char path[PATH_MAX_BYTES] = "/v1/history";
	struct arguments a = { .span.command = "history" };
	struct reply reply;
	cJSON *history;
	int r = command_history_parse(argc, argv, &a);

	if (r < 0)
		r = path_add_span(path, sizeof(path), &a.span);
	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a.target);
	path_add(path, sizeof(path), "service", a.service);
	path_add(path, sizeof(path), "namespace", a.namespace);
	path_add(path, sizeof(path), "version", a.version);
	path_add(path, sizeof(path), "image", a.image);
	path_add(path, sizeof(path), "pod", a.pod);
	path_add(path, sizeof(path), "container", a.container);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	history = a.json ? NULL : reply_json(&reply);
	if (a.json)
		printf("%s\n", reply.body);
	else if (history)
		history_print(stdout, history, terminal_width());
	r = a.json || history ? CLI_OK : CLI_FAILED;
	cJSON_Delete(history);
	reply_free(&reply);
	return r;
}
