/*
 * Understands a JVM's answer to `load`, as observed with HotSpot 8 to 28. Success is "0
 * 0
 * " (JDK 8) or "0
 * return code: 0
 * " (9 and later). A failure starts with "-1" up to JDK 20, but with "0" from 21 on, so only the
 * text is evaluated.
 */
#include "injector/inject.h"

#include <errno.h>
#include <string.h>

/* Copies the first line of text after the status line, with '?' for control characters. */
static void second_line(const char *reply, char *ret, size_t size)
{
	const char *p = strchr(reply, '\n');
	size_t n = 0;

	for (p = p ? p + 1 : reply; *p && n < size - 1; p++) {
		if (*p == '\n' && n == 0)
			continue;
		if (*p == '\n')
			break;
		ret[n++] = *p < 0x20 || *p == 0x7f ? '?' : *p;
	}
	ret[n] = '\0';
}

int reply_check_load(const char *reply, struct fault *f)
{
	char line[96];
	int r;

	if (strstr(reply, "return code: 0\n") || strcmp(reply, "0\n0\n") == 0)
		return 0;
	second_line(reply, line, sizeof(line));
	if (strstr(reply, "live phase")) {
		r = fault_set(f, EAGAIN, FAULT_ATTACH, "the JVM is still starting");
		f->flags |= FAULT_RETRY_SOON;
	} else if (strstr(reply, "Dynamic agent loading is not enabled")) {
		r = fault_set(
			f, EPERM, FAULT_ATTACH,
			"its owner forbids agents: the JVM was started with -XX:-EnableDynamicAgentLoading");
		f->flags |= FAULT_PERMANENT;
	} else if (strstr(reply, "failed to map segment")) {
		r = fault_set(f, EACCES, FAULT_LOAD,
			      "/tmp in the JVM's container is mounted noexec");
	} else if (reply[0] == '\0') {
		r = fault_set(f, EPROTO, FAULT_ATTACH,
			      "the JVM closed its attach socket without an answer");
	} else {
		r = fault_set(f, EPROTO, FAULT_LOAD, "the JVM did not load the agent: %s", line);
	}
	return r;
}
