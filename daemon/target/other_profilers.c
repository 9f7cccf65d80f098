/*
 * Profilers of others in a JVM. They may come at any time, so a JVM that streams is looked at again
 * now and then; its agent minds its signals itself (agent/session/session.c), whatever is found
 * here.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>

#define AGAIN_SCANS 4 /* of discovery.scan_interval: maps of a big JVM takes milliseconds */

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

void other_profilers_known(struct target *t)
{
	struct overrides *overrides = &t->priv->table->overrides;
	const struct override *override = overrides_find(overrides, t->jvm.pid, t->jvm.start_time);
	struct fault why;

	if (t->state == TARGET_STREAMING && !(override && override->attach) &&
	    other_profilers_forbid(t, &why))
		target_keep_out(t, KEEP_PROFILER, &why);
}

static void on_again(void *userdata)
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
		(void)loop_timer_add(table->loop, ns, ns, on_again, t, &t->priv->profilers_timer);
}
