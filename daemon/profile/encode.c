/*
 * A profile as bytes: "KPRF", a version, then varints, table by table in the order of profile.h.
 * Older versions can still be read: version 2 has only CPU time, version 3 neither the CPU time nor
 * the notes of processes, version 4 no labels, version 5 no trace ids. A profile without ids is
 * written as version 5, which earlier daemons read too. decode.c reads it.
 *
 * A slice of an open window begins with "KPRJ" instead: it has only those names, frames, threads
 * and stacks that no earlier slice of the window had, each behind its number, and refers to all by
 * their numbers in the window. slices.c reads them.
 */
#include "daemon/profile/encode_priv.h"

#include <errno.h>
#include <string.h>

#define VERSION	   5
#define VARINT_MAX 10 /* bytes */
/* A version that nobody can choose to avoid needs a new version of segments too (store/record.c).
 */

struct out {
	uint8_t *p;
	size_t len, cap;
	bool ids; /* PROFILE_VERSION_IDS */
	bool numbers; /* entries have their numbers in front of them */
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

/* The entries of one table that are to be written, in this order; list NULL = all of them. */
struct used_table {
	uint32_t *list;
	uint32_t n, cap;
};

struct used {
	struct used_table strings, frames, threads, nodes, spans;
	bool failed; /* no memory */
};

/* Of all strings and nodes the first, "" and the root, are counted and not written. */
static uint32_t first_entry(const struct out *o)
{
	return o->numbers ? 0 : 1;
}

/* The entry that is written in place @k, after its number if slices have that. */
static uint32_t used_entry(struct out *o, const struct used_table *t, uint32_t k)
{
	uint32_t i = t->list ? t->list[k] : k;

	if (o->numbers)
		profile_encode_put(o, i);
	return i;
}

static void profile_encode_put_rows(struct out *o, const struct profile *p)
{
	profile_encode_put(o, p->n_rows);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		profile_encode_put(o, p->rows[i].thread);
		profile_encode_put(o, p->rows[i].node);
		profile_encode_put(o, row_kind(&p->rows[i]));
		profile_encode_put(o, p->rows[i].samples);
		profile_encode_put(o, p->rows[i].weight);
		if (o->ids)
			profile_encode_put(o, p->rows[i].span);
	}
}

static void profile_encode_put_spans(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, u->spans.n);
	for (uint32_t k = 0; k < u->spans.n; k++) {
		const struct profile_span *s = &p->spans[used_entry(o, &u->spans, k)];

		profile_encode_put(o, s->trace_id);
		profile_encode_put(o, s->span_id);
	}
}

static void put_strings(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, u->strings.n);
	for (uint32_t k = first_entry(o); k < u->strings.n; k++) {
		const char *text = p->strings[used_entry(o, &u->strings, k)];
		size_t len = strlen(text);

		profile_encode_put(o, len);
		put_bytes(o, text, len);
	}
}

static void profile_encode_put_frames(struct out *o, const struct profile *p, const struct used *u)
{
	profile_encode_put(o, u->frames.n);
	for (uint32_t k = 0; k < u->frames.n; k++) {
		const struct profile_frame *f = &p->frames[used_entry(o, &u->frames, k)];

		profile_encode_put(o, f->kind);
		profile_encode_put(o, (uint64_t)(f->line + 1));
		profile_encode_put(o, f->class_name);
		profile_encode_put(o, f->method);
		profile_encode_put(o, f->signature);
		profile_encode_put(o, f->file);
		profile_encode_put(o, f->module);
		profile_encode_put(o, f->offset);
	}
}

static void profile_encode_put_processes(struct out *o, const struct profile *p)
{
	profile_encode_put(o, p->n_processes);
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];

		profile_encode_put(o, q->pid);
		profile_encode_put(o, q->ns_pid);
		profile_encode_put(o, q->start_time);
		profile_encode_put(o, q->name);
		profile_encode_put(o, q->container_id);
		profile_encode_put(o, q->container);
		profile_encode_put(o, q->pod);
		profile_encode_put(o, q->jdk);
		profile_encode_put(o, q->note);
		profile_encode_put(o, q->cpu_ns);
		profile_encode_put(o, q->labels);
		profile_encode_put_accounts(o, &q->accounts);
	}
}

static void put_tables(struct out *o, const struct profile *p, const struct used *u)
{
	put_strings(o, p, u);
	profile_encode_put_frames(o, p, u);
	profile_encode_put_processes(o, p);
	profile_encode_put(o, u->threads.n);
	for (uint32_t k = 0; k < u->threads.n; k++) {
		const struct profile_thread *t = &p->threads[used_entry(o, &u->threads, k)];

		profile_encode_put(o, t->process);
		profile_encode_put(o, t->tid);
		profile_encode_put(o, t->name);
	}
	profile_encode_put(o, u->nodes.n);
	for (uint32_t k = first_entry(o); k < u->nodes.n; k++) {
		const struct profile_node *n = &p->nodes[used_entry(o, &u->nodes, k)];

		profile_encode_put_pair(o, n->parent, n->frame);
	}
	if (o->ids)
		profile_encode_put_spans(o, p, u);
	profile_encode_put_rows(o, p);
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
	put_bytes(o, o->numbers ? PROFILE_MAGIC_SLICE : PROFILE_MAGIC, 4);
	profile_encode_put(o, o->ids ? PROFILE_VERSION_IDS : VERSION);
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

/* ---- slices ---------------------------------------------------------------------------------- */

void profile_reported_free(struct profile_reported *t)
{
	struct profile_bits *all[] = { &t->strings, &t->frames, &t->threads, &t->nodes, &t->spans };

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		free(all[i]->words);
		*all[i] = (struct profile_bits){ 0 };
	}
}

void profile_slice_lost(const struct profile *p)
{
	profile_reported_free(&p->index->reported);
}

bool profile_bits_set(struct profile_bits *b, uint32_t i)
{
	size_t have = b->n / 64, want = (size_t)i / 64 + 1;
	uint64_t *words;

	if (i >= b->n) {
		want += want / 4 + 16;
		words = realloc(b->words, want * sizeof(*words));
		if (!words)
			return false;
		memset(words + have, 0, (want - have) * sizeof(*words));
		b->words = words;
		b->n = (uint32_t)(64 * want);
	}
	b->words[i / 64] |= 1ull << i % 64;
	return true;
}

/* Appends entry @i unless an earlier slice had it. true = it is new. */
static bool used_need(struct used *u, struct used_table *t, struct profile_bits *reported,
		      uint32_t i)
{
	if (profile_bits_has(reported, i))
		return false;
	if (t->n == t->cap) {
		uint32_t cap = 2 * t->cap + 256;
		uint32_t *list = realloc(t->list, cap * sizeof(*list));

		if (!list) {
			u->failed = true;
			return false;
		}
		t->list = list;
		t->cap = cap;
	}
	u->failed |= !profile_bits_set(reported, i);
	t->list[t->n++] = i;
	return !u->failed;
}

static void need_string(struct used *u, struct profile_reported *reported, uint32_t string)
{
	if (string)
		used_need(u, &u->strings, &reported->strings, string);
}

static void need_frame(struct used *u, struct profile_reported *reported, const struct profile *p,
		       uint32_t frame)
{
	const struct profile_frame *f = &p->frames[frame];

	if (!used_need(u, &u->frames, &reported->frames, frame))
		return;
	need_string(u, reported, f->class_name);
	need_string(u, reported, f->method);
	need_string(u, reported, f->signature);
	need_string(u, reported, f->file);
	need_string(u, reported, f->module);
}

/* Appends the new nodes of a stack, and turns their order round: a node comes after its parent. */
static void need_nodes(struct used *u, struct profile_reported *reported, const struct profile *p,
		       uint32_t leaf)
{
	uint32_t begin = u->nodes.n;

	for (uint32_t n = leaf; n && used_need(u, &u->nodes, &reported->nodes, n);
	     n = p->nodes[n].parent)
		need_frame(u, reported, p, p->nodes[n].frame);
	for (uint32_t i = begin, k = u->nodes.n; i + 1 < k; i++) {
		uint32_t node = u->nodes.list[i];

		u->nodes.list[i] = u->nodes.list[--k];
		u->nodes.list[k] = node;
	}
}

static void need_rows(struct used *u, struct profile_reported *reported, const struct profile *p)
{
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		need_nodes(u, reported, p, r->node);
		if (used_need(u, &u->threads, &reported->threads, r->thread))
			need_string(u, reported, p->threads[r->thread].name);
		if (!r->span || !used_need(u, &u->spans, &reported->spans, r->span - 1))
			continue;
		need_string(u, reported, p->spans[r->span - 1].trace_id);
		need_string(u, reported, p->spans[r->span - 1].span_id);
	}
}

static void need_processes(struct used *u, struct profile_reported *reported,
			   const struct profile *p)
{
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];
		const uint32_t strings[] = { q->name, q->container_id, q->container, q->pod,
					     q->jdk,  q->note,	       q->labels };

		for (unsigned k = 0; k < ARRAY_SIZE(strings); k++)
			need_string(u, reported, strings[k]);
	}
}

static void used_deinit(struct used *u)
{
	free(u->strings.list);
	free(u->frames.list);
	free(u->threads.list);
	free(u->nodes.list);
	free(u->spans.list);
}

int profile_encode_slice(const struct profile *p, uint8_t **ret, size_t *ret_len)
{
	CLEANUP(used_deinit) struct used u = { 0 };
	struct profile_reported *reported = &p->index->reported;
	struct out o = { .numbers = true };
	/* a list that is NULL would stand for all entries */
	struct used_table *all[] = { &u.strings, &u.frames, &u.threads, &u.nodes, &u.spans };
	int r = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
		all[i]->cap = 64;
		all[i]->list = malloc(all[i]->cap * sizeof(*all[i]->list));
		u.failed |= !all[i]->list;
	}
	if (!u.failed) {
		need_rows(&u, reported, p);
		need_processes(&u, reported, p);
	}
	r = u.failed ? -ENOMEM : profile_encode_rows(p, &u, &o);
	if (r < 0)
		profile_reported_free(reported);
	*ret = o.p;
	*ret_len = o.len;
	return r;
}
