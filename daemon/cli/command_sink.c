/* kindling sink: does a sink of the settings take what is sent to it? */
#include <string.h>
#include "daemon/cli/cli.h"

static const char usage[] =
	"Usage: kindling sink test NAME\n"
	"\n"
	"  test NAME   sends one small profile (a JVM called kindling-sink-test, with one sample) to the sink\n"
	"              NAME of the settings now, and says what the server answered. It is in no sum of status\n"
	"\n"
	"Exit status: 0 it was taken, 1 it was not.\n"
	"\n"
	"Examples: kindling sink test lake\n";

static int sink_test(const char *name)
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
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return cli_usage(usage, 'h');
	if (argc == 3 && strcmp(argv[1], "test") == 0)
		return sink_test(argv[2]);
	return cli_usage(usage, '?');
}
