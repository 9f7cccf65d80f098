/* kindling sink: tests whether a sink of the settings accepts a profile. */
#include <string.h>
#include "daemon/cli/cli.h"

static const struct usage_row options[] = {
	COMMAND_WORD(
		"test", "NAME",
		"sends one small profile (a JVM called kindling-sink-test, with one sample) to "
		"the sink NAME of the settings, and prints what the server answered. The counters "
		"in status leave it out"),
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_sink = {
	"sink",
	"send a small profile to a sink, and print the answer",
	"kindling sink test NAME",
	"Checks whether a sink of the settings accepts what is sent to it.",
	options,
	"Exit status: 0 the profile was accepted, 1 it was not.",
	"kindling sink test lake",
};

static int command_sink_test(const char *name)
{
	char path[PATH_MAX_BYTES];
	struct reply reply;
	cJSON *json;
	bool ok;
	int r;

	if (!*name || strlen(name) > 60 || strpbrk(name, "/?# "))
		return cli_wrong("sink", "test takes the NAME of a sink");
	snprintf(path, sizeof(path), "/v1/sinks/%s/test", name);
	r = client_request("POST", path, &reply);
	if (r != CLI_OK)
		return r;
	json = reply_json(&reply);
	reply_free(&reply);
	if (!json)
		return CLI_FAILED;
	ok = cJSON_IsTrue(json_get(json, "ok"));
	printf("%s: %s", name, ok ? "taken" : "not taken");
	if (*json_text_of(json, "answer")) {
		fputs(ok ? " (" : ": ", stdout);
		print_text(stdout, json_text_of(json, "answer"));
		fputs(ok ? ")" : "", stdout);
	}
	putchar('\n');
	cJSON_Delete(json);
	return ok ? CLI_OK : CLI_FAILED;
}

int command_sink(int argc, char **argv)
{
	int r = cli_parse(&usage_sink, argc, argv, NULL);

	if (r >= 0)
		return r;
	if (argc - optind == 2 && strcmp(argv[optind], "test") == 0)
		return command_sink_test(argv[optind + 1]);
	return cli_usage(&usage_sink, USAGE_WRONG);
}
