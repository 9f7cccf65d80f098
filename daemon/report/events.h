/* How each kind of event is called in reports, and in which unit its weights are. */
#pragma once

#include <stddef.h>
#include "daemon/profile/profile.h"

struct report_event {
	const char *of; /* what the weights are of: "CPU", "waiting" */
	const char *unit; /* "ns" or "bytes": of the numbers in json and collapsed */
	const char *large; /* what a person reads them in: "s" or "MiB" */
	double large_size; /* in the unit */
	const char *samples; /* "samples", "waits"; one without its s */
};
extern const struct report_event report_events[WIRE_EVENT_COUNT];

/* "lock" or "cpu,lock" as bits. false: one of them is not known. */
bool report_events_by_name(const char *list, unsigned *ret);
/* The other way round: "cpu,lock"; @buf. */
const char *report_events_list(unsigned events, char *buf, size_t size);
/* The one event of a mask; of several the first, of none CPU. */
enum wire_event report_event_of(unsigned events);
