/*
 * `kindling help --targets`: what shells suggest where a TARGET is expected. JVMs choose their
 * names, and a shell evaluates suggestions: so a name with other characters than letters, digits
 * and - . _ is left out.
 */
#include <string.h>
#include <unistd.h>
#include "daemon/cli/cli.h"

#define TARGETS_SECONDS 2 /* the user waits at a prompt */
#define TARGETS_SAFE	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

static bool targets_is_safe(const char *name)
{
	return *name && *name != '-' && strlen(name) < 80 && !name[strspn(name, TARGETS_SAFE)];
}

int cli_targets(void)
{
	struct reply reply;
	const cJSON *t;
	cJSON *status;

	(void)alarm(TARGETS_SECONDS);
	if (client_look("GET", "/v1/status", &reply) != CLI_OK)
		return CLI_NO_DAEMON;
	status = cJSON_Parse(reply.body);
	reply_free(&reply);
	cJSON_ArrayForEach(t, json_get(status, "targets"))
	{
		const char *name = json_text_of(t, "name");

		if (strcmp(json_text_of(t, "state"), "gone") != 0)
			printf("%.0f\t%s\n", json_number_of(t, "pid"),
			       targets_is_safe(name) ? name : "");
	}
	cJSON_Delete(status);
	return CLI_OK;
}
