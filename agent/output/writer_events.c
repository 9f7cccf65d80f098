/*
 * Takes samples from the ring into the pending frames, and counts them: a sample that does not get
 * there is counted as dropped, with the cause.
 */
#include "agent/output/writer_priv.h"

#include "agent/engine/wall.h"
#include "agent/events/open.h"
#include "agent/output/budget.h"
#include "agent/output/ledger.h"
#include "agent/output/threads.h"
#include "agent/walker/walker.h"

/* Begins a new epoch and tries again. If the stack does not fit even into an empty dictionary, its
 * sample is dropped. */
static enum writer_result writer_define_again(const struct ring_sample *s, struct writer_ids *ret,
					      enum wire_drop *ret_cause)
{
	enum writer_result r = WRITER_OK;
	bool was_full = writer.dict_full;

	/* full, not torn: the pending frames are complete and belong to the old epoch */
	if (!writer.torn)
		r = writer_flush();
	writer.torn = true;
	*ret_cause = WIRE_DROP_PIPE_FULL;
	if (r == WRITER_OK)
		r = writer_new_epoch();
	if (r != WRITER_OK)
		return r;
	if (writer_define(s, ret))
		return WRITER_OK;
	*ret_cause = was_full && writer.dict_full ? WIRE_DROP_DICT_FULL : WIRE_DROP_PIPE_FULL;
	writer.torn = true;
	return WRITER_FULL;
}

static bool put_cpu(enum pending frame, const struct ring_sample *s, uint32_t tid,
		    const struct writer_ids *ids)
{
	struct wire_sample record = {
		.mono_ns = s->mono_ns,
		.tid = tid,
		.node = ids->node,
		.weight_ns = s->weight,
		.context = ids->context,
	};

	if (!PUT(frame, wire_put_sample, &record))
		return false;
	if (s->event == WIRE_EVENT_WALL && s->slot)
		wall_written(s->slot, &record, writer.epoch, writer_context_generation());
	return true;
}

static bool writer_events_put_lock(const struct ring_sample *s, uint32_t tid,
				   const struct writer_ids *ids)
{
	struct wire_lock record = {
		.begin_ns = s->mono_ns,
		.duration_ns = s->weight,
		.tid = tid,
		.wait = s->wait,
		.flags = s->flags,
		.class_id = ids->class_id,
		.identity = s->identity,
		.owner_tid = s->owner_tid,
		.node = ids->node,
		.owner_node = ids->owner_node,
		.waits = s->size < UINT32_MAX ? (uint32_t)s->size : UINT32_MAX,
		.context = ids->context,
	};

	threads_owner(s->owner_tid);
	return PUT(PENDING_LOCK, wire_put_lock, &record);
}

static bool put_alloc(const struct ring_sample *s, uint32_t tid, const struct writer_ids *ids)
{
	struct wire_alloc record = {
		.mono_ns = s->mono_ns,
		.tid = tid,
		.node = ids->node,
		.class_id = ids->class_id,
		.size = s->size,
		.weight = s->weight,
		.context = ids->context,
	};

	return PUT(PENDING_ALLOC, wire_put_alloc, &record);
}

static bool is_unmounted(const struct ring_sample *s)
{
	return s->event == WIRE_EVENT_OFFCPU && s->status == WIRE_OFFCPU_UNMOUNTED;
}

static bool put_offcpu(const struct ring_sample *s, uint32_t tid, const struct writer_ids *ids)
{
	struct wire_offcpu record = {
		.mono_ns = s->mono_ns,
		.tid = is_unmounted(s) ? tid : s->tid,
		.virtual_tid = tid != s->tid ? tid : 0,
		.node = ids->node,
		.weight_ns = s->weight,
		.status = s->status,
		.context = ids->context,
		.class_id = ids->class_id,
		.identity = s->identity,
	};

	return PUT(PENDING_OFFCPU, wire_put_offcpu, &record);
}

/* The thread's number on the wire; sends its name if needed. For a wait of its own, unnamed virtual
 * threads have numbers of their own, too, because they may own other locks. */
static uint32_t writer_events_number_of(const struct ring_sample *s)
{
	if (!s->virtual_id) {
		if (!(s->tid & WIRE_VIRTUAL_TID))
			threads_seen(s->tid, s->name);
		return s->tid;
	}
	if ((s->event == WIRE_EVENT_LOCK || is_unmounted(s)) && !s->name[0])
		return walk_virtual_number(s->virtual_id);
	return threads_virtual(s->virtual_id, s->name);
}

static bool writer_put_record(const struct ring_sample *s, const struct writer_ids *ids)
{
	uint32_t tid = writer_events_number_of(s);

	switch (s->event) {
	case WIRE_EVENT_LOCK:
		return writer_events_put_lock(s, tid, ids);
	case WIRE_EVENT_ALLOC:
		return put_alloc(s, tid, ids);
	case WIRE_EVENT_OFFCPU:
		return put_offcpu(s, tid, ids);
	default:
		return put_cpu(writer_pending_of[s->event], s, tid, ids);
	}
}

/* Puts everything that a sample refers to, then the sample, into the pending frames. */
static enum writer_result writer_events_put_sample(const struct ring_sample *s,
						   enum wire_drop *ret_cause)
{
	enum writer_result r = WRITER_OK;
	struct writer_ids ids;

	*ret_cause = WIRE_DROP_PIPE_FULL;
	if (walker_names_full() && !writer.torn) {
		r = writer_flush();
		writer.torn = true;
	}
	if (r == WRITER_OK && writer.torn)
		r = writer_new_epoch();
	if (r == WRITER_OK && !writer_define(s, &ids))
		r = writer_define_again(s, &ids, ret_cause);
	/* a flush in between may have lost definitions that the sample needs */
	if (r == WRITER_OK && (!writer_put_record(s, &ids) || writer.torn))
		r = writer.gone ? WRITER_GONE : WRITER_FULL;
	if (r == WRITER_OK)
		writer_context_used(ids.context);
	return r;
}

static enum writer_result writer_take_sample(const struct ring_sample *s)
{
	enum wire_drop cause;
	enum writer_result r;

	if (s->event == RING_NAME) {
		threads_named(s->tid, s->virtual_id, (const char *)s->frames);
		return WRITER_OK;
	}
	r = writer_events_put_sample(s, &cause);
	if (r != WRITER_OK) {
		ledger_drop(s->event, r == WRITER_GONE ? WIRE_DROP_NO_READER : cause, 1, s->weight);
		return r;
	}
	writer.waiting[s->event].n++;
	writer.waiting[s->event].weight += s->weight;
	if (s->event == WIRE_EVENT_LOCK) {
		open_wait_ended(s);
		if (!(s->flags & WIRE_LOCK_SUM))
			budget_wait(s->weight);
	}
	return WRITER_OK;
}

void writer_repeat_wall_sample(const struct wire_sample *again, uint32_t generation)
{
	struct event_counters *counters = &agent.counters.of[WIRE_EVENT_WALL];
	struct wire_sample copy = *again, *record = &copy;

	if (!writer_context_is_current(record->context, generation))
		record->context = 0;
	/* handlers add to these counters, too */
	__atomic_fetch_add(&counters->taken_weight, record->weight_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&counters->taken, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&counters->pushed_weight, record->weight_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&counters->pushed, 1, __ATOMIC_SEQ_CST);
	if (!PUT(PENDING_WALL, wire_put_sample, record)) {
		ledger_drop(WIRE_EVENT_WALL,
			    writer.gone ? WIRE_DROP_NO_READER : WIRE_DROP_PIPE_FULL, 1,
			    record->weight_ns);
		return;
	}
	writer_context_used(record->context);
	writer.waiting[WIRE_EVENT_WALL].n++;
	writer.waiting[WIRE_EVENT_WALL].weight += record->weight_ns;
}

enum writer_result writer_uncounted(const struct ring_sample *s)
{
	enum wire_drop cause;

	return writer_events_put_sample(s, &cause);
}

enum writer_result writer_drain(uint64_t end)
{
	const struct ring_sample *s;
	enum writer_result r = WRITER_OK;

	while (r != WRITER_GONE && (s = ring_peek(&agent.ring, end))) {
		r = writer_take_sample(s);
		ring_pop(&agent.ring);
	}
	return r;
}

/* ---- threads --------------------------------------------------------------------------------- */

void writer_thread(const struct wire_thread *thread)
{
	(void)PUT(PENDING_THREAD, wire_put_thread, thread);
}

void writer_state(const struct wire_state *state)
{
	(void)PUT(PENDING_STATE, wire_put_state, state);
}

void writer_virtual(struct wire_virtual *group, const char *container, const char *class_name)
{
	if (writer.torn && writer_new_epoch() != WRITER_OK)
		return;
	group->container_id = container[0] ? writer_string_id(container) : 0;
	group->class_id = class_name[0] ? writer_string_id(class_name) : 0;
	/* if torn, the names are lost: the next pass sends them again */
	if (!writer.torn)
		(void)PUT(PENDING_VIRTUAL, wire_put_virtual, group);
}

void writer_pause(struct wire_pause *pause, const char *operation)
{
	if (writer.torn && writer_new_epoch() != WRITER_OK)
		return;
	pause->operation_id = operation[0] ? writer_string_id(operation) : 0;
	if (!writer.torn)
		(void)PUT(PENDING_PAUSE, wire_put_pause, pause);
}
