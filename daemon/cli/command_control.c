/* kindling attach and detach: ask the daemon, then wait until it is so. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "daemon/cli/cli.h"
#include "daemon/core/clock.h"

#define POLL_NS (50 * NS_PER_MS)
#define WAIT_NS (20 * NS_PER_S)

static const char attach_usage[] =
	"Usage: kindling attach [--json] TARGET\n"
	"\n"
	"Starts profiling a JVM at once, also one that was detached, one to which an attach has failed, and\n"
	"one that targets.mode, targets.max or the crash of a similar JVM keep out. It cannot overrule a\n"
	"rule that denies the JVM, nor KINDLING_DISABLE=1 in its environment. The command waits until the JVM\n"
	"is being profiled, or prints why it is not.\n"
	"TARGET is a pid, a container or its id, a pod, a service or part of a name from `kindling status`.\n"
	"\n"
	"  -j, --json   print the JVM as `kindling status --json` does\n"
	"  -h, --help   show this text\n"
	"\n"
	"Example: kindling attach 4711\n";

static const char detach_usage[] =
	"Usage: kindling detach [--json] TARGET\n"
	"\n"
	"Stops profiling a JVM and removes the agent from it. The JVM stays detached, also when kindlingd\n"
	"is restarted, until `kindling attach` or a new rule that allows it. What was recorded is kept.\n"
	"TARGET is a pid, a container or its id, a pod, a service or part of a name from `kindling status`.\n"
	"\n"
	"  -j, --json   print the JVM as `kindling status --json` does\n"
	"  -h, --help   show this text\n"
	"\n"
	"Example: kindling detach 4711\n";

struct wish {
	const char *verb, *usage, *path;
	bool (*reached)(const char *state);
};

static bool is_attached(const char *state)
{
	return strcmp(state, "streaming") == 0;
}

static bool is_detached(const char *state)
{
	return strcmp(state, "detached") == 0;
}

static const struct wish attach = { "attach", attach_usage, "/v1/targets/attach", is_attached };
static const struct wish detach = { "detach", detach_usage, "/v1/targets/detach", is_detached };

static const cJSON *find(const cJSON *status, double pid)
{
	const cJSON *t, *found = NULL;

	cJSON_ArrayForEach(t, json_get(status, "targets"))
	{
		if (json_number_of(t, "pid") == pid)
			found = t; /* the last one: a pid may have been another JVM's */
	}
	return found;
}

/* Will it stay as it is? A failed one that is tried again in a moment will not. */
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

static void say(const struct wish *wish, const cJSON *t)
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

static int conclude(const struct wish *wish, const cJSON *t, bool json)
{
	char *text = json ? cJSON_PrintUnformatted(t) : NULL;
	int r = wish->reached(json_text_of(t, "state")) ? CLI_OK : CLI_FAILED;

	if (text)
		puts(text);
	if (!json || r != CLI_OK)
		say(wish, t);
	free(text);
	return r;
}

/* One look; -1 = not yet. */
static int look(const struct wish *wish, double pid, bool json, bool last)
{
	struct reply reply;
	const cJSON *t;
	cJSON *status;
	int r = client_request("GET", "/v1/status", &reply);

	if (r != CLI_OK)
		return r;
	status = cJSON_Parse(reply.body);
	t = find(status, pid);
	r = -1;
	if (t && (last || is_final(wish, t))) {
		r = conclude(wish, t, json);
	} else if (!t) {
		fprintf(stderr, "kindling: process %.0f has ended\n", pid);
		r = CLI_FAILED;
	}
	cJSON_Delete(status);
	reply_free(&reply);
	return r;
}

static int ask(const struct wish *wish, const char *target, bool json)
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

		r = look(wish, pid, json, cli_interrupted || clock_mono_ns() > deadline);
		if (r < 0)
			nanosleep(&pause, NULL);
	} while (r < 0);
	return r;
}

static int run(const struct wish *wish, int argc, char **argv)
{
	static const struct option options[] = { { "json", no_argument, NULL, 'j' },
						 { "help", no_argument, NULL, 'h' },
						 { NULL, 0, NULL, 0 } };
	bool json = false;
	int c;

	while ((c = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		if (c != 'j')
			return cli_usage(wish->usage, c);
		json = true;
	}
	if (optind + 1 != argc)
		return cli_wrong(wish->verb, "name one TARGET");
	cli_catch_interrupt();
	return ask(wish, argv[optind], json);
}

int command_attach(int argc, char **argv)
{
	return run(&attach, argc, argv);
}

int command_detach(int argc, char **argv)
{
	return run(&detach, argc, argv);
}
