/*
 * What the owner of a JVM calls it, in its environment and options: the words of OpenTelemetry and
 * SkyWalking, which say whose profile it is better than a main class does. It is the application's
 * own word: cut, checked, and believed no further than a name is. Pure.
 */
#pragma once

#include <stddef.h>

struct told {
	char service[128]; /* "" = it does not say, here and below */
	char namespace[128]; /* service.namespace */
	char version[64]; /* service.version */
	char environment[64]; /* deployment.environment.name, or without .name */
};

/*
 * The first that is there counts for the service: -Dotel.service.name, OTEL_SERVICE_NAME,
 * service.name of -Dotel.resource.attributes or else of OTEL_RESOURCE_ATTRIBUTES, then what
 * skywalking-agent.jar is given, -Dskywalking.agent.service_name, SW_AGENT_NAME. A value with a
 * control character in it is none.
 *
 * @cmdline, @environ: NUL-separated as in /proc, and NUL-terminated; a length of 0 = not known
 */
void told_read(const char *cmdline, size_t cmdline_len, const char *environ, size_t environ_len,
	       struct told *ret);
