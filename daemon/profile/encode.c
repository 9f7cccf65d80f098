/*
 * A profile as bytes: "KPRF", a version, then varints, table by table in the order of profile.h.
 * Older versions can still be read: version 2 has only CPU time, version 3 neither the CPU time nor
 * the notes of processes, version 4 no labels, version 5 no trace ids. A profile without ids is
 * written as version 5, which earlier daemons read too. Decoding trusts nothing: every count is
 * checked against the bytes that are left, every index against its table, and a node's parent must
 * precede the node. Fuzzed by tests/fuzz/fuzz_profile.c.
 */
#include "daemon/profile/profile_priv.h"

#include <errno.h>
#include <string.h>

#define MAGIC	    "KPRF"
#define VERSION	    5
#define VARINT_MAX  10 /* bytes */
#define VERSION_IDS 6 /* with trace ids; earlier daemons skip such a window (store/record.c) */
/* A version that nobody can choose to avoid needs a new version of segments too (store/record.c).
 */

struct out {
	uint8_t *p;
	size_t len, cap;
	bool ids; /* VERSION_IDS */
	bool failed;
};

/* Makes room for @len more bytes; false = no memory, now or before. */
static bool encode_has_room(struct out *o, size_t len)
{
	size_t cap = 2 * o->cap + len + 4096;
	uint8_t *p;

	if (o->len + len <= o->cap)
		return !o->failed;
	p = o->failed ? NULL : realloc(o->p, cap);
	if (!p) {
		o->failed = true;
		return false;
	}
	o->p = p;
	o->cap = cap;
	return true;
}

static void put_bytes(struct out *o, const void *data, size_t len)
{
	if (!encode_has_room(o, len))
		return;
	memcpy(o->p + o->len, data, len);
	o->len += len;
}

static uint8_t *profile_encode_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p++ = (uint8_t)v;
	return p;
}

static void profile_encode_put(struct out *o, uint64_t v)
{
	if (encode_has_room(o, VARINT_MAX))
		o->len = (size_t)(profile_encode_varint(o->p + o->len, v) - o->p);
}

/* Most of what a profile has are nodes. */
static void profile_encode_put_pair(struct out *o, uint32_t a, uint32_t b)
{
	uint8_t *p;

	if (!encode_has_room(o, 2 * VARINT_MAX))
		return;
	p = profile_encode_varint(o->p + o->len, a);
	o->len = (size_t)(profile_encode_varint(p, b) - o->p);
}

static void profile_encode_put_losses(struct out *o, const struct profile_losses *l)
{
	profile_encode_put(o, l->taken);
	profile_encode_put(o, l->taken_weight);
	profile_encode_put(o, l->delivered);
	profile_encode_put(o, l->delivered_weight);
	profile_encode_put(o, l->dropped);
	profile_encode_put(o, l->dropped_weight);
	if (o->ids)
		profile_encode_put(o, l->no_ids);
}

static void profile_encode_put_accounts(struct out *o, const struct profile_accounts *b)
{
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		profile_encode_put_losses(o, &b->of[e]);
	profile_encode_put(o, b->short_waits);
	profile_encode_put(o, b->short_waits_ns);
}

/* An event, its kind of wait and whether it is idle, in one byte. */
static uint64_t row_kind(const struct profile_row *r)
{
	return (uint64_t)r->event << 4 | (uint64_t)r->wait << 1 | r->idle;
}

/* The entries of one table that are to be written, in this order; ids: the new id of each + 1, 0 =
 * it is not written. NULL = all of them, with their own ids. */
struct used_table {
	uint32_t *list, *ids;
	uint32_t n;
};

struct used {
	struct used_table strings, frames, threads, nodes, spans;
};

static uint32_t profile_encode_id(const struct used_table *t, uint32_t i)
{
	return t->ids ? t->ids[i] - 1 : i;
}

/* The entry that is written as number @k. */
static uint32_t used_entry(const struct used_table *t, uint32_t k)
{
	return t->list ? t->list[k] : k;
}

static void profile_encode_put_rows(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, p->n_rows);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		profile_encode_put(o, profile_encode_id(&u->threads, p->rows[i].thread));
		profile_encode_put(o, profile_encode_id(&u->nodes, p->rows[i].node));
		profile_encode_put(o, row_kind(&p->rows[i]));
		profile_encode_put(o, p->rows[i].samples);
		profile_encode_put(o, p->rows[i].weight);
		if (o->ids)
			profile_encode_put(
				o, p->rows[i].span
					   ? profile_encode_id(&u->spans, p->rows[i].span - 1) + 1
					   : 0);
	}
}

static void profile_encode_put_spans(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, u->spans.n);
	for (uint32_t k = 0; k < u->spans.n; k++) {
		const struct profile_span *s = &p->spans[used_entry(&u->spans, k)];

		profile_encode_put(o, profile_encode_id(&u->strings, s->trace_id));
		profile_encode_put(o, profile_encode_id(&u->strings, s->span_id));
	}
}

static void put_strings(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, u->strings.n);
	for (uint32_t k = 1; k < u->strings.n; k++) {
		const char *text = p->strings[used_entry(&u->strings, k)];
		size_t len = strlen(text);

		profile_encode_put(o, len);
		put_bytes(o, text, len);
	}
}

static void profile_encode_put_frames(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, u->frames.n);
	for (uint32_t k = 0; k < u->frames.n; k++) {
		const struct profile_frame *f = &p->frames[used_entry(&u->frames, k)];

		profile_encode_put(o, f->kind);
		profile_encode_put(o, (uint64_t)(f->line + 1));
		profile_encode_put(o, profile_encode_id(&u->strings, f->class_name));
		profile_encode_put(o, profile_encode_id(&u->strings, f->method));
		profile_encode_put(o, profile_encode_id(&u->strings, f->signature));
		profile_encode_put(o, profile_encode_id(&u->strings, f->file));
		profile_encode_put(o, profile_encode_id(&u->strings, f->module));
		profile_encode_put(o, f->offset);
	}
}

static void profile_encode_put_processes(struct out *o, const struct profile *p,
					 const struct used *u)
{
	profile_encode_put(o, p->n_processes);
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];

		profile_encode_put(o, q->pid);
		profile_encode_put(o, q->ns_pid);
		profile_encode_put(o, q->start_time);
		profile_encode_put(o, profile_encode_id(&u->strings, q->name));
		profile_encode_put(o, profile_encode_id(&u->strings, q->container_id));
		profile_encode_put(o, profile_encode_id(&u->strings, q->container));
		profile_encode_put(o, profile_encode_id(&u->strings, q->pod));
		profile_encode_put(o, profile_encode_id(&u->strings, q->jdk));
		profile_encode_put(o, profile_encode_id(&u->strings, q->note));
		profile_encode_put(o, q->cpu_ns);
		profile_encode_put(o, profile_encode_id(&u->strings, q->labels));
		profile_encode_put_accounts(o, &q->accounts);
	}
}

static void put_tables(struct out *o, const struct profile *p, const struct used *u)
{
	put_strings(o, p, u);
	profile_encode_put_frames(o, p, u);
	profile_encode_put_processes(o, p, u);
	profile_encode_put(o, u->threads.n);
	for (uint32_t k = 0; k < u->threads.n; k++) {
		const struct profile_thread *t = &p->threads[used_entry(&u->threads, k)];

		profile_encode_put(o, t->process);
		profile_encode_put(o, t->tid);
		profile_encode_put(o, profile_encode_id(&u->strings, t->name));
	}
	profile_encode_put(o, u->nodes.n);
	for (uint32_t k = 1; k < u->nodes.n; k++) {
		const struct profile_node *n = &p->nodes[used_entry(&u->nodes, k)];

		profile_encode_put_pair(o, profile_encode_id(&u->nodes, n->parent),
					profile_encode_id(&u->frames, n->frame));
	}
	if (o->ids)
		profile_encode_put_spans(o, p, u);
	profile_encode_put_rows(o, p, u);
}

static bool has_ids(const struct profile *p)
{
	bool has = p->n_spans;

	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		has |= p->accounts.of[e].no_ids != 0;
	return has;
}

/* Writes to @o, which may bring memory. 0; or -ENOMEM, and @o has none. */
static int profile_encode_rows(const struct profile *p, const struct used *u, struct out *o)
{
	o->ids = has_ids(p);
	put_bytes(o, MAGIC, 4);
	profile_encode_put(o, o->ids ? VERSION_IDS : VERSION);
	profile_encode_put(o, p->begin_real_ns);
	profile_encode_put(o, p->end_real_ns);
	profile_encode_put(o, WIRE_EVENT_COUNT); /* the length of the arrays by event that follow */
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		profile_encode_put(o, p->interval[e]);
	profile_encode_put(o, (uint64_t)p->no_budget | (uint64_t)p->cpu_unknown << 1);
	profile_encode_put(o, p->overflow);
	profile_encode_put_accounts(o, &p->accounts);
	put_tables(o, p, u);
	if (o->failed) {
		free(o->p);
		*o = (struct out){ 0 };
		return -ENOMEM;
	}
	return 0;
}

static struct used profile_encode_all(const struct profile *p)
{
	return (struct used){ .strings.n = p->n_strings,
			      .frames.n = p->n_frames,
			      .threads.n = p->n_threads,
			      .nodes.n = p->n_nodes,
			      .spans.n = p->n_spans };
}

int profile_encode(const struct profile *p, uint8_t **ret, size_t *ret_len)
{
	const struct used all = profile_encode_all(p);
	struct out o = { 0 };
	int r = profile_encode_rows(p, &all, &o);

	*ret = o.p;
	*ret_len = o.len;
	return r;
}

int profile_encode_again(const struct profile *p, struct profile_bytes *to)
{
	const struct used all = profile_encode_all(p);
	struct out o = { .p = to->p, .cap = to->cap };
	int r = profile_encode_rows(p, &all, &o);

	*to = (struct profile_bytes){ o.p, o.len, o.cap };
	return r;
}

/* ---- entries that rows and processes need
 * ----------------------------------------------------- */

/* Of many entries few are used: the kernel gives the others no memory. */
static bool used_table_init(struct used_table *t, uint32_t n)
{
	t->ids = calloc((size_t)n + 1, sizeof(*t->ids));
	t->list = malloc(((size_t)n + 1) * sizeof(*t->list));
	return t->ids && t->list;
}

static void used_table_deinit(struct used_table *t)
{
	free(t->ids);
	free(t->list);
}

static void used_deinit(struct used *u)
{
	used_table_deinit(&u->strings);
	used_table_deinit(&u->frames);
	used_table_deinit(&u->threads);
	used_table_deinit(&u->nodes);
	used_table_deinit(&u->spans);
}

static bool used_init(struct used *u, const struct profile *p)
{
	return used_table_init(&u->strings, p->n_strings) &&
	       used_table_init(&u->frames, p->n_frames) &&
	       used_table_init(&u->threads, p->n_threads) &&
	       used_table_init(&u->nodes, p->n_nodes) && used_table_init(&u->spans, p->n_spans);
}

/* true = @i was not needed before. */
static bool used_need(struct used_table *t, uint32_t i)
{
	if (t->ids[i])
		return false;
	t->list[t->n++] = i;
	t->ids[i] = t->n;
	return true;
}

static void need_frame(struct used *u, const struct profile *p, uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];

	if (!used_need(&u->frames, frame))
		return;
	used_need(&u->strings, f->class_name);
	used_need(&u->strings, f->method);
	used_need(&u->strings, f->signature);
	used_need(&u->strings, f->file);
	used_need(&u->strings, f->module);
}

/* A node comes after its parent: the path down to the first known node is appended from its end. */
static void need_nodes(struct used *u, const struct profile *p, uint32_t leaf)
{
	uint32_t at = u->nodes.n, depth = 0;

	for (uint32_t n = leaf; !u->nodes.ids[n]; n = p->nodes[n].parent)
		depth++;
	u->nodes.n += depth;
	for (uint32_t n = leaf; depth > 0; n = p->nodes[n].parent) {
		u->nodes.list[at + --depth] = n;
		u->nodes.ids[n] = at + depth + 1;
		need_frame(u, p, p->nodes[n].frame);
	}
}

static void need_rows(struct used *u, const struct profile *p)
{
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		need_nodes(u, p, r->node);
		if (used_need(&u->threads, r->thread))
			used_need(&u->strings, p->threads[r->thread].name);
		if (!r->span || !used_need(&u->spans, r->span - 1))
			continue;
		used_need(&u->strings, p->spans[r->span - 1].trace_id);
		used_need(&u->strings, p->spans[r->span - 1].span_id);
	}
}

static void need_processes(struct used *u, const struct profile *p)
{
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];
		const uint32_t strings[] = { q->name, q->container_id, q->container, q->pod,
					     q->jdk,  q->note,	       q->labels };

		for (unsigned k = 0; k < ARRAY_SIZE(strings); k++)
			used_need(&u->strings, strings[k]);
	}
}

int profile_encode_used(const struct profile *p, uint8_t **ret, size_t *ret_len)
{
	CLEANUP(used_deinit) struct used u = { 0 };
	struct out o = { 0 };
	int r;

	if (!used_init(&u, p))
		return -ENOMEM;
	/* "" and the root are the first of their tables, and not written */
	used_need(&u.strings, 0);
	used_need(&u.nodes, 0);
	need_rows(&u, p);
	need_processes(&u, p);
	r = profile_encode_rows(p, &u, &o);
	*ret = o.p;
	*ret_len = o.len;
	return r;
}

/* ---- decoding ----------------------------------------------------------------------------- */

struct in {
	const uint8_t *p, *end;
	unsigned version, events; /* events: how many kinds of events its writer knew */
	bool bad;
};

static uint64_t profile_encode_get(struct in *in)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64 && in->p < in->end; shift += 7) {
		uint8_t b = *in->p++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	in->bad = true;
	return 0;
}

static uint32_t get_below(struct in *in, uint64_t limit)
{
	uint64_t v = profile_encode_get(in);

	if (v >= limit) {
		in->bad = true;
		return 0;
	}
	return (uint32_t)v;
}

/* Reads a count of entries that take at least @min_bytes each. */
static uint32_t get_count(struct in *in, uint32_t max, size_t min_bytes)
{
	uint64_t n = profile_encode_get(in);

	if (n > max || n > (uint64_t)(in->end - in->p) / min_bytes + 1) {
		in->bad = true;
		return 0;
	}
	return (uint32_t)n;
}

static void get_losses(struct in *in, struct profile_losses *l)
{
	l->taken = profile_encode_get(in);
	l->taken_weight = profile_encode_get(in);
	l->delivered = profile_encode_get(in);
	l->delivered_weight = profile_encode_get(in);
	l->dropped = profile_encode_get(in);
	l->dropped_weight = profile_encode_get(in);
	if (in->version >= VERSION_IDS)
		l->no_ids = profile_encode_get(in);
}

static void get_accounts(struct in *in, struct profile_accounts *b)
{
	for (unsigned e = 0; e < in->events; e++)
		get_losses(in, &b->of[e]);
	if (in->version < 3)
		return;
	b->short_waits = profile_encode_get(in);
	b->short_waits_ns = profile_encode_get(in);
}

static uint64_t get_length(struct in *in)
{
	uint64_t len = profile_encode_get(in);

	in->bad |= len == 0 || len > PROFILE_STRING_MAX || len > (uint64_t)(in->end - in->p);
	return in->bad ? 0 : len;
}

static int get_strings(struct in *in, struct profile *p)
{
	uint32_t n = get_count(in, PROFILE_STRINGS_MAX, 1);
	struct in ahead = *in;
	size_t bytes = 0;

	for (uint32_t i = 1; i < n && !ahead.bad; i++) {
		uint64_t len = get_length(&ahead);

		bytes += len + 1;
		ahead.p += len;
	}
	if (ahead.bad || profile_text_room(p, bytes) < 0)
		return -EBADMSG;
	for (uint32_t i = 1; i < n; i++) {
		uint64_t len = get_length(in);

		if (memchr(in->p, 0, len) || !profile_add_text(p, in->p, len))
			return -EBADMSG;
		in->p += len;
	}
	return 0;
}

static int get_frames(struct in *in, struct profile *p)
{
	uint32_t n = get_count(in, PROFILE_NODES_MAX, 8);

	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_frame f = { 0 };

		f.kind = (uint8_t)get_below(in, 256);
		f.line = (int32_t)get_below(in, INT32_MAX) - 1;
		f.class_name = get_below(in, p->n_strings);
		f.method = get_below(in, p->n_strings);
		f.signature = get_below(in, p->n_strings);
		f.file = get_below(in, p->n_strings);
		f.module = get_below(in, p->n_strings);
		f.offset = profile_encode_get(in);
		if (in->bad || profile_intern_frame(p, &f) != i)
			return -EBADMSG;
	}
	return 0;
}

static int get_owners(struct in *in, struct profile *p)
{
	uint32_t n = get_count(in, PROFILE_NODES_MAX, 14);
	uint64_t cpu_ns = 0;

	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_accounts accounts = { 0 };
		struct profile_process q = { 0 };

		q.pid = get_below(in, (uint64_t)UINT32_MAX + 1);
		q.ns_pid = get_below(in, (uint64_t)UINT32_MAX + 1);
		q.start_time = profile_encode_get(in);
		q.name = get_below(in, p->n_strings);
		q.container_id = get_below(in, p->n_strings);
		q.container = get_below(in, p->n_strings);
		q.pod = get_below(in, p->n_strings);
		q.jdk = get_below(in, p->n_strings);
		if (in->version >= 4) {
			q.note = get_below(in, p->n_strings);
			cpu_ns = profile_encode_get(in);
		}
		if (in->version >= 5)
			q.labels = get_below(in, p->n_strings);
		get_accounts(in, &accounts);
		if (in->bad || profile_process(p, &q) != i)
			return -EBADMSG;
		PROCESSES(p)[i].accounts = accounts;
		PROCESSES(p)[i].cpu_ns = cpu_ns;
	}
	n = get_count(in, PROFILE_NODES_MAX, 3);
	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_thread t = { 0 };

		t.process = get_below(in, p->n_processes);
		t.tid = get_below(in, (uint64_t)UINT32_MAX + 1);
		t.name = get_below(in, p->n_strings);
		if (in->bad || profile_thread(p, &t) != i)
			return -EBADMSG;
	}
	return 0;
}

static int get_spans(struct in *in, struct profile *p)
{
	uint32_t n = in->version < VERSION_IDS ? 0 : get_count(in, PROFILE_SPANS_MAX, 2);

	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_span s;

		s.trace_id = get_below(in, p->n_strings);
		s.span_id = get_below(in, p->n_strings);
		if (in->bad || profile_intern_span(p, &s) != i)
			return -EBADMSG;
	}
	return in->bad ? -EBADMSG : 0;
}

static int get_rows(struct in *in, struct profile *p)
{
	uint32_t n = get_count(in, PROFILE_ROWS_MAX, 4);

	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_row r = { .event = WIRE_EVENT_CPU };
		uint32_t kind;

		r.thread = get_below(in, p->n_threads);
		r.node = get_below(in, p->n_nodes);
		kind = in->version < 3 ? 0 : get_below(in, WIRE_EVENT_COUNT << 4);
		r.event = (uint8_t)(kind >> 4);
		r.wait = kind >> 1 & 7;
		r.idle = kind & 1;
		r.samples = profile_encode_get(in);
		r.weight = profile_encode_get(in);
		if (in->version >= VERSION_IDS)
			r.span = get_below(in, (uint64_t)p->n_spans + 1);
		if (r.wait >= WIRE_WAIT_COUNT)
			in->bad = true;
		if (!in->bad)
			profile_add_row(p, &r);
	}
	return in->bad || in->p != in->end ? -EBADMSG : 0;
}

static int get_stacks(struct in *in, struct profile *p)
{
	uint32_t n = get_count(in, PROFILE_NODES_MAX, 2);

	for (uint32_t i = 1; i < n && !in->bad; i++) {
		uint32_t parent = get_below(in, i);
		uint32_t frame = get_below(in, p->n_frames);

		if (in->bad || profile_node(p, parent, frame) != i)
			return -EBADMSG;
	}
	return get_spans(in, p) < 0 ? -EBADMSG : get_rows(in, p);
}

static int get_head(struct in *in, struct profile *p)
{
	uint64_t flags;

	in->version = get_below(in, VERSION_IDS + 1);
	if (in->bad || in->version < 2)
		return -EBADMSG;
	p->begin_real_ns = profile_encode_get(in);
	p->end_real_ns = profile_encode_get(in);
	in->events = in->version < 3 ? 1 : get_below(in, WIRE_EVENT_COUNT + 1);
	for (unsigned e = 0; e < in->events; e++)
		p->interval[e] = profile_encode_get(in);
	flags = profile_encode_get(in);
	p->no_budget = flags & 1;
	p->cpu_unknown = in->version < 4 || flags & 2;
	p->overflow = profile_encode_get(in);
	get_accounts(in, &p->accounts);
	return in->bad ? -EBADMSG : 0;
}

int profile_decode(const uint8_t *buf, size_t len, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct in in = { .p = buf, .end = buf + len };
	uint64_t overflow;
	int r;

	if (len < 5 || memcmp(buf, MAGIC, 4) != 0)
		return -EBADMSG;
	in.p += 4;
	r = profile_new(&p);
	if (r < 0)
		return r;
	/* a full profile has used the spare entries, too */
	p->index->spare = true;
	p->index->as_is = true;
	if (get_head(&in, p) < 0)
		return -EBADMSG;
	overflow = p->overflow;
	if (get_strings(&in, p) < 0 || get_frames(&in, p) < 0 || get_owners(&in, p) < 0 ||
	    get_stacks(&in, p) < 0)
		return -EBADMSG;
	p->overflow = overflow; /* the bytes say how many samples did not fit */
	if (in.version < 4)
		profile_book_rows(p);
	p->index->spare = false;
	p->index->as_is = false;
	profile_adopt_full(p);
	*ret = TAKE_PTR(p);
	return 0;
}
