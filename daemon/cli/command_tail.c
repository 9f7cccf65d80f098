/* kindling tail: prints events as they arrive. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/lock_text.h"

struct tail {
	const char *event, *min, *count;
	bool json, no_stack, open, idle;
	long left; /* events still to print; -1 = no limit */
};

static const struct usage_row options[] = {
	OPTION_FLAG(
		'j', "json", struct tail, json,
		"print one JSON object per line. For a sample: "
		"{\"event\":\"cpu\",\"ts_ns\":...,\"pid\":..., "
		"\"tid\":...,\"thread\":...,\"weight_ns\":...,\"stack\":[root...leaf]}. For a wait: "
		"{\"event\":\"lock\",...,\"kind\":\"enter|wait|park\",\"duration_ns\":..., "
		"\"open\":false,\"lock\":{\"class\":...,\"id\":...},\"owner\":{\"tid\":..., "
		"\"thread\":...}|null,\"stack\":[...],\"owner_stack\":[...]}. For a time off the CPU: "
		"{\"event\":\"offcpu\",...,\"duration_ns\":...,\"reason\":\"park\", "
		"\"syscall\":...,\"runqueue_ns\":..., \"lock\":{...}|null,\"owner\":{...}|null, "
		"\"waker\":{...}|null,\"trace\":{...}|null, \"kernel\":[...],\"stack\":[...]}"),
	OPTION_CHOICE('e', "event", "EVENT", "cpu lock offcpu cpu,lock cpu,lock,offcpu",
		      struct tail, event,
		      "cpu (the default), lock, offcpu, or several: cpu,lock,offcpu"),
	OPTION_FLAG(0, "open", struct tail, open,
		    "with lock: also waits in progress; they are printed again when they end"),
	OPTION_FLAG(
		0, "idle", struct tail, idle,
		"with lock and offcpu: also waits for work (a pool's thread at an empty queue)"),
	OPTION_TEXT(0, "min", "DURATION", struct tail, min,
		    "with lock and offcpu: leave out what is shorter than this, such as 5ms"),
	OPTION_FLAG(0, "no-stack", struct tail, no_stack, "leave the stacks out of the text"),
	OPTION_TEXT('n', "count", "N", struct tail, count, "exit after N events"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_tail = {
	"tail",
	"samples, waits for locks, or times off the CPU, as they happen, one per line",
	"kindling tail [OPTION...] [TARGET...]",
	"Prints events as they happen, one per line: time, pid, tid, thread, event, weight, and "
	"the stack, the "
	"running method first. For a wait: its length, its kind (enter of a monitor, wait, park), the lock as "
	"class@identity, and who held the lock when the wait began. For a time off the CPU: its length, "
	"the reason, the lock, who woke the thread, and the time in the run queue before it ran.\n" CLI_TARGET_ABOUT
	".\n"
	"The command ends when all these JVMs have ended; without a TARGET it ends with Ctrl-C.",
	options,
	NULL,
	"kindling tail org.shop.Main\n"
	"kindling tail --event offcpu --min 20ms org.shop.Main\n"
	"kindling tail --event lock --open --min 20ms org.shop.Main\n"
	"kindling tail --json -n 100 | jq -r '.stack[-1]' | sort | uniq -c",
};

/* Prints "lock 23.4ms enter org.shop.Stock@1a2b held by "worker-2" (4711)". */
static void print_wait(FILE *to, const cJSON *e)
{
	const cJSON *owner = json_get(e, "owner");
	char duration[32], lock[1024], thread[600];

	duration_text(json_number_of(e, "duration_ns"), duration, sizeof(duration));
	fprintf(to, " %s%s ", duration, cJSON_IsTrue(json_get(e, "open")) ? " so far" : "");
	print_text(to, json_text_of(e, "kind"));
	fputc(' ', to);
	lock_text(json_get(e, "lock"), lock, sizeof(lock));
	print_text(to, lock);
	if (cJSON_IsObject(owner)) {
		thread_text(owner, "thread", thread, sizeof(thread));
		fputs(" held by ", to);
		print_text(to, thread);
	}
	if (cJSON_IsTrue(json_get(e, "idle")))
		fputs(" idle", to);
}

/* Prints "offcpu 23.4ms park java.util.concurrent.Semaphore$NonfairSync@1a2b woken by "worker-2"
 * (4711)". */
static void print_offcpu(FILE *to, const cJSON *e)
{
	const cJSON *owner = json_get(e, "owner"), *waker = json_get(e, "waker");
	char duration[32], text[1024];

	duration_text(json_number_of(e, "duration_ns"), duration, sizeof(duration));
	fprintf(to, " %s ", duration);
	print_text(to, json_text_of(e, "reason"));
	if (cJSON_IsObject(json_get(e, "lock"))) {
		fputc(' ', to);
		lock_text(json_get(e, "lock"), text, sizeof(text));
		print_text(to, text);
	} else if (strcmp(json_text_of(e, "reason"), "other") == 0 &&
		   cJSON_IsString(json_get(e, "syscall"))) {
		fputc(' ', to);
		print_text(to, json_text_of(e, "syscall"));
	}
	if (cJSON_IsObject(owner)) {
		thread_text(owner, "thread", text, sizeof(text));
		fputs(" held by ", to);
		print_text(to, text);
	}
	if (cJSON_IsObject(waker) && cJSON_IsString(json_get(waker, "thread"))) {
		thread_text(waker, "thread", text, sizeof(text));
		fputs(" woken by ", to);
		print_text(to, text);
	}
	if (json_number_of(e, "runqueue_ns") >= 1e5) {
		duration_text(json_number_of(e, "runqueue_ns"), duration, sizeof(duration));
		fprintf(to, " run queue %s", duration);
	}
	if (cJSON_IsTrue(json_get(e, "idle")))
		fputs(" idle", to);
}

void event_print(FILE *to, const cJSON *e, bool with_stack)
{
	const cJSON *stack = json_get(e, "stack"), *frame;
	double ts_ns = json_number_of(e, "ts_ns");
	time_t seconds = (time_t)(ts_ns / 1e9);
	char clock[32], tid[48];
	struct tm tm;

	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&seconds, &tm));
	tid_text(e, tid, sizeof(tid));
	fprintf(to, "%s.%03d %.0f %s \"", clock, (int)((ts_ns - (double)seconds * 1e9) / 1e6),
		json_number_of(e, "pid"), tid);
	print_text(to, json_text_of(e, "thread"));
	fputs("\" ", to);
	print_text(to, json_text_of(e, "event"));
	if (strcmp(json_text_of(e, "event"), "lock") == 0)
		print_wait(to, e);
	else if (strcmp(json_text_of(e, "event"), "offcpu") == 0)
		print_offcpu(to, e);
	else
		fprintf(to, " %.3gms", json_number_of(e, "weight_ns") / 1e6);
	for (int i = with_stack ? cJSON_GetArraySize(stack) : 0; i-- > 0;) {
		frame = cJSON_GetArrayItem(stack, i);
		fputc(' ', to);
		print_text(to, cJSON_IsString(frame) ? frame->valuestring : "?");
	}
	fputc('\n', to);
}

/* Prints lines about the stream itself to stderr; false = the line is an event. */
static bool is_notice(const cJSON *e)
{
	const char *event = json_text_of(e, "event");

	if (strcmp(event, "dropped") == 0) {
		fprintf(stderr,
			"kindling: %.0f events were dropped, because this command (or what reads its output) is too slow\n",
			json_number_of(e, "count"));
		return true;
	}
	if (strcmp(event, "end") != 0)
		return false;
	fputs("kindling: ", stderr);
	print_text(stderr, json_text_of(e, "reason"));
	fputc('\n', stderr);
	return true;
}

static bool command_tail_on_line(void *userdata, const char *line)
{
	struct tail *t = userdata;
	cJSON *e = cJSON_Parse(line);
	const cJSON *left = json_get(e, "left");
	/* the last selected JVM has ended; or the daemon, whose line names no pid */
	bool end = strcmp(json_text_of(e, "event"), "end") == 0 &&
		   (cJSON_IsNumber(left) ? left->valuedouble == 0 : !json_get(e, "pid"));

	if (t->json)
		puts(line);
	if (e && !is_notice(e)) {
		if (!t->json)
			event_print(stdout, e, !t->no_stack);
		if (t->left > 0)
			t->left--;
	}
	cJSON_Delete(e);
	/* writing fails when the reader of the pipe has closed it */
	return fflush(stdout) == 0 && !ferror(stdout) && !cli_interrupted && !end && t->left != 0;
}

/* Parses the arguments and makes the path. -1 = go on, else the exit status. */
static int command_tail_parse(int argc, char **argv, struct tail *t, char *path, size_t size)
{
	int r = cli_parse(&usage_tail, argc, argv, t);
	uint64_t ns;

	if (r >= 0)
		return r;
	if (t->min && !parse_length(t->min, &ns))
		return cli_wrong("tail", "--min takes a duration such as 5ms");
	if (t->count && (t->left = atol(t->count)) <= 0)
		return cli_wrong("tail", "-n takes a number of events");
	if (t->open && !(t->event && strstr(t->event, "lock")))
		return cli_wrong("tail", "--open needs --event lock");
	if ((t->idle || t->min) &&
	    !(t->event && (strstr(t->event, "lock") || strstr(t->event, "offcpu"))))
		return cli_wrong("tail", "--idle and --min need --event lock or offcpu");
	path_add(path, size, "event", t->event);
	path_add(path, size, "open", t->open ? "1" : NULL);
	path_add(path, size, "idle", t->idle ? "1" : NULL);
	path_add(path, size, "min", t->min);
	for (; optind < argc; optind++)
		path_add(path, size, "target", argv[optind]);
	return -1;
}

int command_tail(int argc, char **argv)
{
	char path[PATH_MAX_BYTES] = "/v1/events";
	struct tail t = { .left = -1 };
	int r = command_tail_parse(argc, argv, &t, path, sizeof(path));

	if (r >= 0)
		return r;
	cli_catch_interrupt();
	return client_stream(path, command_tail_on_line, &t);
}
