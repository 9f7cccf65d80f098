/* See java_options.h. */
#include "daemon/ground/java_options.h"

#include <stdbool.h>
#include <string.h>
#include "daemon/ground/mem.h"

/* Is @word an option of the launcher whose value is the next word? */
static bool java_options_takes_value(const char *word)
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
 * The offset where the options of the JVM end and the arguments of the application begin. Only the
 * JDK's own launcher is known; for other launchers all words count as options. @cmdline is
 * NUL-terminated.
 */
static size_t java_options_end(const char *cmdline, size_t len)
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
		if (java_options_takes_value(p))
			p += strlen(p) + 1;
		if (p < end)
			p += strlen(p) + 1;
	}
	return p < end ? (size_t)(p - cmdline) : len;
}

static void java_options_variable(const char *environ, size_t len, const char *name,
				  java_options_fn *fn, void *userdata)
{
	size_t name_len = strlen(name);

	for (const char *p = environ; p < environ + len; p += strlen(p) + 1)
		if (strncmp(p, name, name_len) == 0)
			fn(userdata, p + name_len, strlen(p + name_len));
}

void java_options_each(const char *cmdline, size_t cmdline_len, const char *environ,
		       size_t environ_len, java_options_fn *fn, void *userdata)
{
	java_options_variable(environ, environ_len, "JAVA_TOOL_OPTIONS=", fn, userdata);
	java_options_variable(environ, environ_len, "JDK_JAVA_OPTIONS=", fn, userdata);
	if (cmdline_len)
		fn(userdata, cmdline, java_options_end(cmdline, cmdline_len));
	java_options_variable(environ, environ_len, "_JAVA_OPTIONS=", fn, userdata);
}
