/* Reads the bytes that encode.c writes. Nothing in them is trusted: every count is checked against
 * the bytes that are left, every index against its table, and a node's parent must precede the
 * node. Fuzzed by tests/fuzz/fuzz_profile.c. */
#include "daemon/profile/encode_priv.h"

#include <errno.h>
#include <string.h>

uint64_t profile_decode_number(struct profile_in *in)
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

uint32_t profile_decode_below(struct profile_in *in, uint64_t limit)
{
	uint64_t v = profile_decode_number(in);

	if (v >= limit) {
		in->bad = true;
		return 0;
	}
	return (uint32_t)v;
}

/* Reads a count of entries that take at least @min_bytes each. */
uint32_t profile_decode_count(struct profile_in *in, uint32_t max, size_t min_bytes)
{
	uint64_t n = profile_decode_number(in);

	if (n > max || n > (uint64_t)(in->end - in->p) / min_bytes + 1) {
		in->bad = true;
		return 0;
	}
	return (uint32_t)n;
}

static void get_losses(struct profile_in *in, struct profile_losses *l)
{
	l->taken = profile_decode_number(in);
	l->taken_weight = profile_decode_number(in);
	l->delivered = profile_decode_number(in);
	l->delivered_weight = profile_decode_number(in);
	l->dropped = profile_decode_number(in);
	l->dropped_weight = profile_decode_number(in);
	if (in->version >= PROFILE_VERSION_IDS)
		l->no_ids = profile_decode_number(in);
}

static void get_accounts(struct profile_in *in, struct profile_accounts *b)
{
	for (unsigned e = 0; e < in->events; e++)
		get_losses(in, &b->of[e]);
	if (in->version < 3)
		return;
	b->short_waits = profile_decode_number(in);
	b->short_waits_ns = profile_decode_number(in);
}

uint64_t profile_decode_length(struct profile_in *in)
{
	uint64_t len = profile_decode_number(in);

	in->bad |= len == 0 || len > PROFILE_STRING_MAX || len > (uint64_t)(in->end - in->p);
	return in->bad ? 0 : len;
}

static int get_strings(struct profile_in *in, struct profile *p)
{
	uint32_t n = profile_decode_count(in, PROFILE_STRINGS_MAX, 1);
	struct profile_in ahead = *in;
	size_t bytes = 0;

	for (uint32_t i = 1; i < n && !ahead.bad; i++) {
		uint64_t len = profile_decode_length(&ahead);

		bytes += len + 1;
		ahead.p += len;
	}
	if (ahead.bad || profile_text_room(p, bytes) < 0 || !profile_room(p, strings, n))
		return -EBADMSG;
	for (uint32_t i = 1; i < n; i++) {
		uint64_t len = profile_decode_length(in);

		if (memchr(in->p, 0, len))
			return -EBADMSG;
		profile_add_text(p, in->p, len);
		in->p += len;
	}
	return 0;
}

void profile_decode_frame(struct profile_in *in, const struct profile *p, struct profile_frame *ret)
{
	*ret = (struct profile_frame){ 0 };
	ret->kind = (uint8_t)profile_decode_below(in, 256);
	ret->line = (int32_t)profile_decode_below(in, INT32_MAX) - 1;
	ret->class_name = profile_decode_below(in, p->n_strings);
	ret->method = profile_decode_below(in, p->n_strings);
	ret->signature = profile_decode_below(in, p->n_strings);
	ret->file = profile_decode_below(in, p->n_strings);
	ret->module = profile_decode_below(in, p->n_strings);
	ret->offset = profile_decode_number(in);
}

static int get_frames(struct profile_in *in, struct profile *p)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 8);

	if (!profile_room(p, frames, n))
		return -EBADMSG;
	for (uint32_t i = 0; i < n && !in->bad; i++)
		profile_decode_frame(in, p, &FRAMES(p)[p->n_frames++]);
	return in->bad ? -EBADMSG : 0;
}

void profile_decode_process(struct profile_in *in, const struct profile *p,
			    struct profile_process *ret)
{
	*ret = (struct profile_process){ 0 };
	ret->pid = profile_decode_below(in, (uint64_t)UINT32_MAX + 1);
	ret->ns_pid = profile_decode_below(in, (uint64_t)UINT32_MAX + 1);
	ret->start_time = profile_decode_number(in);
	ret->name = profile_decode_below(in, p->n_strings);
	ret->container_id = profile_decode_below(in, p->n_strings);
	ret->container = profile_decode_below(in, p->n_strings);
	ret->pod = profile_decode_below(in, p->n_strings);
	ret->jdk = profile_decode_below(in, p->n_strings);
	if (in->version >= 4) {
		ret->note = profile_decode_below(in, p->n_strings);
		ret->cpu_ns = profile_decode_number(in);
	}
	if (in->version >= 5)
		ret->labels = profile_decode_below(in, p->n_strings);
	get_accounts(in, &ret->accounts);
}

static int get_processes(struct profile_in *in, struct profile *p)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 14);

	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_process q;

		profile_decode_process(in, p, &q);
		if (in->bad || profile_process(p, &q) != i)
			return -EBADMSG;
		PROCESSES(p)[i].accounts = q.accounts;
		PROCESSES(p)[i].cpu_ns = q.cpu_ns;
	}
	return in->bad ? -EBADMSG : 0;
}

void profile_decode_thread(struct profile_in *in, const struct profile *p,
			   struct profile_thread *ret)
{
	ret->process = profile_decode_below(in, p->n_processes);
	ret->tid = profile_decode_below(in, (uint64_t)UINT32_MAX + 1);
	ret->name = profile_decode_below(in, p->n_strings);
}

static int get_threads(struct profile_in *in, struct profile *p)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 3);

	if (!profile_room(p, threads, n))
		return -EBADMSG;
	for (uint32_t i = 0; i < n && !in->bad; i++)
		profile_decode_thread(in, p, &THREADS(p)[p->n_threads++]);
	return in->bad ? -EBADMSG : 0;
}

static int get_spans(struct profile_in *in, struct profile *p)
{
	uint32_t n = in->version < PROFILE_VERSION_IDS
			     ? 0
			     : profile_decode_count(in, PROFILE_SPANS_MAX, 2);

	for (uint32_t i = 0; i < n && !in->bad; i++) {
		struct profile_span s;

		s.trace_id = profile_decode_below(in, p->n_strings);
		s.span_id = profile_decode_below(in, p->n_strings);
		if (in->bad || profile_intern_span(p, &s) != i)
			return -EBADMSG;
	}
	return in->bad ? -EBADMSG : 0;
}

void profile_decode_row(struct profile_in *in, const struct profile *p, struct profile_row *ret)
{
	uint32_t kind;

	*ret = (struct profile_row){ .event = WIRE_EVENT_CPU };
	ret->thread = profile_decode_below(in, p->n_threads);
	ret->node = profile_decode_below(in, p->n_nodes);
	kind = in->version < 3 ? 0 : profile_decode_below(in, WIRE_EVENT_COUNT << 4);
	ret->event = (uint8_t)(kind >> 4);
	ret->wait = kind >> 1 & 7;
	ret->idle = kind & 1;
	ret->samples = profile_decode_number(in);
	ret->weight = profile_decode_number(in);
	if (in->version >= PROFILE_VERSION_IDS)
		ret->span = profile_decode_below(in, (uint64_t)p->n_spans + 1);
	in->bad |= ret->wait >= WIRE_WAIT_COUNT;
}

static int get_rows(struct profile_in *in, struct profile *p)
{
	uint32_t n = profile_decode_count(in, PROFILE_ROWS_MAX, 4);

	if (!profile_room(p, rows, n))
		return -EBADMSG;
	for (uint32_t i = 0; i < n && !in->bad; i++)
		profile_decode_row(in, p, &ROWS(p)[p->n_rows++]);
	return in->bad || in->p != in->end ? -EBADMSG : 0;
}

static int get_stacks(struct profile_in *in, struct profile *p)
{
	uint32_t n = profile_decode_count(in, PROFILE_NODES_MAX, 2);

	if (!profile_room(p, nodes, n))
		return -EBADMSG;
	for (uint32_t i = 1; i < n && !in->bad; i++) {
		struct profile_node *to = &NODES(p)[p->n_nodes++];

		to->parent = profile_decode_below(in, i);
		to->frame = profile_decode_below(in, p->n_frames);
	}
	return in->bad || get_spans(in, p) < 0 ? -EBADMSG : get_rows(in, p);
}

int profile_decode_head(struct profile_in *in, struct profile *p)
{
	uint64_t flags;

	in->version = profile_decode_below(in, PROFILE_VERSION_IDS + 1);
	if (in->bad || in->version < 2)
		return -EBADMSG;
	p->begin_real_ns = profile_decode_number(in);
	p->end_real_ns = profile_decode_number(in);
	in->events = in->version < 3 ? 1 : profile_decode_below(in, WIRE_EVENT_COUNT + 1);
	for (unsigned e = 0; e < in->events; e++)
		p->interval[e] = profile_decode_number(in);
	flags = profile_decode_number(in);
	p->no_budget = flags & 1;
	p->cpu_unknown = in->version < 4 || flags & 2;
	p->overflow = profile_decode_number(in);
	get_accounts(in, &p->accounts);
	return in->bad ? -EBADMSG : 0;
}

int profile_decode(const uint8_t *buf, size_t len, struct profile **ret)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct profile_in in = { .p = buf, .end = buf + len };
	uint64_t overflow;
	int r;

	if (len < 5 || memcmp(buf, PROFILE_MAGIC, 4) != 0)
		return -EBADMSG;
	in.p += 4;
	r = profile_new(&p);
	if (r < 0)
		return r;
	/* a full profile has used the spare entries, too */
	p->index->spare = true;
	p->index->as_is = true;
	if (profile_decode_head(&in, p) < 0)
		return -EBADMSG;
	overflow = p->overflow;
	if (get_strings(&in, p) < 0 || get_frames(&in, p) < 0 || get_processes(&in, p) < 0 ||
	    get_threads(&in, p) < 0 || get_stacks(&in, p) < 0)
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
