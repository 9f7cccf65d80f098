/* Applies changed settings, and an owner's limits that become known late, while the daemon runs:
 * decides again which JVMs may be attached to, and sends agents a new START. */
#include "daemon/target/target_priv.h"

#include <string.h>
#include "daemon/ground/log.h"

/* Sends START with the new settings. A recording keeps its interval; when it ends, START asks for
 * the configured one. */
static void settings_send_start(struct target *t)
{
	uint64_t configured_ns = t->priv->table->config->cpu_interval_ns;
	int r = target_start(t, t->no_budget ? t->interval_ns : configured_ns, t->no_budget);

	if (r < 0)
		TARGET_LOG(WARNING, t, "target.settings", "pid=%d error=%s", t->jvm.pid,
			   log_str(strerror(-r)));
}

void settings_follow(struct target *t)
{
	if (t->priv->resend_start)
		settings_send_start(t);
	t->priv->resend_start = false;
}

void settings_on_facts(struct target *t, int result)
{
	if (t->state == TARGET_GONE || t->state == TARGET_DRAINING || t->priv->table->stopping)
		return;
	/* a process that does not answer keeps its old decision until the next attempt */
	if (result >= 0 && !target_admit(t))
		return;
	if (t->state == TARGET_STREAMING) {
		settings_send_start(t);
	} else if (t->state == TARGET_INJECTING) { /* the START of the attempt cannot be changed */
		t->priv->leave &= result < 0;
		t->priv->resend_start = true;
	} else if (t->state != TARGET_FOUND && result >= 0) {
		target_take_in(t);
	}
}

static void settings_decide_again(struct target *t)
{
	if (t->state != TARGET_GONE && t->state != TARGET_DRAINING && !t->priv->table->stopping)
		facts_ask(t, FACTS_FOR_SETTINGS);
}

void targets_settings(struct targets *table)
{
	for (struct target *t = table->first; t; t = t->priv->next)
		settings_decide_again(t);
}

void target_set_names(struct target *t, const struct jvm *jvm)
{
	if (memcmp(&t->jvm, jvm, sizeof(*jvm)) == 0)
		return;
	t->jvm = *jvm;
	labelling_renew(t);
	settings_decide_again(t);
}
