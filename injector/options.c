/*
 * What the owner told the JVM, from the command line and the three variables: the second source,
 * for a JVM whose flags cannot be read in its memory (vmflags.c). A JVM reads
 * JAVA_TOOL_OPTIONS first, then JDK_JAVA_OPTIONS (its launcher puts it before the command line),
 * the command line, and _JAVA_OPTIONS at the end; the last word wins.
 */
#include "injector/inject.h"

#include <string.h>

static bool is_end(const char *p, const char *end)
{
	return p >= end || strchr(" \t\n'\"", *p) != NULL; /* strchr finds the NUL too */
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

static void look(struct options *o, const char *list, size_t len)
{
	int flag = options_flag(list, len, "DisableAttachMechanism");

	if (flag >= 0)
		o->disable_attach = flag;
	flag = options_flag(list, len, "EnableDynamicAgentLoading");
	if (flag >= 0)
		o->dynamic_loading = flag;
	o->xrs |= has_word(list, len, "-Xrs");
	o->crac |= memmem(list, len, "-XX:CRaCCheckpointTo=", 21) != NULL;
}

/* Options of the launcher whose value is the next word. */
static bool takes_value(const char *word)
{
	static const char *const words[] = {
		"-cp",		 "-classpath",	    "--class-path",   "-p",
		"--module-path", "--add-modules",   "--add-reads",    "--add-exports",
		"--add-opens",	 "--limit-modules", "--patch-module", "--upgrade-module-path",
		"--source",
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

/*
 * Where the words for the JVM end and those for the application begin. Only java's own launcher is
 * known; of another one every word counts. @cmdline is NUL-terminated.
 */
static size_t options_end(const char *cmdline, size_t len)
{
	const char *base = strrchr(cmdline, '/');
	const char *end = cmdline + len;
	const char *p = cmdline + strlen(cmdline) + 1;

	if (strcmp(base ? base + 1 : cmdline, "java") != 0)
		return len;
	while (p < end) {
		if (strcmp(p, "-jar") == 0 || strcmp(p, "-m") == 0 || strcmp(p, "--module") == 0 ||
		    (*p != '-' && *p != '@'))
			break;
		if (takes_value(p))
			p += strlen(p) + 1;
		if (p < end)
			p += strlen(p) + 1;
	}
	return p < end ? (size_t)(p - cmdline) : len;
}

static void look_variable(struct options *o, const char *environ, size_t len, const char *name)
{
	size_t name_len = strlen(name);

	for (const char *p = environ; p < environ + len; p += strlen(p) + 1)
		if (strncmp(p, name, name_len) == 0)
			look(o, p + name_len, strlen(p + name_len));
}

void options_read(struct options *o, const char *cmdline, size_t cmdline_len, const char *environ,
		  size_t environ_len)
{
	look_variable(o, environ, environ_len, "JAVA_TOOL_OPTIONS=");
	look_variable(o, environ, environ_len, "JDK_JAVA_OPTIONS=");
	look(o, cmdline, options_end(cmdline, cmdline_len));
	look_variable(o, environ, environ_len, "_JAVA_OPTIONS=");
}
