/* See wire.h: builds frames. Little-endian headers, LEB128 varints. */
#include "proto/wire_priv.h"

#include <string.h>

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

static uint64_t wire_write_zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
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

/* All strings of HELLO must fit into its one frame: each is cut to WIRE_HELLO_MAX. */
static void rec_key_str(struct record *r, uint64_t key, struct wire_str s)
{
	rec_u64(r, key);
	rec_cut(r, s, WIRE_HELLO_MAX);
}

static bool wire_write_add(struct wire_writer *w, const struct record *r)
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
	rec_key_str(&r, HELLO_SECRET, h->secret);
	return wire_write_add(w, &r);
}

bool wire_put_string(struct wire_writer *w, const struct wire_string *s)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, s->id);
	rec_str(&r, s->str);
	return wire_write_add(w, &r);
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
	return wire_write_add(w, &r);
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
	return wire_write_add(w, &r);
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
		/* an invalid line from a corrupt table must not end the whole stream */
		rec_u64(&r,
			wire_write_zigzag(n->line < -1 || n->line > WIRE_LINE_MAX ? -1 : n->line));
	else if (n->kind == WIRE_KIND_NATIVE)
		rec_u64(&r, n->offset);
	return wire_write_add(w, &r);
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
	return wire_write_add(w, &r);
}

/* Ids that are too long are refused (false), as if there were no room. */
bool wire_put_context(struct wire_writer *w, const struct wire_context *c)
{
	struct record r;

	if (!c->trace_id.len || c->trace_id.len > WIRE_TRACE_MAX || c->span_id.len > WIRE_TRACE_MAX)
		return false;
	r.len = 0;
	r.too_long = false;
	rec_u64(&r, c->id);
	rec_str(&r, c->trace_id);
	rec_str(&r, c->span_id);
	return wire_write_add(w, &r);
}

/* Times are deltas to the record before; before the first record of a frame its full time is
 * written. Deltas are signed, because threads commit slightly out of order. */
static void rec_time(struct record *r, const struct wire_writer *w, uint64_t ns)
{
	bool first = w->len == WIRE_HDR_SIZE;

	r->len = 0;
	r->too_long = false;
	if (first)
		rec_u64(r, ns);
	rec_u64(r, wire_write_zigzag(first ? 0 : (int64_t)(ns - w->last_ns)));
}

static bool add_timed(struct wire_writer *w, const struct record *r, uint64_t ns)
{
	if (!wire_write_add(w, r))
		return false;
	w->last_ns = ns;
	return true;
}

/* The context of an event comes last, if there is one; the lowest bit of another member says so. */
static void rec_flagged(struct record *r, uint64_t v, uint32_t context)
{
	rec_u64(r, v << 1 | (context != 0));
}

static void rec_weight(struct record *r, uint64_t weight, uint32_t context)
{
	rec_flagged(r, weight < WIRE_WEIGHT_MAX ? weight : WIRE_WEIGHT_MAX, context);
}

static void rec_context(struct record *r, uint32_t context)
{
	if (context)
		rec_u64(r, context);
}

bool wire_put_sample(struct wire_writer *w, const struct wire_sample *s)
{
	struct record r;

	rec_time(&r, w, s->mono_ns);
	rec_u64(&r, s->tid);
	rec_u64(&r, s->node);
	rec_weight(&r, s->weight_ns, s->context);
	rec_context(&r, s->context);
	return add_timed(w, &r, s->mono_ns);
}

bool wire_put_lock(struct wire_writer *w, const struct wire_lock *l)
{
	struct record r;

	rec_time(&r, w, l->begin_ns);
	rec_u64(&r, l->duration_ns);
	rec_u64(&r, l->tid);
	rec_u64(&r, l->wait);
	rec_flagged(&r, l->flags, l->context);
	rec_u64(&r, l->class_id);
	rec_u64(&r, l->identity);
	rec_u64(&r, l->owner_tid);
	rec_u64(&r, l->node);
	rec_u64(&r, l->owner_node);
	if (l->flags & WIRE_LOCK_SUM)
		rec_u64(&r, l->waits);
	rec_context(&r, l->context);
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
	rec_weight(&r, a->weight, a->context);
	rec_context(&r, a->context);
	return add_timed(w, &r, a->mono_ns);
}

bool wire_put_offcpu(struct wire_writer *w, const struct wire_offcpu *o)
{
	struct record r;

	rec_time(&r, w, o->mono_ns);
	rec_u64(&r, o->tid);
	rec_u64(&r, o->virtual_tid);
	rec_u64(&r, o->node);
	rec_u64(&r, o->weight_ns);
	rec_flagged(&r, o->status, o->context);
	rec_context(&r, o->context);
	if (o->status == WIRE_OFFCPU_UNMOUNTED) {
		rec_u64(&r, o->class_id);
		rec_u64(&r, o->identity);
	}
	return add_timed(w, &r, o->mono_ns);
}

bool wire_put_state(struct wire_writer *w, const struct wire_state *s)
{
	struct record r;

	rec_time(&r, w, s->mono_ns);
	rec_u64(&r, s->tid);
	rec_u64(&r, s->state);
	rec_u64(&r, s->status);
	rec_u64(&r, s->cpu_ns);
	rec_u64(&r, s->span_us);
	for (unsigned i = 0; s->span_us && i < WIRE_WAIT_COUNT; i++)
		rec_u64(&r, s->short_us[i]);
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

bool wire_put_pause(struct wire_writer *w, const struct wire_pause *p)
{
	struct record r;

	rec_time(&r, w, p->begin_ns);
	rec_u64(&r, p->reach_ns);
	rec_u64(&r, p->length_ns);
	rec_u64(&r, p->number);
	rec_u64(&r, p->kind);
	rec_u64(&r, p->operation_id);
	return add_timed(w, &r, p->begin_ns);
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
		rec_details(&r, WIRE_KEY_ACCOUNTS + 64 * i, (const uint64_t *)&l->accounts[i],
			    WIRE_ACCOUNTS_WORDS);
	rec_details(&r, WIRE_KEY_PART_BASE, l->part, WIRE_PART_COUNT);
	rec_details(&r, WIRE_KEY_TIME_BASE, l->time, WIRE_TIME_COUNT);
	return wire_write_add(w, &r);
}

bool wire_put_fault(struct wire_writer *w, const struct wire_fault *f)
{
	struct record r;

	r.len = 0;
	r.too_long = false;
	rec_u64(&r, f->code);
	rec_cut(&r, f->step, WIRE_STEP_MAX);
	rec_str(&r, f->what);
	return wire_write_add(w, &r);
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
	rec_key_str(&r, START_SECRET, s->secret);
	rec_key_u64(&r, START_TRACE, s->trace);
	rec_key_str(&r, START_MDC_KEYS, s->mdc_keys);
	rec_key_u64(&r, START_VIRTUAL_MIN_NS, s->virtual_min_ns);
	rec_key_str(&r, START_IDLE, s->idle);
	return wire_write_add(w, &r);
}
