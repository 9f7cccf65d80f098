/* Decodes records of events, resolves their ids, and passes them to the stream's owner. */
#include "daemon/stream/stream_priv.h"

#include <errno.h>

#define SAMPLES_AHEAD 16

static int event_records_undefined(struct fault *f, const char *what, uint32_t id)
{
	return fault_set(f, EBADMSG, FAULT_STREAM, "an event names %s %u, which is not defined",
			 what, id);
}

static bool node_ok(const struct stream *s, uint32_t id)
{
	return id == 0 || dictionary_has_node(s, id);
}

static int add_sample(struct stream *s, const struct wire_sample *w, bool wall, struct fault *f)
{
	void (*call)(void *, const struct stream_sample *) =
		wall ? s->ops.on_wall : s->ops.on_sample;
	struct stream_sample sample = {
		.mono_ns = w->mono_ns,
		.tid = w->tid,
		.weight_ns = w->weight_ns,
		.node = w->node,
	};
	int r;

	sample.thread = thread_names_find(s, w->tid, &sample.thread_number);
	if (!node_ok(s, w->node))
		return event_records_undefined(f, "node", w->node);
	if (!contexts_find(s, w->context, &sample.trace, f))
		return -EBADMSG;
	s->newest_ns = w->mono_ns;
	r = accounts_deliver(s, wall ? WIRE_EVENT_WALL : WIRE_EVENT_CPU, w->weight_ns, f);
	if (r > 0 && call)
		call(s->userdata, &sample);
	return r < 0 ? r : 0;
}

/* Reads samples ahead, and their nodes into the CPU's cache, because the dictionaries of many JVMs
 * are larger than that. Returns their number; *ret_more as wire_next_sample() says it of the next
 * one. */
static int event_records_read_ahead(const struct stream *s, struct wire_reader *r,
				    struct wire_sample to[SAMPLES_AHEAD], int *ret_more)
{
	int n = 0;

	*ret_more = 1;
	while (n < SAMPLES_AHEAD && (*ret_more = wire_next_sample(r, &to[n])) > 0) {
		if (to[n].node < s->dictionary.n_nodes)
			__builtin_prefetch(&s->dictionary.nodes[to[n].node]);
		n++;
	}
	return n;
}

int event_records_on_samples(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	struct wire_sample samples[SAMPLES_AHEAD];
	struct wire_reader r;
	int more = 1;

	wire_read(&r, frame);
	while (more > 0) {
		int n = event_records_read_ahead(s, &r, samples, &more);

		for (int i = 0; i < n; i++) {
			int e = add_sample(s, &samples[i], frame->type == WIRE_WALL, f);

			if (e < 0)
				return e;
		}
	}
	return more < 0 ? fault_set(f, EBADMSG, FAULT_STREAM, "a CPU frame is malformed") : 0;
}

int event_records_add_lock(struct stream *s, const struct wire_lock *w, struct fault *f)
{
	struct stream_lock lock = {
		.begin_ns = w->begin_ns,
		.duration_ns = w->duration_ns,
		.tid = w->tid,
		.owner_tid = w->owner_tid,
		.thread = stream_thread_name(s, w->tid),
		.owner = stream_thread_name(s, w->owner_tid),
		.wait = w->wait,
		.flags = w->flags,
		.identity = w->identity,
		.node = w->node,
		.owner_node = w->owner_node,
		.waits = w->waits,
	};
	int r = 1;

	if (!node_ok(s, w->node) || !node_ok(s, w->owner_node))
		return event_records_undefined(f, "node", w->node);
	if (w->class_id && !dictionary_has_string(s, w->class_id))
		return event_records_undefined(f, "string", w->class_id);
	if (!contexts_find(s, w->context, &lock.trace, f))
		return -EBADMSG;
	lock.class_name = dictionary_class(s, w->class_id);
	if (!(w->flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED)))
		r = accounts_deliver(s, WIRE_EVENT_LOCK, w->duration_ns, f);
	if (r > 0 && s->ops.on_lock)
		s->ops.on_lock(s->userdata, &lock);
	return r < 0 ? r : 0;
}

int event_records_add_alloc(struct stream *s, const struct wire_alloc *w, struct fault *f)
{
	struct stream_alloc alloc = {
		.mono_ns = w->mono_ns,
		.tid = w->tid,
		.thread = stream_thread_name(s, w->tid),
		.size = w->size,
		.weight = w->weight,
		.node = w->node,
	};
	int r;

	if (!node_ok(s, w->node))
		return event_records_undefined(f, "node", w->node);
	if (w->class_id && !dictionary_has_string(s, w->class_id))
		return event_records_undefined(f, "string", w->class_id);
	if (!contexts_find(s, w->context, &alloc.trace, f))
		return -EBADMSG;
	alloc.class_name = dictionary_class(s, w->class_id);
	s->newest_ns = w->mono_ns;
	r = accounts_deliver(s, WIRE_EVENT_ALLOC, w->weight, f);
	if (r > 0 && s->ops.on_alloc)
		s->ops.on_alloc(s->userdata, &alloc);
	return r < 0 ? r : 0;
}

int event_records_add_offcpu(struct stream *s, const struct wire_offcpu *w, struct fault *f)
{
	struct stream_offcpu interval = {
		.mono_ns = w->mono_ns,
		.duration_ns = w->weight_ns,
		.tid = w->tid,
		.virtual_tid = w->virtual_tid,
		.thread = stream_thread_name(s, w->tid),
		.virtual_thread = stream_thread_name(s, w->virtual_tid),
		.node = w->node,
		.status = w->status,
		.identity = w->identity,
	};
	int r;

	if (!node_ok(s, w->node))
		return event_records_undefined(f, "node", w->node);
	if (w->class_id && !dictionary_has_string(s, w->class_id))
		return event_records_undefined(f, "string", w->class_id);
	interval.class_name = dictionary_class(s, w->class_id);
	if (!contexts_find(s, w->context, &interval.trace, f))
		return -EBADMSG;
	r = accounts_deliver(s, WIRE_EVENT_OFFCPU, w->weight_ns, f);
	if (r > 0 && s->ops.on_offcpu)
		s->ops.on_offcpu(s->userdata, &interval);
	return r < 0 ? r : 0;
}

int event_records_add_state(struct stream *s, const struct wire_state *w, struct fault *f)
{
	(void)f;
	if (s->ops.on_state)
		s->ops.on_state(s->userdata, w, stream_thread_name(s, w->tid));
	return 0;
}

int event_records_add_virtual(struct stream *s, const struct wire_virtual *w, struct fault *f)
{
	struct stream_virtual v = {
		.mono_ns = w->mono_ns,
		.state = w->state,
		.count = w->count,
		.mounted = w->mounted,
	};

	if (w->class_id && !dictionary_has_string(s, w->class_id))
		return event_records_undefined(f, "string", w->class_id);
	if (w->container_id && !dictionary_has_string(s, w->container_id))
		return event_records_undefined(f, "string", w->container_id);
	v.class_name = dictionary_class(s, w->class_id);
	v.container = dictionary_string(s, w->container_id);
	if (s->ops.on_virtual)
		s->ops.on_virtual(s->userdata, &v);
	return 0;
}

int event_records_add_pause(struct stream *s, const struct wire_pause *w, struct fault *f)
{
	if (w->operation_id && !dictionary_has_string(s, w->operation_id))
		return event_records_undefined(f, "string", w->operation_id);
	if (s->ops.on_pause)
		s->ops.on_pause(s->userdata, w, dictionary_string(s, w->operation_id));
	return 0;
}
