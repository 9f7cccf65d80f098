/* kindling status: one row per JVM. */
#include <getopt.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/core/mem.h"

static const char usage[] =
	"Usage: kindling status [--json]\n"
	"\n"
	"One row per JVM of the host: who it is, whether it streams and why not, and its books:\n"
	"taken = delivered + dropped, always. AGENT% is the agent's CPU time in the JVM, of one CPU.\n"
	"\n"
	"  -j, --json   everything the daemon knows, for machines\n"
	"  -h, --help\n"
	"\n"
	"Examples: kindling status\n"
	"          kindling status --json | jq '.targets[] | {pid, state, reason}'\n";

enum {
	PID,
	NSPID,
	CONTAINER,
	JDK,
	NAME,
	STATE,
	EVENTS,
	INTERVAL,
	TAKEN,
	DELIVERED,
	DROPPED,
	AGENT,
	MEMORY,
	COLUMN_COUNT
};
static const struct column columns[COLUMN_COUNT] = {
	[PID] = { "PID", true, 0 },
	[NSPID] = { "NSPID", true, 0 },
	[CONTAINER] = { "CONTAINER/POD", false, 8 },
	[JDK] = { "JDK", false, 8 },
	[NAME] = { "NAME", false, 12 },
	[STATE] = { "STATE", false, 0 },
	[EVENTS] = { "EVENTS", false, 0 },
	[INTERVAL] = { "INTERVAL", true, 0 },
	[TAKEN] = { "TAKEN", true, 0 },
	[DELIVERED] = { "DELIVERED", true, 0 },
	[DROPPED] = { "DROPPED", true, 0 },
	[AGENT] = { "AGENT%", true, 0 },
	[MEMORY] = { "MEM", true, 0 },
};

static double dropped_of(const cJSON *samples)
{
	const cJSON *cause;
	double sum = 0;

	cJSON_ArrayForEach(cause, json_get(samples, "dropped")) sum +=
		cJSON_IsNumber(cause) ? cause->valuedouble : 0;
	return sum;
}

static void put_place(const cJSON *t, char *cell)
{
	const char *id = json_text_of(t, "container_id"), *pod = json_text_of(t, "pod");
	const char *container = json_text_of(t, "container");

	if (*pod)
		snprintf(cell, CELL_MAX, "%s", pod);
	else if (*container)
		snprintf(cell, CELL_MAX, "%s", container);
	else
		snprintf(cell, CELL_MAX, "%.12s", *id ? id : "host");
}

static void put_events(const cJSON *t, char *cell)
{
	const cJSON *event;
	size_t len = 0;

	snprintf(cell, CELL_MAX, "-");
	cJSON_ArrayForEach(event, json_get(t, "events"))
	{
		if (!cJSON_IsString(event) || len >= CELL_MAX / 2)
			break;
		len += (size_t)snprintf(cell + len, CELL_MAX - len, "%s%.20s", len ? "," : "",
					event->valuestring);
	}
	/* who sends the signals, where it is not the agent's own timers */
	if (len && len < CELL_MAX / 2 && strcmp(json_text_of(t, "engine"), "host") == 0)
		snprintf(cell + len, CELL_MAX - len, "/host");
}

static void put_numbers(const cJSON *t, char (*row)[CELL_MAX])
{
	const cJSON *samples = json_get(t, "samples"), *agent = json_get(t, "agent");

	snprintf(row[INTERVAL], CELL_MAX, "-");
	if (json_number_of(t, "interval_ns") > 0)
		snprintf(row[INTERVAL], CELL_MAX, "%.4gms", json_number_of(t, "interval_ns") / 1e6);
	snprintf(row[TAKEN], CELL_MAX, "%.0f", json_number_of(samples, "taken"));
	snprintf(row[DELIVERED], CELL_MAX, "%.0f", json_number_of(samples, "delivered"));
	snprintf(row[DROPPED], CELL_MAX, "%.0f", dropped_of(samples));
	snprintf(row[AGENT], CELL_MAX, "%.2f", 100 * json_number_of(agent, "cpus"));
	snprintf(row[MEMORY], CELL_MAX, "%.1fM", json_number_of(agent, "bytes") / 1048576);
}

static void put_line(struct table *table, const cJSON *t, const char *key, size_t width)
{
	char clean[2 * CELL_MAX];

	if (!*json_text_of(t, key))
		return;
	text_clean(json_text_of(t, key), width > 16 ? width - 8 : 8, clean, sizeof(clean));
	table_below(table, "        %s", clean);
}

/* What is not collected, and why: "monitors: virtual threads are in use". */
static void put_notes(struct table *table, const cJSON *t, size_t width)
{
	const cJSON *note;

	cJSON_ArrayForEach(note, json_get(t, "notes"))
	{
		char text[CELL_MAX], clean[2 * CELL_MAX];

		snprintf(text, sizeof(text), "%.40s: %.250s", json_text_of(note, "step"),
			 json_text_of(note, "what"));
		text_clean(text, width > 16 ? width - 8 : 8, clean, sizeof(clean));
		table_below(table, "        %s", clean);
	}
}

static void put_profilers(struct table *table, const cJSON *t, size_t width)
{
	const cJSON *list = json_get(t, "profilers"), *name;
	char text[CELL_MAX] = "", clean[2 * CELL_MAX];
	size_t len = 0;

	cJSON_ArrayForEach(name, list)
	{
		if (!cJSON_IsString(name) || len >= CELL_MAX / 2)
			break;
		len += (size_t)snprintf(text + len, CELL_MAX - len, "%s%.30s",
					len ? ", " : "in it too: ", name->valuestring);
	}
	if (!len)
		return;
	text_clean(text, width > 16 ? width - 8 : 8, clean, sizeof(clean));
	table_below(table, "        %s", clean);
}

static void put_target(struct table *table, const cJSON *t, size_t width)
{
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	snprintf(row[PID], CELL_MAX, "%.0f", json_number_of(t, "pid"));
	snprintf(row[NSPID], CELL_MAX, "%.0f", json_number_of(t, "ns_pid"));
	put_place(t, row[CONTAINER]);
	snprintf(row[JDK], CELL_MAX, "%s", json_text_of(t, "jdk"));
	snprintf(row[NAME], CELL_MAX, "%s", json_text_of(t, "name"));
	snprintf(row[STATE], CELL_MAX, "%s", json_text_of(t, "state"));
	put_events(t, row[EVENTS]);
	put_numbers(t, row);
	if (strcmp(json_text_of(t, "state"), "streaming") != 0)
		put_line(table, t, "reason", width);
	put_line(table, t, "note", width);
	put_notes(table, t, width);
	put_profilers(table, t, width);
}

/* Kinds of JVMs that are left alone since one of them crashed. */
static void print_blocked(FILE *to, const cJSON *blocked)
{
	const cJSON *b;

	cJSON_ArrayForEach(b, blocked)
	{
		time_t until = (time_t)(json_number_of(b, "until_ns") / 1e9);
		char when[32];
		struct tm tm;

		strftime(when, sizeof(when), "%F %H:%M", localtime_r(&until, &tm));
		fprintf(to, "left alone until %s: ", when);
		print_text(to, json_text_of(b, "cohort"));
		fputs("; ", to);
		print_text(to, json_text_of(b, "reason"));
		fputc('\n', to);
	}
}

static void print_footer(FILE *to, const cJSON *status, const struct table *table)
{
	const cJSON *discovery = json_get(status, "discovery"), *t;
	const cJSON *engine = json_get(status, "host_engine");
	const char *note = json_text_of(json_get(engine, "kernel_stacks"), "note");
	double taken = 0, delivered = 0, dropped = 0;
	int streaming = 0;

	cJSON_ArrayForEach(t, json_get(status, "targets"))
	{
		const cJSON *samples = json_get(t, "samples");

		streaming += strcmp(json_text_of(t, "state"), "streaming") == 0;
		taken += json_number_of(samples, "taken");
		delivered += json_number_of(samples, "delivered");
		dropped += dropped_of(samples);
	}
	fprintf(to,
		"%d of %zu JVMs streaming: %.0f samples taken = %.0f delivered + %.0f dropped\n",
		streaming, table->n_rows, taken, delivered, dropped);
	fputs("kindlingd ", to);
	print_text(to, json_text_of(status, "version"));
	fprintf(to, ", up %.0f s, JVMs found by ", json_number_of(status, "uptime_s"));
	print_text(to, json_text_of(discovery, "source"));
	if (*json_text_of(discovery, "why")) {
		fputs(" (no BPF: ", to);
		print_text(to, json_text_of(discovery, "why"));
		fputc(')', to);
	}
	fputc('\n', to);
	print_blocked(to, json_get(status, "blocked"));
	if (*note) {
		fputs("frames of the kernel: ", to);
		print_text(to, note);
		fputc('\n', to);
	}
	if (strcmp(json_text_of(engine, "state"), "refused") != 0)
		return;
	fputs("no interval below the kernel's tick: ", to);
	print_text(to, json_text_of(engine, "why"));
	fputc('\n', to);
}

void status_print(FILE *to, const cJSON *status, size_t width)
{
	struct table table = { .columns = columns, .n_columns = COLUMN_COUNT };
	const cJSON *t;

	cJSON_ArrayForEach(t, json_get(status, "targets")) put_target(&table, t, width);
	table_print(to, &table, width);
	print_footer(to, status, &table);
	table_free(&table);
}

int command_status(int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	struct reply reply;
	bool raw = false;
	cJSON *json;
	int c, r;

	while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		if (c != 'j')
			return cli_usage(usage, c);
		raw = true;
	}
	if (optind < argc)
		return cli_wrong("status", "it takes no arguments");
	r = client_request("GET", "/v1/status", &reply);
	if (r != CLI_OK)
		return r;
	json = reply_json(&reply);
	if (!json)
		r = CLI_FAILED;
	else if (raw)
		puts(reply.body);
	else
		status_print(stdout, json, terminal_width());
	cJSON_Delete(json);
	reply_free(&reply);
	return r;
}
