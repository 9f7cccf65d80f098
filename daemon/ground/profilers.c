/* See profilers.h. */
#include "daemon/ground/profilers.h"

#include <assert.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/ground/java_options.h"
#include "daemon/ground/maps.h"
#include "daemon/ground/mem.h"
#include "daemon/ground/proc.h"

#define WORD_ENDS    " \t\n'\"" /* and NUL, which strchr() finds as well */
#define NAME_BYTES   256 /* of a library or jar: no known profiler has a longer one */
#define CMDLINE_MAX  (256u * 1024)
#define ENVIRON_MAX  (256u * 1024)
#define PATTERNS_MAX 3

/* Patterns, fnmatch(3), for the last part of a path. */
static const struct profiler {
	const char *name;
	const char *libraries[PATTERNS_MAX];
	const char *jars[PATTERNS_MAX];
} profilers[] = {
	/* Pyroscope, Elastic's agent and others unpack this library, too */
	{ "async-profiler",
	  { "libasyncProfiler*.so*" },
	  { "async-profiler*.jar", "ap-loader*.jar" } },
	/* libjavaProfiler-dd-tmp<number>.so, which is deleted after it was loaded */
	{ "Datadog", { "libjavaProfiler*.so*" }, { "dd-java-agent*.jar" } },
	{ "Pyroscope", { "libpyroscope*.so*" }, { "pyroscope*.jar" } },
	{ "YourKit", { "libyjpagent*.so*" }, { NULL } },
	{ "JProfiler", { "libjprofilerti*.so*" }, { NULL } },
	{ "Dynatrace", { "liboneagent*.so*" }, { NULL } },
	/* these two have no library of their own */
	{ "New Relic", { NULL }, { "newrelic*.jar" } },
	{ "OpenTelemetry", { NULL }, { "*opentelemetry*.jar", "*-otel-*.jar" } },
};
static_assert(ARRAY_SIZE(profilers) <= PROFILERS_MAX, "a bit each");

const char *profilers_name(unsigned row)
{
	return row < ARRAY_SIZE(profilers) ? profilers[row].name : NULL;
}

static bool profilers_is_one_of(const char *const patterns[PATTERNS_MAX], const char *name)
{
	for (int i = 0; i < PATTERNS_MAX && patterns[i]; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return false;
}

static profilers_set profilers_of_name(const char *name, bool jar)
{
	profilers_set set = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(profilers); i++)
		if (profilers_is_one_of(jar ? profilers[i].jars : profilers[i].libraries, name))
			set |= 1u << i;
	return set;
}

profilers_set profilers_of_library(const char *line)
{
	const char *slash = strrchr(line, '/');

	return slash ? profilers_of_name(slash + 1, false) : 0;
}

/* ---- options -------------------------------------------------------------------------------- */

/* The profilers that an option's value names: a path or library, without the agent's own options
 * behind "=". @lib: a bare name, as in -agentlib:name. */
static profilers_set profilers_of_value(const char *value, size_t len, bool lib, bool jar)
{
	char name[NAME_BYTES + 8];
	const char *base;

	base = memrchr(value, '/', len);
	if (base && !lib) {
		len -= (size_t)(base + 1 - value);
		value = base + 1;
	}
	if (len >= NAME_BYTES)
		return 0;
	snprintf(name, sizeof(name), "%s%.*s%s", lib ? "lib" : "", (int)len, value,
		 lib ? ".so" : "");
	return profilers_of_name(name, jar);
}

static void profilers_on_options(void *userdata, const char *list, size_t len)
{
	static const struct {
		const char *text;
		bool lib, jar;
	} options[] = {
		{ "-agentpath:", false, false },
		{ "-agentlib:", true, false },
		{ "-javaagent:", false, true },
	};
	profilers_set *set = userdata;
	const char *end = list + len;

	for (const char *p = list; (p = memchr(p, '-', (size_t)(end - p))); p++)
		for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
			size_t n = strlen(options[i].text), value = 0;

			if ((size_t)(end - p) < n || memcmp(p, options[i].text, n) != 0 ||
			    (p > list && !strchr(WORD_ENDS, p[-1])))
				continue;
			while (p + n + value < end && p[n + value] && p[n + value] != '=' &&
			       !strchr(WORD_ENDS, p[n + value]))
				value++;
			*set |= profilers_of_value(p + n, value, options[i].lib, options[i].jar);
		}
}

profilers_set profilers_of_options(const char *cmdline, size_t cmdline_len, const char *environ,
				   size_t environ_len)
{
	profilers_set set = 0;

	java_options_each(cmdline, cmdline_len, environ, environ_len, profilers_on_options, &set);
	return set;
}

const char *profilers_text(profilers_set set, char buf[PROFILERS_TEXT_SIZE])
{
	size_t n = 0;

	buf[0] = '\0';
	for (unsigned i = 0; i < ARRAY_SIZE(profilers) && n < PROFILERS_TEXT_SIZE; i++)
		if (set & 1u << i)
			n += (size_t)snprintf(buf + n, PROFILERS_TEXT_SIZE - n, "%s%s",
					      n ? ", " : "", profilers[i].name);
	return buf;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void profilers_on_line(void *userdata, char *line)
{
	profilers_set *set = userdata;

	*set |= profilers_of_library(line);
}

void profilers_read_maps(int pid_dfd, profilers_set *set)
{
	(void)maps_each(pid_dfd, profilers_on_line, set);
}

void profilers_read_options(int pid_dfd, profilers_set *set)
{
	CLEANUP(freep) char *cmdline = malloc(CMDLINE_MAX), *environ = malloc(ENVIRON_MAX);
	ssize_t n, m;

	if (!cmdline || !environ)
		return;
	n = proc_read(pid_dfd, "cmdline", cmdline, CMDLINE_MAX);
	m = proc_read(pid_dfd, "environ", environ, ENVIRON_MAX);
	*set |= profilers_of_options(cmdline, n > 0 ? (size_t)n : 0, environ,
				     m > 0 ? (size_t)m : 0);
}
