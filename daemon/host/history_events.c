/* See history_events.h. */
#include "daemon/host/history_events.h"

#include "daemon/host/thread_ids.h"
#include "daemon/profile/idle.h"

/* The wall-clock time of a moment on @t's clock. */
static uint64_t real_ns(const struct target *t, uint64_t mono_ns)
{
	return mono_ns + (uint64_t)t->real_minus_mono_ns;
}

/* The number of a thread in the history: all unnamed virtual threads share one, and a number
 * that is unknown on the host stays the container's. */
uint32_t host_history_tid(uint32_t tid, const char *name)
{
	if (tid > WIRE_VIRTUAL_TID && !name[0])
		return WIRE_VIRTUAL_TID;
	return tid < WIRE_VIRTUAL_TID ? tid & ~THREAD_ID_FOREIGN : tid;
}

static const char *name_in_history(uint32_t tid, const char *name)
{
	return tid >= WIRE_VIRTUAL_TID && !name[0] ? "[unnamed virtual threads]" : name;
}

void host_add_lock(struct live_source *to, const struct target *t, const struct stream_lock *w,
		   bool idle)
{
	const struct live_event e = {
		.event = WIRE_EVENT_LOCK,
		.wait = (enum wire_wait)w->wait,
		.idle = idle,
		.tid = host_history_tid(w->tid, w->thread),
		.thread = name_in_history(w->tid, w->thread),
		.node = w->node,
		.class_name = w->class_name,
		.weight = w->duration_ns,
		.samples = w->waits,
		.interval = target_interval(t, WIRE_EVENT_LOCK),
		.trace = w->trace,
	};

	if (w->flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED))
		return;
	live_add_event(to, t->stream, &e, NULL, real_ns(t, w->begin_ns + w->duration_ns));
}

void host_add_alloc(struct live_source *to, const struct target *t, const struct stream_alloc *a)
{
	const struct live_event e = {
		.event = WIRE_EVENT_ALLOC,
		.tid = host_history_tid(a->tid, a->thread),
		.thread = name_in_history(a->tid, a->thread),
		.node = a->node,
		.class_name = a->class_name,
		.weight = a->weight,
		.interval = target_interval(t, WIRE_EVENT_ALLOC),
		.trace = a->trace,
	};

	live_add_event(to, t->stream, &e, NULL, real_ns(t, a->mono_ns));
}

void host_add_wall(struct live_source *to, const struct target *t, const struct stream_sample *s)
{
	const struct live_event e = {
		.event = WIRE_EVENT_WALL,
		.idle = idle_sample(t->stream, s),
		.tid = host_history_tid(s->tid, s->thread),
		.thread = name_in_history(s->tid, s->thread),
		.node = s->node,
		.weight = s->weight_ns,
		.interval = target_interval(t, WIRE_EVENT_WALL),
		.trace = s->trace,
	};

	live_add_event(to, t->stream, &e, NULL, real_ns(t, s->mono_ns));
}

void host_add_offcpu(struct live_source *to, const struct target *t, const struct offcpu_event *o,
		     const struct live_kernel *kernel)
{
	uint32_t tid = o->virtual_tid ? o->virtual_tid : o->tid;
	const char *thread = o->virtual_tid ? o->virtual_thread : o->thread;
	char text[OFFCPU_TEXT_MAX];
	const struct live_event e = {
		.event = WIRE_EVENT_OFFCPU,
		.idle = o->idle,
		.tid = host_history_tid(tid, thread),
		.thread = name_in_history(tid, thread),
		.node = o->node,
		.class_name = offcpu_event_text(o, text),
		.weight = o->duration_ns,
		.interval = target_interval(t, WIRE_EVENT_OFFCPU),
		.trace = o->trace,
	};

	live_add_event(to, t->stream, &e, kernel, real_ns(t, o->end_ns));
}

/* The drops of @t. Events that arrived are counted as they arrive. */
static struct profile_accounts accounts_of(const struct target *t)
{
	struct profile_accounts now = { 0 };
	struct stream_counts c;

	target_counts(t, &c);
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct stream_accounts *b = &c.of[e];

		now.of[e].dropped = b->taken - b->delivered;
		now.of[e].dropped_weight = b->taken_weight - b->delivered_weight;
	}
	/* without the agent's record an interval only lacks its Java stack */
	now.of[WIRE_EVENT_OFFCPU].dropped = t->offcpu_lost;
	now.of[WIRE_EVENT_OFFCPU].dropped_weight = t->offcpu_lost_ns;
	now.short_waits = c.ledger.counter[WIRE_COUNTER_SHORT_WAITS];
	now.short_waits_ns = c.ledger.counter[WIRE_COUNTER_SHORT_WAITS_NS];
	return now;
}

/* The increase of a counter, which may begin again at 0. */
static uint64_t host_events_since(uint64_t now, uint64_t then)
{
	return now < then ? now : now - then;
}

struct profile_accounts host_new_accounts(const struct target *t, struct profile_accounts *booked)
{
	struct profile_accounts now = accounts_of(t), delta = { 0 };

	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct profile_losses *a = &now.of[e], *b = &booked->of[e];

		delta.of[e].taken = delta.of[e].dropped = host_events_since(a->dropped, b->dropped);
		delta.of[e].taken_weight = delta.of[e].dropped_weight =
			host_events_since(a->dropped_weight, b->dropped_weight);
	}
	delta.short_waits = host_events_since(now.short_waits, booked->short_waits);
	delta.short_waits_ns = host_events_since(now.short_waits_ns, booked->short_waits_ns);
	*booked = now;
	return delta;
}
