/* See sought_names.h. */
#include "agent/events/sought_names.h"

#include <errno.h>
#include "agent/base/outlet.h"
#include "agent/events/virtual_states.h"
#include "agent/hotspot/thread_name.h"
#include "agent/hotspot/virtual_price.h"

#define SHARE 500 /* passes over virtual threads may take 1/500 of the time */

static uint64_t next_ns; /* time of the next pass, at the earliest */

struct seeking {
	struct thread_name_sought sought;
	uint32_t left;
};

static bool sought_names_check(JNIEnv *env, jobject thread, void *context)
{
	struct seeking *s = context;

	if (thread_name_found(env, thread, &s->sought, outlet->thread_named))
		s->left--;
	return s->left;
}

/* Threads that are not found have ended, or are mounted on a carrier: then they send their names
 * themselves. */
static uint64_t sought_names_tick(uint64_t now_ns)
{
	struct seeking s;
	uint64_t cpu_ns;

	s.left = thread_name_take_sought(&s.sought);
	if (!s.left || !virtual_threads_used())
		return UINT64_MAX;
	cpu_ns = thread_cpu_ns(0);
	virtual_threads_each(sought_names_check, &s);
	next_ns = now_ns + (thread_cpu_ns(0) - cpu_ns) * SHARE;
	return next_ns;
}

static bool sought_names_are_due(void)
{
	return thread_name_has_sought() && mono_ns() >= next_ns;
}

static int sought_names_begin(const struct wire_start *start, const char **note)
{
	(void)start;
	(void)note;
	return thread_name_is_usable() ? 0 : -ENOTSUP;
}

const struct events_source sought_names_source = {
	.step = "lock",
	.event = WIRE_EVENT_LOCK,
	.begin = sought_names_begin,
	.end = thread_name_forget_sought,
	.tick = sought_names_tick,
	.due = sought_names_are_due,
};
