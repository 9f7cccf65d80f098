/* The present states of targets' threads: keeps their struct locks, and decides how long agents
 * report the states. */
#include "daemon/host/host_priv.h"

#include "daemon/ground/clock.h"

#define STATES_NS (30 * NS_PER_S) /* states are reported for this time after the last question */

const struct locks *host_locks(const struct target *t)
{
	const struct host_entry *e = t->userdata;

	return e ? e->locks : NULL;
}

void host_want_states(struct target *t)
{
	struct host_entry *e = t->userdata;

	if (!e || t->state != TARGET_STREAMING)
		return;
	if (!e->states_until_ns) {
		e->states_since_ns = clock_mono_ns();
		t->states = true;
		(void)target_start(t, t->interval_ns, t->no_budget);
	}
	e->states_until_ns = clock_mono_ns() + STATES_NS;
}

bool host_states_known(const struct target *t, uint64_t asked_mono_ns)
{
	const struct host_entry *e = t->userdata;

	return e && t->state == TARGET_STREAMING && e->states_until_ns &&
	       e->states_since_ns < asked_mono_ns;
}

/* Stops reports that nobody has asked for lately: examining all threads every few seconds has a
 * cost. */
void host_expire_states(struct host *h)
{
	uint64_t now = clock_mono_ns();

	for (struct target *t = targets_next(h->targets, NULL); t;
	     t = targets_next(h->targets, t)) {
		struct host_entry *e = t->userdata;

		if (!e || !e->states_until_ns || now < e->states_until_ns)
			continue;
		e->states_until_ns = 0;
		t->states = false;
		if (t->state == TARGET_STREAMING)
			(void)target_start(t, t->interval_ns, t->no_budget);
	}
}
