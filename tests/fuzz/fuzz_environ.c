/* Command line and environment of a process: the owner's settings, JVM options, agents of
 * others, and what rules match. The first byte selects how much of the rest is the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/discovery/facts.h"
#include "daemon/ground/java_options.h"
#include "daemon/ground/owner.h"
#include "daemon/ground/profilers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_options(void *userdata, const char *list, size_t len)
{
	unsigned *sum = userdata;

	for (size_t i = 0; i < len; i++)
		*sum += (unsigned char)list[i];
}

/* A simple second implementation, for comparison. @environ ends with a NUL. */
static bool is_no(const char *environ, size_t len)
{
	static const char name[] = OWNER_VARIABLE "=";

	for (const char *e = environ; e < environ + len; e += strlen(e) + 1)
		if (strncmp(e, name, strlen(name)) == 0 && e[strlen(name)] &&
		    strcmp(e + strlen(name), "0") != 0)
			return true;
	return false;
}

static void match(const char *command, const char *environ, size_t len)
{
	static struct config_rule rules[3];
	const struct facts_text text = { command, environ, len };
	struct facts facts = { 0 };

	snprintf(rules[0].command, sizeof(rules[0].command), "*java*-jar ?*");
	snprintf(rules[1].environment, sizeof(rules[1].environment), "NAME=*a*b*c");
	snprintf(rules[2].environment, sizeof(rules[2].environment), "NAME");
	facts_match(rules, 3, &text, &facts);
	if ((facts.command | facts.environment) >> RULES_MAX / 2 >> RULES_MAX / 2)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cmdline_len = size ? (size - 1) * data[0] / 255 : 0;
	size_t environ_len = size ? size - 1 - cmdline_len : 0;
	char *cmdline = calloc(1, cmdline_len + 1), *environ = calloc(1, environ_len + 1);
	char text[PROFILERS_TEXT_SIZE];
	unsigned sum = 0;

	if (!cmdline || !environ || !size)
		goto out;
	memcpy(cmdline, data + 1, cmdline_len);
	memcpy(environ, data + 1 + cmdline_len, environ_len);
	if (owner_says_no(environ, environ_len) != is_no(environ, environ_len))
		abort();
	java_options_each(cmdline, cmdline_len, environ, environ_len, on_options, &sum);
	(void)profilers_text(profilers_of_options(cmdline, cmdline_len, environ, environ_len),
			     text);
	(void)profilers_of_library(cmdline);
	match(cmdline, environ, environ_len);
out:
	free(cmdline);
	free(environ);
	return 0;
}
