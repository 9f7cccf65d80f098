/* See rows.h. The columns are those of schema.c, in their order. */
#include "daemon/clickhouse/rows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/clickhouse/owner.h"
#include "daemon/clickhouse/rowbinary.h"
#include "daemon/clickhouse/siphash.h"
#include "daemon/ground/clock.h"
#include "daemon/report/report.h"
#include "proto/wire.h"

#define DEPTH_MAX  4096
#define NAME_BYTES 16384 /* the longest class and method of a profile */
#define DAY_S	   86400

/* A row of the table of samples, with the columns that distinguish it from others. */
struct sample {
	struct profile_row row;
	uint64_t stack;
};

struct maker {
	const struct profile *p;
	struct clickhouse_rows *rows;
	struct clickhouse_owner *owners; /* by process */
	uint64_t *stacks; /* by node: the number of the stack that ends in it */
	uint32_t *known; /* by node: the process that `stacks` is for, + 1; 0 = none */
	struct clickhouse_sent *sent; /* NULL = all stacks get rows */
	uint64_t *keys; /* by node: a hash of its frames; only with `sent` */
	struct text_out scratch; /* a stack's row from the namespace on, which its number hashes */
	struct text_out owner; /* the columns of `owner_of`, which all of its rows begin with */
	uint32_t owner_of; /* process */
	bool is_test;
	char name[NAME_BYTES];
};

static uint32_t rows_begin_s(const struct profile *p)
{
	return (uint32_t)(p->begin_real_ns / NS_PER_S);
}

static uint32_t end_s(const struct profile *p)
{
	return (uint32_t)((p->end_real_ns + NS_PER_S - 1) / NS_PER_S);
}

static void rows_fill_owner(struct maker *m, uint32_t process)
{
	const struct clickhouse_owner *o = &m->owners[process];
	const struct profile_process *q = &m->p->processes[process];
	struct text_out *t = &m->owner;

	t->len = 0;
	m->owner_of = process;
	rowbinary_put_number(t, rows_begin_s(m->p), 4);
	rowbinary_put_number(t, end_s(m->p), 4);
	rowbinary_put_string(t, o->namespace);
	rowbinary_put_string(t, o->service);
	rowbinary_put_string(t, o->version);
	rowbinary_put_string(t, o->image);
	rowbinary_put_string(t, o->pod);
	rowbinary_put_string(t, o->container);
	rowbinary_put_string(t, o->node);
	rowbinary_put_number(t, q->pid, 4);
	rowbinary_put_number(t, q->start_time, 8);
}

static void rows_put_owner(struct text_out *t, struct maker *m, uint32_t process)
{
	if (!m->owner.len || m->owner_of != process)
		rows_fill_owner(m, process);
	text_bytes(t, m->owner.p, m->owner.len);
}

/* ---- stacks --------------------------------------------------------------------------------- */

/* Writes the frames into @chain, root first, and returns their number. Of a stack that is too deep
 * the frames at the leaf are kept, as in every format. */
static uint32_t rows_chain_of(const struct profile *p, uint32_t leaf,
			      const struct profile_frame **chain)
{
	uint32_t n = 0;

	for (uint32_t node = leaf; node && n < DEPTH_MAX; node = p->nodes[node].parent)
		chain[n++] = &p->frames[p->nodes[node].frame];
	for (uint32_t i = 0; i < n / 2; i++) {
		const struct profile_frame *f = chain[i];

		chain[i] = chain[n - 1 - i];
		chain[n - 1 - i] = f;
	}
	return n;
}

/* The length of the class in a frame's name; 0 = there is none. */
static size_t rows_class_bytes(const struct profile *p, const struct profile_frame *f)
{
	size_t n = wire_kind_is_method(f->kind) ? strlen(p->strings[f->class_name]) : 0;

	return n <= UINT16_MAX ? n : 0;
}

static void rows_put_frames(struct maker *m, const struct profile_frame *const *chain, uint32_t n)
{
	const struct profile *p = m->p;
	struct text_out *t = &m->scratch;

	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++) {
		(void)report_frame_name(p, chain[i], m->name, sizeof(m->name));
		rowbinary_put_string(t, m->name);
	}
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_number(t, chain[i]->kind, 1);
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_number(t, (uint32_t)chain[i]->line, 4);
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_number(t, rows_class_bytes(p, chain[i]), 2);
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_string(t, p->strings[chain[i]->signature]);
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_string(t, p->strings[chain[i]->file]);
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_string(t, p->strings[chain[i]->module]);
	rowbinary_put_length(t, n);
	for (uint32_t i = 0; i < n; i++)
		rowbinary_put_number(t, chain[i]->offset, 8);
}

/* Writes a stack's row, and returns its number. */
static uint64_t rows_put_stack(struct maker *m, uint32_t process, uint32_t node)
{
	const struct profile_frame *chain[DEPTH_MAX];
	struct text_out *t = &m->rows->tables[CLICKHOUSE_STACKS];
	uint64_t number;

	m->scratch.len = 0;
	rowbinary_put_string(&m->scratch, m->owners[process].namespace);
	rowbinary_put_string(&m->scratch, m->owners[process].service);
	rows_put_frames(m, chain, rows_chain_of(m->p, node, chain));
	number = m->scratch.failed ? 0 : siphash(m->scratch.p, m->scratch.len);
	rowbinary_put_number(t, rows_begin_s(m->p) / DAY_S, 2);
	rowbinary_put_number(t, number, 8);
	text_bytes(t, m->scratch.p, m->scratch.len);
	m->rows->rows[CLICKHOUSE_STACKS]++;
	return number;
}

/* ---- stacks that the server has -------------------------------------------------------------- */

static uint64_t rows_hash_frame(struct maker *m, const struct profile_frame *f)
{
	struct text_out *t = &m->scratch;

	t->len = 0;
	rowbinary_put_number(t, f->kind, 1);
	rowbinary_put_number(t, (uint32_t)f->line, 4);
	rowbinary_put_number(t, f->offset, 8);
	rowbinary_put_string(t, m->p->strings[f->class_name]);
	rowbinary_put_string(t, m->p->strings[f->method]);
	rowbinary_put_string(t, m->p->strings[f->signature]);
	rowbinary_put_string(t, m->p->strings[f->file]);
	rowbinary_put_string(t, m->p->strings[f->module]);
	return t->failed ? 0 : siphash(t->p, t->len);
}

/* Hashes the stacks of all nodes. Parents precede their children, and a frame is hashed once: its
 * names are in many stacks. */
static int rows_hash_nodes(struct maker *m)
{
	const struct profile *p = m->p;
	CLEANUP(freep) uint64_t *frames = calloc((size_t)p->n_frames + 1, sizeof(*frames));

	m->keys = calloc((size_t)p->n_nodes + 1, sizeof(*m->keys));
	if (!frames || !m->keys)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_frames; i++)
		frames[i] = rows_hash_frame(m, &p->frames[i]);
	for (uint32_t i = 1; i < p->n_nodes; i++) {
		const struct profile_node *n = &p->nodes[i];

		m->keys[i] = clickhouse_sent_pair(m->sent, m->keys[n->parent], frames[n->frame]);
	}
	return m->scratch.failed ? -ENOMEM : 0;
}

/* What a stack's row depends on: day, namespace, service and frames. */
static uint64_t rows_key_of(struct maker *m, uint32_t process, uint32_t node)
{
	struct text_out *t = &m->scratch;

	t->len = 0;
	rowbinary_put_number(t, rows_begin_s(m->p) / DAY_S, 2);
	rowbinary_put_number(t, m->keys[node], 8);
	rowbinary_put_string(t, m->owners[process].namespace);
	rowbinary_put_string(t, m->owners[process].service);
	return t->failed ? 0 : siphash(t->p, t->len);
}

/* The number of the stack of @process that ends in @node; writes its row the first time. */
static uint64_t rows_stack_of(struct maker *m, uint32_t process, uint32_t node)
{
	uint64_t key;

	if (!node)
		return 0;
	if (m->known[node] == process + 1)
		return m->stacks[node];
	m->known[node] = process + 1;
	if (!m->sent)
		return m->stacks[node] = rows_put_stack(m, process, node);
	key = rows_key_of(m, process, node);
	if (!clickhouse_sent_find(m->sent, key, &m->stacks[node])) {
		m->stacks[node] = rows_put_stack(m, process, node);
		clickhouse_sent_add(m->sent, key, m->stacks[node]);
	}
	return m->stacks[node];
}

/* ---- samples -------------------------------------------------------------------------------- */

static int rows_compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int rows_by_key(const void *x, const void *y)
{
	const struct sample *a = x, *b = y;
	int r = rows_compare(a->row.thread, b->row.thread);

	if (r == 0)
		r = rows_compare(a->row.event, b->row.event);
	if (r == 0)
		r = rows_compare(a->row.wait, b->row.wait);
	if (r == 0)
		r = rows_compare(a->row.idle, b->row.idle);
	if (r == 0)
		r = rows_compare(a->stack, b->stack);
	return r ? r : rows_compare(a->row.node, b->row.node);
}

/* The server keeps only one of two rows with the same key, so equal ones are added up here. They
 * occur when stacks differ only in a part that was cut. */
static bool rows_is_same(const struct sample *a, const struct sample *b)
{
	return a->row.thread == b->row.thread && a->row.event == b->row.event &&
	       a->row.wait == b->row.wait && a->row.idle == b->row.idle && a->stack == b->stack;
}

static void rows_put_sample(struct maker *m, const struct sample *s)
{
	const struct profile *p = m->p;
	const struct profile_row *r = &s->row;
	const struct profile_thread *thread = &p->threads[r->thread];
	struct text_out *t = &m->rows->tables[CLICKHOUSE_SAMPLES];

	if (r->node)
		(void)report_frame_name(p, &p->frames[p->nodes[r->node].frame], m->name,
					sizeof(m->name));
	else
		snprintf(m->name, sizeof(m->name), "[no stack]");
	rows_put_owner(t, m, thread->process);
	rowbinary_put_number(t, thread->tid, 4);
	rowbinary_put_string(t, p->strings[thread->name]);
	rowbinary_put_string(t, m->is_test ? CLICKHOUSE_TEST_EVENT : wire_event_names[r->event]);
	rowbinary_put_string(t, r->event == WIRE_EVENT_LOCK ? wire_wait_names[r->wait] : "");
	rowbinary_put_number(t, r->idle, 1);
	rowbinary_put_number(t, s->stack, 8);
	rowbinary_put_string(t, m->name);
	rowbinary_put_number(t, r->samples, 8);
	rowbinary_put_number(t, r->weight, 8);
	m->rows->rows[CLICKHOUSE_SAMPLES]++;
	m->rows->samples += r->samples;
}

static int rows_put_samples(struct maker *m)
{
	const struct profile *p = m->p;
	CLEANUP(freep) struct sample *samples = calloc(p->n_rows + 1, sizeof(*samples));

	if (!samples)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_rows; i++) {
		samples[i].row = p->rows[i];
		samples[i].stack =
			rows_stack_of(m, p->threads[p->rows[i].thread].process, p->rows[i].node);
	}
	qsort(samples, p->n_rows, sizeof(*samples), rows_by_key);
	for (uint32_t i = 0; i < p->n_rows; i++) {
		struct sample sum = samples[i];

		while (i + 1 < p->n_rows && rows_is_same(&sum, &samples[i + 1])) {
			i++;
			sum.row.samples += samples[i].row.samples;
			sum.row.weight += samples[i].row.weight;
		}
		rows_put_sample(m, &sum);
	}
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------ */

static void rows_put_labels(struct text_out *t, const char *labels)
{
	char text[LABEL_VALUE_SIZE];
	const char *at = labels;
	struct label label;
	size_t n = 0;

	while (labels_next(&at, &label))
		n++;
	rowbinary_put_length(t, n);
	for (at = labels; labels_next(&at, &label);) {
		snprintf(text, sizeof(text), "%.*s", (int)label.key_len, label.key);
		rowbinary_put_string(t, text);
	}
	rowbinary_put_length(t, n);
	for (at = labels; labels_next(&at, &label);) {
		snprintf(text, sizeof(text), "%.*s", (int)label.value_len, label.value);
		rowbinary_put_string(t, text);
	}
}

/* Writes the accounts of all events as parallel arrays, an array for each column. */
static void rows_put_accounts(struct text_out *t, const struct profile *p,
			      const struct profile_accounts *b)
{
	static const size_t of[] = {
		offsetof(struct profile_losses, taken),
		offsetof(struct profile_losses, taken_weight),
		offsetof(struct profile_losses, delivered),
		offsetof(struct profile_losses, delivered_weight),
		offsetof(struct profile_losses, dropped),
		offsetof(struct profile_losses, dropped_weight),
	};

	rowbinary_put_length(t, WIRE_EVENT_COUNT);
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		rowbinary_put_string(t, wire_event_names[e]);
	rowbinary_put_length(t, WIRE_EVENT_COUNT);
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++)
		rowbinary_put_number(t, p->interval[e], 8);
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		rowbinary_put_length(t, WIRE_EVENT_COUNT);
		for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
			uint64_t n;

			memcpy(&n, (const char *)&b->of[e] + of[i], sizeof(n));
			rowbinary_put_number(t, n, 8);
		}
	}
	rowbinary_put_number(t, b->short_waits, 8);
	rowbinary_put_number(t, b->short_waits_ns, 8);
}

static void rows_put_process(struct maker *m, uint32_t process)
{
	const struct profile *p = m->p;
	const struct profile_process *q = &p->processes[process];
	struct text_out *t = &m->rows->tables[CLICKHOUSE_PROCESSES];

	rows_put_owner(t, m, process);
	rowbinary_put_number(t, p->begin_real_ns, 8);
	rowbinary_put_number(t, p->end_real_ns, 8);
	rowbinary_put_string(t, p->strings[q->name]);
	rowbinary_put_number(t, q->ns_pid, 4);
	rowbinary_put_string(t, p->strings[q->pod]);
	rowbinary_put_string(t, p->strings[q->container]);
	rowbinary_put_string(t, p->strings[q->container_id]);
	rowbinary_put_string(t, p->strings[q->jdk]);
	rowbinary_put_string(t, p->strings[q->note]);
	rows_put_labels(t, p->strings[q->labels]);
	rowbinary_put_number(t, q->cpu_ns, 8);
	rowbinary_put_number(t, p->cpu_unknown, 1);
	rowbinary_put_number(t, p->no_budget, 1);
	rows_put_accounts(t, p, &q->accounts);
	m->rows->rows[CLICKHOUSE_PROCESSES]++;
}

static void maker_deinit(struct maker *m)
{
	free(m->owners);
	free(m->stacks);
	free(m->known);
	free(m->keys);
	free(m->scratch.p);
	free(m->owner.p);
}

static int rows_make(const struct profile *p, const char *node, struct clickhouse_sent *sent,
		     bool is_test, struct clickhouse_rows *ret)
{
	CLEANUP(maker_deinit)
	struct maker m = { .p = p, .rows = ret, .sent = sent, .is_test = is_test };
	bool failed = false;

	memset(ret, 0, sizeof(*ret));
	m.owners = calloc(p->n_processes + 1, sizeof(*m.owners));
	m.stacks = calloc(p->n_nodes + 1, sizeof(*m.stacks));
	m.known = calloc(p->n_nodes + 1, sizeof(*m.known));
	if (!m.owners || !m.stacks || !m.known || (sent && rows_hash_nodes(&m) < 0))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_processes; i++) {
		clickhouse_owner_of(p, i, node, &m.owners[i]);
		rows_put_process(&m, i);
	}
	failed = rows_put_samples(&m) < 0;
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++)
		failed |= ret->tables[i].failed;
	return failed || m.scratch.failed || m.owner.failed ? -ENOMEM : 0;
}

int clickhouse_rows_make(const struct profile *p, const char *node, struct clickhouse_sent *sent,
			 struct clickhouse_rows *ret)
{
	return rows_make(p, node, sent, false, ret);
}

int clickhouse_rows_test(const struct profile *p, const char *node, struct clickhouse_rows *ret)
{
	return rows_make(p, node, NULL, true, ret);
}

void clickhouse_rows_deinit(struct clickhouse_rows *r)
{
	for (unsigned i = 0; i < CLICKHOUSE_TABLES; i++)
		free(r->tables[i].p);
	memset(r, 0, sizeof(*r));
}
