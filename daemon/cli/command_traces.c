/* kindling traces: lists a JVM's slowest traces, and where their time went. */
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/lock_text.h"

#define REASONS_SHOWN 3 /* reasons of time off the CPU, those with the most time */

struct arguments {
	const char *target, *last, *from, *to, *rows;
	bool json;
};

static const struct usage_row options[] = {
	OPTION_TEXT('l', "last", "DURATION", struct arguments, last,
		    "how far to look back: 30s, 5m (the default)"),
	OPTION_TEXT(
		0, "from", "TIME", struct arguments, from,
		"from this moment: 14:05, 14:05:30.250, \"2026-11-21 14:05:30\" or @SECONDS since 1970"),
	OPTION_TEXT(0, "to", "TIME", struct arguments, to, "up to this moment (default: now)"),
	OPTION_TEXT('n', "rows", "N", struct arguments, rows, "the N slowest (default 20)"),
	OPTION_FLAG('j', "json", struct arguments, json, "print everything as JSON"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_traces = {
	"traces",
	"the slowest traces seen, and where their time went",
	"kindling traces TARGET [OPTION...]",
	"Shows the traces that events of the last minutes belong to, the slowest first: SEEN is the time from the "
	"first to the last of these events, so a trace takes at least that long; ON CPU adds up its samples, "
	"LOCKS its waits for locks and conditions, OFF CPU its time off the CPU by reason. Trace ids are there where "
	"OpenTelemetry's agent or SDK, SkyWalking's agent, Brave, or a logging framework's MDC has one, or a "
	"thread publishes one for profilers (`trace` in the settings).\n" CLI_TARGET_ABOUT ".",
	options,
	NULL,
	"kindling traces 4711\n"
	"kindling traces shop --last 1m --json\n"
	"kindling report shop --trace 4bf92f3577b34da6a3ce929d0e0e4736 -o slow.html",
};

enum { ID, SEEN, ON_CPU, LOCKS, OFF_CPU, EVENTS, SPANS, THREADS, COLUMN_COUNT };
static const unsigned char leave_out[COLUMN_COUNT] = { [SPANS] = 2, [EVENTS] = 1 };
static const struct column columns[COLUMN_COUNT] = {
	[ID] = { "TRACE", false, 12 },	     [SEEN] = { "SEEN", true, 0 },
	[ON_CPU] = { "ON CPU", true, 0 },    [LOCKS] = { "LOCKS", true, 0 },
	[OFF_CPU] = { "OFF CPU", false, 0 }, [EVENTS] = { "EVENTS", true, 0 },
	[SPANS] = { "SPANS", true, 0 },	     [THREADS] = { "THREADS", false, 16 },
};

static void command_traces_put_duration(double ns, char *cell)
{
	char text[32];

	duration_text(ns, text, sizeof(text));
	snprintf(cell, CELL_MAX, "%s", ns > 0 ? text : "-");
}

/* Writes "sleep 1.2s, socket 300ms". */
static void command_traces_put_reasons(const cJSON *reasons, char *cell)
{
	double below = -1;
	size_t n = 0;

	snprintf(cell, CELL_MAX, "-");
	for (int i = 0; i < REASONS_SHOWN; i++) {
		const cJSON *r, *best = NULL;
		char text[32];

		cJSON_ArrayForEach(r, reasons) if ((below < 0 || r->valuedouble < below) &&
						   (!best || r->valuedouble > best->valuedouble))
			best = r;
		if (!best || n >= CELL_MAX - 1)
			return;
		below = best->valuedouble;
		duration_text(below, text, sizeof(text));
		n += (size_t)snprintf(cell + n, CELL_MAX - n, "%s%s %s", i ? ", " : "",
				      best->string, text);
	}
}

static void command_traces_put_threads(const cJSON *threads, char *cell)
{
	const cJSON *t;
	size_t n = 0;

	snprintf(cell, CELL_MAX, "-");
	cJSON_ArrayForEach(t, threads)
	{
		if (n >= CELL_MAX - 1)
			return;
		n += (size_t)snprintf(cell + n, CELL_MAX - n, "%s%s", n ? ", " : "",
				      json_text_of(t, "thread"));
	}
}

static void command_traces_put_row(struct table *table, const cJSON *t)
{
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	snprintf(row[ID], CELL_MAX, "%s", json_text_of(t, "trace_id"));
	command_traces_put_duration(json_number_of(t, "duration_ns"), row[SEEN]);
	command_traces_put_duration(json_number_of(t, "cpu_ns"), row[ON_CPU]);
	command_traces_put_duration(json_number_of(t, "lock_ns"), row[LOCKS]);
	command_traces_put_reasons(json_get(t, "offcpu_ns"), row[OFF_CPU]);
	snprintf(row[EVENTS], CELL_MAX, "%.0f", json_number_of(t, "events"));
	snprintf(row[SPANS], CELL_MAX, "%.0f", json_number_of(t, "spans"));
	command_traces_put_threads(json_get(t, "threads"), row[THREADS]);
}

static void command_traces_print(const cJSON *json)
{
	struct table table = { .columns = columns,
			       .leave_out = leave_out,
			       .n_columns = COLUMN_COUNT };
	double n = json_number_of(json, "n_traces");
	const cJSON *t;

	cJSON_ArrayForEach(t, json_get(json, "traces")) command_traces_put_row(&table, t);
	if (n > 0)
		table_print(stdout, &table, terminal_width());
	table_free(&table);
	if (n == 0)
		puts("No event of this time has a trace id. `kindling status` says if a tracer's ids cannot be read.");
	else if (n > cJSON_GetArraySize(json_get(json, "traces")))
		printf("the slowest %d of %.0f traces\n",
		       cJSON_GetArraySize(json_get(json, "traces")), n);
	if (json_number_of(json, "no_room") > 0)
		printf("%.0f events found no room in kindlingd's memory\n",
		       json_number_of(json, "no_room"));
}

static int command_traces_parse(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_traces, argc, argv, a);

	if (r >= 0)
		return r;
	a->target = optind < argc ? argv[optind] : NULL;
	if (!a->target || optind + 1 < argc)
		return cli_wrong("traces", "name one TARGET");
	if (a->rows && strtol(a->rows, NULL, 10) <= 0)
		return cli_wrong("traces", "-n takes a number above 0");
	return -1;
}

int command_traces(int argc, char **argv)
{
	char path[PATH_MAX_BYTES] = "/v1/traces";
	struct arguments a = { 0 };
	struct reply reply;
	cJSON *json;
	int r = command_traces_parse(argc, argv, &a);

	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a.target);
	if (a.last || a.from || a.to) {
		r = path_add_span(path, sizeof(path),
				  &(struct span_words){ "traces", a.last, a.from, a.to });
		if (r >= 0)
			return r;
	}
	path_add(path, sizeof(path), "n", a.rows);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	json = reply_json(&reply);
	if (json && a.json)
		r = write_file("-", reply.body, reply.len);
	else if (json)
		command_traces_print(json);
	else
		r = CLI_FAILED;
	cJSON_Delete(json);
	reply_free(&reply);
	return r;
}
