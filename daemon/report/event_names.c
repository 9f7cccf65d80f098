/* See event_names.h. */
#include "daemon/report/event_names.h"

#include <stdio.h>
#include <string.h>

#define MIB 1048576.0

const struct report_event report_events[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = { "CPU", "ns", "s", 1e9, "samples" },
	[WIRE_EVENT_LOCK] = { "waiting", "ns", "s", 1e9, "waits" },
	[WIRE_EVENT_ALLOC] = { "allocation", "bytes", "MiB", MIB, "samples" },
	[WIRE_EVENT_WALL] = { "wall-clock time", "ns", "s", 1e9, "samples" },
	[WIRE_EVENT_OFFCPU] = { "time off the CPU", "ns", "s", 1e9, "intervals" },
};

static int event_by_name(const char *name, size_t len)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (strlen(wire_event_names[e]) == len &&
		    memcmp(wire_event_names[e], name, len) == 0)
			return e;
	return -1;
}

bool report_events_by_name(const char *list, unsigned *ret)
{
	unsigned events = 0;

	for (const char *s = list;; s++) {
		size_t len = strcspn(s, ",");
		int e = event_by_name(s, len);

		if (e < 0)
			return false;
		events |= 1u << e;
		s += len;
		if (!*s)
			break;
	}
	*ret = events;
	return true;
}

const char *report_events_list(unsigned events, char *buf, size_t size)
{
	size_t n = 0;

	*buf = '\0';
	for (int e = 0; e < WIRE_EVENT_COUNT && n < size; e++)
		if (events & 1u << e)
			n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "," : "",
					      wire_event_names[e]);
	return buf;
}

enum wire_event report_event_of(unsigned events)
{
	unsigned known = events & ((1u << WIRE_EVENT_COUNT) - 1);

	return known ? (enum wire_event)__builtin_ctz(known) : WIRE_EVENT_CPU;
}
