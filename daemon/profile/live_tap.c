/* Recordings: profiles of one source's events, beside the windows. See live.h. */
#include "daemon/profile/live_priv.h"

#include <errno.h>

int live_tap_new(struct live_source *s, unsigned events, bool ids, uint64_t now_real_ns,
		 struct live_tap **ret)
{
	struct live_tap *t;

	if (s->taps)
		return -EBUSY; /* a target has only one recording at a time, because it sets the
				  interval */
	t = calloc(1, sizeof(*t));
	if (!t || profile_new(&t->profile) < 0) {
		free(t);
		return -ENOMEM;
	}
	t->source = s;
	t->events = events;
	t->ids = ids;
	t->profile->begin_real_ns = t->profile->end_real_ns = now_real_ns;
	t->serial = ++s->live->next_serial;
	t->next = s->taps;
	s->taps = t;
	*ret = t;
	return 0;
}

/* Takes the recording out of its source: nothing is added any more. */
static void live_tap_leave(struct live_tap *t)
{
	struct live_tap **link;

	for (link = t->source ? &t->source->taps : NULL; link && *link && *link != t;
	     link = &(*link)->next)
		;
	if (link && *link)
		*link = t->next;
	t->source = NULL;
}

struct live_tap *live_tap_free(struct live_tap *t)
{
	if (!t)
		return NULL;
	live_tap_leave(t);
	profile_free(t->profile);
	free(t);
	return NULL;
}

void live_tap_end(struct live_tap *t, uint64_t now_real_ns)
{
	live_tap_leave(t);
	if (now_real_ns > t->profile->begin_real_ns) /* the wall clock may have been set back */
		t->profile->end_real_ns = now_real_ns;
}

struct profile *live_tap_profile(struct live_tap *t)
{
	return t->profile;
}

void live_tap_add(struct live_tap *t, const struct stream *stream, const struct live_event *e,
		  const struct live_kernel *kernel)
{
	if (t->events & 1u << e->event)
		live_add_to_profile(t->source, t->profile, &t->source->tap_cache, t->serial, stream,
				    e, kernel, (struct live_place){ 0 },
				    t->ids ? PROFILE_SPANS_MAX : 0);
}

static uint32_t live_tap_process_of(struct live_tap *t)
{
	struct live_ids *ids = &t->source->tap_cache;

	live_ids_turn(ids, t->serial);
	return live_ids_process(ids, t->profile, &t->source->info);
}

void live_tap_add_cpu(struct live_tap *t, uint64_t ns)
{
	profile_add_cpu(t->profile, live_tap_process_of(t), ns);
}

/* Adds the counters of those events that are recorded. */
void live_tap_add_accounts(struct live_tap *t, const struct profile_accounts *delta)
{
	struct profile_accounts d = { 0 };

	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (t->events & 1u << e)
			d.of[e] = delta->of[e];
	if (t->events & 1u << WIRE_EVENT_LOCK) {
		d.short_waits = delta->short_waits;
		d.short_waits_ns = delta->short_waits_ns;
	}
	profile_add_accounts(t->profile, live_tap_process_of(t), &d);
}
