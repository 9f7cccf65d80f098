/*
 * Decides whether a JVM may be attached to; asked before every attempt. These are asked in turn,
 * and the first that objects wins: the JVM's owner, a rule, an operator's request, the crash of a
 * similar JVM, another profiler in the JVM, targets.max. An operator's attach overrules the last
 * three, and targets.mode.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"
#include "daemon/target/rules.h"

#define REVIEW_NS (10 * NS_PER_S)

/* The operator's request, unless a newer rule names the JVM. */
static const struct override *admit_override_of(struct target *t, int rule)
{
	struct targets *table = t->priv->table;
	const struct override *w = overrides_find(&table->overrides, t->jvm.pid, t->jvm.start_time);

	if (!w || w->attach || rule < 0 || w->rules_hash == rules_hash(table->config))
		return w;
	log_info("target.wish", "pid=%d forgotten=\"a new rule allows it\"", t->jvm.pid);
	overrides_remove(&table->overrides, t->jvm.pid, t->jvm.start_time);
	return NULL;
}

static enum keep admit_reason(struct target *t, struct fault *why)
{
	struct targets *table = t->priv->table;
	const struct cohort *cohort;
	const struct facts *facts = facts_of(t);
	const struct override *override;
	int rule;

	if (owning_forbids(t, facts, why))
		return KEEP_OWNER;
	rule = rules_find(table->config, &t->jvm, facts);
	if (rule >= 0 && !table->config->rules[rule].allow) {
		rules_explain(table->config, rule, why);
		return KEEP_RULE;
	}
	override = admit_override_of(t, rule);
	if (override && override->attach)
		return KEEP_NOT;
	if (override) {
		overrides_explain(override, why);
		return KEEP_WISH;
	}
	if (rule < 0 && table->config->opt_in && !owning_asks(t)) {
		rules_explain(table->config, rule, why);
		return KEEP_RULE;
	}
	cohort = crash_find(&table->crashes, &t->jvm, clock_real_ns());
	if (cohort) {
		crash_explain(cohort, why);
		return KEEP_CRASH;
	}
	if (other_profilers_forbid(t, why))
		return KEEP_PROFILER;
	if (!limit_reached(t))
		return KEEP_NOT;
	limit_explain(table, why);
	return KEEP_MAX;
}

void target_keep_out(struct target *t, enum keep keep, const struct fault *why)
{
	t->priv->kept = keep;
	target_leave(t, keep == KEEP_WISH ? TARGET_DETACHED : TARGET_EXCLUDED, why);
	if (keep == KEEP_CRASH || keep == KEEP_MAX)
		targets_review_soon(t->priv->table, NS_PER_S);
}

bool target_admit(struct target *t)
{
	struct fault why = { 0 };
	enum keep keep = admit_reason(t, &why);

	if (keep != KEEP_NOT)
		target_keep_out(t, keep, &why);
	return keep == KEEP_NOT;
}

void target_take_in(struct target *t)
{
	t->priv->kept = KEEP_NOT;
	t->priv->leave = false;
	if (t->priv->looking)
		return; /* the attempt that runs decides what comes next */
	t->priv->timer = loop_timer_free(t->priv->timer);
	target_set_state(t, TARGET_FOUND, NULL);
	t->attempts = 0;
	target_begin(t);
}

/* ---- later ---------------------------------------------------------------------------------- */

void targets_review_soon(struct targets *table, uint64_t delay_ns)
{
	uint64_t due = clock_mono_ns() + delay_ns;

	if (table->review_mono_ns && table->review_mono_ns <= due)
		return;
	table->review_mono_ns = due;
	loop_timer_set(table->review_timer, delay_ns, 0);
}

static void admit_review_crashes(struct targets *table)
{
	uint64_t now = clock_real_ns();

	crash_expire(&table->crashes, now, table->config->crash_block_ns);
	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->state == TARGET_EXCLUDED && t->priv->kept == KEEP_CRASH &&
		    !crash_find(&table->crashes, &t->jvm, now))
			target_take_in(t);
}

void targets_on_review(void *userdata)
{
	struct targets *table = userdata;

	table->review_mono_ns = 0;
	if (table->stopping)
		return;
	admit_review_crashes(table);
	limit_review(table);
	room_review(table);
	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->priv->kept == KEEP_CRASH || t->priv->kept == KEEP_MAX)
			targets_review_soon(table, REVIEW_NS);
}

void targets_on_rate(void *userdata)
{
	targets_inject_next(userdata);
}

/* ---- by hand -------------------------------------------------------------------------------- */

static int admit_override(struct target *t, uid_t uid, bool attach)
{
	struct targets *table = t->priv->table;
	const struct override w = {
		.pid = t->jvm.pid,
		.start_time = t->jvm.start_time,
		.attach = attach,
		.uid = uid,
		.real_s = clock_real_ns() / NS_PER_S,
		.rules_hash = rules_hash(table->config),
	};

	log_info("target.wish", "pid=%d wish=%s uid=%u", t->jvm.pid, attach ? "attach" : "detach",
		 uid);
	return overrides_put(&table->overrides, &w);
}

int target_detach_for(struct target *t, uid_t uid)
{
	struct fault why;
	int r;

	if (t->state == TARGET_GONE)
		return -ESRCH;
	r = admit_override(t, uid, false);
	if (r < 0)
		return r;
	overrides_explain(overrides_find(&t->priv->table->overrides, t->jvm.pid, t->jvm.start_time),
			  &why);
	target_keep_out(t, KEEP_WISH, &why);
	return 0;
}

int target_attach(struct target *t, uid_t uid, struct fault *why)
{
	struct overrides *overrides = &t->priv->table->overrides;
	const struct override *old;
	struct override before;
	enum keep keep;
	int r;

	if (t->state == TARGET_GONE)
		return -ESRCH;
	if (t->priv->table->stopping)
		return -ESHUTDOWN;
	if (t->state == TARGET_DRAINING)
		return -EAGAIN;
	old = overrides_find(overrides, t->jvm.pid, t->jvm.start_time);
	if (old)
		before = *old;
	r = admit_override(t, uid, true);
	if (r < 0)
		return r;
	keep = admit_reason(t, why);
	if (keep != KEEP_NOT) { /* the earlier request still holds */
		if (old)
			(void)overrides_put(overrides, &before);
		else
			overrides_remove(overrides, t->jvm.pid, t->jvm.start_time);
		return -EPERM;
	}
	if (t->state == TARGET_INJECTING || t->priv->looking)
		t->priv->leave = false;
	else if (t->state != TARGET_STREAMING && t->state != TARGET_FOUND)
		target_take_in(t);
	return 0;
}
