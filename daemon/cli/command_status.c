/* kindling status: shows one row for each JVM, and sums below. */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/lock_text.h"
#include "daemon/ground/mem.h"

struct arguments {
	bool streaming, all, wide, watch, json;
};

static const struct usage_row options[] = {
	OPTION_FLAG('r', "streaming", struct arguments, streaming,
		    "only JVMs that are being profiled"),
	OPTION_FLAG('a', "all", struct arguments, all, "also JVMs that ended up to an hour ago"),
	OPTION_FLAG('W', "wide", struct arguments, wide,
		    "all columns in full, even on a narrow terminal"),
	OPTION_FLAG('w', "watch", struct arguments, watch,
		    "refresh every second, until q or Ctrl-C"),
	OPTION_FLAG('j', "json", struct arguments, json,
		    "everything that the daemon knows, as JSON"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_status = {
	"status",
	"every JVM: what it is, whether it is profiled, how many samples",
	"kindling status [OPTION...] [TARGET...]",
	"Shows one row for each JVM: what it is, whether it is profiled and if not why, and how many "
	"samples were taken. taken = delivered + dropped, always. AGENT% is the CPU time that the agent "
	"uses in the JVM, in percent of one CPU, in the last minute. JVMs that have ended come last, for "
	"ten minutes. On a narrow terminal some columns are left out; in a pipe all are there. On a terminal "
	"states have colours, unless NO_COLOR is set.\n"
	"TARGET is a pid, a container or its id, a pod, a service or part of a name from this table.",
	options,
	NULL,
	"kindling status\n"
	"kindling status --watch --streaming\n"
	"kindling status --json | jq '.targets[] | {pid, state, reason}'",
};

enum {
	PID,
	NSPID,
	CONTAINER,
	JDK,
	SERVICE,
	NAME,
	STATE,
	EVENTS,
	ENGINE,
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
	[CONTAINER] = { "CONTAINER", false, 9 },
	[JDK] = { "JDK", false, 10 },
	[SERVICE] = { "SERVICE", false, 9 },
	[NAME] = { "NAME", false, 14 },
	[STATE] = { "STATE", false, 0 },
	[EVENTS] = { "EVENTS", false, 8 },
	[ENGINE] = { "ENGINE", false, 0 },
	[INTERVAL] = { "INTERVAL", true, 0 },
	[TAKEN] = { "TAKEN", true, 0 },
	[DELIVERED] = { "DELIVERED", true, 0 },
	[DROPPED] = { "DROPPED", true, 0 },
	[AGENT] = { "AGENT%", true, 0 },
	[MEMORY] = { "MEM", true, 0 },
};
/* The order in which columns are left out. DELIVERED can go early, because its sum is below the
 * table. */
static const unsigned char leave_out[COLUMN_COUNT] = {
	[SERVICE] = 14, [ENGINE] = 13, [NSPID] = 12,   [JDK] = 11,  [DELIVERED] = 10, [MEMORY] = 8,
	[TAKEN] = 7,	[EVENTS] = 6,  [INTERVAL] = 5, [AGENT] = 4, [CONTAINER] = 3,  [DROPPED] = 2,
};
#define LEAVE_HOST 9 /* that of CONTAINER when all JVMs are on the host */

static const char *colour_of(size_t column, const char *cell)
{
	if (column == DROPPED)
		return strcmp(cell, "0") == 0 ? "" : TABLE_YELLOW;
	if (column != STATE)
		return "";
	if (strcmp(cell, "streaming") == 0)
		return TABLE_GREEN;
	if (strcmp(cell, "failed") == 0)
		return TABLE_RED;
	return strncmp(cell, "ended", 5) == 0 || strcmp(cell, "detached") == 0 ? TABLE_DIM
									       : TABLE_YELLOW;
}

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

	if (*pod && *container)
		snprintf(cell, CELL_MAX, "%.*s/%s", CELL_MAX / 2, pod, container);
	else if (*pod)
		snprintf(cell, CELL_MAX, "%s", pod);
	else if (*container)
		snprintf(cell, CELL_MAX, "%s", container);
	else
		snprintf(cell, CELL_MAX, "%.12s", *id ? id : "host");
}

static void command_status_put_events(const cJSON *t, char *cell)
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
}

static bool is_gone(const cJSON *t)
{
	return strcmp(json_text_of(t, "state"), "gone") == 0;
}

/* Writes "streaming", "ended 12m". */
static void put_state(const cJSON *t, char *cell)
{
	long s = (long)json_number_of(t, "ended_s");

	if (!is_gone(t))
		snprintf(cell, CELL_MAX, "%s", json_text_of(t, "state"));
	else if (s < 60)
		snprintf(cell, CELL_MAX, "ended %lds", s);
	else
		snprintf(cell, CELL_MAX, "ended %ldm", s / 60);
}

static void command_status_put_accounts(const cJSON *t, char (*row)[CELL_MAX])
{
	const cJSON *samples = json_get(t, "samples");

	snprintf(row[TAKEN], CELL_MAX, "%.0f", json_number_of(samples, "taken"));
	snprintf(row[DELIVERED], CELL_MAX, "%.0f", json_number_of(samples, "delivered"));
	snprintf(row[DROPPED], CELL_MAX, "%.0f", dropped_of(samples));
}

/* Writes which engine is in use and what it costs; nothing for a JVM that has ended. */
static void put_agent(const cJSON *t, char (*row)[CELL_MAX])
{
	const cJSON *agent = json_get(t, "agent"), *last = json_get(agent, "cpus_last_minute");

	for (int c = ENGINE; c <= MEMORY; c++)
		if (c == ENGINE || c == INTERVAL || c == AGENT || c == MEMORY)
			snprintf(row[c], CELL_MAX, "-");
	if (is_gone(t))
		return;
	if (*json_text_of(t, "engine"))
		snprintf(row[ENGINE], CELL_MAX, "%.20s", json_text_of(t, "engine"));
	if (json_number_of(t, "interval_ns") > 0)
		snprintf(row[INTERVAL], CELL_MAX, "%.4gms", json_number_of(t, "interval_ns") / 1e6);
	if (json_number_of(agent, "session_ns") > 0)
		snprintf(row[AGENT], CELL_MAX, "%.2f",
			 100 * json_number_of(agent, last ? "cpus_last_minute" : "cpus"));
	if (json_number_of(agent, "bytes") > 0)
		snprintf(row[MEMORY], CELL_MAX, "%.1fM", json_number_of(agent, "bytes") / 1048576);
}

/* Adds which events are not collected, and why: "monitors: virtual threads are in use". */
static void put_notes(struct table *table, const cJSON *t, size_t width)
{
	const cJSON *note;

	cJSON_ArrayForEach(note, json_get(t, "notes"))
	{
		char text[CELL_MAX];

		snprintf(text, sizeof(text), "%.40s: %.250s", json_text_of(note, "step"),
			 json_text_of(note, "what"));
		table_note(table, text, width);
	}
}

static void put_profilers(struct table *table, const cJSON *t, size_t width)
{
	const cJSON *list = json_get(t, "profilers"), *name;
	char text[CELL_MAX] = "";
	size_t len = 0;

	cJSON_ArrayForEach(name, list)
	{
		if (!cJSON_IsString(name) || len >= CELL_MAX / 2)
			break;
		len += (size_t)snprintf(
			text + len, CELL_MAX - len, "%s%.30s",
			len ? ", " : "other agents in this JVM: ", name->valuestring);
	}
	if (len)
		table_note(table, text, width);
}

/* Are both JVMs not profiled for the same reason? */
static bool command_status_is_alike(const cJSON *a, const cJSON *b)
{
	return b && *json_text_of(a, "reason") &&
	       strcmp(json_text_of(a, "reason"), json_text_of(b, "reason")) == 0 &&
	       strcmp(json_text_of(a, "state"), json_text_of(b, "state")) == 0;
}

#define SAID_BELOW UINT_MAX

/* Prints the reason why a JVM is not profiled, once for rows that have the same. @alike: the
 * number of rows before this one that have left it out; SAID_BELOW = the next row prints it. */
static void put_reason(struct table *table, const cJSON *t, size_t width, unsigned alike)
{
	const char *reason = json_text_of(t, "reason");
	char text[CELL_MAX];

	if (!*reason || alike == SAID_BELOW)
		return;
	if (alike)
		snprintf(text, sizeof(text), "these %u: %s", alike + 1, reason);
	table_note(table, alike ? text : reason, width);
}

static void command_status_put_target(struct table *table, const cJSON *t, size_t width,
				      unsigned alike)
{
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	snprintf(row[PID], CELL_MAX, "%.0f", json_number_of(t, "pid"));
	snprintf(row[NSPID], CELL_MAX, "%.0f", json_number_of(t, "ns_pid"));
	put_place(t, row[CONTAINER]);
	snprintf(row[JDK], CELL_MAX, "%s", json_text_of(t, "jdk"));
	snprintf(row[SERVICE], CELL_MAX, "%s", json_text_of(json_get(t, "labels"), "service"));
	snprintf(row[NAME], CELL_MAX, "%s", json_text_of(t, "name"));
	put_state(t, row[STATE]);
	command_status_put_events(t, row[EVENTS]);
	command_status_put_accounts(t, row);
	put_agent(t, row);
	put_reason(table, t, width, alike);
	if (is_gone(t))
		return;
	if (*json_text_of(t, "note"))
		table_note(table, json_text_of(t, "note"), width);
	put_notes(table, t, width);
	put_profilers(table, t, width);
}

/* ---- below the table ------------------------------------------------------------------------ */

static void command_status_print_wrapped(FILE *to, size_t width, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void command_status_print_wrapped(FILE *to, size_t width, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_wrapped(to, text, 0, width);
}

/* Prints the kinds of JVMs that are not profiled because one of that kind crashed. */
static void print_blocked(FILE *to, const cJSON *blocked, size_t width)
{
	const cJSON *b;

	cJSON_ArrayForEach(b, blocked)
	{
		time_t until = (time_t)(json_number_of(b, "until_ns") / 1e9);
		char when[32];
		struct tm tm;

		strftime(when, sizeof(when), "%F %H:%M", localtime_r(&until, &tm));
		command_status_print_wrapped(to, width, "Not profiled until %s: %s, because %s.",
					     when, json_text_of(b, "cohort"),
					     json_text_of(b, "reason"));
	}
}

/* Prints "3 of 4 JVMs are being profiled, 2 more have ended." and the sum of their samples. */
static void print_sum(FILE *to, const cJSON *status, size_t width)
{
	double taken = 0, delivered = 0, dropped = 0;
	int streaming = 0, living = 0, ended = 0;
	char more[64] = "";
	const cJSON *t;

	cJSON_ArrayForEach(t, json_get(status, "targets"))
	{
		const cJSON *samples = json_get(t, "samples");

		living += !is_gone(t);
		ended += is_gone(t);
		/* with a reason the agent is there, but can collect nothing */
		streaming += strcmp(json_text_of(t, "state"), "streaming") == 0 &&
			     !*json_text_of(t, "reason");
		taken += json_number_of(samples, "taken");
		delivered += json_number_of(samples, "delivered");
		dropped += dropped_of(samples);
	}
	if (ended)
		snprintf(more, sizeof(more), "; %d %s ended", ended, ended == 1 ? "has" : "have");
	command_status_print_wrapped(to, width, "%d of %d JVM%s streaming%s", streaming, living,
				     living == 1 ? "" : "s", more);
	command_status_print_wrapped(to, width,
				     "%.0f samples taken = %.0f delivered + %.0f dropped", taken,
				     delivered, dropped);
}

/* Prints where CPU samples come from, and what that costs or cannot do. */
static void print_engine(FILE *to, const cJSON *engine, size_t width)
{
	double interval_ns = json_number_of(engine, "interval_ns");
	double cost_ns = json_number_of(engine, "tick_cost_ns");

	if (*json_text_of(engine, "note"))
		command_status_print_wrapped(
			to, width, "CPU samples: %s; no clocks on the CPUs: %s",
			json_text_of(engine, "note"), json_text_of(engine, "why"));
	else if (interval_ns > 0 && cost_ns > 0)
		command_status_print_wrapped(
			to, width,
			"CPU samples: each CPU has a tick every %.3g ms, which costs %.1f us, %.2f %% of it",
			interval_ns / 1e6, cost_ns / 1e3, 100 * cost_ns / interval_ns);
	else if (interval_ns > 0)
		command_status_print_wrapped(to, width,
					     "CPU samples: each CPU has a tick every %.3g ms",
					     interval_ns / 1e6);
}

/* ", without who woke them since ..." if the engine has given that up, because it cost too much. */
static void offcpu_lacks(const cJSON *offcpu, char *buf, size_t size)
{
	time_t since = (time_t)(json_number_of(offcpu, "reduced_since_ns") / 1e9);
	double again_s = json_number_of(offcpu, "wakers_again_s");
	char when[32];
	struct tm tm;

	buf[0] = 0;
	if (!cJSON_IsFalse(json_get(offcpu, "wakers")))
		return;
	strftime(when, sizeof(when), "%F %H:%M", localtime_r(&since, &tm));
	snprintf(buf, size, ", without who woke them since %s (tried again in %.0f min)", when,
		 again_s < 60 ? 1 : again_s / 60);
}

/* Prints "  of 8120 intervals 812 have a Java stack only if ..." and "  12 are only in the sums
 * ...", since the daemon's start, if there are such. */
static void print_offcpu_losses(FILE *to, const cJSON *offcpu, size_t width)
{
	double over_budget = json_number_of(offcpu, "over_budget");
	double unreachable = json_number_of(offcpu, "unreachable");
	double lost = json_number_of(offcpu, "lost");
	/* without it, these are mostly threads without restartable sequences */
	bool hint = strcmp(json_text_of(offcpu, "signals_by"), "task_work") != 0 &&
		    !cJSON_IsTrue(json_get(offcpu, "syscall_exits"));
	char budget[80] = "", blocked[160] = "";

	if (over_budget > 0)
		snprintf(budget, sizeof(budget), "%.0f were over the budget of signals%s",
			 over_budget, unreachable > 0 ? ", and " : "");
	if (unreachable > 0)
		snprintf(blocked, sizeof(blocked), "the threads of %.0f could get no signal%s",
			 unreachable,
			 hint ? " (with musl or glibc before 2.35 they can if "
				"events.offcpu.syscall_exits is true)"
			      : "");
	if (over_budget + unreachable > 0)
		command_status_print_wrapped(
			to, width,
			"  of %.0f intervals %.0f have a Java stack only if they are lock events, too: %s%s",
			json_number_of(offcpu, "intervals"), over_budget + unreachable, budget,
			blocked);
	if (lost > 0)
		command_status_print_wrapped(
			to, width,
			"  %.0f are only in the sums of their threads (`kindling threads`): they were over the budget of records",
			lost);
}

/* Prints "time off the CPU: intervals of 1ms and more, 0.04 % of the CPUs for 1800 context switches
 * a second". */
static void print_offcpu_engine(FILE *to, const cJSON *offcpu, size_t width)
{
	const char *state = json_text_of(offcpu, "state");
	char min[32], lacks[96];

	duration_text(json_number_of(offcpu, "min_asked_ns"), min, sizeof(min));
	offcpu_lacks(offcpu, lacks, sizeof(lacks));
	if (strcmp(state, "refused") == 0 && cJSON_IsFalse(json_get(offcpu, "asked")))
		command_status_print_wrapped(
			to, width, "time off the CPU is not measured (%s); everything else is",
			json_text_of(offcpu, "why"));
	else if (strcmp(state, "refused") == 0)
		command_status_print_wrapped(to, width, "time off the CPU is not measured: %s",
					     json_text_of(offcpu, "why"));
	else if (strcmp(state, "resting") == 0)
		command_status_print_wrapped(
			to, width,
			"time off the CPU is measured part of the time, and not now: to measure all %.0f context switches a second would cost more than 1 %% of the CPUs",
			json_number_of(offcpu, "switches_per_s"));
	else if (strcmp(state, "on") == 0)
		command_status_print_wrapped(
			to, width,
			"time off the CPU: intervals of %s and more%s, %.2g %% of the CPUs for %.0f context switches a second",
			min, lacks,
			json_number_of(offcpu, "cost_ppm") / 1e4,
			json_number_of(offcpu, "switches_per_s"));
	print_offcpu_losses(to, offcpu, width);
}

/* Prints a line about the container runtime's socket (names.cri). JVMs that it did not answer for
 * have only the names in files of the host, until it answers. */
static void print_names(FILE *to, const cJSON *names, size_t width)
{
	double missed = json_number_of(names, "unanswered");
	double again = json_number_of(names, "asking_again");
	bool failing = strcmp(json_text_of(names, "state"), "failing") == 0;
	char without[80] = "", asked[80] = "";

	if (missed > 0)
		snprintf(without, sizeof(without), "%.0f JVM%s went on without its answer", missed,
			 missed > 1 ? "s" : "");
	if (again > 0)
		snprintf(asked, sizeof(asked), "; it is asked again about %.0f container%s", again,
			 again > 1 ? "s" : "");
	if (failing)
		command_status_print_wrapped(to, width, "names of pods (names.cri): %s%s%s%s",
					     json_text_of(names, "why"), missed > 0 ? "; " : "",
					     without, asked);
	else if (again > 0)
		command_status_print_wrapped(to, width, "names of pods (names.cri): %s%s", without,
					     asked);
}

static void print_daemon(FILE *to, const cJSON *status, size_t width)
{
	const cJSON *discovery = json_get(status, "discovery");
	const cJSON *engine = json_get(status, "host_engine");
	const char *note = json_text_of(json_get(engine, "kernel_stacks"), "note");
	const char *why = json_text_of(discovery, "why");
	const char *history = json_text_of(json_get(status, "store"), "note");
	const char *filters = json_text_of(json_get(status, "attach"), "filters_note");
	bool bpf = strcmp(json_text_of(discovery, "source"), "bpf") == 0;
	double up = json_number_of(status, "uptime_s");
	double denied = json_number_of(json_get(discovery, "denied"), "processes");
	char time[32];

	if (up < 120)
		snprintf(time, sizeof(time), "%.0f s", up);
	else if (up < 7200)
		snprintf(time, sizeof(time), "%.0f min", up / 60);
	else
		snprintf(time, sizeof(time), "%.0f h", up / 3600);
	command_status_print_wrapped(to, width, "kindlingd %s, up %s, finds JVMs by %s%s%s%s",
				     json_text_of(status, "version"), time,
				     bpf ? "BPF" : "scanning /proc", *why ? " (without BPF: " : "",
				     why, *why ? ")" : "");
	print_blocked(to, json_get(status, "blocked"), width);
	if (denied > 0)
		command_status_print_wrapped(
			to, width,
			"%.0f process%s called java cannot be inspected, because the kernel does not let kindlingd read %s "
			"memory map: it lacks CAP_SYS_PTRACE, or a security module forbids it",
			denied, denied > 1 ? "es" : "", denied > 1 ? "their" : "its");
	if (*history)
		command_status_print_wrapped(to, width, "%s", history);
	if (*note)
		command_status_print_wrapped(to, width, "kernel frames: %s", note);
	if (*filters)
		command_status_print_wrapped(to, width, "seccomp filters: %s", filters);
	print_names(to, json_get(status, "names"), width);
	print_engine(to, engine, width);
	print_offcpu_engine(to, json_get(status, "offcpu"), width);
}

static void command_status_print_table(FILE *to, const cJSON *status, size_t width, bool colours)
{
	unsigned char order[COLUMN_COUNT];
	struct table table = { .columns = columns,
			       .n_columns = COLUMN_COUNT,
			       .leave_out = order,
			       .colour_of = colours ? colour_of : NULL };
	unsigned alike = 0;
	bool on_host = true;
	const cJSON *t;

	cJSON_ArrayForEach(t, json_get(status, "targets"))
	{
		bool goes_on = width < WIDTH_ANY && command_status_is_alike(t, t->next);

		command_status_put_target(&table, t, width, goes_on ? SAID_BELOW : alike);
		alike = goes_on ? alike + 1 : 0;
		on_host = on_host && !*json_text_of(t, "container_id") && !*json_text_of(t, "pod");
	}
	memcpy(order, leave_out, sizeof(order));
	if (on_host)
		order[CONTAINER] = LEAVE_HOST;
	if (table.n_rows)
		table_print(to, &table, width);
	table_free(&table);
}

/* Prints "sink lake (s3): 512 taken = 500 delivered + 12 spooled + 0 unconfirmed + 0 dropped". */
static void command_status_print_sinks(FILE *to, const cJSON *status, size_t width)
{
	const cJSON *s, *cause;

	cJSON_ArrayForEach(s, json_get(status, "sinks"))
	{
		double dropped = 0, oldest = json_number_of(s, "oldest_s");

		cJSON_ArrayForEach(cause, json_get(s, "dropped")) dropped += cause->valuedouble;
		command_status_print_wrapped(
			to, width,
			"sink %s (%s): %.0f taken = %.0f delivered + %.0f spooled + %.0f unconfirmed + %.0f dropped",
			json_text_of(s, "name"), json_text_of(s, "type"),
			json_number_of(s, "taken"), json_number_of(s, "delivered"),
			json_number_of(s, "spooled"), json_number_of(s, "unconfirmed"), dropped);
		cJSON_ArrayForEach(cause, json_get(s, "dropped")) command_status_print_wrapped(
			to, width, "  dropped, %s: %.0f", cause->string, cause->valuedouble);
		if (oldest > 0)
			command_status_print_wrapped(
				to, width, "  the oldest undelivered one is %.0f s old", oldest);
		if (*json_text_of(s, "last_error"))
			command_status_print_wrapped(to, width, "  %s",
						     json_text_of(s, "last_error"));
	}
}

void status_print(FILE *to, const cJSON *status, size_t width, bool colours)
{
	command_status_print_table(to, status, width, colours);
	print_sum(to, status, width);
	command_status_print_sinks(to, status, width);
	print_daemon(to, status, width);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Draws the screen again. The sums come first, because the end of a long table does not fit. */
static void show_again(const cJSON *status, bool wide)
{
	unsigned short rows, columns_now;
	size_t len = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	screen_size(&rows, &columns_now);
	print_sum(f, status, columns_now);
	fputc('\n', f);
	command_status_print_table(f, status, wide ? WIDTH_ANY - 1 : columns_now,
				   terminal_has_colours());
	fputc('\n', f);
	print_daemon(f, status, columns_now);
	if (fclose(f) == 0)
		screen_show(text);
	free(text);
}

static int command_status_show(const char *path, const struct arguments *a)
{
	bool screen = a->watch && !a->json && isatty(STDOUT_FILENO);
	struct reply reply;
	int r = client_request("GET", path, &reply);
	cJSON *json;

	if (r != CLI_OK)
		return r;
	json = reply_json(&reply);
	if (!json)
		r = CLI_FAILED;
	else if (a->json)
		puts(reply.body);
	else if (screen)
		show_again(json, a->wide);
	else
		status_print(stdout, json, a->wide ? WIDTH_ANY : terminal_width(),
			     terminal_has_colours());
	cJSON_Delete(json);
	reply_free(&reply);
	return fflush(stdout) == 0 && !ferror(stdout) ? r : CLI_FAILED;
}

static int command_status_watch(const char *path, const struct arguments *a)
{
	bool screen = !a->json && isatty(STDOUT_FILENO);
	int r;

	cli_catch_interrupt();
	if (screen)
		screen_open();
	do {
		r = command_status_show(path, a);
	} while (r == CLI_OK && screen_key(1000) != 'q');
	if (screen)
		screen_close();
	return r;
}

int command_status(int argc, char **argv)
{
	char path[PATH_MAX_BYTES] = "/v1/status";
	struct arguments a = { 0 };
	int r = cli_parse(&usage_status, argc, argv, &a);

	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "all", a.all ? "1" : NULL);
	path_add(path, sizeof(path), "state", a.streaming ? "streaming" : NULL);
	for (; optind < argc; optind++)
		path_add(path, sizeof(path), "target", argv[optind]);
	return a.watch ? command_status_watch(path, &a) : command_status_show(path, &a);
}
