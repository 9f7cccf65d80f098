/* Names and units of each kind of event in reports. */
#pragma once

#include <stddef.h>
#include "daemon/profile/profile.h"

struct report_event {
	const char *of; /* what the weights measure: "CPU", "waiting" */
	const char *unit; /* "ns" or "bytes": the unit in json and collapsed */
	const char *large; /* the unit for people: "s" or "MiB" */
	double large_size; /* converted to that unit */
	const char *samples; /* "samples", "waits"; "sample", "wait" for one */
};
extern const struct report_event report_events[WIRE_EVENT_COUNT];

/* Parses "lock" or "cpu,lock" into bits. false: an unknown word. */
bool report_events_by_name(const char *list, unsigned *ret);
/* The reverse: "cpu,lock"; @buf. */
const char *report_events_list(unsigned events, char *buf, size_t size);
/* The event of a mask; if there are several the first one, if none CPU. */
enum wire_event report_event_of(unsigned events);
