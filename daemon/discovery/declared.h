/*
 * The names that a JVM's owner gave it in its environment and options: the settings of tracers and
 * of frameworks, which identify a profile better than a main class does. The application chooses
 * them, so they are checked, cut, and not trusted. Pure.
 */
#pragma once

#include <stddef.h>

struct declared {
	char service[128]; /* "" = not given, here and below */
	char application[128]; /* what its framework calls it */
	char namespace[128]; /* service.namespace */
	char version[64]; /* service.version */
	char environment[64]; /* deployment.environment.name, or without .name */
};

/*
 * The first of these that is given is the service: -Dotel.service.name, OTEL_SERVICE_NAME,
 * service.name of -Dotel.resource.attributes or else of OTEL_RESOURCE_ATTRIBUTES, then the option
 * of skywalking-agent.jar, -Dskywalking.agent.service_name, SW_AGENT_NAME, then the settings of
 * Datadog, Elastic APM and New Relic. The version and the environment may come from Datadog's and
 * Elastic's settings too. The application is the first of Spring's, Quarkus' and Micronaut's
 * setting; of each an option wins over a variable, and over both Spring's argument
 * --spring.application.name. A value with a control character is ignored.
 *
 * @cmdline, @environ: NUL-separated as in /proc, and NUL-terminated; a length of 0 = unknown
 */
void declared_read(const char *cmdline, size_t cmdline_len, const char *environ, size_t environ_len,
		   struct declared *ret);
