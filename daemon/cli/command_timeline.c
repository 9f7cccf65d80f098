/* kindling timeline: writes a JVM's last minutes, event by event, as a page or a trace. */
#include <stdlib.h>
#include <string.h>
#include "daemon/cli/cli.h"
#include "daemon/cli/timeline_files.h"

struct arguments {
	const char *target, *last, *from, *to, *output, *thread, *trace;
};

static const struct usage_row options[] = {
	OPTION_TEXT(
		'o', "output", "FILE", struct arguments, output,
		".html: a page; .pftrace: a trace for Perfetto (ui.perfetto.dev); .json: the numbers. "
		"\"-\" is the json on stdout"),
	OPTION_TEXT('l', "last", "DURATION", struct arguments, last,
		    "how far to look back: 30s (the default), 2m"),
	OPTION_TEXT(
		0, "from", "TIME", struct arguments, from,
		"from this moment: 14:05, 14:05:30.250, \"2026-11-21 14:05:30\" or @SECONDS since 1970"),
	OPTION_TEXT(0, "to", "TIME", struct arguments, to, "up to this moment (default: now)"),
	OPTION_TEXT('t', "thread", "WORD", struct arguments, thread,
		    "only threads whose names contain it"),
	OPTION_TEXT(
		0, "trace", "ID", struct arguments, trace,
		"the threads that worked for the trace with this id, and those that held its locks; what "
		"they did besides is dimmed"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_timeline = {
	"timeline",
	"who ran, who waited for whom, and when: a page, or a trace for Perfetto",
	"kindling timeline TARGET [--last 30s | --from TIME [--to TIME]] -o FILE [OPTION...]",
	"Writes what each thread of a JVM did in the last seconds or minutes, event by event: its samples, its "
	"waits with their locks and owners, its time off the CPU with the reason. The page has a row for each "
	"thread; arrows go from a wait to the thread that held the lock, a click shows the stack. It needs no "
	"network. kindlingd keeps such events for five minutes at most, in a part of its memory "
	"(limits.memory); the page says since when they are complete.\n" CLI_TARGET_ABOUT
	". It has waits if events.lock is on.",
	options,
	NULL,
	"kindling timeline 4711 -o timeline.html\n"
	"kindling timeline shop --last 10s --thread http-nio -o slow.html\n"
	"kindling timeline 4711 --from 14:05:10.5 --to 14:05:12 -o trace.pftrace",
};

extern const char timeline_html[];

char *timeline_page(const char *answer, size_t len, size_t *ret_len)
{
	static const char mark[] = "@TIMELINE@";
	const char *at = strstr(timeline_html, mark);
	size_t before = at ? (size_t)(at - timeline_html) : 0, after;
	const char *rest = at ? at + sizeof(mark) - 1 : "";
	char *page;

	after = strlen(rest);
	page = at ? malloc(before + len + after + 1) : NULL;
	if (!page)
		return NULL;
	memcpy(page, timeline_html, before);
	memcpy(page + before, answer, len);
	memcpy(page + before + len, rest, after + 1);
	*ret_len = before + len + after;
	return page;
}

enum { FILE_JSON, FILE_HTML, FILE_PFTRACE, FILE_UNKNOWN };

static int command_timeline_format(const char *path)
{
	static const char *const ends[] = { ".json", ".html", ".pftrace" };
	size_t n = strlen(path);

	for (int i = 0; i < FILE_UNKNOWN; i++)
		if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0)
			return i;
	return strcmp(path, "-") == 0 ? FILE_JSON : FILE_UNKNOWN;
}

static int command_timeline_parse(int argc, char **argv, struct arguments *a)
{
	int r = cli_parse(&usage_timeline, argc, argv, a);

	if (r >= 0)
		return r;
	a->target = optind < argc ? argv[optind] : NULL;
	if (!a->target || optind + 1 < argc)
		return cli_wrong("timeline", "name one TARGET");
	if (!a->output)
		return cli_wrong("timeline", "-o FILE is missing: the file to write");
	if (command_timeline_format(a->output) == FILE_UNKNOWN)
		return cli_wrong("timeline", "FILE ends in .html, .pftrace or .json");
	return -1;
}

static int command_timeline_fetch(const struct arguments *a, struct reply *ret)
{
	char path[PATH_MAX_BYTES] = "/v1/timeline";
	int r;

	path_add(path, sizeof(path), "target", a->target);
	r = path_add_span(path, sizeof(path),
			  &(struct span_words){ "timeline", a->last, a->from, a->to });
	if (r >= 0)
		return r;
	path_add(path, sizeof(path), "thread", a->thread);
	path_add(path, sizeof(path), "trace", a->trace);
	return client_request("GET", path, ret);
}

static double command_timeline_events(const cJSON *json, const char *kind)
{
	return json_number_of(json_get(json_get(json, "sums"), kind), "events");
}

/* Prints "timeline.html: 5,120 samples, 31 waits. Open it in a browser." */
static void command_timeline_print_result(const char *output, const cJSON *json, int format)
{
	double lost = 0, unseen;
	const cJSON *sum;

	if (strcmp(output, "-") == 0)
		return;
	fprintf(stderr,
		"%s: %.0f CPU samples, %.0f waits, %.0f intervals off the CPU, %.0f safepoints and GC pauses",
		output, command_timeline_events(json, "cpu"), command_timeline_events(json, "lock"),
		command_timeline_events(json, "offcpu"), command_timeline_events(json, "band"));
	unseen = json_number_of(json_get(json, "pauses"), "unseen");
	if (unseen > 0)
		fprintf(stderr, " (of %.0f more safepoints nobody saw the times)", unseen);
	else if (cJSON_IsFalse(json_get(json_get(json, "pauses"), "known")))
		fputs(" (this JVM's are not known)", stderr);
	cJSON_ArrayForEach(sum, json_get(json, "no_room")) lost += json_number_of(sum, "events");
	if (lost > 0)
		fprintf(stderr, "; %.0f events found no room in kindlingd's memory", lost);
	if (cJSON_IsNull(json_get(json, "since_ns")))
		fputs("; nothing has come from this JVM yet", stderr);
	else if (json_number_of(json, "since_ns") > json_number_of(json, "from_ns"))
		fprintf(stderr, "; %s the last %.0f s of it",
			cJSON_IsTrue(json_get(json, "forgotten")) ? "there was room only for"
								  : "there is only",
			(json_number_of(json, "to_ns") - json_number_of(json, "since_ns")) / 1e9);
	fputs(format == FILE_HTML      ? ". Open it in a browser.\n"
	      : format == FILE_PFTRACE ? ". Open it in https://ui.perfetto.dev.\n"
				       : ".\n",
	      stderr);
}

static int command_timeline_write(const char *output, const struct reply *reply, const cJSON *json)
{
	int format = command_timeline_format(output), r;
	size_t len = reply->len;
	char *made = NULL;

	if (format == FILE_HTML)
		made = timeline_page(reply->body, reply->len, &len);
	else if (format == FILE_PFTRACE)
		made = timeline_pftrace(json, &len);
	if (format != FILE_JSON && !made) {
		fputs("kindling timeline: no memory for the file\n", stderr);
		return CLI_FAILED;
	}
	r = write_file(output, made ? made : reply->body, len);
	free(made);
	if (r == CLI_OK)
		command_timeline_print_result(output, json, format);
	return r;
}

int command_timeline(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct reply reply;
	cJSON *json;
	int r = command_timeline_parse(argc, argv, &a);

	if (r >= 0)
		return r;
	r = command_timeline_fetch(&a, &reply);
	if (r != CLI_OK)
		return r;
	json = reply_json(&reply);
	r = json ? command_timeline_write(a.output, &reply, json) : CLI_FAILED;
	cJSON_Delete(json);
	reply_free(&reply);
	return r;
}
