/* See stream.h. */
#include "daemon/stream/stream.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include "daemon/core/utf8.h"

#define MEMORY_MAX	  (64u << 20) /* of one stream's dictionary, bytes */
#define THREADS_BYTES_MAX (8u << 20) /* of its names of threads */
#define BLOCK_BYTES	  32 /* what malloc takes beside the text itself, at most */
#define SESSIONS_MAX	  3 /* HELLOs in one stream */
#define BOOKS_MAX	  (1ull << 61) /* of each sum in one session: 73 years of CPU, in ns */
_Static_assert(2 * BOOKS_MAX <= UINT64_MAX / SESSIONS_MAX, "no sum over sessions can overflow");

struct method {
	uint32_t class_id, name_id, sig_id, file_id; /* class_id 0 and name_id 0 = not defined */
};

struct node {
	uint32_t parent, ref;
	int32_t line;
	uint8_t kind;
	bool defined;
	uint8_t mark; /* the reader's */
	uint64_t offset;
};

struct thread {
	uint32_t tid;
	bool ended; /* its last samples may still come: the name stays until room is needed */
	char *name;
};

struct stream {
	struct stream_ops ops;
	void *userdata;
	uint8_t partial[WIRE_FRAME_MAX];
	uint32_t partial_len;
	bool greeted; /* frames before HELLO belong to an older session */
	uint64_t sequence;
	/* dictionaries, indexed by id */
	char **strings;
	struct method *methods;
	struct wire_mapping *mappings;
	struct node *nodes;
	uint32_t n_strings, n_methods, n_mappings, n_nodes; /* allocated */
	struct thread *threads; /* hash table by tid */
	uint32_t n_threads, threads_size, threads_seed;
	size_t threads_memory;
	size_t memory;
	struct stream_counts counts; /* of the running session; bytes and frames of all */
	struct {
		uint64_t n, weight;
	} at_ledger[WIRE_EVENT_COUNT]; /* what was delivered when the last LEDGER came */
	struct stream_counts past; /* of sessions before the last HELLO */
	uint32_t sessions;
};

int stream_new(const struct stream_ops *ops, void *userdata, struct stream **ret)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->ops = *ops;
	s->userdata = userdata;
	/* tids are the target's to choose: not into one chain of the table */
	(void)!getrandom(&s->threads_seed, sizeof(s->threads_seed), GRND_NONBLOCK);
	*ret = s;
	return 0;
}

static void forget(struct stream *s)
{
	for (uint32_t i = 0; i < s->n_strings; i++)
		free(s->strings[i]);
	free(s->strings);
	free(s->methods);
	free(s->mappings);
	free(s->nodes);
	s->strings = NULL;
	s->methods = NULL;
	s->mappings = NULL;
	s->nodes = NULL;
	s->n_strings = s->n_methods = s->n_mappings = s->n_nodes = 0;
	s->memory = 0;
}

static void forget_threads(struct stream *s)
{
	for (uint32_t i = 0; i < s->threads_size; i++)
		free(s->threads[i].name);
	free(s->threads);
	s->threads = NULL;
	s->threads_size = s->n_threads = 0;
	s->threads_memory = 0;
}

struct stream *stream_free(struct stream *s)
{
	if (!s)
		return NULL;
	forget(s);
	forget_threads(s);
	free(s);
	return NULL;
}

/* ---- dictionaries ------------------------------------------------------------------------ */

static int charge(struct stream *s, size_t bytes, struct fault *f)
{
	if (bytes > MEMORY_MAX - s->memory)
		return fault_set(f, ENOMEM, FAULT_STREAM,
				 "the agent defines more than %u MiB of names", MEMORY_MAX >> 20);
	s->memory += bytes;
	return 0;
}

/* Make room for id @id in an array of @size-byte elements. Ids come in order, so doubling is cheap;
 * a sender that jumps ahead pays from its own memory bound. */
static int grow(struct stream *s, void **array, uint32_t *n, uint32_t id, size_t size,
		struct fault *f)
{
	uint32_t want = *n ? *n : 256;
	void *p;
	int r;

	if (id < *n)
		return 0;
	while (want <= id)
		want *= 2;
	r = charge(s, (want - *n) * size, f);
	if (r < 0)
		return r;
	p = realloc(*array, want * size);
	if (!p)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for the agent's names");
	memset((char *)p + *n * size, 0, (want - *n) * size);
	*array = p;
	*n = want;
	return 0;
}

static bool has_string(const struct stream *s, uint32_t id)
{
	return id < s->n_strings && s->strings[id];
}

static const char *string(const struct stream *s, uint32_t id)
{
	return has_string(s, id) ? s->strings[id] : "";
}

static int twice(struct fault *f, const char *what, uint32_t id)
{
	return fault_set(f, EBADMSG, FAULT_STREAM, "%s %u is defined twice or from nothing", what, id);
}

/* malloc'ed clean text that takes no more than it needs; NULL without memory */
static char *clean_copy(struct wire_str str, size_t *ret_len)
{
	char clean[3 * WIRE_STRING_MAX + 1];
	char *copy;

	*ret_len = utf8_clean(clean, str.p, str.len);
	copy = malloc(*ret_len + 1);
	if (copy)
		memcpy(copy, clean, *ret_len + 1);
	return copy;
}

static int add_string(struct stream *s, const struct wire_string *w, struct fault *f)
{
	size_t len;
	char *text;
	int r;

	r = grow(s, (void **)&s->strings, &s->n_strings, w->id, sizeof(*s->strings), f);
	if (r < 0)
		return r;
	if (s->strings[w->id])
		return twice(f, "string", w->id);
	text = clean_copy(w->str, &len);
	if (!text)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for the agent's names");
	s->strings[w->id] = text;
	return charge(s, len + BLOCK_BYTES, f);
}

static int add_method(struct stream *s, const struct wire_method *w, struct fault *f)
{
	int r = grow(s, (void **)&s->methods, &s->n_methods, w->id, sizeof(*s->methods), f);
	struct method *m;

	if (r < 0)
		return r;
	m = &s->methods[w->id];
	if (m->name_id || !has_string(s, w->class_id) || !has_string(s, w->name_id) ||
	    !has_string(s, w->sig_id) || (w->file_id && !has_string(s, w->file_id)))
		return twice(f, "method", w->id);
	*m = (struct method){ w->class_id, w->name_id, w->sig_id, w->file_id };
	/* "java/lang/String" -> "java.lang.String", once, where the name is used as a class */
	for (char *p = s->strings[w->class_id]; *p; p++)
		if (*p == '/')
			*p = '.';
	return 0;
}

static int add_mapping(struct stream *s, const struct wire_mapping *w, struct fault *f)
{
	int r = grow(s, (void **)&s->mappings, &s->n_mappings, w->id, sizeof(*s->mappings), f);

	if (r < 0)
		return r;
	if (s->mappings[w->id].id || !has_string(s, w->path_id))
		return twice(f, "mapping", w->id);
	s->mappings[w->id] = *w;
	if (s->ops.on_mapping)
		s->ops.on_mapping(s->userdata, w, string(s, w->path_id));
	return 0;
}

static bool has_node(const struct stream *s, uint32_t id)
{
	return id < s->n_nodes && s->nodes[id].defined;
}

static int add_node(struct stream *s, const struct wire_node *w, struct fault *f)
{
	int r = grow(s, (void **)&s->nodes, &s->n_nodes, w->id, sizeof(*s->nodes), f);
	bool ref_ok;

	if (r < 0)
		return r;
	if (wire_kind_is_method(w->kind))
		ref_ok = w->ref < s->n_methods && s->methods[w->ref].name_id;
	else if (w->kind == WIRE_KIND_NATIVE)
		ref_ok = stream_mapping(s, w->ref) != NULL;
	else /* frames of the kernel and classes are the daemon's to add */
		ref_ok = w->kind != WIRE_KIND_KERNEL && w->kind != WIRE_KIND_CLASS &&
			 has_string(s, w->ref);
	/* a parent is defined before its child: so no path can be a circle */
	if (!ref_ok || s->nodes[w->id].defined || (w->parent && !has_node(s, w->parent)))
		return twice(f, "node", w->id);
	s->nodes[w->id] = (struct node){ w->parent, w->ref, w->line, w->kind, true, 0, w->offset };
	return 0;
}

/* ---- threads ----------------------------------------------------------------------------- */

static struct thread *thread_slot(struct thread *table, uint32_t size, uint32_t seed, uint32_t tid)
{
	uint64_t h = ((uint64_t)tid ^ seed) * 0x9e3779b97f4a7c15ull;
	uint32_t i = (uint32_t)((h ^ (uint64_t)seed << 32) * 0xff51afd7ed558ccdull >> 32) & (size - 1);

	while (table[i].name && table[i].tid != tid)
		i = (i + 1) & (size - 1);
	return &table[i];
}

/* A table of @size places with the threads that are alive, or with all of them. */
static int rehash_threads(struct stream *s, uint32_t size, bool with_ended)
{
	struct thread *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->threads_size; i++) {
		struct thread *t = &s->threads[i];

		if (!t->name)
			continue;
		if (!t->ended || with_ended) {
			*thread_slot(table, size, s->threads_seed, t->tid) = *t;
			continue;
		}
		s->threads_memory -= strlen(t->name) + BLOCK_BYTES;
		s->n_threads--;
		free(t->name);
	}
	free(s->threads);
	s->threads = table;
	s->threads_size = size;
	return 0;
}

static int grow_threads(struct stream *s)
{
	return rehash_threads(s, s->threads_size ? 2 * s->threads_size : 256, true);
}

/* Names of ended threads pile up: at the bound they go. If the living take as much, all go: those
 * come again with their next change and are numbers until then. */
static void bound_threads(struct stream *s)
{
	if (s->threads_memory + s->threads_size * sizeof(*s->threads) <= THREADS_BYTES_MAX)
		return;
	if (rehash_threads(s, s->threads_size, false) < 0 ||
	    s->threads_memory + s->threads_size * sizeof(*s->threads) > THREADS_BYTES_MAX / 2)
		forget_threads(s);
}

/* The end of a thread comes without its name. */
static void end_thread(struct stream *s, const struct wire_thread *w)
{
	struct thread *t = s->threads_size ?
				   thread_slot(s->threads, s->threads_size, s->threads_seed, w->tid) :
				   NULL;
	const char *name = "";

	if (t && t->name) {
		t->ended = true;
		name = t->name;
	}
	if (s->ops.on_thread)
		s->ops.on_thread(s->userdata, w, name);
}

static int add_thread(struct stream *s, const struct wire_thread *w, struct fault *f)
{
	struct thread *t;
	size_t len;
	char *name;

	if (w->flags & WIRE_THREAD_ENDED) {
		end_thread(s, w);
		return 0;
	}
	bound_threads(s);
	if (2 * (s->n_threads + 1) > s->threads_size && grow_threads(s) < 0)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for thread names");
	name = clean_copy(w->name, &len);
	if (!name)
		return fault_set(f, ENOMEM, FAULT_STREAM, "no memory for thread names");
	t = thread_slot(s->threads, s->threads_size, s->threads_seed, w->tid);
	if (t->name)
		s->threads_memory -= strlen(t->name) + BLOCK_BYTES;
	else
		s->n_threads++;
	s->threads_memory += len + BLOCK_BYTES;
	free(t->name);
	t->tid = w->tid;
	t->ended = false;
	t->name = name;
	if (s->ops.on_thread)
		s->ops.on_thread(s->userdata, w, name);
	return 0;
}

const char *stream_thread_name(const struct stream *s, uint32_t tid)
{
	const struct thread *t;

	if (!s->threads_size)
		return "";
	t = thread_slot(s->threads, s->threads_size, s->threads_seed, tid);
	return t->name ? t->name : "";
}

/* ---- frames ------------------------------------------------------------------------------ */

/* With every sum of a session below BOOKS_MAX, none of them can overflow, whatever an agent says. */
static int too_much(struct fault *f)
{
	return fault_set(f, EBADMSG, FAULT_STREAM, "the agent's books: more than any machine can run");
}

static int undefined(struct fault *f, const char *what, uint32_t id)
{
	return fault_set(f, EBADMSG, FAULT_STREAM, "an event names %s %u, which is not defined", what, id);
}

static bool node_ok(const struct stream *s, uint32_t id)
{
	return id == 0 || has_node(s, id);
}

static bool deliver(struct stream *s, enum wire_event event, uint64_t weight)
{
	struct stream_books *b = &s->counts.of[event];

	if (weight >= BOOKS_MAX - b->delivered_weight)
		return false;
	b->delivered++;
	b->delivered_weight += weight;
	return true;
}

static int add_sample(struct stream *s, const struct wire_sample *w, bool wall, struct fault *f)
{
	void (*call)(void *, const struct stream_sample *) = wall ? s->ops.on_wall : s->ops.on_sample;
	struct stream_sample sample = {
		.mono_ns = w->mono_ns,
		.tid = w->tid,
		.thread = stream_thread_name(s, w->tid),
		.weight_ns = w->weight_ns,
		.node = w->node,
	};

	if (!node_ok(s, w->node))
		return undefined(f, "node", w->node);
	if (!deliver(s, wall ? WIRE_EVENT_WALL : WIRE_EVENT_CPU, w->weight_ns))
		return too_much(f);
	if (call)
		call(s->userdata, &sample);
	return 0;
}

static int on_samples(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	struct wire_reader r;
	struct wire_sample w;
	int more, e;

	wire_read(&r, frame);
	while ((more = wire_next_sample(&r, &w)) > 0) {
		e = add_sample(s, &w, frame->type == WIRE_WALL, f);
		if (e < 0)
			return e;
	}
	return more < 0 ? fault_set(f, EBADMSG, FAULT_STREAM, "a CPU frame is no CPU frame") : 0;
}

/* "java/lang/String" as it is printed; the table's own copy is changed, once. */
static const char *class_name(struct stream *s, uint32_t id)
{
	if (!has_string(s, id))
		return "";
	for (char *p = s->strings[id]; *p; p++)
		if (*p == '/')
			*p = '.';
	return s->strings[id];
}

static int add_lock(struct stream *s, const struct wire_lock *w, struct fault *f)
{
	struct stream_lock lock = {
		.begin_ns = w->begin_ns,
		.duration_ns = w->duration_ns,
		.tid = w->tid,
		.owner_tid = w->owner_tid,
		.waker_tid = w->waker_tid,
		.thread = stream_thread_name(s, w->tid),
		.owner = stream_thread_name(s, w->owner_tid),
		.waker = stream_thread_name(s, w->waker_tid),
		.wait = w->wait,
		.flags = w->flags,
		.identity = w->identity,
		.node = w->node,
		.owner_node = w->owner_node,
	};

	if (!node_ok(s, w->node) || !node_ok(s, w->owner_node))
		return undefined(f, "node", w->node);
	if (w->class_id && !has_string(s, w->class_id))
		return undefined(f, "string", w->class_id);
	lock.class_name = class_name(s, w->class_id);
	if (!(w->flags & (WIRE_LOCK_OPEN | WIRE_LOCK_CLOSED)) &&
	    !deliver(s, WIRE_EVENT_LOCK, w->duration_ns))
		return too_much(f);
	if (s->ops.on_lock)
		s->ops.on_lock(s->userdata, &lock);
	return 0;
}

static int add_alloc(struct stream *s, const struct wire_alloc *w, struct fault *f)
{
	struct stream_alloc alloc = {
		.mono_ns = w->mono_ns,
		.tid = w->tid,
		.thread = stream_thread_name(s, w->tid),
		.size = w->size,
		.weight = w->weight,
		.node = w->node,
	};

	if (!node_ok(s, w->node))
		return undefined(f, "node", w->node);
	if (w->class_id && !has_string(s, w->class_id))
		return undefined(f, "string", w->class_id);
	alloc.class_name = class_name(s, w->class_id);
	if (!deliver(s, WIRE_EVENT_ALLOC, w->weight))
		return too_much(f);
	if (s->ops.on_alloc)
		s->ops.on_alloc(s->userdata, &alloc);
	return 0;
}

static int add_state(struct stream *s, const struct wire_state *w, struct fault *f)
{
	(void)f;
	if (s->ops.on_state)
		s->ops.on_state(s->userdata, w, stream_thread_name(s, w->tid));
	return 0;
}

static int add_virtual(struct stream *s, const struct wire_virtual *w, struct fault *f)
{
	struct stream_virtual v = {
		.mono_ns = w->mono_ns,
		.state = w->state,
		.count = w->count,
		.mounted = w->mounted,
	};

	if (w->class_id && !has_string(s, w->class_id))
		return undefined(f, "string", w->class_id);
	if (w->container_id && !has_string(s, w->container_id))
		return undefined(f, "string", w->container_id);
	v.class_name = class_name(s, w->class_id);
	v.container = string(s, w->container_id);
	if (s->ops.on_virtual)
		s->ops.on_virtual(s->userdata, &v);
	return 0;
}

#define RECORDS(record, next, add) \
	static int on_##record##s(struct stream *s, const struct wire_frame *frame, struct fault *f) \
	{ \
		struct wire_reader r; \
		struct wire_##record w; \
		int more, e; \
\
		wire_read(&r, frame); \
		while ((more = next(&r, &w)) > 0) { \
			e = add(s, &w, f); \
			if (e < 0) \
				return e; \
		} \
		return more < 0 ? fault_set(f, EBADMSG, FAULT_STREAM, "a frame of type %u is malformed", \
					    frame->type) : \
				  0; \
	}
RECORDS(string, wire_next_string, add_string)
RECORDS(method, wire_next_method, add_method)
RECORDS(mapping, wire_next_mapping, add_mapping)
RECORDS(node, wire_next_node, add_node)
RECORDS(thread, wire_next_thread, add_thread)
RECORDS(lock, wire_next_lock, add_lock)
RECORDS(alloc, wire_next_alloc, add_alloc)
RECORDS(state, wire_next_state, add_state)
RECORDS(virtual, wire_next_virtual, add_virtual)

/* 0 or what is wrong with one event's books @now, when @delivered came, @delivered_then of it before
 * @then. Once for the numbers, once for the weights. */
#define WRONG_BOOKS(name, taken, written, part)                                                          \
	static const char *name(const struct wire_books *now, const struct wire_books *then,             \
				uint64_t delivered, uint64_t delivered_then)                             \
	{                                                                                                \
		uint64_t sum = now->written;                                                             \
                                                                                                         \
		if (now->taken >= BOOKS_MAX || now->written > now->taken)                                \
			return "written is more than taken, or taken beyond reason";                     \
		for (int i = 0; i < WIRE_DROP_COUNT; i++) {                                              \
			if (now->drop[i].part > now->taken - sum)                                        \
				return "dropped is more than was taken";                                 \
			if (now->drop[i].part < then->drop[i].part)                                      \
				return "a counter went backwards";                                       \
			sum += now->drop[i].part;                                                        \
		}                                                                                        \
		if (now->taken != sum)                                                                   \
			return "taken is not written + dropped";                                         \
		if (now->written < then->written)                                                        \
			return "a counter went backwards";                                               \
		/* what was lost stays lost */                                                           \
		if (now->written - then->written < delivered - delivered_then)                           \
			return "more came than was written";                                             \
		return NULL;                                                                             \
	}
WRONG_BOOKS(wrong_numbers, taken, written, n)
WRONG_BOOKS(wrong_weights, taken_weight, written_weight, weight)

/* The agent's books must agree with themselves and with what came. */
static int on_ledger(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	struct stream_counts *c = &s->counts;
	struct wire_ledger l;

	if (wire_get_ledger(frame, &l) < 0)
		return fault_set(f, EBADMSG, FAULT_STREAM, "a LEDGER frame is malformed");
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		const struct wire_books *now = &l.books[e], *then = &c->ledger.books[e];
		const char *wrong = wrong_numbers(now, then, c->of[e].delivered, s->at_ledger[e].n);

		if (!wrong)
			wrong = wrong_weights(now, then, c->of[e].delivered_weight,
					      s->at_ledger[e].weight);
		if (wrong)
			return fault_set(f, EBADMSG, FAULT_STREAM, "the agent's books of %s: %s",
					 wire_event_names[e], wrong);
	}
	c->ledger = l;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		s->at_ledger[e].n = c->of[e].delivered;
		s->at_ledger[e].weight = c->of[e].delivered_weight;
	}
	if (s->ops.on_ledger)
		s->ops.on_ledger(s->userdata);
	return 0;
}

static int on_reset(struct stream *s);

/*
 * The agent may have begun a session for the daemon before us, whose START it found first: its HELLO
 * and what follows come ahead of ours. Their samples were delivered and stay in the books.
 */
static int begin_again(struct stream *s, struct fault *f)
{
	uint64_t bytes = s->counts.bytes, frames = s->counts.frames;
	struct stream_counts until_now;

	if (++s->sessions > SESSIONS_MAX)
		return fault_set(f, EBADMSG, FAULT_STREAM, "HELLO came more than %d times", SESSIONS_MAX);
	if (!s->greeted)
		return 0;
	stream_counts(s, &until_now);
	s->past = until_now;
	memset(&s->counts, 0, sizeof(s->counts));
	s->counts.bytes = bytes;
	s->counts.frames = frames;
	memset(s->at_ledger, 0, sizeof(s->at_ledger));
	forget_threads(s);
	return on_reset(s);
}

static int on_hello(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	struct wire_hello h;
	int r;

	if (wire_get_hello(frame, &h) < 0)
		return fault_set(f, EBADMSG, FAULT_STREAM, "HELLO is malformed");
	if (h.protocol != WIRE_PROTOCOL)
		return fault_set(f, EPROTO, FAULT_STREAM, "the agent speaks protocol %llu, this daemon %u",
				 (unsigned long long)h.protocol, WIRE_PROTOCOL);
	r = begin_again(s, f);
	if (r < 0)
		return r;
	s->greeted = true;
	s->sequence = frame->sequence;
	if (s->ops.on_hello)
		s->ops.on_hello(s->userdata, &h);
	return 0;
}

static int on_reset(struct stream *s)
{
	if (s->ops.on_reset)
		s->ops.on_reset(s->userdata);
	forget(s);
	return 0;
}

static int on_words(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	char step[3 * WIRE_STRING_MAX + 1], what[3 * WIRE_STRING_MAX + 1];
	struct fault said = { 0 };
	struct wire_fault w;

	if (wire_get_fault(frame, &w) < 0)
		return fault_set(f, EBADMSG, FAULT_STREAM, "a NOTE, FAULT or BYE frame is malformed");
	utf8_clean(step, w.step.p, w.step.len);
	utf8_clean(what, w.what.p, w.what.len);
	if (frame->type == WIRE_NOTE) {
		if (s->ops.on_note)
			s->ops.on_note(s->userdata, step, what);
		return 0;
	}
	fault_set(&said, w.code > 0 && w.code < 4096 ? (int)w.code : EPROTO, FAULT_AGENT, "%s: %s", step,
		  what);
	if (frame->type == WIRE_FAULT && s->ops.on_fault)
		s->ops.on_fault(s->userdata, &said);
	if (frame->type == WIRE_BYE && s->ops.on_bye)
		s->ops.on_bye(s->userdata, &said);
	return 0;
}

static int on_frame(struct stream *s, const struct wire_frame *frame, struct fault *f)
{
	s->counts.frames++;
	if (frame->type == WIRE_HELLO)
		return on_hello(s, frame, f);
	if (!s->greeted)
		return 0; /* the end of an older session, still in the pipe */
	/* numbers are given to frames that were written: a gap means that the pipe lost bytes */
	if (frame->sequence != s->sequence + 1)
		return fault_set(f, EBADMSG, FAULT_STREAM, "frame %llu came after frame %llu",
				 (unsigned long long)frame->sequence, (unsigned long long)s->sequence);
	s->sequence = frame->sequence;
	switch (frame->type) {
	case WIRE_RESET:
		return on_reset(s);
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
	case WIRE_CPU:
	case WIRE_WALL:
		return on_samples(s, frame, f);
	case WIRE_LOCK:
		return on_locks(s, frame, f);
	case WIRE_ALLOC:
		return on_allocs(s, frame, f);
	case WIRE_STATE:
		return on_states(s, frame, f);
	case WIRE_VIRTUAL:
		return on_virtuals(s, frame, f);
	case WIRE_LEDGER:
		return on_ledger(s, frame, f);
	case WIRE_NOTE:
	case WIRE_FAULT:
	case WIRE_BYE:
		return on_words(s, frame, f);
	default:
		return 0; /* a newer agent says more than we know */
	}
}

int stream_feed(struct stream *s, const void *buf, size_t len, struct fault *f)
{
	const uint8_t *p = buf;
	struct wire_frame frame;
	int size, r;

	s->counts.bytes += len;
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
			return fault_set(f, EBADMSG, FAULT_STREAM, "the agent sent bytes that are no frame");
		if (size == 0)
			continue;
		r = on_frame(s, &frame, f);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- questions --------------------------------------------------------------------------- */

static void count(const struct stream *s, enum wire_event event, struct stream_books *ret)
{
	const struct wire_books *told = &s->counts.ledger.books[event];
	const struct stream_books *past = &s->past.of[event];
	uint64_t n = s->at_ledger[event].n, weight = s->at_ledger[event].weight;

	/* what came after the last LEDGER was taken for certain */
	ret->taken = past->taken + told->taken + ret->delivered - n;
	ret->taken_weight = past->taken_weight + told->taken_weight + ret->delivered_weight - weight;
	ret->delivered += past->delivered;
	ret->delivered_weight += past->delivered_weight;
	for (int i = 0; i < WIRE_DROP_COUNT; i++) {
		ret->dropped[i].n = past->dropped[i].n + told->drop[i].n;
		ret->dropped[i].weight = past->dropped[i].weight + told->drop[i].weight;
	}
	ret->lost = past->lost + told->written - n;
	ret->lost_weight = past->lost_weight + told->written_weight - weight;
}

void stream_counts(const struct stream *s, struct stream_counts *ret)
{
	*ret = s->counts;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		count(s, e, &ret->of[e]);
}

bool stream_node(const struct stream *s, uint32_t node, struct stream_frame *ret,
		 uint32_t *ret_parent)
{
	const struct node *n;

	if (!has_node(s, node))
		return false;
	n = &s->nodes[node];
	*ret = (struct stream_frame){
		.kind = n->kind,
		.line = n->line,
		.class_name = "",
		.method = "",
		.signature = "",
		.file = "",
		.module = "",
	};
	*ret_parent = n->parent;
	if (wire_kind_is_method(n->kind)) {
		const struct method *m = &s->methods[n->ref];

		ret->class_name = string(s, m->class_id);
		ret->method = string(s, m->name_id);
		ret->signature = string(s, m->sig_id);
		ret->file = string(s, m->file_id);
	} else if (n->kind == WIRE_KIND_NATIVE) {
		ret->module = string(s, s->mappings[n->ref].path_id);
		ret->offset = n->offset;
		ret->mapping = n->ref;
	} else {
		ret->method = string(s, n->ref);
	}
	return true;
}

uint8_t stream_node_mark(const struct stream *s, uint32_t node)
{
	return has_node(s, node) ? s->nodes[node].mark : 0;
}

void stream_mark_node(const struct stream *s, uint32_t node, uint8_t mark)
{
	if (has_node(s, node))
		s->nodes[node].mark = mark;
}

const struct wire_mapping *stream_mapping(const struct stream *s, uint32_t id)
{
	return id < s->n_mappings && s->mappings[id].id ? &s->mappings[id] : NULL;
}
