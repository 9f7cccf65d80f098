/*
 * What the owner of a JVM allows, by annotations and labels of its pod or container, and by
 * variables of its environment. KINDLING_DISABLE is handled separately (ground/owner.h), because
 * the injector reads it too. An owner can have less collected than the settings ask for, never
 * more. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOWED_PREFIX	     "kindling.io/" /* of the names of annotations and labels */
#define ALLOWED_INTERVAL_MAX (10 * 1000000000ull) /* as in the settings */

struct allowed {
	bool no; /* profiling is forbidden */
	bool yes; /* profiling is requested, which matters if targets.mode is opt-in */
	bool events_given; /* there is a list of events */
	bool events_unknown; /* the list contains an unknown word */
	unsigned events; /* the list, bits 1 << enum wire_event */
	uint64_t interval_ns; /* the shortest interval between CPU samples; 0 = no limit */
	/* the texts that users see, such as "kindling.io/profile: false": */
	char no_word[64]; /* what forbids profiling */
	char events_word[64], interval_word[64]; /* the last list of events, the last interval */
	char wrong[64]; /* one without a valid value, "kindling.io/interval: 50" */
};

/*
 * Adds the value @value of @name: profile, events or interval; other names are ignored. If a name
 * comes twice, the stricter value counts. profile: yes, true, on and 1 ask for profiling, "" is
 * ignored, anything else forbids it. events: a list such as "cpu,lock", in which unknown words
 * allow nothing. interval: a duration such as "50ms".
 *
 * @as: the text shown before the value, such as "kindling.io/profile: "
 */
void allowed_set_value(struct allowed *a, const char *name, const char *value, const char *as);
/* Adds the variables KINDLING_ENABLE, KINDLING_EVENTS and KINDLING_INTERVAL of @environ, @len bytes
 * as in /proc, NUL-terminated. */
void allowed_read(struct allowed *a, const char *environ, size_t len);
/* Adds the limits of @also. */
void allowed_add(struct allowed *a, const struct allowed *also);
/* Checks what another process filled in: terminates all texts and removes unknown events. */
void allowed_check(struct allowed *a);
