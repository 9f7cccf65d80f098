/* kindling record: records one JVM for some seconds, through kindlingd or, as root, without it
 * (own.c). */
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/clock.h"
#include "daemon/host/recording.h"
#include "daemon/report/event_names.h"
#include "daemon/report/report.h"

#define POLL_NS	    (200 * NS_PER_MS)
#define BAR_COLUMNS 30

struct record_words {
	struct record_arguments a;
	const char *duration, *interval, *events, *min_wait;
};

static const struct usage_row options[] = {
	OPTION_TEXT('d', "duration", "DURATION", struct record_words, duration,
		    "how long: 30s, 2m30s, 1.5h (default 30s)"),
	OPTION_TEXT('i', "interval", "INTERVAL", struct record_words, interval,
		    "CPU time between samples: 10ms, 1ms (default: that of the settings). The CPU "
		    "budget never lengthens it during a recording"),
	OPTION_CHOICE(
		'e', "event", "EVENT,...", "cpu lock alloc wall offcpu", struct record_words,
		events,
		"cpu (the default), lock (time that threads waited), alloc (bytes allocated), "
		"wall (time, running or not), offcpu (time that threads did not run, with the "
		"reason; beside cpu). An event that is not collected all the time is "
		"collected during the recording"),
	OPTION_TEXT(
		0, "min-wait", "DURATION", struct record_words, min_wait,
		"with lock: the shortest wait that is recorded: 100us, 5ms (default: that of the "
		"settings). The CPU budget never raises it during a recording"),
	OPTION_TEXT('t', "thread", "WORD", struct record_words, a.thread,
		    "only threads whose name contains WORD; with wall the other threads are not "
		    "sampled at all"),
	OPTION_FLAG(0, "idle", struct record_words, a.idle,
		    "also waits for work (pool threads at empty queues, timers, selectors)"),
	OPTION_TEXT('o', "output", "FILE", struct record_words, a.output,
		    ".html, .collapsed, .txt, .pb.gz, .json, .jfr, .speedscope.json, .otlp or "
		    ".otlp.json; \"-\" is stdout; pb.gz, jfr, speedscope and otlp hold several "
		    "events; in other formats each event gets a file, such as out.lock.html"),
	OPTION_CHOICE('f', "format", "FORMAT", CLI_FORMATS, struct record_words, a.format,
		      "html, ..., speedscope, otlp or otlp.json, whatever FILE is called"),
	OPTION_FLAG(0, "threads", struct record_words, a.threads,
		    "keep threads apart: the flame graph has a tower for each"),
	OPTION_FLAG(
		0, "trace-ids", struct record_words, a.trace_ids,
		".pb.gz, .json, .jfr, .otlp: keep the trace and span ids of tracers (OpenTelemetry, "
		"SkyWalking, Brave, an MDC, or published by threads) with every event"),
	OPTION_FLAG(
		0, "annotate", struct record_words, a.annotate,
		".collapsed, .pb.gz: add to each name how the frame ran: _[0] interpreted, _[1] "
		"C1, "
		"_[j] C2, _[i] inlined, _[k] kernel"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_record = {
	"record",
	"record one JVM for some seconds, also without kindlingd",
	"kindling record TARGET -d 30s -o FILE [OPTION...]",
	"Records one JVM for some time and writes the profile to a file. kindlingd does it if it runs; "
	"otherwise this command, run as root, attaches, records and detaches by itself. Ctrl-C ends the "
	"recording early and writes what was recorded until then.\n" CLI_TARGET_ABOUT ".",
	options,
	NULL,
	"kindling record 4711 -d 10s -o flame.html\n"
	"kindling record 4711 -d 30s -e cpu,lock,alloc -o all.pb.gz\n"
	"kindling record 4711 -e lock --min-wait 100us -o waits.html\n"
	"sudo kindling record org.shop.Main -d 1m -i 4ms -o cpu.pb.gz",
};

/* Can the format hold each of the events? On stdout it must hold all in one file. */
static int check_format(const struct record_arguments *a)
{
	enum report_format format = (enum report_format)report_format_by_name(a->format);
	char why[128];

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (a->events & 1u << e && !report_takes(format, 1u << e, why, sizeof(why)))
			return cli_wrong("record", why);
	if (strcmp(a->output, "-") == 0 && !report_takes(format, a->events, why, sizeof(why)))
		return cli_wrong("record", why);
	return -1;
}

static int check_min_wait(const char *word, struct record_arguments *a)
{
	char why[64], sentence[128];

	if (!word)
		return -1;
	if (!(a->events & 1u << WIRE_EVENT_LOCK))
		return cli_wrong("record", "--min-wait needs -e lock");
	if (parse_interval(word, &a->min_wait_ns, why, sizeof(why)) == 0 &&
	    a->min_wait_ns >= RECORDING_MIN_WAIT_LEAST && a->min_wait_ns <= RECORDING_MIN_WAIT_MOST)
		return -1;
	snprintf(sentence, sizeof(sentence), "--min-wait takes 1us to 1m, such as 5ms%s%s",
		 *why ? "; " : "", why);
	return cli_wrong("record", sentence);
}

static int check_interval(const char *word, struct record_arguments *a)
{
	char why[64], sentence[128];

	if (!word)
		return -1;
	if (parse_interval(word, &a->interval_ns, why, sizeof(why)) == 0 &&
	    a->interval_ns >= NS_PER_MS / 10 && a->interval_ns <= NS_PER_S)
		return -1;
	snprintf(sentence, sizeof(sentence), "-i takes 100us to 1s, such as 10ms%s%s",
		 *why ? "; " : "", why);
	return cli_wrong("record", sentence);
}

/* Parses and checks the arguments. -1 = go on, else the exit status. */
static int record_parse(int argc, char **argv, struct record_arguments *a)
{
	struct record_words w = { .duration = "30s", .events = "cpu" };
	int r = cli_parse(&usage_record, argc, argv, &w);

	*a = w.a;
	if (r >= 0)
		return r;
	if (optind >= argc)
		return cli_wrong("record", "name a TARGET");
	if (optind + 1 < argc)
		return cli_wrong("record", "name one TARGET only");
	a->target = argv[optind];
	if (!a->output)
		return cli_wrong("record", "-o FILE is missing: the file to write");
	if (!parse_length(w.duration, &a->duration_ns) || a->duration_ns > 24 * 3600 * NS_PER_S)
		return cli_wrong("record", "-d takes a duration such as 30s, up to 24h");
	r = check_interval(w.interval, a);
	if (r >= 0)
		return r;
	if (!report_events_by_name(w.events, &a->events))
		return cli_wrong("record",
				 "-e takes cpu, lock, alloc, wall, offcpu, or several: cpu,lock");
	r = check_min_wait(w.min_wait, a);
	if (r >= 0)
		return r;
	a->format = format_of(a->format, a->output);
	return a->format ? check_format(a) : CLI_USAGE;
}

/* Makes "out.lock.html" of "out.html". */
static void path_of_event(const struct record_arguments *a, int event, char *buf, size_t size)
{
	size_t len = strlen(a->output), suffix = strlen(a->format) + 1;
	bool has_suffix = report_format_by_path(a->output) == report_format_by_name(a->format) &&
			  len > suffix;

	if (!has_suffix)
		suffix = 0;
	snprintf(buf, size, "%.*s.%s%s", (int)(len - suffix), a->output, wire_event_names[event],
		 a->output + len - suffix);
}

int record_files(const struct record_arguments *a,
		 int (*write)(void *userdata, const char *path, unsigned events), void *userdata)
{
	enum report_format format = (enum report_format)report_format_by_name(a->format);
	char path[PATH_MAX], why[128];
	int r = CLI_OK;

	if (report_takes(format, a->events, why, sizeof(why)))
		return write(userdata, a->output, a->events);
	for (int e = 0; e < WIRE_EVENT_COUNT && r == CLI_OK; e++) {
		if (!(a->events & 1u << e))
			continue;
		path_of_event(a, e, path, sizeof(path));
		r = write(userdata, path, 1u << e);
	}
	return r;
}

void record_progress(const struct record_arguments *a, double elapsed_s, double samples)
{
	double all_s = (double)a->duration_ns / 1e9, part = elapsed_s / all_s;
	int filled = (int)(BAR_COLUMNS * (part < 1 ? part : 1));

	if (!isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "\r[%.*s%*s] %.0f of %.0f s, %.0f samples \033[K", filled,
		"##############################", BAR_COLUMNS - filled, "", elapsed_s, all_s,
		samples);
}

void record_notes(const struct record_arguments *a, double samples, const char *notes)
{
	if (!*notes || (a->events == 1u << WIRE_EVENT_CPU && samples > 0))
		return;
	fputs("kindling: the agent reports: ", stderr);
	print_text(stderr, notes);
	fputc('\n', stderr);
}

void record_ended(double elapsed_s, const char *why)
{
	fprintf(stderr, "kindling: after %.1f s ", elapsed_s);
	print_text(stderr, why);
	fputs("; the file has what was recorded until then\n", stderr);
}

/* ---- through the daemon --------------------------------------------------------------------- */

struct fetching {
	const struct record_arguments *arguments;
	uint64_t id;
};

static int command_record_fetch(void *userdata, const char *file, unsigned events)
{
	const struct fetching *x = userdata;
	const struct record_arguments *a = x->arguments;
	char path[256], types[64];
	struct reply reply;
	int r;

	snprintf(path, sizeof(path), "/v1/recordings/%" PRIu64 "/profile", x->id);
	path_add(path, sizeof(path), "format", a->format);
	path_add(path, sizeof(path), "type", report_events_list(events, types, sizeof(types)));
	path_add(path, sizeof(path), "threads", a->threads ? "1" : NULL);
	path_add(path, sizeof(path), "annotate", a->annotate ? "1" : NULL);
	path_add(path, sizeof(path), "idle", a->idle ? "1" : NULL);
	r = client_request("GET", path, &reply);
	if (r != CLI_OK)
		return r;
	r = write_file(file, reply.body, reply.len);
	if (r == CLI_OK)
		output_report_written(file, a->format, events, &reply.counts);
	reply_free(&reply);
	return r;
}

/* Asks once whether the recording has ended; ends it after Ctrl-C. */
static int command_record_look(const struct record_arguments *a, const char *path, bool *ret_done)
{
	struct reply reply;
	cJSON *json;
	int r = client_request(cli_interrupted ? "DELETE" : "GET", path, &reply);

	if (r != CLI_OK)
		return r;
	json = cJSON_Parse(reply.body);
	record_progress(a, json_number_of(json, "elapsed_s"), json_number_of(json, "samples"));
	*ret_done = strcmp(json_text_of(json, "state"), "recording") != 0;
	if (*ret_done && isatty(STDERR_FILENO))
		fputc('\n', stderr);
	if (*ret_done && *json_text_of(json, "reason"))
		record_ended(json_number_of(json, "elapsed_s"), json_text_of(json, "reason"));
	if (*ret_done)
		record_notes(a, json_number_of(json, "samples"), json_text_of(json, "notes"));
	cJSON_Delete(json);
	reply_free(&reply);
	return CLI_OK;
}

/* Deletes the recording, whose file is written. If this fails, the daemon deletes it after five
 * minutes. */
static void command_record_discard(uint64_t id)
{
	struct reply reply;
	char path[64];

	snprintf(path, sizeof(path), "/v1/recordings/%" PRIu64 "/profile", id);
	if (client_look("DELETE", path, &reply) == CLI_OK)
		reply_free(&reply);
}

static int record_by_daemon(const struct record_arguments *a, const char *answer)
{
	cJSON *json = cJSON_Parse(answer);
	struct fetching fetching = { a, (uint64_t)json_number_of(json, "id") };
	bool done = false;
	char path[64];
	int r = CLI_OK;

	cJSON_Delete(json);
	snprintf(path, sizeof(path), "/v1/recordings/%" PRIu64, fetching.id);
	while (!done && r == CLI_OK) {
		struct timespec pause = { 0, POLL_NS };

		nanosleep(&pause, NULL);
		r = command_record_look(a, path, &done);
	}
	if (r == CLI_OK)
		r = record_files(a, command_record_fetch, &fetching);
	if (r == CLI_OK)
		command_record_discard(fetching.id);
	return r;
}

int command_record(int argc, char **argv)
{
	char path[PATH_MAX_BYTES] = "/v1/recordings", number[32], types[64];
	struct record_arguments a;
	struct reply reply;
	int r = record_parse(argc, argv, &a);

	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "target", a.target);
	snprintf(number, sizeof(number), "%" PRIu64 "ms", (uint64_t)(a.duration_ns / NS_PER_MS));
	path_add(path, sizeof(path), "seconds", number);
	snprintf(number, sizeof(number), "%" PRIu64 "ns", a.interval_ns);
	path_add(path, sizeof(path), "interval", a.interval_ns ? number : NULL);
	snprintf(number, sizeof(number), "%" PRIu64 "ns", a.min_wait_ns);
	path_add(path, sizeof(path), "min_wait", a.min_wait_ns ? number : NULL);
	path_add(path, sizeof(path), "thread", a.thread);
	path_add(path, sizeof(path), "trace_ids", a.trace_ids ? "1" : NULL);
	path_add(path, sizeof(path), "type", report_events_list(a.events, types, sizeof(types)));
	cli_catch_interrupt();
	r = client_try("POST", path, &reply);
	if (r == CLI_NO_DAEMON)
		return record_by_ourselves(&a);
	if (r == CLI_OK)
		r = record_by_daemon(&a, reply.body);
	reply_free(&reply);
	return r;
}
