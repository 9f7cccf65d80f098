/* See moments.h. */
#include "daemon/host/moments.h"

#include "daemon/core/loop.h"

#define PART_OF_MEMORY 16 /* timelines get this part of limits.memory */

size_t host_moments_bytes(const struct config *c)
{
	return c->memory_bytes / PART_OF_MEMORY;
}

const struct timeline *host_timeline(const struct target *t)
{
	const struct host_entry *e = t->userdata;

	return e ? e->timeline : NULL;
}

const struct pauses *host_pauses(const struct target *t)
{
	const struct host_entry *e = t->userdata;

	return e ? &e->pauses : NULL;
}

static void moment_add(const struct host_entry *e, const struct target *t,
		       const struct timeline_event *event)
{
	const struct host *h = targets_userdata(t);

	timeline_add(e->timeline, t->stream, event, loop_now(h->loop)->real_ns);
}

void host_moment_sample(const struct host_entry *e, const struct target *t, enum timeline_kind kind,
			const struct stream_sample *s, uint32_t tid)
{
	const struct timeline_event event = {
		.kind = kind,
		.end_ns = s->mono_ns + (uint64_t)t->real_minus_mono_ns,
		.length_ns = s->weight_ns,
		.tid = tid,
		.thread_number = s->thread_number,
		.thread = s->thread,
		.node = s->node,
		.trace_id = s->trace ? s->trace->trace_id : NULL,
		.span_id = s->trace ? s->trace->span_id : NULL,
		.syscall = -1,
	};

	if (e->timeline)
		moment_add(e, t, &event);
}

void host_moment_lock(const struct host_entry *e, const struct target *t,
		      const struct stream_lock *w, bool idle)
{
	const struct timeline_event event = {
		.kind = TIMELINE_LOCK,
		.reason = w->wait,
		.flags = (uint8_t)((idle ? TIMELINE_IDLE : 0) |
				   (w->flags & WIRE_LOCK_TIMED ? TIMELINE_TIMED : 0) |
				   (w->flags & WIRE_LOCK_SUM ? TIMELINE_SUM : 0)),
		.end_ns = w->begin_ns + w->duration_ns + (uint64_t)t->real_minus_mono_ns,
		.length_ns = w->duration_ns,
		.tid = w->tid,
		.thread = w->thread,
		.node = w->node,
		.owner_tid = w->owner_tid,
		.owner = w->owner,
		.owner_node = w->owner_node,
		.class_name = w->class_name,
		.identity = w->identity,
		.trace_id = w->trace ? w->trace->trace_id : NULL,
		.span_id = w->trace ? w->trace->span_id : NULL,
		.n = w->waits,
		.syscall = -1,
	};

	if (e->timeline && !(w->flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED)))
		moment_add(e, t, &event);
}

void host_moment_offcpu(const struct host_entry *e, const struct target *t,
			const struct offcpu_event *o)
{
	const struct stream_lock *lock = o->lock;
	/* a virtual thread's wait without a carrier has its lock from its own record */
	bool twice = lock && o->status != WIRE_OFFCPU_UNMOUNTED;
	const struct timeline_event event = {
		.kind = TIMELINE_OFFCPU,
		.reason = (uint8_t)o->reason,
		.flags = (uint8_t)((o->idle ? TIMELINE_IDLE : 0) | (twice ? TIMELINE_TWICE : 0)),
		.end_ns = o->end_ns + (uint64_t)t->real_minus_mono_ns,
		.length_ns = o->duration_ns,
		.runqueue_ns = o->runqueue_ns,
		.tid = o->virtual_tid ? o->virtual_tid : o->tid,
		.thread = o->virtual_tid ? o->virtual_thread : o->thread,
		.node = o->node,
		.owner_tid = lock ? lock->owner_tid : 0,
		.owner = lock ? lock->owner : NULL,
		.waker_tid = o->waker_own_tid ? o->waker_tid : 0,
		.waker = o->waker,
		.class_name = lock ? lock->class_name : NULL,
		.identity = lock ? lock->identity : 0,
		.trace_id = o->trace ? o->trace->trace_id : NULL,
		.span_id = o->trace ? o->trace->span_id : NULL,
		.syscall = o->syscall_nr,
	};

	if (e->timeline)
		moment_add(e, t, &event);
}

static void moment_band(const struct host_entry *e, const struct target *t, enum timeline_band band,
			uint64_t begin_ns, uint64_t length_ns, const char *operation)
{
	const struct timeline_event event = {
		.kind = TIMELINE_BAND,
		.reason = (uint8_t)band,
		.end_ns = begin_ns + length_ns + (uint64_t)t->real_minus_mono_ns,
		.length_ns = length_ns,
		.class_name = operation,
		.syscall = -1,
	};

	if (e->timeline && length_ns)
		moment_add(e, t, &event);
}

void host_moment_pause(const struct host_entry *e, const struct target *t,
		       const struct wire_pause *w, const char *operation)
{
	uint64_t reach_ns = w->kind == WIRE_PAUSE_GC ? w->reach_ns : w->length_ns;

	moment_band(e, t, TIMELINE_SAFEPOINT, w->begin_ns, reach_ns, operation);
	moment_band(e, t, TIMELINE_GC, w->begin_ns + reach_ns, w->length_ns - reach_ns, operation);
}
