/* See stream.h: bytes, frames, and the sessions they belong to. */
#include "daemon/stream/stream_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include "daemon/ground/utf8.h"

int stream_new(const struct stream_ops *ops, void *userdata, struct stream **ret)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->userdata = userdata;
	/* the target chooses its tids: without a random seed it could make all of them collide */
	(void)!getrandom(&s->threads.seed, sizeof(s->threads.seed), GRND_NONBLOCK);
	(void)!getrandom(&s->dictionary.seed, sizeof(s->dictionary.seed), GRND_NONBLOCK);
	*ret = s;
	return 0;
}

uint64_t stream_newest_ns(const struct stream *s)
{
	return s->newest_ns;
}

size_t stream_bytes(const struct stream *s)
{
	return sizeof(*s) + s->dictionary.memory + s->contexts.memory + s->threads.memory +
	       s->threads.size * sizeof(*s->threads.table);
}

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	dictionary_forget(s);
	contexts_forget(s);
	thread_names_forget(s);
	free(s);
	return NULL;
}

/* ---- sessions -------------------------------------------------------------------------------- */

static int stream_on_reset(struct stream *s)
{
	if (s->ops.on_reset)
		s->ops.on_reset(s->userdata);
	dictionary_forget(s);
	contexts_forget(s);
	return 0;
}

/*
 * An agent that finds the previous daemon's START in its pipe begins a session for that one first:
 * its HELLO and frames come before those of our session. Its samples were delivered and stay in the
 * counters.
 */
static int stream_begin_again(struct stream *s, struct fault *f)
{
	int r = accounts_begin_session(s, f);

	if (r < 0 || !s->greeted)
		return r;
	thread_names_forget(s);
	return stream_on_reset(s);
}

void stream_expect(struct stream *s, const uint8_t *secret)
{
	memcpy(s->secret, secret, sizeof(s->secret));
	s->has_secret = true;
}

static bool knows_secret(const struct stream *s, struct wire_str said)
{
	return !s->has_secret ||
	       (said.len == sizeof(s->secret) && memcmp(said.p, s->secret, sizeof(s->secret)) == 0);
}

static int stream_on_hello(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	struct wire_hello h;
	int r;

	if (wire_get_hello(frame, &h) < 0)
		return fault_set(f, EBADMSG, FAULT_STREAM, "HELLO is malformed");
	if (h.protocol != WIRE_PROTOCOL)
		return fault_set(
			f, EPROTONOSUPPORT, FAULT_STREAM,
			"the agent uses protocol %llu, this kindlingd uses %u: they are of different versions",
			(unsigned long long)h.protocol, WIRE_PROTOCOL);
	if (!knows_secret(s, h.secret))
		return fault_set(
			f, EPERM, FAULT_STREAM,
			"the sender does not know the secret of the attach: it is not the agent");
	r = stream_begin_again(s, f);
	if (r < 0)
		return r;
	s->greeted = true;
	s->sequence = frame->sequence;
	if (s->ops.on_hello)
		s->ops.on_hello(s->userdata, &h);
	return 0;
}

static int stream_on_fault(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	char step[3 * WIRE_STRING_MAX + 1], what[3 * WIRE_STRING_MAX + 1];
	struct fault said = { 0 };
	struct wire_fault w;

	if (wire_get_fault(frame, &w) < 0)
		return fault_set(f, EBADMSG, FAULT_STREAM,
				 "a NOTE, FAULT or BYE frame is malformed");
	utf8_clean(step, w.step.p, w.step.len);
	utf8_clean(what, w.what.p, w.what.len);
	if (frame->type == WIRE_NOTE) {
		if (s->ops.on_note)
			s->ops.on_note(s->userdata, step, what);
		return 0;
	}
	fault_set(&said, w.code > 0 && w.code < 4096 ? (int)w.code : EPROTO, FAULT_AGENT, "%s: %s",
		  step, what);
	if (frame->type == WIRE_FAULT && s->ops.on_fault)
		s->ops.on_fault(s->userdata, &said);
	if (frame->type == WIRE_BYE && s->ops.on_bye)
		s->ops.on_bye(s->userdata, &said);
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

#define RECORDS(record, next, add)                                                          \
	static int on_##record##s(struct stream *s, const struct wire_frame *frame,         \
				  struct fault *f)                                          \
	{                                                                                   \
		struct wire_reader r;                                                       \
		struct wire_##record w;                                                     \
		int more, e;                                                                \
                                                                                            \
		wire_read(&r, frame);                                                       \
		while ((more = next(&r, &w)) > 0) {                                         \
			e = add(s, &w, f);                                                  \
			if (e < 0)                                                          \
				return e;                                                   \
		}                                                                           \
		return more < 0 ? fault_set(f, EBADMSG, FAULT_STREAM,                       \
					    "a frame of type %u is malformed", frame->type) \
				: 0;                                                        \
	}
RECORDS(string, wire_next_string, dictionary_add_string)
RECORDS(method, wire_next_method, dictionary_add_method)
RECORDS(mapping, wire_next_mapping, dictionary_add_mapping)
RECORDS(node, wire_next_node, dictionary_add_node)
RECORDS(thread, wire_next_thread, thread_names_add)
RECORDS(context, wire_next_context, contexts_add)
RECORDS(lock, wire_next_lock, event_records_add_lock)
RECORDS(alloc, wire_next_alloc, event_records_add_alloc)
RECORDS(offcpu, wire_next_offcpu, event_records_add_offcpu)
RECORDS(state, wire_next_state, event_records_add_state)
RECORDS(virtual, wire_next_virtual, event_records_add_virtual)
RECORDS(pause, wire_next_pause, event_records_add_pause)

static int on_frame(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	s->counts.frames++;
	if (frame->type == WIRE_HELLO)
		return stream_on_hello(s, frame, f);
	if (!s->greeted)
		return 0; /* the end of an earlier session, still in the pipe */
	/* frames are numbered as they are written: a gap means that bytes were lost in the pipe */
	if (frame->sequence != s->sequence + 1)
		return fault_set(f, EBADMSG, FAULT_STREAM, "frame %llu came after frame %llu",
				 (unsigned long long)frame->sequence,
				 (unsigned long long)s->sequence);
	s->sequence = frame->sequence;
	switch (frame->type) {
	case WIRE_RESET:
		return stream_on_reset(s);
	case WIRE_STRING:
		return on_strings(s, frame, f);
	case WIRE_METHOD:
		return on_methods(s, frame, f);
	case WIRE_MAPPING:
		return on_mappings(s, frame, f);
	case WIRE_NODE:
		return on_nodes(s, frame, f);
	case WIRE_THREAD:
		return on_threads(s, frame, f);
	case WIRE_CONTEXT:
		return on_contexts(s, frame, f);
	case WIRE_CPU:
	case WIRE_WALL:
		return event_records_on_samples(s, frame, f);
	case WIRE_LOCK:
		return on_locks(s, frame, f);
	case WIRE_ALLOC:
		return on_allocs(s, frame, f);
	case WIRE_OFFCPU:
		return on_offcpus(s, frame, f);
	case WIRE_STATE:
		return on_states(s, frame, f);
	case WIRE_VIRTUAL:
		return on_virtuals(s, frame, f);
	case WIRE_PAUSE:
		return on_pauses(s, frame, f);
	case WIRE_LEDGER:
		return accounts_on_ledger(s, frame, f);
	case WIRE_NOTE:
	case WIRE_FAULT:
	case WIRE_BYE:
		return stream_on_fault(s, frame, f);
	default:
		return 0; /* a newer agent may send types that we do not know */
	}
}

int stream_feed(struct stream *s, const void *buf, size_t len, struct fault *f)
{
	const uint8_t *p = buf;
	struct wire_frame frame;
	int size, r;

	s->counts.bytes += len;
	s->limits_asked = false;
	while (len > 0) {
		if (s->partial_len) {
			size_t room = sizeof(s->partial) - s->partial_len;
			size_t n = len < room ? len : room;
			uint32_t had = s->partial_len;

			memcpy(s->partial + had, p, n);
			size = wire_peek(s->partial, had + n, &frame);
			if (size > 0) {
				p += (uint32_t)size - had;
				len -= (uint32_t)size - had;
				s->partial_len = 0;
			} else {
				s->partial_len += (uint32_t)n;
				len -= n;
			}
		} else {
			size = wire_peek(p, len, &frame);
			if (size > 0) {
				p += size;
				len -= (size_t)size;
			} else if (size == 0) {
				memcpy(s->partial, p, len);
				s->partial_len = (uint32_t)len;
				len = 0;
			}
		}
		if (size < 0)
			return fault_set(f, EBADMSG, FAULT_STREAM,
					 "the agent sent bytes that are not a frame");
		if (size == 0)
			continue;
		r = on_frame(s, &frame, f);
		if (r < 0)
			return r;
	}
	return 0;
}
