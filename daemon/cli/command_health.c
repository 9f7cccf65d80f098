/* kindling health: exits with 0 if kindlingd works, for probes of a container, whose image has no
 * curl. */
#include "daemon/cli/cli.h"

static const struct usage_row options[] = {
	OPTION_HELP,
	USAGE_ROWS_END,
};

const struct usage usage_health = {
	"health",
	"does kindlingd answer? for probes",
	"kindling health",
	"Asks kindlingd for /healthz and prints the answer, for liveness and readiness probes. "
	"The answer is about the daemon only; for single JVMs use kindling status.",
	options,
	"Exit status: 0 it answers, 3 it does not.",
	"kindling health",
};

int command_health(int argc, char **argv)
{
	int r = cli_parse(&usage_health, argc, argv, NULL);
	struct reply reply;

	if (r >= 0)
		return r;
	r = client_request("GET", "/healthz", &reply);
	if (r != CLI_OK)
		return r;
	fputs(reply.body, stdout);
	reply_free(&reply);
	return fflush(stdout) == 0 ? CLI_OK : CLI_FAILED;
}
