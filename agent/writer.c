/* See writer.h. */
#include "agent/writer.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "agent/budget.h"
#include "agent/dict.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/wall.h"
#include "agent/events/events.h"
#include "agent/events/lock_name.h"
#include "agent/events/open.h"
#include "agent/ledger.h"
#include "agent/thread_states.h"
#include "agent/threads.h"

#define AGENT_BYTES_MAX (3u << 20) /* all memory of the agent */
#define DICT_BYTES_MIN	(512u << 10) /* also where the ring and the walker take it all */

/* Frames being filled, in the order in which they have to be written: definitions first. */
enum pending {
	PENDING_STRING,
	PENDING_MAPPING,
	PENDING_METHOD,
	PENDING_NODE,
	PENDING_THREAD,
	PENDING_STATE,
	PENDING_VIRTUAL,
	PENDING_CPU,
	PENDING_LOCK,
	PENDING_ALLOC,
	PENDING_WALL,
	PENDING_COUNT
};

static const enum wire_type pending_type[PENDING_COUNT] = {
	WIRE_STRING,  WIRE_MAPPING, WIRE_METHOD, WIRE_NODE,  WIRE_THREAD, WIRE_STATE,
	WIRE_VIRTUAL, WIRE_CPU,	    WIRE_LOCK,	 WIRE_ALLOC, WIRE_WALL,
};

/* Where an event's records go. */
static const enum pending pending_of[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = PENDING_CPU,
	[WIRE_EVENT_LOCK] = PENDING_LOCK,
	[WIRE_EVENT_ALLOC] = PENDING_ALLOC,
	[WIRE_EVENT_WALL] = PENDING_WALL,
};

static struct {
	int fd;
	uint64_t inode, device; /* of the FIFO: the application may close our number and reuse it */
	uint64_t sequence;
	struct dict strings, methods, mappings, nodes;
	struct wire_writer frames[PENDING_COUNT];
	uint8_t bytes[PENDING_COUNT][WIRE_FRAME_MAX];
	struct {
		uint64_t n, weight;
	} waiting[WIRE_EVENT_COUNT]; /* in the pending frames */
	uint32_t epoch; /* of ids; counts on from session to session */
	bool begun; /* frames[] are set up */
	bool torn; /* a definition was lost: no sample may be sent before a RESET */
	bool dict_full; /* something of the current stack found no room */
	bool gone; /* no reader, for good */
	uint64_t full_since_ns;
} writer;

struct wire_str wire_text(const char *s)
{
	return (struct wire_str){ s, (uint32_t)strlen(s) };
}

static void begin_frames(void)
{
	for (int i = 0; i < PENDING_COUNT; i++)
		wire_begin(&writer.frames[i], writer.bytes[i], pending_type[i]);
	memset(writer.waiting, 0, sizeof(writer.waiting));
	writer.begun = true;
}

static void forget_definitions(void)
{
	dict_clear(&writer.strings);
	dict_clear(&writer.methods);
	dict_clear(&writer.mappings);
	dict_clear(&writer.nodes);
	threads_forget();
	writer.epoch++;
}

/* fstat by its raw call: the libc function has no name that holds for every libc */
static bool fd_is_fifo(int fd, uint64_t *ret_device, uint64_t *ret_inode)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) < 0 || !S_ISFIFO(st.st_mode))
		return false;
	*ret_device = st.st_dev;
	*ret_inode = st.st_ino;
	return true;
}

uint64_t writer_dictionary_bytes(void)
{
	return dict_bytes(&writer.strings) + dict_bytes(&writer.methods) +
	       dict_bytes(&writer.mappings) + dict_bytes(&writer.nodes);
}

uint64_t writer_bytes(void)
{
	return agent.ring.size + engine_bytes() + walker_bytes() + threads_bytes() +
	       events_bytes() + thread_states_bytes() + writer_dictionary_bytes() + sizeof(writer);
}

static enum writer_result write_frame(struct wire_writer *w)
{
	uint32_t len = wire_end(w, writer.sequence + 1);
	uint64_t device, inode;
	long n;

	/* the application may have closed our number and use it itself now */
	if (!fd_is_fifo(writer.fd, &device, &inode) || device != writer.device ||
	    inode != writer.inode) {
		writer.gone = true;
		return WRITER_GONE;
	}
	do
		n = write(writer.fd, w->buf, len);
	while (n < 0 && errno == EINTR);
	if (n == (long)len) {
		writer.sequence++;
		writer.full_since_ns = 0;
		ledger.pipe_bytes += len;
		return WRITER_OK;
	}
	if (n < 0 && errno == EAGAIN) {
		if (!writer.full_since_ns)
			writer.full_since_ns = mono_ns();
		return WRITER_FULL;
	}
	writer.gone = true;
	return WRITER_GONE;
}

static enum writer_result write_reset(void)
{
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, bytes, WIRE_RESET);
	return write_frame(&w);
}

uint64_t writer_full_since(void)
{
	return writer.full_since_ns;
}

static void drop_pending(enum wire_drop cause)
{
	if (writer.frames[PENDING_THREAD].records)
		threads_forget();
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		ledger_drop(e, cause, writer.waiting[e].n, writer.waiting[e].weight);
	if (writer.frames[PENDING_LOCK].records)
		open_waits_lost();
	if (writer.frames[PENDING_STATE].records)
		thread_states_forget();
	begin_frames();
}

/* What the rest of the agent leaves of its memory. */
static void budget_dictionary(void)
{
	uint64_t others = writer_bytes() - writer_dictionary_bytes();

	dict_budget(others + DICT_BYTES_MIN < AGENT_BYTES_MAX ? AGENT_BYTES_MAX - others
							      : DICT_BYTES_MIN);
}

/* All ids mean something else from now on; what is pending still belongs to the old epoch. */
static enum writer_result new_epoch(void)
{
	enum writer_result r = write_reset();

	if (r != WRITER_OK)
		return r;
	drop_pending(WIRE_DROP_PIPE_FULL);
	forget_definitions();
	if (walker_names_full())
		walker_forget_names();
	budget_dictionary();
	writer.torn = false;
	return WRITER_OK;
}

void writer_begin(int fd)
{
	writer.fd = fd;
	writer.sequence = 0;
	writer.torn = writer.gone = false;
	writer.full_since_ns = 0;
	if (!fd_is_fifo(fd, &writer.device, &writer.inode))
		writer.inode = writer.device = 0;
	forget_definitions();
	begin_frames();
	budget_dictionary();
}

/* A frame of samples is in the pipe. */
static void frame_written(enum pending frame)
{
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		if (pending_of[e] == frame) {
			ledger_written(e, writer.waiting[e].n, writer.waiting[e].weight);
			writer.waiting[e].n = writer.waiting[e].weight = 0;
		}
	if (frame == PENDING_LOCK)
		open_waits_sent();
}

enum writer_result writer_flush(void)
{
	enum writer_result r = WRITER_OK;

	/* of a stack that was given up halfway: its ids mean nothing any more */
	for (int i = 0; writer.torn && i <= PENDING_NODE; i++)
		wire_begin(&writer.frames[i], writer.bytes[i], pending_type[i]);
	for (int i = 0; i < PENDING_COUNT && r == WRITER_OK; i++) {
		if (writer.frames[i].records == 0)
			continue;
		r = write_frame(&writer.frames[i]);
		if (r == WRITER_OK) {
			/* what comes after it may be refused, and is not to be counted again */
			writer.frames[i].records = 0;
			frame_written(i);
		} else if (i == PENDING_THREAD) {
			threads_forget(); /* names are said again */
		} else if (i < PENDING_THREAD) {
			writer.torn = true;
		}
	}
	if (r == WRITER_FULL)
		drop_pending(WIRE_DROP_PIPE_FULL);
	else if (r == WRITER_OK)
		begin_frames();
	return r; /* WRITER_GONE: writer_discard() counts what is pending */
}

/* ---- definitions ------------------------------------------------------------------------- */

/*
 * Puts a record into its frame; when it is full, flushes all and puts it into the next one. @record
 * was given an id in this epoch; if the flush lost definitions the epoch is torn and the caller's
 * sample is dropped.
 */
#define PUT(which, put, record)                \
	(put(&writer.frames[which], record) || \
	 (writer_flush() == WRITER_OK && put(&writer.frames[which], record)))

static uint32_t string_id(const char *s)
{
	struct wire_string record = { .str = wire_text(s) };
	bool is_new;

	if (record.str.len > WIRE_STRING_MAX)
		record.str.len = WIRE_STRING_MAX;
	record.id = dict_id(&writer.strings, dict_hash(s, record.str.len), record.str.len, &is_new);
	if (record.id && is_new && !PUT(PENDING_STRING, wire_put_string, &record))
		writer.torn = true;
	writer.dict_full |= record.id == 0;
	return record.id;
}

static uint32_t method_id(uint64_t where)
{
	struct wire_method record;
	struct walk_method m;
	bool is_new;

	record.id = dict_id(&writer.methods, where, 1, &is_new);
	writer.dict_full |= record.id == 0;
	if (!record.id || !is_new)
		return record.id;
	if (!walker_resolve_method(where, &m))
		m = (struct walk_method){ "", "[unloaded]", "", "" };
	record.class_id = string_id(m.class_name);
	record.name_id = string_id(m.name);
	record.sig_id = string_id(m.signature);
	record.file_id = m.file[0] ? string_id(m.file) : 0;
	if (writer.dict_full)
		return 0;
	if (!PUT(PENDING_METHOD, wire_put_method, &record))
		writer.torn = true;
	return record.id;
}

static uint32_t mapping_id(const struct walk_mapping *m)
{
	struct wire_mapping record = {
		.start = m->start,
		.end = m->end,
		.file_offset = m->file_offset,
		.build_id_len = m->build_id_len,
	};
	bool is_new;

	record.id = dict_id(&writer.mappings, m->start, m->generation, &is_new);
	writer.dict_full |= record.id == 0;
	if (!record.id || !is_new)
		return record.id;
	record.path_id = string_id(m->path);
	memcpy(record.build_id, m->build_id, sizeof(record.build_id));
	if (writer.dict_full)
		return 0;
	if (!PUT(PENDING_MAPPING, wire_put_mapping, &record))
		writer.torn = true;
	return record.id;
}

static void node_label(struct wire_node *n, uint8_t kind, const char *label)
{
	n->kind = kind;
	n->ref = string_id(label);
}

/* The node of @frame under @parent. */
static uint32_t node_id(uint32_t parent, const struct walk_frame *frame)
{
	uint64_t k1 = (uint64_t)parent << 32 | ((uint64_t)frame->bci & 0xffffff) << 8 | frame->kind;
	struct wire_node n = { .parent = parent, .kind = frame->kind, .line = -1 };
	struct walk_mapping m;
	bool is_new;

	n.id = dict_id(&writer.nodes, frame->where, k1, &is_new);
	writer.dict_full |= n.id == 0;
	if (!n.id || !is_new)
		return n.id;
	if (wire_kind_is_method(frame->kind)) {
		n.ref = method_id(frame->where);
		n.line = walker_resolve_line(frame->where, frame->bci);
	} else if (frame->kind != WIRE_KIND_NATIVE) {
		node_label(&n, frame->kind, (const char *)(uintptr_t)frame->where);
	} else if (walker_resolve_pc(frame->where, &m)) {
		n.ref = mapping_id(&m);
		n.offset = frame->where - m.start + m.file_offset;
	} else {
		node_label(&n, WIRE_KIND_UNKNOWN, "[unknown]");
	}
	if (writer.dict_full)
		return 0; /* the node's id was given out, but not its meaning: only a RESET helps */
	if (!PUT(PENDING_NODE, wire_put_node, &n))
		writer.torn = true;
	return n.id;
}

static char broken_labels[LABELS_MAX][48];
static const char *broken_causes[LABELS_MAX];

/* "[broken:CAUSE]": causes are few static strings, compared by address. */
static const char *broken_label(const char *cause)
{
	for (int i = 0; i < LABELS_MAX; i++) {
		if (!broken_causes[i]) {
			size_t n = strlen(cause);

			if (n > sizeof(broken_labels[i]) - 10)
				n = sizeof(broken_labels[i]) - 10;
			memcpy(broken_labels[i], "[broken:", 8);
			memcpy(broken_labels[i] + 8, cause, n);
			memcpy(broken_labels[i] + 8 + n, "]", 2);
			broken_causes[i] = cause;
		}
		if (broken_causes[i] == cause)
			return broken_labels[i];
	}
	return "[broken:other]";
}

static uint32_t stack_node(const struct walk_frame *frames, uint32_t n, const char *broken)
{
	uint32_t node = 0;

	if (broken) {
		struct walk_frame root = {
			.where = (uint64_t)(uintptr_t)broken_label(broken),
			.bci = -1,
			.kind = WIRE_KIND_SYNTHETIC,
		};

		node = node_id(0, &root);
	}
	for (uint32_t i = n; i-- > 0 && !writer.dict_full && !writer.torn;)
		node = node_id(node, &frames[i]);
	return node;
}

/* What a sample's record refers to. */
struct ids {
	uint32_t node, owner_node, class_id;
};

static uint32_t class_id(const struct ring_sample *s)
{
	const char *name = walker_resolve_class(s->class_handle);
	static char lock[WIRE_STRING_MAX];

	if (!name)
		return 0;
	if (s->event == WIRE_EVENT_LOCK && s->wait == WIRE_WAIT_PARK) {
		lock_name(name, lock, sizeof(lock));
		name = lock;
	}
	return string_id(name);
}

/* false = the dictionary is full or torn: what was defined on the way is void. */
static bool define(const struct ring_sample *s, struct ids *ret)
{
	*ret = (struct ids){ 0 };
	writer.dict_full = false;
	ret->class_id = class_id(s);
	if (!writer.dict_full && !writer.torn)
		ret->node = stack_node(s->frames, s->n_frames, s->broken);
	if (!writer.dict_full && !writer.torn && s->n_owner_frames)
		ret->owner_node = stack_node(s->frames + s->n_frames, s->n_owner_frames, NULL);
	return !writer.dict_full && !writer.torn;
}

/* ---- samples ---------------------------------------------------------------------------- */

/* Begin a new epoch and try again; the same stack not fitting into an empty dictionary is the end.
 */
static enum writer_result define_again(const struct ring_sample *s, struct ids *ret,
				       enum wire_drop *ret_cause)
{
	enum writer_result r = WRITER_OK;
	bool was_full = writer.dict_full;

	/* full, not torn: what is pending is whole and belongs to the old epoch */
	if (!writer.torn)
		r = writer_flush();
	writer.torn = true;
	*ret_cause = WIRE_DROP_PIPE_FULL;
	if (r == WRITER_OK)
		r = new_epoch();
	if (r != WRITER_OK)
		return r;
	if (define(s, ret))
		return WRITER_OK;
	*ret_cause = was_full && writer.dict_full ? WIRE_DROP_DICT_FULL : WIRE_DROP_PIPE_FULL;
	writer.torn = true;
	return WRITER_FULL;
}

static bool put_cpu(enum pending frame, const struct ring_sample *s, uint32_t tid,
		    const struct ids *ids)
{
	struct wire_sample record = {
		.mono_ns = s->mono_ns,
		.tid = tid,
		.node = ids->node,
		.weight_ns = s->weight,
	};

	if (!PUT(frame, wire_put_sample, &record))
		return false;
	if (s->event == WIRE_EVENT_WALL && s->place)
		wall_written(s->place, &record, writer.epoch);
	return true;
}

static bool put_lock(const struct ring_sample *s, uint32_t tid, const struct ids *ids)
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
		.waker_tid = s->waker_tid,
		.node = ids->node,
		.owner_node = ids->owner_node,
	};

	threads_owner(s->owner_tid);
	return PUT(PENDING_LOCK, wire_put_lock, &record);
}

static bool put_alloc(const struct ring_sample *s, uint32_t tid, const struct ids *ids)
{
	struct wire_alloc record = {
		.mono_ns = s->mono_ns,
		.tid = tid,
		.node = ids->node,
		.class_id = ids->class_id,
		.size = s->size,
		.weight = s->weight,
	};

	return PUT(PENDING_ALLOC, wire_put_alloc, &record);
}

static bool put_record(const struct ring_sample *s, const struct ids *ids)
{
	uint32_t tid = s->tid;

	if (s->virtual_id)
		tid = threads_virtual(s->virtual_id, s->name);
	else
		threads_seen(s->tid, s->name);
	switch (s->event) {
	case WIRE_EVENT_LOCK:
		return put_lock(s, tid, ids);
	case WIRE_EVENT_ALLOC:
		return put_alloc(s, tid, ids);
	default:
		return put_cpu(pending_of[s->event], s, tid, ids);
	}
}

/* Everything that a sample refers to, then the sample, into the pending frames. */
static enum writer_result put_sample(const struct ring_sample *s, enum wire_drop *ret_cause)
{
	enum writer_result r = WRITER_OK;
	struct ids ids;

	*ret_cause = WIRE_DROP_PIPE_FULL;
	if (walker_names_full() && !writer.torn) {
		r = writer_flush();
		writer.torn = true;
	}
	if (r == WRITER_OK && writer.torn)
		r = new_epoch();
	if (r == WRITER_OK && !define(s, &ids))
		r = define_again(s, &ids, ret_cause);
	/* a flush on the way may have lost what the sample needs */
	if (r == WRITER_OK && (!put_record(s, &ids) || writer.torn))
		r = writer.gone ? WRITER_GONE : WRITER_FULL;
	return r;
}

static enum writer_result count_sample(const struct ring_sample *s)
{
	enum wire_drop cause;
	enum writer_result r = put_sample(s, &cause);

	if (r != WRITER_OK) {
		ledger_drop(s->event, r == WRITER_GONE ? WIRE_DROP_NO_READER : cause, 1, s->weight);
		return r;
	}
	writer.waiting[s->event].n++;
	writer.waiting[s->event].weight += s->weight;
	if (s->event == WIRE_EVENT_LOCK) {
		open_wait_ended(s);
		budget_wait(s->weight);
	}
	return WRITER_OK;
}

uint32_t writer_epoch(void)
{
	return writer.torn ? 0 : writer.epoch;
}

void writer_wall_again(const struct wire_sample *record)
{
	struct event_books *books = &agent.books.of[WIRE_EVENT_WALL];

	/* handlers add to these, too */
	__atomic_fetch_add(&books->taken_weight, record->weight_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&books->taken, 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&books->pushed_weight, record->weight_ns, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&books->pushed, 1, __ATOMIC_SEQ_CST);
	if (!PUT(PENDING_WALL, wire_put_sample, record)) {
		ledger_drop(WIRE_EVENT_WALL,
			    writer.gone ? WIRE_DROP_NO_READER : WIRE_DROP_PIPE_FULL, 1,
			    record->weight_ns);
		return;
	}
	writer.waiting[WIRE_EVENT_WALL].n++;
	writer.waiting[WIRE_EVENT_WALL].weight += record->weight_ns;
}

enum writer_result writer_beside_books(const struct ring_sample *s)
{
	enum wire_drop cause;

	return put_sample(s, &cause);
}

enum writer_result writer_drain(uint64_t end)
{
	const struct ring_sample *s;
	enum writer_result r = WRITER_OK;

	while (r != WRITER_GONE && (s = ring_peek(&agent.ring, end))) {
		r = count_sample(s);
		ring_pop(&agent.ring);
	}
	return r;
}

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
	if (writer.torn && new_epoch() != WRITER_OK)
		return;
	group->container_id = container[0] ? string_id(container) : 0;
	group->class_id = class_name[0] ? string_id(class_name) : 0;
	/* else the names are gone: the next look says it again */
	if (!writer.torn)
		(void)PUT(PENDING_VIRTUAL, wire_put_virtual, group);
}

enum writer_result writer_ledger(void)
{
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_ledger record;
	struct wire_writer w;
	enum writer_result r;
	struct books now;
	uint64_t head;

	if (!ledger_snapshot(&now, &head))
		return WRITER_FULL; /* handlers all the time: try again */
	r = writer_drain(head);
	if (r != WRITER_GONE)
		r = writer_flush();
	if (r == WRITER_GONE)
		return r;
	ledger_fill(&now, &record);
	wire_begin(&w, bytes, WIRE_LEDGER);
	(void)wire_put_ledger(&w, &record);
	return write_frame(&w);
}

enum writer_result writer_hello(const struct wire_hello *hello)
{
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, bytes, WIRE_HELLO);
	(void)wire_put_hello(&w, hello);
	return write_frame(&w);
}

enum writer_result writer_fault(enum wire_type type, uint32_t code, const char *step,
				const char *what)
{
	struct wire_fault record = { code, wire_text(step), wire_text(what) };
	uint8_t bytes[WIRE_FRAME_MAX];
	struct wire_writer w;

	wire_begin(&w, bytes, type);
	(void)wire_put_fault(&w, &record);
	return write_frame(&w);
}

void writer_discard(void)
{
	const struct ring_sample *s;

	if (writer.begun)
		drop_pending(WIRE_DROP_NO_READER);
	while ((s = ring_peek(&agent.ring, UINT64_MAX))) {
		ledger_drop(s->event, WIRE_DROP_NO_READER, 1, s->weight);
		ring_pop(&agent.ring);
	}
}

void writer_free(void)
{
	forget_definitions();
	writer.begun = false;
}
