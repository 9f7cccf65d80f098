/* The names and units of each kind of event, for reports. */
#pragma once

#include <stddef.h>
#include "daemon/profile/profile.h"

struct report_event {
	const char *of; /* what the weights measure: "CPU", "waiting" */
	const char *unit; /* "ns" or "bytes", as in json and collapsed */
	const char *large; /* for people: "s" or "MiB" */
	double large_size; /* how many of the units it is */
	const char *samples; /* "samples", "waits"; sample: the same for one */
};
extern const struct report_event report_events[WIRE_EVENT_COUNT];

/* Parses a list such as "lock" or "cpu,lock" into bits. false: an unknown word. */
bool report_events_by_name(const char *list, unsigned *ret);
/* Writes such a list; returns @buf. */
const char *report_events_list(unsigned events, char *buf, size_t size);
/* The first event of the bits; CPU if there is none. */
enum wire_event report_event_of(unsigned events);
