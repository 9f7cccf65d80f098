/*
 * Other profilers in a JVM. One may be loaded at any time, so a JVM that streams is examined again
 * now and then. Whatever is found here, the agent itself sees to it that its signals do not disturb
 * them (agent/session/session.c).
 */
#include "daemon/target/target_priv.h"

#include <errno.h>

/* Scan intervals of discovery between two looks: reading the maps file of a big JVM takes
 * milliseconds. */
#define AGAIN_SCANS 4

bool other_profilers_forbid(const struct target *t, struct fault *why)
{
	char names[PROFILERS_TEXT_SIZE];

	if (!t->profilers || !t->priv->table->config->yields)
		return false;
	*why = (struct fault){ 0 };
	fault_set(why, EBUSY, FAULT_PROFILER,
		  "another profiler is loaded (%s), and targets.foreign_profilers is yield",
		  profilers_text(t->profilers, names));
	return true;
}

void other_profilers_on_facts(struct target *t)
{
	struct overrides *overrides = &t->priv->table->overrides;
	const struct override *override = overrides_find(overrides, t->jvm.pid, t->jvm.start_time);
	struct fault why;

	if (t->state == TARGET_STREAMING && !(override && override->attach) &&
	    other_profilers_forbid(t, &why))
		target_keep_out(t, KEEP_PROFILER, &why);
}

static void other_profilers_on_again(void *userdata)
{
	struct target *t = userdata;

	if (t->state == TARGET_STREAMING)
		facts_ask(t, FACTS_FOR_WATCH);
	else
		t->priv->profilers_timer = loop_timer_free(t->priv->profilers_timer);
}

void other_profilers_watch(struct target *t)
{
	const struct targets *table = t->priv->table;
	uint64_t ns = AGAIN_SCANS * table->config->scan_interval_ns;

	if (!t->priv->profilers_timer)
		(void)loop_timer_add(table->loop, ns, ns, other_profilers_on_again, t,
				     &t->priv->profilers_timer);
}
