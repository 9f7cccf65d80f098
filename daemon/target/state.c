/* The states of a target, the allowed steps between them, and how long FAILED lasts. */
#include "daemon/target/target_priv.h"

#include "daemon/ground/clock.h"
#include "daemon/ground/log.h"

const char *const target_state_names[TARGET_STATE_COUNT] = {
	[TARGET_FOUND] = "found",	  [TARGET_INJECTING] = "injecting",
	[TARGET_STREAMING] = "streaming", [TARGET_FAILED] = "failed",
	[TARGET_DRAINING] = "draining",	  [TARGET_DETACHED] = "detached",
	[TARGET_EXCLUDED] = "excluded",	  [TARGET_GONE] = "gone",
};

#define TO(state) (1u << TARGET_##state)

static const unsigned allowed[TARGET_STATE_COUNT] = {
	[TARGET_FOUND] =
		TO(INJECTING) | TO(STREAMING) | TO(FAILED) | TO(DETACHED) | TO(EXCLUDED) | TO(GONE),
	[TARGET_INJECTING] = TO(STREAMING) | TO(FAILED) | TO(DETACHED) | TO(EXCLUDED) | TO(GONE),
	[TARGET_STREAMING] = TO(FAILED) | TO(DRAINING) | TO(GONE),
	[TARGET_FAILED] =
		TO(FOUND) | TO(INJECTING) | TO(STREAMING) | TO(DETACHED) | TO(EXCLUDED) | TO(GONE),
	[TARGET_DRAINING] = TO(DETACHED) | TO(EXCLUDED) | TO(GONE),
	[TARGET_DETACHED] = TO(FOUND) | TO(EXCLUDED) | TO(GONE),
	[TARGET_EXCLUDED] = TO(FOUND) | TO(DETACHED) | TO(GONE),
	[TARGET_GONE] = 0,
};

bool target_step_allowed(enum target_state from, enum target_state to)
{
	return from < TARGET_STATE_COUNT && to < TARGET_STATE_COUNT && allowed[from] & 1u << to;
}

uint64_t target_backoff_ns(unsigned attempts, const struct fault *why)
{
	static const uint64_t seconds[] = { 1, 5, 30, 300 };
	unsigned n = attempts ? attempts - 1 : 0;

	if (why->flags & FAULT_PERMANENT)
		return 0;
	if (why->flags & FAULT_RETRY_SOON) {
		/* usually a JVM that is just starting: 10, 20, 40 ... ms, then as for others, but a
		 * start that takes a minute must not cost the five that follow it */
		if (n < 7)
			return (10 * NS_PER_MS) << n;
		n = n - 7 < 2 ? n - 7 : 2;
	}
	return seconds[n < 4 ? n : 3] * NS_PER_S;
}

void target_set_state(struct target *t, enum target_state next, const struct fault *why)
{
	struct targets *table = t->priv->table;

	if (!target_step_allowed(t->state, next)) {
		log_err("target.step", "pid=%d from=%s to=%s error=\"not an allowed step\"",
			t->jvm.pid, target_state_names[t->state], target_state_names[next]);
		return;
	}
	if (table->ops.on_state)
		table->ops.on_state(table->userdata, t, next);
	t->fault = why ? *why : (struct fault){ 0 };
	t->retry_mono_ns = 0;
	TARGET_LOG(INFO, t, "target.state", "pid=%d from=%s to=%s name=%s%s%s", t->jvm.pid,
		   target_state_names[t->state], target_state_names[next], log_str(t->jvm.name),
		   t->fault.code ? " reason=" : "", t->fault.code ? log_str(t->fault.what) : "");
	t->state = next;
	if (next != TARGET_FOUND && next != TARGET_FAILED)
		t->priv->queued = false;
}
