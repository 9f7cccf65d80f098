/*
 * Answers whether the requested events are collected at all. In a report, an event that is not
 * collected looks like one that never happened.
 */
#include <stdio.h>
#include <string.h>
#include "daemon/serve/serve_priv.h"

/* Does @t collect @event? If not, *ret_why is the agent's or the owner's reason, or unchanged. */
static bool collected_collects(const struct target *t, int event, const char **ret_why)
{
	unsigned bit = 1u << event;

	if (target_events(t) & bit)
		return true;
	if (!(target_allowed_events(t) & bit))
		*ret_why =
			"the owner of this JVM does not allow them (kindling.io/events, KINDLING_EVENTS)";
	if (!(target_asked_events(t) & bit))
		return false;
	if (event == WIRE_EVENT_OFFCPU && t->state == TARGET_STREAMING && !t->host_interval_ns) {
		*ret_why = "CPU timers take the samples of this JVM, not the host engine";
		return false;
	}
	for (int i = 0; i < NOTES_MAX; i++) {
		if (strcmp(t->notes[i].step, wire_event_names[event]) != 0)
			continue;
		*ret_why = t->notes[i].what;
		return false;
	}
	return true; /* it was requested a moment ago, or no agent is attached yet */
}

/* Does any of the selected JVMs collect @event? If none of them is alive, the settings decide. */
static bool any_collects(struct host *h, const struct selection *s, int event, const char **ret_why)
{
	struct target *t = NULL;
	bool alive = false;

	while ((t = targets_next(host_targets(h), t))) {
		if (t->state == TARGET_GONE || (s->n && !is_selected(s, t)))
			continue;
		if (collected_collects(t, event, ret_why))
			return true;
		alive = true;
	}
	return !alive && host_config(h)->events & 1u << event;
}

static void collected_explain(enum wire_event event, const char *why, char *buf, size_t size)
{
	const char *name = wire_event_names[event];

	if (why)
		snprintf(buf, size, "%s events are not collected: %s", name, why);
	else
		snprintf(
			buf, size,
			"%s events are not collected. To collect them all the time, add \"%s: {}\" "
			"to events: in kindlingd.yaml; to collect them for a while, use: "
			"kindling record TARGET -e %s -o FILE",
			name, name, name);
}

unsigned api_not_collected(struct host *h, const struct selection *s, unsigned events, char *buf,
			   size_t size)
{
	unsigned absent = 0;

	*buf = '\0';
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		bool refused = e == WIRE_EVENT_OFFCPU && *host_offcpu_why(h);
		const char *why = refused ? host_offcpu_why(h) : NULL;

		if (!(events & 1u << e) || (!refused && any_collects(h, s, e, &why)))
			continue;
		if (!absent)
			collected_explain((enum wire_event)e, why, buf, size);
		absent |= 1u << e;
	}
	return absent;
}
