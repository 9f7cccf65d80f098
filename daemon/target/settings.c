/* Other settings while the daemon runs: who may be attached to, and what agents are asked for. */
#include "daemon/target/target_priv.h"

#include <string.h>
#include "daemon/ground/log.h"

/* A recording keeps its interval; its end asks for the configured one. */
static void start_anew(struct target *t)
{
	uint64_t configured_ns = t->priv->table->config->cpu_interval_ns;
	int r = target_start(t, t->no_budget ? t->interval_ns : configured_ns, t->no_budget);

	if (r < 0)
		TARGET_LOG(WARNING, t, "target.settings", "pid=%d error=%s", t->jvm.pid,
			   log_str(strerror(-r)));
}

void settings_follow(struct target *t)
{
	if (t->priv->start_again)
		start_anew(t);
	t->priv->start_again = false;
}

void settings_knowing(struct target *t, int result)
{
	if (t->state == TARGET_GONE || t->state == TARGET_DRAINING || t->priv->table->stopping)
		return;
	/* of what does not answer nothing new is known: what was decided holds, until an attempt */
	if (result >= 0 && !target_admit(t))
		return;
	if (t->state == TARGET_STREAMING) {
		start_anew(t);
	} else if (t->state == TARGET_INJECTING) { /* its START is under way */
		t->priv->leave &= result < 0;
		t->priv->start_again = true;
	} else if (t->state != TARGET_FOUND && result >= 0) {
		target_take_in(t);
	}
}

void targets_settings(struct targets *table)
{
	for (struct target *t = table->first; t && !table->stopping; t = t->priv->next)
		if (t->state != TARGET_GONE && t->state != TARGET_DRAINING)
			facts_ask(t, FACTS_FOR_SETTINGS);
}
