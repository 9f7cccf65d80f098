/* Other profilers: recognised in maps and in options, by one table. */
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/ground/profilers.h"

#define LIST(text) text, sizeof(text) - 1

static const char *in_options(const char *cmdline, size_t len, const char *environ, size_t n)
{
	static char text[PROFILERS_TEXT_SIZE];

	return profilers_text(profilers_of_options(cmdline, len, environ, n), text);
}

static const char *in_line(const char *line)
{
	static char text[PROFILERS_TEXT_SIZE];

	return profilers_text(profilers_of_library(line), text);
}

static void each_library_has_its_name(void **state)
{
	static const struct {
		const char *path, *name;
	} rows[] = {
		{ "/tmp/asprof/lib/libasyncProfiler.so", "async-profiler" },
		{ "/tmp/pyroscope/libasyncProfiler-linux-x64-1f.so", "async-profiler" },
		{ "/tmp/libjavaProfiler-dd-tmp123.so (deleted)", "Datadog" },
		{ "/opt/libpyroscopejavaagent.so", "Pyroscope" },
		{ "/opt/yjp/bin/linux-x86-64/libyjpagent.so", "YourKit" },
		{ "/opt/jprofiler/bin/linux-x64/libjprofilerti.so", "JProfiler" },
		{ "/opt/dynatrace/oneagent/agent/lib64/liboneagentproc.so", "Dynatrace" },
		{ "/tmp/kindling/0.1.0/libkindling-00.so", "" },
		{ "/opt/libasyncProfiler.so/other.so", "" },
		{ "/opt/libasyncProfiler.txt", "" },
		{ "[heap]", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[256];

		snprintf(line, sizeof(line), "7f0-7f1 r-xp 00000000 08:01 12 %s", rows[i].path);
		assert_string_equal(in_line(line), rows[i].name);
	}
}

static void agents_are_found_in_all_four_sources(void **state)
{
	(void)state;
	assert_string_equal(
		in_options(LIST("java\0-agentpath:/opt/libasyncProfiler.so=start,event=cpu\0Main"),
			   "", 0),
		"async-profiler");
	assert_string_equal(in_options(LIST("java\0-agentlib:yjpagent=port=1\0Main"), "", 0),
			    "YourKit");
	assert_string_equal(
		in_options(LIST("java\0Main"),
			   LIST("JAVA_TOOL_OPTIONS=-Xmx1g -javaagent:/dd-java-agent.jar\0")),
		"Datadog");
	assert_string_equal(in_options(LIST("java\0Main"),
				       LIST("JDK_JAVA_OPTIONS=\"-javaagent:/nr/newrelic.jar\"\0")),
			    "New Relic");
	assert_string_equal(
		in_options(
			LIST("java\0-javaagent:/pyroscope.jar\0Main"),
			LIST("_JAVA_OPTIONS=-javaagent:/otel/opentelemetry-javaagent.jar=a=b\0")),
		"Pyroscope, OpenTelemetry");
	assert_string_equal(
		in_options(LIST("java\0-javaagent:splunk-otel-javaagent.jar\0Main"), "", 0),
		"OpenTelemetry");
}

static void words_for_the_application_are_no_agents(void **state)
{
	(void)state;
	assert_string_equal(
		in_options(LIST("java\0-jar\0launcher.jar\0-agentpath:/libasyncProfiler.so"), "",
			   0),
		"");
	assert_string_equal(in_options(LIST("java\0-javaagent:/opt/jacoco.jar\0Main"), "", 0), "");
	assert_string_equal(
		in_options(LIST("java\0-agentlib:jdwp=server=y,a=libyjpagent.so\0Main"), "", 0),
		"");
	assert_string_equal(in_options(LIST("java\0-agentpath:"), "", 0), "");
	assert_string_equal(in_options("", 0, LIST("X_JAVA_TOOL_OPTIONS=-agentlib:yjpagent\0")),
			    "");
}

/* the maps of a JVM with thousands of threads are longer than one read */
static void maps_are_read_to_their_end(void **state)
{
	static const char tail[] = "7f0-7f1 r-xp 00000000 08:01 9 /x/libjprofilerti.so\n";
	char dir[] = "/tmp/kindling-test-XXXXXX", path[64];
	profilers_set set = 0;
	char text[PROFILERS_TEXT_SIZE];
	FILE *f;
	int dfd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/maps", dir);
	f = fopen(path, "w");
	for (int i = 0; i < 4000; i++)
		fprintf(f, "7f%06x-7f%06x rw-p 00000000 00:00 0 \n", i, i + 1);
	fputs(tail, f);
	fclose(f);
	dfd = open(dir, O_RDONLY | O_DIRECTORY);
	profilers_read_maps(dfd, &set);
	profilers_read_options(dfd, &set); /* not there: adds nothing */
	close(dfd);
	unlink(path);
	rmdir(dir);
	assert_string_equal(profilers_text(set, text), "JProfiler");
}

static void all_names_fit_into_the_text(void **state)
{
	char text[PROFILERS_TEXT_SIZE];
	unsigned n = 0;
	size_t len = 0;

	(void)state;
	while (profilers_name(n))
		len += strlen(profilers_name(n++)) + 2;
	assert_int_equal(strlen(profilers_text(UINT32_MAX, text)), len - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_library_has_its_name),
		cmocka_unit_test(agents_are_found_in_all_four_sources),
		cmocka_unit_test(words_for_the_application_are_no_agents),
		cmocka_unit_test(maps_are_read_to_their_end),
		cmocka_unit_test(all_names_fit_into_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
