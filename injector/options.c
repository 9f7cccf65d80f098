/*
 * Finds the options that the JVM was started with, in its command line and the three environment
 * variables that HotSpot reads. This is the second choice, for a JVM whose flags cannot be read
 * from its memory (vmflags.c). The last of several options wins.
 */
#include "injector/inject.h"

#include <string.h>
#include "daemon/ground/java_options.h"

static bool is_end(const char *p, const char *end)
{
	return p >= end || strchr(" \t\n'\"", *p) != NULL; /* strchr also finds the NUL */
}

int options_flag(const char *list, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	int found = -1;

	for (size_t i = 0; i + 5 + name_len <= len; i++) {
		if (memcmp(list + i, "-XX:", 4) != 0 ||
		    (list[i + 4] != '+' && list[i + 4] != '-') ||
		    memcmp(list + i + 5, name, name_len) != 0)
			continue;
		if (is_end(list + i + 5 + name_len, list + len)) /* else a longer name */
			found = list[i + 4] == '+';
	}
	return found;
}

static bool has_word(const char *list, size_t len, const char *word)
{
	size_t word_len = strlen(word);

	for (size_t i = 0; i + word_len <= len; i++)
		if (memcmp(list + i, word, word_len) == 0 &&
		    (i == 0 || is_end(list + i - 1, list + len)) &&
		    is_end(list + i + word_len, list + len))
			return true;
	return false;
}

static void options_read_list(void *userdata, const char *list, size_t len)
{
	struct options *o = userdata;
	int flag = options_flag(list, len, "DisableAttachMechanism");

	if (flag >= 0)
		o->disable_attach = flag;
	flag = options_flag(list, len, "EnableDynamicAgentLoading");
	if (flag >= 0)
		o->dynamic_loading = flag;
	o->xrs |= has_word(list, len, "-Xrs");
	o->crac |= memmem(list, len, "-XX:CRaCCheckpointTo=", 21) != NULL;
}

void options_read(struct options *o, const char *cmdline, size_t cmdline_len, const char *environ,
		  size_t environ_len)
{
	java_options_each(cmdline, cmdline_len, environ, environ_len, options_read_list, o);
}
