/* kindling threads: shows all threads of a JVM, what they do and what they used. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include "daemon/cli/lock_text.h"

/* pause before the second request: meanwhile the agent examines its threads */
#define ASK_AGAIN_NS 300000000L

struct arguments {
	const char *last, *from, *to, *sort, *rows_word, *target;
	bool json;
	int rows; /* 0 = all */
};

static const struct usage_row options[] = {
	OPTION_TEXT('l', "last", "DURATION", struct arguments, last,
		    "the time over which shares are computed: 30s, 5m (default 60s, at most 10m)"),
	OPTION_TEXT(
		0, "from", "TIME", struct arguments, from,
		"from this moment of the last ten minutes: 14:05, 14:05:30 or @SECONDS since 1970"),
	OPTION_TEXT(0, "to", "TIME", struct arguments, to, "up to this moment (default: now)"),
	OPTION_CHOICE('s', "sort", "KEY", "cpu wait name", struct arguments, sort,
		      "cpu (the default), wait or name"),
	OPTION_TEXT('n', "rows", "N", struct arguments, rows_word,
		    "show only the first N threads of each JVM"),
	OPTION_FLAG('j', "json", struct arguments, json, "print everything as JSON"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_threads = {
	"threads",
	"every thread: its name, what it does, its CPU time and waiting",
	"kindling threads [OPTION...] [TARGET]",
	"Shows every thread: its name, its state (running, waiting, idle, ...), its CPU time in percent of one "
	"CPU, the share of the time in which it waited for others, in which it was idle (it waited for work), "
	"what it waits for now, and the last lock that it waited for. "
	"These are shares of the span that was asked for. WALL is the part of it in which the thread lived, and RUNQ% (in the run "
	"queue), OFF THE CPU, by reason, and UNSEEN% are shares of that: together with the time on the CPU they add up to it. "
	"The kernel counts them where kindlingd measures times off the CPU; elsewhere they come from samples and waits, and the line above the table says why. The span is in whole slices: of five "
	"seconds, or of a minute if it began more than a minute ago; state and wait are those of now. On a narrow terminal some columns are "
	"left out; in a pipe all are there. Virtual threads are summed up in one line; those that were seen "
	"running or waiting have rows of their own.\n" CLI_TARGET_ABOUT
	"; without one, all JVMs that are being profiled are shown.",
	options,
	NULL,
	"kindling threads 4711\n"
	"kindling threads --from 14:05 --to 14:07 shop\n"
	"kindling threads --sort wait -n 20 org.shop.Main",
};

enum { TID, NAME, STATE, CPU, WAIT, IDLE, WALL, QUEUE, OFF, UNSEEN, FOR, LAST, COLUMN_COUNT };
static const unsigned char leave_out[COLUMN_COUNT] = {
	[LAST] = 3, [IDLE] = 2, [WALL] = 6, [QUEUE] = 4, [OFF] = 1, [UNSEEN] = 5
};
static const struct column columns[COLUMN_COUNT] = {
	[TID] = { "TID", true, 0 },	      [NAME] = { "NAME", false, 20 },
	[STATE] = { "STATE", false, 0 },      [CPU] = { "CPU%", true, 0 },
	[WAIT] = { "WAIT%", true, 0 },	      [IDLE] = { "IDLE%", true, 0 },
	[WALL] = { "WALL", true, 0 },	      [QUEUE] = { "RUNQ%", true, 0 },
	[OFF] = { "OFF THE CPU", false, 14 }, [UNSEEN] = { "UNSEEN%", true, 0 },
	[FOR] = { "WAITING FOR", false, 16 }, [LAST] = { "LAST LOCK", false, 12 },
};

static void put_waiting(const cJSON *waiting, char *cell)
{
	const cJSON *owner = json_get(waiting, "owner");
	char lock[200], time[32], thread[100] = "";

	if (!cJSON_IsObject(waiting)) {
		snprintf(cell, CELL_MAX, "-");
		return;
	}
	lock_text_brief(json_get(waiting, "lock"), lock, sizeof(lock));
	duration_text(json_number_of(waiting, "ns"), time, sizeof(time));
	if (cJSON_IsObject(owner))
		thread_text(owner, "thread", thread, sizeof(thread));
	snprintf(cell, CELL_MAX, "%s %s %s%s%s", time, json_text_of(waiting, "kind"), lock,
		 *thread ? " of " : "", thread);
}

static void put_share(const cJSON *t, const char *key, char *cell)
{
	double v = 100 * json_number_of(t, key);

	/* a wait that began before the span can make the part slightly more than all */
	if (v > 0)
		snprintf(cell, CELL_MAX, "%.1f", v < 100 ? v : 100);
	else
		snprintf(cell, CELL_MAX, "-");
}

/* Writes "94.1"; "-" if there is nothing. */
static void put_percent(double part, double whole, char *cell)
{
	if (part > 0 && whole > 0 && part / whole >= 0.0005)
		snprintf(cell, CELL_MAX, "%.1f", 100 * part / whole);
	else
		snprintf(cell, CELL_MAX, "-");
}

/* Writes "park 93.2, sleep 2.0": the @most reasons with the most time in percent of @wall, the
 * others added up. */
static void put_reasons(const cJSON *reasons, double wall, size_t most, char *cell)
{
	double other = 0, below = wall * 2;
	const cJSON *r, *next;
	size_t n = 0, len = 0;

	snprintf(cell, CELL_MAX, "-");
	for (; n < most; n++) {
		next = NULL;
		cJSON_ArrayForEach(r, reasons) if (r->valuedouble < below &&
						   (!next || r->valuedouble > next->valuedouble))
			next = r;
		if (!next || next->valuedouble < wall * 0.0005)
			break;
		below = next->valuedouble;
		len += (size_t)snprintf(cell + len, CELL_MAX - len, "%s%.20s %.1f", n ? ", " : "",
					next->string, 100 * below / wall);
	}
	cJSON_ArrayForEach(r, reasons) if (r->valuedouble < below) other += r->valuedouble;
	if (n == most && other >= wall * 0.0005)
		snprintf(cell + len, CELL_MAX - len, ", ... %.1f", 100 * other / wall);
}

static void put_times(const cJSON *t, char (*row)[CELL_MAX])
{
	double wall = json_number_of(t, "wall_ns");

	if (wall > 0)
		duration_text(wall, row[WALL], CELL_MAX);
	else /* it has ended, and shares a row */
		snprintf(row[WALL], CELL_MAX, "-");
	put_percent(json_number_of(t, "runqueue_ns"), wall, row[QUEUE]);
	put_reasons(json_get(t, "offcpu_ns"), wall, 2, row[OFF]);
	put_percent(json_number_of(t, "unseen_ns"), wall, row[UNSEEN]);
}

void threads_times_print(FILE *to, const cJSON *times)
{
	double wall = json_number_of(times, "wall_ns"), unseen = json_number_of(times, "unseen_ns");
	char time[32], cell[CELL_MAX];

	if (!cJSON_IsObject(times) || wall <= 0)
		return;
	duration_text(wall, time, sizeof(time));
	fprintf(to, "of %s of %.0f threads, in percent: ", time, json_number_of(times, "threads"));
	put_percent(json_number_of(times, "cpu_ns"), wall, cell);
	fprintf(to, "cpu %s, ", cell);
	put_percent(json_number_of(times, "runqueue_ns"), wall, cell);
	fprintf(to, "run queue %s, ", cell);
	put_reasons(json_get(times, "offcpu_ns"), wall, 4, cell);
	fprintf(to, "off the CPU: %s", cell);
	put_percent(unseen, wall, cell);
	fprintf(to, "; [not seen] %s", cell);
	if (*json_text_of(times, "unseen_why")) {
		fputs(" (", to);
		print_text(to, json_text_of(times, "unseen_why"));
		fputc(')', to);
	}
	fputc('\n', to);
}

static void command_threads_put_thread(struct table *table, const cJSON *t)
{
	const cJSON *last = json_get(t, "last_lock");
	const char *name = json_text_of(t, "name");
	char(*row)[CELL_MAX] = table_row(table);

	if (!row)
		return;
	tid_text(t, row[TID], CELL_MAX);
	snprintf(row[NAME], CELL_MAX, "%s", *name ? name : "?");
	/* the state of the JVM's own threads is never known */
	snprintf(row[STATE], CELL_MAX, "%s",
		 strcmp(json_text_of(t, "state"), "unknown") == 0 ? "-" : json_text_of(t, "state"));
	put_share(t, "cpu", row[CPU]);
	put_share(t, "wait", row[WAIT]);
	put_share(t, "idle", row[IDLE]);
	put_times(t, row);
	put_waiting(json_get(t, "waiting"), row[FOR]);
	if (cJSON_IsObject(last))
		lock_text_brief(last, row[LAST], CELL_MAX);
	else
		snprintf(row[LAST], CELL_MAX, "-");
}

/* ---- the order ---- */

static const char *sort_key;

static int command_threads_by_key(const void *a, const void *b)
{
	const cJSON *x = *(const cJSON *const *)a, *y = *(const cJSON *const *)b;
	double p, q;
	int r;

	if (strcmp(sort_key, "name") != 0) {
		p = json_number_of(x, sort_key);
		q = json_number_of(y, sort_key);
		if (fabs(p - q) > 1e-9)
			return p < q ? 1 : -1;
	}
	r = strcasecmp(json_text_of(x, "name"), json_text_of(y, "name"));
	return r ? r : json_number_of(x, "tid") < json_number_of(y, "tid") ? -1 : 1;
}

static void command_threads_put_threads(struct table *table, const cJSON *threads, const char *sort,
					int rows)
{
	size_t n = (size_t)cJSON_GetArraySize(threads), i = 0;
	const cJSON **list = calloc(n + 1, sizeof(*list)), *t;

	if (!list)
		return;
	cJSON_ArrayForEach(t, threads) if (i < n) list[i++] = t;
	sort_key = sort;
	qsort(list, n, sizeof(*list), command_threads_by_key);
	for (i = 0; i < n && (rows <= 0 || i < (size_t)rows); i++)
		command_threads_put_thread(table, list[i]);
	free(list);
}

/* Prints "20000 virtual threads: 18000 waiting (ThreadPerTaskExecutor), ...". */
static void print_virtuals(FILE *to, const cJSON *t)
{
	const cJSON *v;
	bool first = true;

	if (json_number_of(t, "virtual_threads") == 0)
		return;
	fprintf(to, "%.0f virtual threads:", json_number_of(t, "virtual_threads"));
	cJSON_ArrayForEach(v, json_get(t, "virtual"))
	{
		const char *container = json_text_of(v, "container"),
			   *class_name = json_text_of(v, "class");

		fprintf(to, "%s %.0f ", first ? "" : ",", json_number_of(v, "count"));
		first = false;
		print_text(to, json_text_of(v, "state"));
		if (*class_name) {
			fputs(" for ", to);
			print_text(to, class_name);
		}
		if (*container) {
			fputs(" (", to);
			print_text(to, container);
			fputc(')', to);
		}
	}
	fputc('\n', to);
}

/* Prints "shares of the last 60 s", or "shares of 14:05:00 to 14:07:00". */
static void command_threads_print_span(FILE *to, const cJSON *t)
{
	double from_ns = json_number_of(t, "from_ns"), to_ns = json_number_of(t, "to_ns");
	time_t from_s = (time_t)(from_ns / 1e9), to_s = (time_t)(to_ns / 1e9);
	char from[16], until[16];
	struct tm tm;

	if (!(to_ns > 0) || time(NULL) - to_s <= 1) {
		fprintf(to, "shares of the last %.0f s\n", json_number_of(t, "seconds"));
		return;
	}
	strftime(from, sizeof(from), "%T", localtime_r(&from_s, &tm));
	strftime(until, sizeof(until), "%T", localtime_r(&to_s, &tm));
	fprintf(to, "shares of %s to %s\n", from, until);
}

static void command_threads_print_target(FILE *to, const cJSON *t, const char *sort, int rows,
					 size_t width)
{
	struct table table = { .columns = columns,
			       .n_columns = COLUMN_COUNT,
			       .leave_out = leave_out };
	const cJSON *threads = json_get(t, "threads");
	int n = cJSON_GetArraySize(threads);

	fprintf(to, "%.0f ", json_number_of(t, "pid"));
	print_text(to, json_text_of(t, "name"));
	if (n == 0) {
		fputs(": no threads are known. The JVM is ", to);
		print_text(to, json_text_of(t, "state"));
		fputs(", and `kindling status` says more\n", to);
		return;
	}
	fprintf(to, ": %d threads, ", n);
	command_threads_print_span(to, t);
	threads_times_print(to, json_get(t, "times"));
	print_virtuals(to, t);
	if (*json_text_of(t, "virtual_unseen_why")) {
		fputs("[not seen] of virtual threads: ", to);
		print_text(to, json_text_of(t, "virtual_unseen_why"));
		fputc('\n', to);
	}
	if (json_number_of(t, "without_times") > 0) {
		fprintf(to,
			"[not seen] of %.0f more threads: ", json_number_of(t, "without_times"));
		print_text(to, json_text_of(t, "without_times_why"));
		fputc('\n', to);
	}
	command_threads_put_threads(&table, threads, sort, rows);
	table_print(to, &table, width);
	if ((size_t)n > table.n_rows)
		fprintf(to, "and %zu more threads\n", (size_t)n - table.n_rows);
	table_free(&table);
}

void threads_print(FILE *to, const cJSON *threads, const char *sort, int rows, size_t width)
{
	const cJSON *targets = json_get(threads, "targets"), *t;
	bool first = true;

	if (!cJSON_GetArraySize(targets))
		fputs("no JVM is being profiled; `kindling status` says why\n", to);
	cJSON_ArrayForEach(t, targets)
	{
		if (!first)
			fputc('\n', to);
		first = false;
		command_threads_print_target(to, t, sort, rows, width);
	}
}

/* ---- the command ---- */

static int command_threads_parse(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_threads, argc, argv, a);
	uint64_t ns;

	if (r >= 0)
		return r;
	a->rows = a->rows_word ? atoi(a->rows_word) : 0;
	if (a->rows_word && a->rows <= 0)
		return cli_wrong("threads", "-n takes a number of rows");
	a->target = optind < argc ? argv[optind] : NULL;
	if (optind + 1 < argc)
		return cli_wrong("threads", "name one TARGET only");
	if (strcmp(a->sort, "cpu") != 0 && strcmp(a->sort, "wait") != 0 &&
	    strcmp(a->sort, "name") != 0)
		return cli_wrong("threads", "--sort takes cpu, wait or name");
	if (a->last && (!parse_length(a->last, &ns) || ns > LAST_MAX_NS))
		return cli_wrong("threads", "--last takes a duration such as 60s, 10m at most");
	return -1;
}

/* Does one of the JVMs not know the states of its threads yet? */
static bool states_are_to_come(const cJSON *threads)
{
	const cJSON *t;

	cJSON_ArrayForEach(t, json_get(threads, "targets")) if (cJSON_IsFalse(json_get(
									t, "states"))) return true;
	return false;
}

int command_threads(int argc, char **argv)
{
	const struct timespec pause = { 0, ASK_AGAIN_NS };
	struct arguments a = { .sort = "cpu" };
	char path[PATH_MAX_BYTES] = "/v1/threads";
	struct reply reply;
	cJSON *json;
	int r = command_threads_parse(argc, argv, &a);

	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a.target);
	r = path_add_span(path, sizeof(path),
			  &(struct span_words){ "threads", a.last, a.from, a.to });
	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "stacks", a.json ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	json = reply_json(&reply);
	if (states_are_to_come(json)) {
		cJSON_Delete(json);
		reply_free(&reply);
		nanosleep(&pause, NULL);
		r = client_request("GET", path, &reply);
		if (r != CLI_OK)
			return r;
		json = reply_json(&reply);
	}
	if (!json)
		r = CLI_FAILED;
	else if (a.json)
		puts(reply.body);
	else
		threads_print(stdout, json, a.sort, a.rows, terminal_width());
	cJSON_Delete(json);
	reply_free(&reply);
	return r;
}
