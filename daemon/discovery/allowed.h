/*
 * What the owner of a JVM allows: annotations and labels of its pod or container, and variables of
 * its environment. KINDLING_DISABLE is handled separately (core/owner.h), because the injector
 * reads it too. An owner can have less collected than the settings say, never more. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOWED_PREFIX	     "kindling.io/" /* of the values of annotations and labels */
#define ALLOWED_INTERVAL_MAX (10 * 1000000000ull) /* as in the settings */

struct allowed {
	bool no, yes; /* profile: forbidden; or requested, which counts where targets.mode is opt-in
		       */
	bool events_given, events_unknown; /* the list contains an event; the list contains an
					    * unknown word */
	unsigned events; /* if given: bits 1 << enum wire_event */
	uint64_t interval_ns; /* the shortest interval between CPU samples; 0 = that of the settings
			       */
	char no_word[64]; /* the note that forbids profiling: "kindling.io/profile: false" */
	char events_word[64], interval_word[64]; /* likewise: the last note about each */
	char wrong[64]; /* a note without a valid value: "kindling.io/interval: 50" */
};

/*
 * Adds the value @value for @name: profile, events or interval; other names are ignored. If a name
 * comes twice, the stricter value counts. profile: yes, true, on and 1 ask for profiling, "" is
 * ignored, anything else forbids it; events: a list such as "cpu,lock", in which unknown words
 * allow nothing; interval: a duration such as "50ms".
 *
 * @as: the text shown before the value, such as "kindling.io/profile: "
 */
void allowed_say(struct allowed *a, const char *name, const char *value, const char *as);
/* @environ: as in /proc, NUL-terminated: KINDLING_ENABLE, KINDLING_EVENTS and KINDLING_INTERVAL. */
void allowed_read(struct allowed *a, const char *environ, size_t len);
/* Adds the limits of @also. */
void allowed_add(struct allowed *a, const struct allowed *also);
/* Sanitises what another process filled in: terminates all texts and removes unknown events. */
void allowed_check(struct allowed *a);
