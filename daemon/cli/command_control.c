/* kindling attach and kindling detach: asks kindlingd, then waits for the result. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

#define POLL_NS (50 * NS_PER_MS)
#define WAIT_NS (20 * NS_PER_S)

struct arguments {
	bool json;
};

static const struct usage_row options[] = {
	OPTION_FLAG('j', "json", struct arguments, json,
		    "print the JVM as `kindling status --json` does"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_attach = {
	"attach",
	"start profiling one JVM now",
	"kindling attach [--json] TARGET",
	"Starts profiling a JVM at once, even if it was detached, if an attach to it has failed, "
	"or if targets.mode, targets.max or the crash of a similar JVM keeps it out. It cannot "
	"overrule a "
	"rule that denies the JVM, nor KINDLING_DISABLE=1 in its environment. The command waits until the JVM "
	"is being profiled, or prints why it is not.\n" CLI_TARGET_ABOUT ".",
	options,
	NULL,
	"kindling attach 4711",
};

const struct usage usage_detach = {
	"detach",
	"stop profiling one JVM, and remove the agent from it",
	"kindling detach [--json] TARGET",
	"Stops profiling a JVM and removes the agent from it. The JVM stays detached, even when "
	"kindlingd is restarted, until `kindling attach` or a new rule that allows it. What was "
	"recorded is kept.\n" CLI_TARGET_ABOUT ".",
	options,
	NULL,
	"kindling detach 4711",
};

struct wish {
	const struct usage *usage;
	const char *path;
	bool (*reached)(const char *state);
};

static bool command_control_is_attached(const char *state)
{
	return strcmp(state, "streaming") == 0;
}

static bool is_detached(const char *state)
{
	return strcmp(state, "detached") == 0;
}

static const struct wish attach = { &usage_attach, "/v1/targets/attach",
				    command_control_is_attached };
static const struct wish detach = { &usage_detach, "/v1/targets/detach", is_detached };

static const cJSON *command_control_find(const cJSON *status, double pid)
{
	const cJSON *t, *found = NULL;

	cJSON_ArrayForEach(t, json_get(status, "targets"))
	{
		if (json_number_of(t, "pid") == pid)
			found = t; /* the last one: earlier ones with this pid were other processes
				    */
	}
	return found;
}

/* Is the JVM's state the result? A failed attach that is soon repeated is not. */
static bool is_final(const struct wish *wish, const cJSON *t)
{
	const char *state = json_text_of(t, "state");

	if (wish->reached(state) || strcmp(state, "gone") == 0 || strcmp(state, "excluded") == 0)
		return true;
	if (wish == &attach && strcmp(state, "detached") == 0)
		return true;
	return wish == &attach && strcmp(state, "failed") == 0 &&
	       (!cJSON_IsNumber(json_get(t, "retry_in_s")) || json_number_of(t, "attempts") >= 3);
}

static void command_control_print(const struct wish *wish, const cJSON *t)
{
	const char *state = json_text_of(t, "state");
	bool done = wish->reached(state);
	FILE *to = done ? stdout : stderr;

	fprintf(to, "%s%.0f ", done ? "" : "kindling: process ", json_number_of(t, "pid"));
	print_text(to, json_text_of(t, "name"));
	fprintf(to, " is %s", state);
	if (!done && *json_text_of(t, "reason")) {
		fputs(": ", to);
		print_text(to, json_text_of(t, "reason"));
	}
	fputc('\n', to);
}

static void command_control_print_json(const cJSON *t)
{
	CLEANUP(freep) char *text = NULL;
	struct text_out json = { 0 };
	size_t len;

	json_add_parsed(&json, NULL, t);
	if (text_take(&json, &text, &len) == 0)
		puts(text);
}

static int command_control_conclude(const struct wish *wish, const cJSON *t, bool json)
{
	int r = wish->reached(json_text_of(t, "state")) ? CLI_OK : CLI_FAILED;

	if (json)
		command_control_print_json(t);
	if (!json || r != CLI_OK)
		command_control_print(wish, t);
	return r;
}

/* Looks at the JVM once. -1 = there is no result yet. */
static int command_control_look(const struct wish *wish, double pid, bool json, bool last)
{
	struct reply reply;
	const cJSON *t;
	cJSON *status;
	int r = client_request("GET", "/v1/status", &reply);

	if (r != CLI_OK)
		return r;
	status = cJSON_Parse(reply.body);
	t = command_control_find(status, pid);
	r = -1;
	if (t && (last || is_final(wish, t))) {
		r = command_control_conclude(wish, t, json);
	} else if (!t) {
		fprintf(stderr, "kindling: process %.0f has ended\n", pid);
		r = CLI_FAILED;
	}
	cJSON_Delete(status);
	reply_free(&reply);
	return r;
}

static int command_control_ask(const struct wish *wish, const char *target, bool json)
{
	uint64_t deadline = clock_mono_ns() + WAIT_NS;
	char path[PATH_MAX_BYTES];
	struct reply reply;
	double pid;
	cJSON *answer;
	int r;

	snprintf(path, sizeof(path), "%s", wish->path);
	path_add(path, sizeof(path), "target", target);
	r = client_request("POST", path, &reply);
	if (r != CLI_OK)
		return r;
	answer = cJSON_Parse(reply.body);
	pid = json_number_of(answer, "pid");
	cJSON_Delete(answer);
	reply_free(&reply);
	do {
		struct timespec pause = { 0, POLL_NS };

		r = command_control_look(wish, pid, json,
					 cli_interrupted || clock_mono_ns() > deadline);
		if (r < 0)
			nanosleep(&pause, NULL);
	} while (r < 0);
	return r;
}

static int command_control_run(const struct wish *wish, int argc, char **argv)
{
	struct arguments a = { 0 };
	int r = cli_parse(wish->usage, argc, argv, &a);

	if (r >= 0)
		return r;
	if (optind + 1 != argc)
		return cli_wrong(wish->usage->name, "name one TARGET");
	cli_catch_interrupt();
	return command_control_ask(wish, argv[optind], a.json);
}

int command_attach(int argc, char **argv)
{
	return command_control_run(&attach, argc, argv);
}

int command_detach(int argc, char **argv)
{
	return command_control_run(&detach, argc, argv);
}
