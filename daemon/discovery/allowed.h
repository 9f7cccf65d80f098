/*
 * What the owner of a JVM allows: words in the annotations and labels of its pod or container, and
 * in its environment. KINDLING_DISABLE is apart from them (core/owner.h): the injector reads that
 * too. An owner can have less collected than the settings say, never more. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOWED_PREFIX	     "kindling.io/" /* of the words in annotations and labels */
#define ALLOWED_INTERVAL_MAX (10 * 1000000000ull) /* as in the settings */

struct allowed {
	bool no, yes; /* profile: no; yes, which counts where targets.mode is opt-in */
	bool events_given, events_unknown; /* it names some; and some that there are not */
	unsigned events; /* if given: bits 1 << enum wire_event */
	uint64_t interval_ns; /* CPU samples no closer than that; 0 = as the settings say */
	char no_word[64]; /* what said no: "kindling.io/profile: false" */
	char events_word[64], interval_word[64]; /* likewise, the last of each */
	char wrong[64]; /* what means nothing: "kindling.io/interval: 50" */
};

/*
 * The owner says @value for @name: profile, events or interval; other names say nothing. Said
 * twice, the stricter counts. profile: anything but yes, true, on and 1 is a no, "" says nothing;
 * events: a list, "cpu,lock", of which what is no event allows nothing; interval: a duration,
 * "50ms".
 *
 * @as: what stands before the value where it is shown, "kindling.io/profile: "
 */
void allowed_say(struct allowed *a, const char *name, const char *value, const char *as);
/* @environ: as in /proc, NUL-terminated: KINDLING_ENABLE, KINDLING_EVENTS and KINDLING_INTERVAL. */
void allowed_read(struct allowed *a, const char *environ, size_t len);
/* What @also says counts too. */
void allowed_add(struct allowed *a, const struct allowed *also);
/* Of what another process filled in: all texts end, no event is there that does not exist. */
void allowed_check(struct allowed *a);
