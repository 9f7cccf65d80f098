/*
 * What the owner of a JVM decides (discovery/allowed.h): whether it is profiled, which events are
 * collected, and how often at most. The owner says so by annotations of the pod and by variables of
 * the environment. An owner can ask for less than the settings collect, never for more. Recordings
 * obey the owner too.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/ground/owner.h"

/* The pod's annotations and the environment together; neither changes while a process lives. */
static struct allowed owning_allowed(const struct target *t)
{
	struct allowed a = t->jvm.allowed;

	allowed_add(&a, &t->priv->facts.allowed);
	return a;
}

unsigned target_allowed_events(const struct target *t)
{
	const struct allowed a = owning_allowed(t);

	return a.events_given ? a.events : (1u << WIRE_EVENT_COUNT) - 1;
}

uint64_t owning_interval_ns(const struct target *t, uint64_t interval_ns)
{
	const struct allowed a = owning_allowed(t);

	return a.interval_ns > interval_ns ? a.interval_ns : interval_ns;
}

bool owning_asks(const struct target *t)
{
	return owning_allowed(t).yes;
}

bool owning_forbids(const struct target *t, const struct facts *facts, struct fault *why)
{
	const struct allowed a = owning_allowed(t);

	*why = (struct fault){ .flags = FAULT_PERMANENT };
	if (facts->owner_says_no)
		fault_set(why, EPERM, FAULT_OWNER,
			  "its owner forbids profiling: " OWNER_VARIABLE " is set in its "
			  "environment");
	else if (a.no)
		fault_set(why, EPERM, FAULT_OWNER, "its owner forbids profiling: %s", a.no_word);
	else if (a.events_given && !a.events)
		fault_set(why, EPERM, FAULT_OWNER, "its owner allows no known event: %s",
			  a.events_word);
	else if (a.events_given && !target_asked_events(t))
		fault_set(why, EPERM, FAULT_OWNER,
			  "its owner allows none of the events that the settings collect: %s",
			  a.events_word);
	else
		return false;
	return true;
}

bool target_owners_note(const struct target *t, char *buf, size_t size)
{
	const struct allowed a = owning_allowed(t);
	size_t n = 0;

	*buf = '\0';
	if (a.events_given)
		n = (size_t)snprintf(buf, size, "%s%s", a.events_word,
				     a.events_unknown ? " (not all of these are events)" : "");
	if (a.interval_ns && n < size)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n ? "; " : "", a.interval_word);
	if (a.wrong[0] && n < size)
		(void)snprintf(buf + n, size - n, "%s%s is not a duration such as 50ms",
			       n ? "; " : "", a.wrong);
	return *buf;
}
