/* See answer.h. The columns are those of schema.c, in their order. */
#include "daemon/clickhouse/answer.h"

#include <errno.h>
#include <string.h>
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/clickhouse/siphash.h"
#include "daemon/core/labels.h"
#include "daemon/ground/utf8.h"
#include "daemon/report/report.h"
#include "proto/wire.h"

#define DEPTH_MAX  4096
#define TEXT_BYTES 16400 /* longer texts are cut */
#define LABELS_MAX 256
#define NO_STACK   "[stack not in ClickHouse]"

struct known_stack {
	uint64_t stack;
	uint32_t node;
};

/* One row of the table of stacks: parallel arrays with an element for each frame. */
struct stack_row {
	size_t n;
	struct rowbinary_string frames[DEPTH_MAX], signatures[DEPTH_MAX], files[DEPTH_MAX],
		modules[DEPTH_MAX];
	uint8_t kinds[DEPTH_MAX];
	int32_t lines[DEPTH_MAX];
	uint16_t class_bytes[DEPTH_MAX];
	uint64_t offsets[DEPTH_MAX];
};

struct answer {
	struct profile *p;
	struct rowbinary in;
	struct known_stack *stacks; /* sorted by number once all of them are read */
	size_t n_stacks, cap_stacks;
	struct clickhouse_answered *what;
	struct stack_row *row;
	struct labels labels;
	bool has_node;
	uint64_t first_node; /* hash of the first node's name */
	char text[TEXT_BYTES], other[TEXT_BYTES];
};

static uint32_t answer_string_of(struct answer *a, struct rowbinary_string s)
{
	(void)utf8_copy(a->text, sizeof(a->text), s.p, s.len);
	return profile_string(a->p, a->text);
}

static uint32_t answer_take_string(struct answer *a)
{
	return answer_string_of(a, rowbinary_string(&a->in));
}

/* ---- stacks --------------------------------------------------------------------------------- */

/* Reads the length of an array, which must be that of the row's first array. */
static bool answer_array_fits(struct answer *a, size_t least)
{
	size_t n = rowbinary_length(&a->in, least);

	if (n != a->row->n)
		a->in.bad = true;
	return !a->in.bad;
}

static void answer_take_strings(struct answer *a, struct rowbinary_string *to)
{
	if (!answer_array_fits(a, 1))
		return;
	for (size_t i = 0; i < a->row->n; i++)
		to[i] = rowbinary_string(&a->in);
}

static void answer_take_stack_row(struct answer *a)
{
	struct stack_row *r = a->row;

	r->n = rowbinary_length(&a->in, 1);
	if (r->n > DEPTH_MAX) {
		a->in.bad = true;
		return;
	}
	for (size_t i = 0; i < r->n; i++)
		r->frames[i] = rowbinary_string(&a->in);
	for (size_t i = 0, ok = answer_array_fits(a, 1); ok && i < r->n; i++)
		r->kinds[i] = (uint8_t)rowbinary_number(&a->in, 1);
	for (size_t i = 0, ok = answer_array_fits(a, 4); ok && i < r->n; i++)
		r->lines[i] = (int32_t)(uint32_t)rowbinary_number(&a->in, 4);
	for (size_t i = 0, ok = answer_array_fits(a, 2); ok && i < r->n; i++)
		r->class_bytes[i] = (uint16_t)rowbinary_number(&a->in, 2);
	answer_take_strings(a, r->signatures);
	answer_take_strings(a, r->files);
	answer_take_strings(a, r->modules);
	for (size_t i = 0, ok = answer_array_fits(a, 8); ok && i < r->n; i++)
		r->offsets[i] = rowbinary_number(&a->in, 8);
}

/* Does the frame's name begin with a class? "java.lang.Thread.run" does, with 16 bytes. */
static bool answer_has_class(const struct stack_row *r, size_t i)
{
	size_t n = r->class_bytes[i];

	return wire_kind_is_method(r->kinds[i]) && n && n < r->frames[i].len &&
	       r->frames[i].p[n] == '.';
}

static uint32_t frame_of(struct answer *a, size_t i)
{
	const struct stack_row *r = a->row;
	struct rowbinary_string name = r->frames[i];
	struct profile_frame f = { .kind = r->kinds[i] < WIRE_KIND_COUNT ? r->kinds[i] : 0,
				   .line = r->lines[i] < -1 ? -1 : r->lines[i],
				   .offset = r->offsets[i] };

	f.signature = answer_string_of(a, r->signatures[i]);
	f.file = answer_string_of(a, r->files[i]);
	f.module = answer_string_of(a, r->modules[i]);
	if (answer_has_class(r, i)) {
		f.class_name =
			answer_string_of(a, (struct rowbinary_string){ name.p, r->class_bytes[i] });
		name.p += r->class_bytes[i] + 1;
		name.len -= r->class_bytes[i] + 1u;
		f.method = answer_string_of(a, name);
		return profile_intern_frame(a->p, &f);
	}
	/* a frame without a name was stored with a placeholder, which must not become its name */
	(void)report_frame_name(a->p, &f, a->other, sizeof(a->other));
	(void)utf8_copy(a->text, sizeof(a->text), name.p, name.len);
	if (strcmp(a->text, a->other) != 0)
		f.method = profile_string(a->p, a->text);
	return profile_intern_frame(a->p, &f);
}

static int answer_add_stack(struct answer *a, uint64_t stack, uint32_t node)
{
	if (a->n_stacks == a->cap_stacks) {
		size_t cap = 2 * a->cap_stacks + 1024;
		struct known_stack *p = realloc(a->stacks, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		a->stacks = p;
		a->cap_stacks = cap;
	}
	a->stacks[a->n_stacks++] = (struct known_stack){ stack, node };
	return 0;
}

static int answer_take_stack(struct answer *a)
{
	uint64_t stack;
	uint32_t node = 0;

	(void)rowbinary_number(&a->in, 2); /* day */
	stack = rowbinary_number(&a->in, 8);
	(void)rowbinary_string(&a->in); /* namespace, service */
	(void)rowbinary_string(&a->in);
	answer_take_stack_row(a);
	if (a->in.bad)
		return -EBADMSG;
	for (size_t i = 0; i < a->row->n; i++)
		node = profile_node(a->p, node, frame_of(a, i));
	return answer_add_stack(a, stack, node);
}

static int answer_by_stack(const void *x, const void *y)
{
	uint64_t a = ((const struct known_stack *)x)->stack,
		 b = ((const struct known_stack *)y)->stack;

	return a < b ? -1 : a > b;
}

/* ---- identities ------------------------------------------------------------------------------ */

/*
 * In a profile a process is identified by its number and start time, which are unique on one node:
 * for all nodes but the first, the node is mixed in, so that processes of two nodes are never one.
 */
static uint64_t answer_start_on_node(struct answer *a, uint64_t start_time,
				     struct rowbinary_string node)
{
	uint64_t hash = siphash(node.p, node.len);

	if (!a->has_node)
		a->first_node = hash;
	a->has_node = true;
	return start_time ^ hash ^ a->first_node;
}

/* Reads the columns with which rows of samples and of processes begin, and skips those that a
 * profile does not need. */
static struct profile_process answer_take_owner(struct answer *a)
{
	struct profile_process q = { 0 };
	struct rowbinary_string node;

	(void)rowbinary_number(&a->in, 4); /* time, until */
	(void)rowbinary_number(&a->in, 4);
	for (int i = 0; i < 6; i++) /* labels, which rows of processes contain as well */
		(void)rowbinary_string(&a->in);
	node = rowbinary_string(&a->in);
	q.pid = (uint32_t)rowbinary_number(&a->in, 4);
	q.start_time = answer_start_on_node(a, rowbinary_number(&a->in, 8), node);
	return q;
}

/* The index of @s in @words; -1 = it is not there. */
static int answer_word_of(const char *const *words, int n, struct rowbinary_string s)
{
	for (int i = 0; i < n; i++)
		if (strlen(words[i]) == s.len && memcmp(words[i], s.p, s.len) == 0)
			return i;
	return -1;
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Reads the labels, an array of names and one of values; invalid labels are left out. */
static uint32_t answer_take_labels(struct answer *a)
{
	struct rowbinary_string names[LABELS_MAX];
	char key[LABEL_KEY_SIZE];
	size_t n = rowbinary_length(&a->in, 1);

	if (n > LABELS_MAX)
		a->in.bad = true;
	for (size_t i = 0; i < n && !a->in.bad; i++)
		names[i] = rowbinary_string(&a->in);
	if (rowbinary_length(&a->in, 1) != n)
		a->in.bad = true;
	a->labels = (struct labels){ 0 };
	for (size_t i = 0; i < n && !a->in.bad; i++) {
		struct rowbinary_string value = rowbinary_string(&a->in);

		(void)utf8_copy(key, sizeof(key), names[i].p, names[i].len);
		(void)utf8_copy(a->text, sizeof(a->text), value.p, value.len);
		(void)labels_set(&a->labels, key, a->text);
	}
	return profile_string(a->p, a->labels.text);
}

/* Reads an array with a number for each event; those of unknown events are skipped. */
static void answer_take_numbers(struct answer *a, const int *events, size_t n, uint64_t *to,
				size_t step)
{
	if (rowbinary_length(&a->in, 8) != n)
		a->in.bad = true;
	for (size_t i = 0; i < n && !a->in.bad; i++) {
		uint64_t v = rowbinary_number(&a->in, 8);

		if (events[i] >= 0)
			to[(size_t)events[i] * step] = v;
	}
}

static void answer_take_accounts(struct answer *a, uint64_t *intervals, struct profile_accounts *b)
{
	const size_t step = sizeof(b->of[0]) / sizeof(uint64_t);
	size_t n = rowbinary_length(&a->in, 1);
	int events[LABELS_MAX];

	if (n > LABELS_MAX) {
		a->in.bad = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		events[i] = answer_word_of(wire_event_names, WIRE_EVENT_COUNT,
					   rowbinary_string(&a->in));
	answer_take_numbers(a, events, n, intervals, 1);
	answer_take_numbers(a, events, n, &b->of[0].taken, step);
	answer_take_numbers(a, events, n, &b->of[0].taken_weight, step);
	answer_take_numbers(a, events, n, &b->of[0].delivered, step);
	answer_take_numbers(a, events, n, &b->of[0].delivered_weight, step);
	answer_take_numbers(a, events, n, &b->of[0].dropped, step);
	answer_take_numbers(a, events, n, &b->of[0].dropped_weight, step);
	b->short_waits = rowbinary_number(&a->in, 8);
	b->short_waits_ns = rowbinary_number(&a->in, 8);
}

static void answer_take_span(struct profile *p, uint64_t begin_ns, uint64_t end_ns)
{
	if (!p->begin_real_ns || begin_ns < p->begin_real_ns)
		p->begin_real_ns = begin_ns;
	if (end_ns > p->end_real_ns)
		p->end_real_ns = end_ns;
}

static int answer_take_process(struct answer *a)
{
	uint64_t intervals[WIRE_EVENT_COUNT] = { 0 }, begin_ns, end_ns, cpu_ns;
	struct profile_process q = answer_take_owner(a);
	struct profile_accounts accounts = { 0 };
	bool cpu_unknown, no_budget;
	uint32_t process;

	begin_ns = rowbinary_number(&a->in, 8);
	end_ns = rowbinary_number(&a->in, 8);
	q.name = answer_take_string(a);
	q.ns_pid = (uint32_t)rowbinary_number(&a->in, 4);
	q.pod = answer_take_string(a);
	q.container = answer_take_string(a);
	q.container_id = answer_take_string(a);
	q.jdk = answer_take_string(a);
	q.note = answer_take_string(a);
	q.labels = answer_take_labels(a);
	cpu_ns = rowbinary_number(&a->in, 8);
	cpu_unknown = rowbinary_number(&a->in, 1);
	no_budget = rowbinary_number(&a->in, 1);
	answer_take_accounts(a, intervals, &accounts);
	if (a->in.bad)
		return -EBADMSG;
	answer_take_span(a->p, begin_ns, end_ns);
	a->p->cpu_unknown |= cpu_unknown;
	a->p->no_budget |= no_budget;
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		if (intervals[e] > a->p->interval[e])
			a->p->interval[e] = intervals[e];
	process = profile_process(a->p, &q);
	profile_add_accounts(a->p, process, &accounts);
	profile_add_cpu(a->p, process, cpu_ns);
	return 0;
}

/* ---- samples -------------------------------------------------------------------------------- */

static uint32_t answer_node_of(struct answer *a, uint64_t stack, uint64_t samples)
{
	const struct known_stack key = { .stack = stack };
	const struct known_stack *known;
	struct profile_frame f = { .kind = WIRE_KIND_SYNTHETIC, .line = -1 };

	if (!stack)
		return 0;
	known = a->n_stacks ? bsearch(&key, a->stacks, a->n_stacks, sizeof(key), answer_by_stack)
			    : NULL;
	if (known)
		return known->node;
	a->what->without_stack += samples;
	f.method = profile_string(a->p, NO_STACK);
	return profile_node(a->p, 0, profile_intern_frame(a->p, &f));
}

static int answer_take_sample(struct answer *a)
{
	struct profile_process q = answer_take_owner(a);
	struct profile_thread thread = { 0 };
	struct profile_row row = { 0 };
	struct rowbinary_string name;
	uint64_t stack;
	int event, wait;

	thread.tid = (uint32_t)rowbinary_number(&a->in, 4);
	name = rowbinary_string(&a->in);
	event = answer_word_of(wire_event_names, WIRE_EVENT_COUNT, rowbinary_string(&a->in));
	wait = answer_word_of(wire_wait_names, WIRE_WAIT_COUNT, rowbinary_string(&a->in));
	row.idle = rowbinary_number(&a->in, 1);
	stack = rowbinary_number(&a->in, 8);
	(void)rowbinary_string(&a->in); /* leaf */
	row.samples = rowbinary_number(&a->in, 8);
	row.weight = rowbinary_number(&a->in, 8);
	if (a->in.bad)
		return -EBADMSG;
	if (event < 0) /* an event of a newer version */
		return 0;
	row.event = (uint8_t)event;
	row.wait = wait < 0 ? 0 : (uint8_t)wait;
	thread.process = profile_process(a->p, &q);
	if (thread.process == UINT32_MAX)
		return -ENOMEM;
	thread.name = answer_string_of(a, name);
	row.thread = profile_thread(a->p, &thread);
	row.node = answer_node_of(a, stack, row.samples);
	profile_add_row(a->p, &row);
	return 0;
}

/* ---- interface ------------------------------------------------------------------------------- */

static int answer_take_rows(struct answer *a, const struct clickhouse_answers *from,
			    enum clickhouse_table table, int (*take)(struct answer *a))
{
	const uint8_t *bytes = from->bytes[table];
	int r = 0;

	a->in = (struct rowbinary){ bytes, bytes + from->len[table], false };
	while (r == 0 && rowbinary_more(&a->in)) {
		r = take(a);
		if (r == 0)
			a->what->rows[table]++;
	}
	if (r == -EBADMSG) {
		a->what->bad = table;
		a->what->bad_row = a->what->rows[table] + 1;
	}
	return r;
}

static void answer_deinit(struct answer **a)
{
	if (!*a)
		return;
	profile_free((*a)->p);
	free((*a)->stacks);
	free((*a)->row);
	free(*a);
}

int clickhouse_profile(const struct clickhouse_answers *from, struct clickhouse_answered *ret_what,
		       struct profile **ret)
{
	CLEANUP(answer_deinit) struct answer *a = calloc(1, sizeof(*a));
	int r;

	memset(ret_what, 0, sizeof(*ret_what));
	if (!a)
		return -ENOMEM;
	a->what = ret_what;
	a->row = calloc(1, sizeof(*a->row));
	if (!a->row || profile_new(&a->p) < 0)
		return -ENOMEM;
	r = answer_take_rows(a, from, CLICKHOUSE_PROCESSES, answer_take_process);
	if (r == 0)
		r = answer_take_rows(a, from, CLICKHOUSE_STACKS, answer_take_stack);
	if (a->n_stacks)
		qsort(a->stacks, a->n_stacks, sizeof(*a->stacks), answer_by_stack);
	if (r == 0)
		r = answer_take_rows(a, from, CLICKHOUSE_SAMPLES, answer_take_sample);
	if (r == 0)
		*ret = TAKE_PTR(a->p);
	return r;
}
