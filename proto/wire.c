/* See wire.h. Little-endian headers, LEB128 varints; every length is checked before it is used. */
#include "proto/wire.h"

#include <errno.h>
#include <string.h>

const char *const wire_counter_names[WIRE_COUNTER_COUNT] = {
#define X(id, name, text) [WIRE_COUNTER_##id] = name,
	WIRE_COUNTERS(X)
#undef X
};

const char *const wire_drop_names[WIRE_DROP_COUNT] = {
#define X(id, name, text) [WIRE_DROP_##id] = name,
	WIRE_DROPS(X)
#undef X
};

const char *const wire_part_names[WIRE_PART_COUNT] = {
#define X(id, name, text) name,
	WIRE_PARTS(X)
#undef X
};

const char *const wire_kind_names[WIRE_KIND_COUNT] = {
	[WIRE_KIND_UNKNOWN] = "unknown",
	[WIRE_KIND_JAVA] = "java",
	[WIRE_KIND_INTERPRETED] = "interpreted",
	[WIRE_KIND_C1] = "c1",
	[WIRE_KIND_C2] = "c2",
	[WIRE_KIND_INLINED] = "inlined",
	[WIRE_KIND_NATIVE_METHOD] = "native_method",
	[WIRE_KIND_NATIVE] = "native",
	[WIRE_KIND_STUB] = "stub",
	[WIRE_KIND_KERNEL] = "kernel",
	[WIRE_KIND_SYNTHETIC] = "synthetic",
	[WIRE_KIND_CLASS] = "class",
};

const char *const wire_event_names[WIRE_EVENT_COUNT] = {
#define X(id, name, unit) [WIRE_EVENT_##id] = name,
	WIRE_EVENTS(X)
#undef X
};

const char *const wire_wait_names[WIRE_WAIT_COUNT] = {
	[WIRE_WAIT_ENTER] = "enter",
	[WIRE_WAIT_WAIT] = "wait",
	[WIRE_WAIT_PARK] = "park",
};

const char *const wire_state_names[WIRE_STATE_COUNT] = {
	[WIRE_STATE_UNKNOWN] = "unknown",
	[WIRE_STATE_RUNNABLE] = "runnable",
	[WIRE_STATE_BLOCKED] = "blocked",
	[WIRE_STATE_WAITING] = "waiting",
	[WIRE_STATE_TIMED_WAITING] = "timed_waiting",
};

_Static_assert(WIRE_BOOKS_WORDS <= 64, "one event's keys end before the next one's");

/* keys of the records that can grow: append only */
enum hello_key {
	HELLO_PROTOCOL = 1,
	HELLO_AGENT_VERSION,
	HELLO_AGENT_HASH,
	HELLO_JVM_VENDOR,
	HELLO_JVM_VERSION,
	HELLO_JVM_NAME,
	HELLO_LIBC,
	HELLO_ENGINE,
	HELLO_WALKER,
	HELLO_NOTE,
	HELLO_NS_PID,
	HELLO_INTERVAL_NS,
	HELLO_MONO_NS,
	HELLO_REAL_NS,
	HELLO_TICK_NS,
	HELLO_SESSION,
};

enum start_key {
	START_PROTOCOL = 1,
	START_INTERVAL_NS,
	START_FLAGS,
	START_MAX_CPU,
	START_RING_BYTES,
	START_SESSION,
	START_EVENTS,
	START_LOCK_MIN_NS,
	START_MONITORS,
	START_ALLOC_INTERVAL,
	START_WALL_INTERVAL_NS,
	START_WALL_THREADS,
};

/* ---- primitives ------------------------------------------------------------------------- */

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* A record is built here first, so that one that does not fit leaves the frame as it was. */
struct record {
	uint8_t bytes[WIRE_FRAME_MAX + 64];
	uint32_t len;
	bool too_long;
};

static void rec_u64(struct record *r, uint64_t v)
{
	if (r->too_long || r->len + 10 > sizeof(r->bytes)) {
		r->too_long = true;
		return;
	}
	r->len = (uint32_t)(put_u64(r->bytes + r->len, v) - r->bytes);
}

static void rec_bytes(struct record *r, const void *p, uint32_t len)
{
	rec_u64(r, len);
	if (r->too_long || len > sizeof(r->bytes) - r->len) {
		r->too_long = true;
		return;
	}
	if (len)
		memcpy(r->bytes + r->len, p, len);
	r->len += len;
}

static void rec_cut(struct record *r, struct wire_str s, uint32_t max)
{
	rec_bytes(r, s.p, s.len > max ? max : s.len);
}

static void rec_str(struct record *r, struct wire_str s)
{
	rec_cut(r, s, WIRE_STRING_MAX);
}

static void rec_key_u64(struct record *r, uint64_t key, uint64_t v)
{
	uint8_t tmp[10];

	rec_u64(r, key);
	rec_bytes(r, tmp, (uint32_t)(put_u64(tmp, v) - tmp));
}

/* HELLO has one frame for all of its strings: each is cut so far that they always fit. */
static void rec_key_str(struct record *r, uint64_t key, struct wire_str s)
{
	rec_u64(r, key);
	rec_cut(r, s, WIRE_HELLO_MAX);
}

static bool add(struct wire_writer *w, const struct record *r)
{
	if (r->too_long || r->len > WIRE_FRAME_MAX - w->len)
		return false;
	memcpy(w->buf + w->len, r->bytes, r->len);
	w->len += r->len;
	w->records++;
	return true;
}

static void put_le(uint8_t *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get_le(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	for (int i = 0; i < bytes; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* ---- writing ---------------------------------------------------------------------------- */

void wire_begin(struct wire_writer *w, uint8_t *buf, enum wire_type type)
{
	w->buf = buf;
	w->len = WIRE_HDR_SIZE;
	w->records = 0;
	w->last_ns = 0;
	memset(buf, 0, WIRE_HDR_SIZE);
	buf[4] = (uint8_t)type;
}

uint32_t wire_end(struct wire_writer *w, uint64_t sequence)
{
	put_le(w->buf, w->len, 4);
	put_le(w->buf + 8, sequence, 8);
	return w->len;
}

bool wire_put_hello(struct wire_writer *w, const struct wire_hello *h)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_key_u64(&r, HELLO_PROTOCOL, h->protocol);
	rec_key_str(&r, HELLO_AGENT_VERSION, h->agent_version);
	rec_key_str(&r, HELLO_AGENT_HASH, h->agent_hash);
	rec_key_str(&r, HELLO_JVM_VENDOR, h->jvm_vendor);
	rec_key_str(&r, HELLO_JVM_VERSION, h->jvm_version);
	rec_key_str(&r, HELLO_JVM_NAME, h->jvm_name);
	rec_key_str(&r, HELLO_LIBC, h->libc);
	rec_key_str(&r, HELLO_ENGINE, h->engine);
	rec_key_str(&r, HELLO_WALKER, h->walker);
	rec_key_str(&r, HELLO_NOTE, h->note);
	rec_key_u64(&r, HELLO_NS_PID, h->ns_pid);
	rec_key_u64(&r, HELLO_INTERVAL_NS, h->interval_ns);
	rec_key_u64(&r, HELLO_MONO_NS, h->mono_ns);
	rec_key_u64(&r, HELLO_REAL_NS, h->real_ns);
	rec_key_u64(&r, HELLO_TICK_NS, h->tick_ns);
	rec_key_u64(&r, HELLO_SESSION, h->session);
	return add(w, &r);
}

bool wire_put_string(struct wire_writer *w, const struct wire_string *s)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, s->id);
	rec_str(&r, s->str);
	return add(w, &r);
}

bool wire_put_method(struct wire_writer *w, const struct wire_method *m)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, m->id);
	rec_u64(&r, m->class_id);
	rec_u64(&r, m->name_id);
	rec_u64(&r, m->sig_id);
	rec_u64(&r, m->file_id);
	return add(w, &r);
}

bool wire_put_mapping(struct wire_writer *w, const struct wire_mapping *m)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, m->id);
	rec_u64(&r, m->start);
	rec_u64(&r, m->end);
	rec_u64(&r, m->file_offset);
	rec_u64(&r, m->path_id);
	rec_bytes(&r, m->build_id,
		  m->build_id_len < WIRE_BUILD_ID_MAX ? m->build_id_len : WIRE_BUILD_ID_MAX);
	return add(w, &r);
}

bool wire_put_node(struct wire_writer *w, const struct wire_node *n)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, n->id);
	rec_u64(&r, n->parent);
	rec_u64(&r, n->kind);
	rec_u64(&r, n->ref);
	if (wire_kind_is_method(n->kind))
		/* a line that was read from a broken table must not cost the whole stream */
		rec_u64(&r, zigzag(n->line < -1 || n->line > WIRE_LINE_MAX ? -1 : n->line));
	else if (n->kind == WIRE_KIND_NATIVE)
		rec_u64(&r, n->offset);
	return add(w, &r);
}

bool wire_put_thread(struct wire_writer *w, const struct wire_thread *t)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, t->tid);
	rec_u64(&r, t->flags);
	rec_u64(&r, t->java_id);
	rec_str(&r, t->name);
	return add(w, &r);
}

/* Times are deltas from the record before; the first one of a frame is told whole before it. Threads
 * commit out of order by a little: the delta is signed. */
static void rec_time(struct record *r, const struct wire_writer *w, uint64_t ns)
{
	bool first = w->len == WIRE_HDR_SIZE;

	r->len = 0;
	r->too_long = false;
	if (first)
		rec_u64(r, ns);
	rec_u64(r, zigzag(first ? 0 : (int64_t)(ns - w->last_ns)));
}

static bool add_timed(struct wire_writer *w, const struct record *r, uint64_t ns)
{
	if (!add(w, r))
		return false;
	w->last_ns = ns;
	return true;
}

bool wire_put_sample(struct wire_writer *w, const struct wire_sample *s)
{
	struct record r;

	rec_time(&r, w, s->mono_ns);
	rec_u64(&r, s->tid);
	rec_u64(&r, s->node);
	rec_u64(&r, s->weight_ns);
	return add_timed(w, &r, s->mono_ns);
}

bool wire_put_lock(struct wire_writer *w, const struct wire_lock *l)
{
	struct record r;

	rec_time(&r, w, l->begin_ns);
	rec_u64(&r, l->duration_ns);
	rec_u64(&r, l->tid);
	rec_u64(&r, l->wait);
	rec_u64(&r, l->flags);
	rec_u64(&r, l->class_id);
	rec_u64(&r, l->identity);
	rec_u64(&r, l->owner_tid);
	rec_u64(&r, l->waker_tid);
	rec_u64(&r, l->node);
	rec_u64(&r, l->owner_node);
	return add_timed(w, &r, l->begin_ns);
}

bool wire_put_alloc(struct wire_writer *w, const struct wire_alloc *a)
{
	struct record r;

	rec_time(&r, w, a->mono_ns);
	rec_u64(&r, a->tid);
	rec_u64(&r, a->node);
	rec_u64(&r, a->class_id);
	rec_u64(&r, a->size);
	rec_u64(&r, a->weight);
	return add_timed(w, &r, a->mono_ns);
}

bool wire_put_state(struct wire_writer *w, const struct wire_state *s)
{
	struct record r;

	rec_time(&r, w, s->mono_ns);
	rec_u64(&r, s->tid);
	rec_u64(&r, s->state);
	rec_u64(&r, s->cpu_ns);
	return add_timed(w, &r, s->mono_ns);
}

bool wire_put_virtual(struct wire_writer *w, const struct wire_virtual *v)
{
	struct record r;

	rec_time(&r, w, v->mono_ns);
	rec_u64(&r, v->container_id);
	rec_u64(&r, v->class_id);
	rec_u64(&r, v->state);
	rec_u64(&r, v->count);
	rec_u64(&r, v->mounted);
	return add_timed(w, &r, v->mono_ns);
}

static void rec_details(struct record *r, unsigned base, const uint64_t *values, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!values[i])
			continue;
		rec_u64(r, base + i);
		rec_u64(r, values[i]);
	}
}

bool wire_put_ledger(struct wire_writer *w, const struct wire_ledger *l)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	for (unsigned i = 0; i < WIRE_COUNTER_COUNT; i++) {
		rec_u64(&r, i);
		rec_u64(&r, l->counter[i]);
	}
	for (unsigned i = 0; i < WIRE_EVENT_COUNT; i++)
		rec_details(&r, WIRE_KEY_BOOKS + 64 * i, (const uint64_t *)&l->books[i], WIRE_BOOKS_WORDS);
	rec_details(&r, WIRE_KEY_PART_BASE, l->part, WIRE_PART_COUNT);
	rec_details(&r, WIRE_KEY_TIME_BASE, l->time, WIRE_TIME_COUNT);
	return add(w, &r);
}

bool wire_put_fault(struct wire_writer *w, const struct wire_fault *f)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, f->code);
	rec_cut(&r, f->step, WIRE_STEP_MAX);
	rec_str(&r, f->what);
	return add(w, &r);
}

bool wire_put_start(struct wire_writer *w, const struct wire_start *s)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_key_u64(&r, START_PROTOCOL, s->protocol);
	rec_key_u64(&r, START_INTERVAL_NS, s->interval_ns);
	rec_key_u64(&r, START_FLAGS, s->flags);
	rec_key_u64(&r, START_MAX_CPU, s->max_cpu_permille);
	rec_key_u64(&r, START_RING_BYTES, s->ring_bytes);
	rec_key_u64(&r, START_SESSION, s->session);
	rec_key_u64(&r, START_EVENTS, s->events);
	rec_key_u64(&r, START_LOCK_MIN_NS, s->lock_min_ns);
	rec_key_u64(&r, START_MONITORS, s->monitors);
	rec_key_u64(&r, START_ALLOC_INTERVAL, s->alloc_interval);
	rec_key_u64(&r, START_WALL_INTERVAL_NS, s->wall_interval_ns);
	rec_key_str(&r, START_WALL_THREADS, s->wall_threads);
	return add(w, &r);
}

/* ---- reading ---------------------------------------------------------------------------- */

int wire_peek(const void *buf, size_t len, struct wire_frame *ret)
{
	const uint8_t *p = buf;
	uint32_t size;

	if (len < WIRE_HDR_SIZE)
		return 0;
	size = (uint32_t)get_le(p, 4);
	if (size < WIRE_HDR_SIZE || size > WIRE_FRAME_MAX || p[4] == 0 || p[5] || p[6] || p[7])
		return -EBADMSG;
	if (len < size)
		return 0;
	ret->type = p[4];
	ret->sequence = get_le(p + 8, 8);
	ret->body = p + WIRE_HDR_SIZE;
	ret->body_len = size - WIRE_HDR_SIZE;
	return (int)size;
}

static int get_u64(struct wire_reader *r, uint64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && r->p < r->end; shift += 7) {
		uint8_t b = *r->p++;

		if (shift == 63 && b > 1)
			return -EBADMSG;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return 0;
		}
	}
	return -EBADMSG;
}

static int get_max(struct wire_reader *r, uint64_t max, uint32_t *ret)
{
	uint64_t v;

	if (get_u64(r, &v) || v > max)
		return -EBADMSG;
	*ret = (uint32_t)v;
	return 0;
}

static int get_id(struct wire_reader *r, uint32_t *ret)
{
	return get_max(r, WIRE_ID_MAX - 1, ret);
}

static int get_new_id(struct wire_reader *r, uint32_t *ret)
{
	return get_id(r, ret) || *ret == 0 ? -EBADMSG : 0;
}

static int get_bytes(struct wire_reader *r, uint32_t max, struct wire_str *ret)
{
	uint32_t len;

	if (get_max(r, max, &len) || len > (size_t)(r->end - r->p))
		return -EBADMSG;
	ret->p = (const char *)r->p;
	ret->len = len;
	r->p += len;
	return 0;
}

static int get_str(struct wire_reader *r, struct wire_str *ret)
{
	return get_bytes(r, WIRE_STRING_MAX, ret);
}

void wire_read(struct wire_reader *r, const struct wire_frame *f)
{
	r->p = f->body;
	r->end = f->body + f->body_len;
	r->last_ns = 0;
	r->started = false;
}

int wire_next_string(struct wire_reader *r, struct wire_string *ret)
{
	if (r->p == r->end)
		return 0;
	return get_new_id(r, &ret->id) || get_str(r, &ret->str) ? -EBADMSG : 1;
}

int wire_next_method(struct wire_reader *r, struct wire_method *ret)
{
	if (r->p == r->end)
		return 0;
	if (get_new_id(r, &ret->id) || get_id(r, &ret->class_id) || get_id(r, &ret->name_id) ||
	    get_id(r, &ret->sig_id) || get_id(r, &ret->file_id))
		return -EBADMSG;
	return 1;
}

int wire_next_mapping(struct wire_reader *r, struct wire_mapping *ret)
{
	struct wire_str id;

	if (r->p == r->end)
		return 0;
	if (get_new_id(r, &ret->id) || get_u64(r, &ret->start) || get_u64(r, &ret->end) ||
	    get_u64(r, &ret->file_offset) || get_id(r, &ret->path_id) ||
	    get_bytes(r, WIRE_BUILD_ID_MAX, &id))
		return -EBADMSG;
	if (ret->start >= ret->end)
		return -EBADMSG;
	memset(ret->build_id, 0, sizeof(ret->build_id));
	if (id.len)
		memcpy(ret->build_id, id.p, id.len);
	ret->build_id_len = (uint8_t)id.len;
	return 1;
}

int wire_next_node(struct wire_reader *r, struct wire_node *ret)
{
	uint64_t line;
	uint32_t kind;

	if (r->p == r->end)
		return 0;
	if (get_new_id(r, &ret->id) || get_id(r, &ret->parent) ||
	    get_max(r, WIRE_KIND_COUNT - 1, &kind) || get_id(r, &ret->ref))
		return -EBADMSG;
	ret->kind = (uint8_t)kind;
	ret->line = -1;
	ret->offset = 0;
	if (wire_kind_is_method(kind)) {
		if (get_u64(r, &line) || unzigzag(line) < -1 || unzigzag(line) > WIRE_LINE_MAX)
			return -EBADMSG;
		ret->line = (int32_t)unzigzag(line);
	} else if (kind == WIRE_KIND_NATIVE && get_u64(r, &ret->offset)) {
		return -EBADMSG;
	}
	return 1;
}

int wire_next_thread(struct wire_reader *r, struct wire_thread *ret)
{
	if (r->p == r->end)
		return 0;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_max(r, UINT32_MAX, &ret->flags) ||
	    get_u64(r, &ret->java_id) || get_str(r, &ret->name))
		return -EBADMSG;
	return 1;
}

/* 1 with the time of the next record, 0 at the end. */
static int get_time(struct wire_reader *r, uint64_t *ret)
{
	uint64_t delta;

	if (r->p == r->end)
		return 0;
	if (!r->started) {
		if (get_u64(r, &r->last_ns))
			return -EBADMSG;
		r->started = true;
		if (r->p == r->end)
			return 0;
	}
	if (get_u64(r, &delta))
		return -EBADMSG;
	r->last_ns += (uint64_t)unzigzag(delta);
	*ret = r->last_ns;
	return 1;
}

int wire_next_sample(struct wire_reader *r, struct wire_sample *ret)
{
	int more = get_time(r, &ret->mono_ns);

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_id(r, &ret->node) || get_u64(r, &ret->weight_ns))
		return -EBADMSG;
	return 1;
}

int wire_next_lock(struct wire_reader *r, struct wire_lock *ret)
{
	int more = get_time(r, &ret->begin_ns);
	uint32_t wait, flags;

	if (more <= 0)
		return more;
	if (get_u64(r, &ret->duration_ns) || get_max(r, UINT32_MAX, &ret->tid) ||
	    get_max(r, WIRE_WAIT_COUNT - 1, &wait) || get_max(r, UINT8_MAX, &flags) ||
	    get_id(r, &ret->class_id) || get_max(r, UINT32_MAX, &ret->identity) ||
	    get_max(r, UINT32_MAX, &ret->owner_tid) || get_max(r, UINT32_MAX, &ret->waker_tid) ||
	    get_id(r, &ret->node) || get_id(r, &ret->owner_node))
		return -EBADMSG;
	ret->wait = (uint8_t)wait;
	ret->flags = (uint8_t)flags;
	return 1;
}

int wire_next_alloc(struct wire_reader *r, struct wire_alloc *ret)
{
	int more = get_time(r, &ret->mono_ns);

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_id(r, &ret->node) || get_id(r, &ret->class_id) ||
	    get_u64(r, &ret->size) || get_u64(r, &ret->weight))
		return -EBADMSG;
	return 1;
}

int wire_next_state(struct wire_reader *r, struct wire_state *ret)
{
	int more = get_time(r, &ret->mono_ns);
	uint32_t state;

	if (more <= 0)
		return more;
	if (get_max(r, UINT32_MAX, &ret->tid) || get_max(r, WIRE_STATE_COUNT - 1, &state) ||
	    get_u64(r, &ret->cpu_ns))
		return -EBADMSG;
	ret->state = (uint8_t)state;
	return 1;
}

int wire_next_virtual(struct wire_reader *r, struct wire_virtual *ret)
{
	int more = get_time(r, &ret->mono_ns);
	uint32_t state;

	if (more <= 0)
		return more;
	if (get_id(r, &ret->container_id) || get_id(r, &ret->class_id) ||
	    get_max(r, WIRE_STATE_COUNT - 1, &state) || get_max(r, UINT32_MAX, &ret->count) ||
	    get_max(r, ret->count, &ret->mounted))
		return -EBADMSG;
	ret->state = (uint8_t)state;
	return 1;
}

/* A (key, length, bytes) record; u64 values are a varint that fills the bytes exactly. */
static int get_key(struct wire_reader *r, uint64_t *ret_key, struct wire_str *ret)
{
	if (r->p == r->end)
		return 0;
	return get_u64(r, ret_key) || get_str(r, ret) ? -EBADMSG : 1;
}

static int value_u64(struct wire_str s, uint64_t *ret)
{
	struct wire_reader r = {
		.p = (const uint8_t *)s.p,
		.end = (const uint8_t *)s.p + s.len,
	};

	return get_u64(&r, ret) || r.p != r.end ? -EBADMSG : 0;
}

int wire_get_hello(const struct wire_frame *f, struct wire_hello *ret)
{
	struct wire_reader r;
	struct wire_str v;
	uint64_t key;
	int more;

	memset(ret, 0, sizeof(*ret));
	wire_read(&r, f);
	while ((more = get_key(&r, &key, &v)) > 0) {
		struct wire_str *str = NULL;
		uint64_t *num = NULL;

		switch (key) {
		case HELLO_PROTOCOL: num = &ret->protocol; break;
		case HELLO_AGENT_VERSION: str = &ret->agent_version; break;
		case HELLO_AGENT_HASH: str = &ret->agent_hash; break;
		case HELLO_JVM_VENDOR: str = &ret->jvm_vendor; break;
		case HELLO_JVM_VERSION: str = &ret->jvm_version; break;
		case HELLO_JVM_NAME: str = &ret->jvm_name; break;
		case HELLO_LIBC: str = &ret->libc; break;
		case HELLO_ENGINE: str = &ret->engine; break;
		case HELLO_WALKER: str = &ret->walker; break;
		case HELLO_NOTE: str = &ret->note; break;
		case HELLO_NS_PID: num = &ret->ns_pid; break;
		case HELLO_INTERVAL_NS: num = &ret->interval_ns; break;
		case HELLO_MONO_NS: num = &ret->mono_ns; break;
		case HELLO_REAL_NS: num = &ret->real_ns; break;
		case HELLO_TICK_NS: num = &ret->tick_ns; break;
		case HELLO_SESSION: num = &ret->session; break;
		default: break; /* a newer agent says more than we know */
		}
		if (str)
			*str = v;
		if (num && value_u64(v, num))
			return -EBADMSG;
	}
	return more < 0 || ret->protocol == 0 ? -EBADMSG : 0;
}

int wire_get_ledger(const struct wire_frame *f, struct wire_ledger *ret)
{
	struct wire_reader r;

	memset(ret, 0, sizeof(*ret));
	wire_read(&r, f);
	while (r.p != r.end) {
		uint64_t key, v;

		if (get_u64(&r, &key) || get_u64(&r, &v))
			return -EBADMSG;
		if (key < WIRE_COUNTER_COUNT)
			ret->counter[key] = v;
		else if (key >= WIRE_KEY_BOOKS && key < WIRE_KEY_BOOKS + 64 * WIRE_EVENT_COUNT &&
			 key % 64 < WIRE_BOOKS_WORDS)
			((uint64_t *)&ret->books[(key - WIRE_KEY_BOOKS) / 64])[key % 64] = v;
		else if (key >= WIRE_KEY_PART_BASE && key < WIRE_KEY_PART_BASE + WIRE_PART_COUNT)
			ret->part[key - WIRE_KEY_PART_BASE] = v;
		else if (key >= WIRE_KEY_TIME_BASE && key < WIRE_KEY_TIME_BASE + WIRE_TIME_COUNT)
			ret->time[key - WIRE_KEY_TIME_BASE] = v;
	}
	return 0;
}

int wire_get_fault(const struct wire_frame *f, struct wire_fault *ret)
{
	struct wire_reader r;

	wire_read(&r, f);
	if (get_max(&r, UINT32_MAX, &ret->code) || get_str(&r, &ret->step) ||
	    get_str(&r, &ret->what))
		return -EBADMSG;
	return 0;
}

int wire_get_start(const struct wire_frame *f, struct wire_start *ret)
{
	struct wire_reader r;
	struct wire_str v;
	uint64_t key;
	int more;

	memset(ret, 0, sizeof(*ret));
	wire_read(&r, f);
	while ((more = get_key(&r, &key, &v)) > 0) {
		uint64_t *num = NULL;

		switch (key) {
		case START_PROTOCOL: num = &ret->protocol; break;
		case START_INTERVAL_NS: num = &ret->interval_ns; break;
		case START_FLAGS: num = &ret->flags; break;
		case START_MAX_CPU: num = &ret->max_cpu_permille; break;
		case START_RING_BYTES: num = &ret->ring_bytes; break;
		case START_SESSION: num = &ret->session; break;
		case START_EVENTS: num = &ret->events; break;
		case START_LOCK_MIN_NS: num = &ret->lock_min_ns; break;
		case START_MONITORS: num = &ret->monitors; break;
		case START_ALLOC_INTERVAL: num = &ret->alloc_interval; break;
		case START_WALL_INTERVAL_NS: num = &ret->wall_interval_ns; break;
		case START_WALL_THREADS: ret->wall_threads = v; break;
		default: break;
		}
		if (num && value_u64(v, num))
			return -EBADMSG;
	}
	return more < 0 || ret->protocol == 0 ? -EBADMSG : 0;
}
