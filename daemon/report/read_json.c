/*
 * Reads what write_json() writes, whatever the order of the keys: tables are kept as they come, and
 * ids are checked and resolved at the end.
 */
#include "daemon/report/readers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/report/event_names.h"
#include "daemon/report/json_in.h"

struct json_thread {
	uint64_t process; /* position in the file */
	uint32_t tid, name;
};

struct json_row {
	uint64_t thread, node, samples, weight;
	uint8_t wait;
	bool idle;
};

/* An array that grows. */
struct json_table {
	void *items;
	size_t n, cap;
};

struct json_reader {
	struct json_in in;
	struct profile *p;
	struct json_table processes; /* uint32_t: position in the profile */
	struct json_table threads; /* struct json_thread */
	struct json_table frames; /* uint32_t */
	struct json_table nodes; /* uint64_t: parent << 32 | frame + 1 */
	struct json_table rows; /* struct json_row */
	struct json_table waits; /* uint8_t, by row */
	struct json_table idle; /* uint64_t, rows */
	struct json_table spans, row_spans; /* uint64_t: of the profile, of the file */
	struct profile_losses losses; /* of the whole profile */
	struct profile_left_out left_out[3]; /* idle, threads, stacks */
	uint64_t interval;
	uint64_t short_waits, short_waits_ns, overflow;
	int event; /* -1 = the file did not name it */
};

/* Appends a zeroed element of @size bytes; NULL = no memory, and reading has failed. */
static void *json_add(struct json_reader *j, struct json_table *t, size_t size)
{
	size_t cap = t->cap ? 2 * t->cap : 64;
	void *items;

	if (j->in.failed)
		return NULL;
	if (t->n == t->cap) {
		items = cap * size < READ_MEMORY_MAX ? realloc(t->items, cap * size) : NULL;
		if (!items) {
			json_fail(&j->in, "not enough memory");
			return NULL;
		}
		t->items = items;
		t->cap = cap;
	}
	return memset((char *)t->items + t->n++ * size, 0, size);
}

/* ---- members --------------------------------------------------------------------------------- */

/* Is the key @key with the unit of some event, "taken_ns" or "taken_bytes"? */
static bool json_is_weight(const struct json_in *in, const char *key)
{
	size_t len = strlen(key);

	return strncmp(in->key, key, len) == 0 &&
	       (strcmp(in->key + len, "_ns") == 0 || strcmp(in->key + len, "_bytes") == 0);
}

static struct profile_losses json_losses(struct json_in *in)
{
	struct profile_losses l = { 0 };

	json_object(in);
	while (json_key(in)) {
		if (json_is(in, "taken"))
			l.taken = json_u64(in);
		else if (json_is_weight(in, "taken"))
			l.taken_weight = json_u64(in);
		else if (json_is(in, "delivered"))
			l.delivered = json_u64(in);
		else if (json_is_weight(in, "delivered"))
			l.delivered_weight = json_u64(in);
		else if (json_is(in, "dropped"))
			l.dropped = json_u64(in);
		else if (json_is_weight(in, "dropped"))
			l.dropped_weight = json_u64(in);
		else if (json_is(in, "without_ids"))
			l.no_ids = json_u64(in);
		else
			json_skip(in);
	}
	return l;
}

static struct profile_left_out json_pair(struct json_in *in)
{
	struct profile_left_out pair = { 0 };

	json_array(in);
	for (int i = 0; json_item(in); i++) {
		uint64_t n = json_u64(in);

		if (i == 0)
			pair.samples = n;
		else
			pair.weight = n;
	}
	return pair;
}

static void json_left_out(struct json_reader *j)
{
	struct json_in *in = &j->in;

	json_object(in);
	while (json_key(in)) {
		if (json_is(in, "idle"))
			j->left_out[0] = json_pair(in);
		else if (json_is(in, "threads"))
			j->left_out[1] = json_pair(in);
		else if (json_is(in, "stacks"))
			j->left_out[2] = json_pair(in);
		else
			json_skip(in);
	}
}

static uint32_t json_string(struct json_reader *j)
{
	return profile_string(j->p, json_text(&j->in));
}

/* Reads {"service":"shop"}; stored as a text, see labels.h. */
static uint32_t json_labels(struct json_reader *j)
{
	struct json_in *in = &j->in;
	struct labels labels = { 0 };
	char key[LABEL_KEY_SIZE];

	json_object(in);
	while (json_key(in)) {
		snprintf(key, sizeof(key), "%s", in->key);
		(void)labels_set(&labels, key, json_text(in));
	}
	return profile_string(j->p, labels.text);
}

static uint32_t json_u32(struct json_in *in)
{
	uint64_t n = json_u64(in);

	if (n > UINT32_MAX)
		json_fail(in, "a number that is too large");
	return (uint32_t)n;
}

static void json_process(struct json_reader *j)
{
	struct profile_process q = { 0 };
	struct profile_losses losses = { 0 };
	struct json_in *in = &j->in;
	uint64_t cpu_ns = 0, short_waits = 0, short_waits_ns = 0;
	uint32_t *id;

	json_object(in);
	while (json_key(in)) {
		if (json_is(in, "pid"))
			q.pid = json_u32(in);
		else if (json_is(in, "start_time"))
			q.start_time = json_u64(in);
		else if (json_is(in, "ns_pid"))
			q.ns_pid = json_u32(in);
		else if (json_is(in, "name"))
			q.name = json_string(j);
		else if (json_is(in, "jdk"))
			q.jdk = json_string(j);
		else if (json_is(in, "container_id"))
			q.container_id = json_string(j);
		else if (json_is(in, "container"))
			q.container = json_string(j);
		else if (json_is(in, "pod"))
			q.pod = json_string(j);
		else if (json_is(in, "labels"))
			q.labels = json_labels(j);
		else if (json_is(in, "note"))
			q.note = json_string(j);
		else if (json_is(in, "cpu_ns"))
			cpu_ns = json_u64(in);
		else if (json_is(in, "losses"))
			losses = json_losses(in);
		else if (json_is(in, "short_waits"))
			short_waits = json_u64(in);
		else if (json_is(in, "short_waits_ns"))
			short_waits_ns = json_u64(in);
		else
			json_skip(in);
	}
	id = json_add(j, &j->processes, sizeof(*id));
	if (!id)
		return;
	*id = profile_process(j->p, &q);
	if (*id == UINT32_MAX) {
		json_fail(in, "no room for more processes");
		return;
	}
	/* the event may be named later: until then the counters are those of the first event */
	profile_add_cpu(j->p, *id, cpu_ns);
	((struct profile_process *)(uintptr_t)j->p->processes)[*id].accounts =
		(struct profile_accounts){ .of[0] = losses,
					   .short_waits = short_waits,
					   .short_waits_ns = short_waits_ns };
}

static void json_thread(struct json_reader *j)
{
	struct json_thread t = { .tid = WIRE_VIRTUAL_TID }, *to;
	struct json_in *in = &j->in;

	json_object(in);
	while (json_key(in)) {
		if (json_is(in, "process"))
			t.process = json_u64(in);
		else if (json_is(in, "tid") && !json_null(in))
			t.tid = json_u32(in);
		else if (json_is(in, "virtual_id") && !json_null(in))
			t.tid = WIRE_VIRTUAL_TID + json_u32(in);
		else if (json_is(in, "name"))
			t.name = json_string(j);
		else if (!json_is(in, "tid") && !json_is(in, "virtual_id"))
			json_skip(in);
	}
	to = json_add(j, &j->threads, sizeof(*to));
	if (to)
		*to = t;
}

static void json_frame(struct json_reader *j)
{
	struct profile_frame f = { .line = -1 }, named;
	struct json_in *in = &j->in;
	int kind = WIRE_KIND_UNKNOWN;
	char name[2048] = "";
	uint32_t *id;

	json_object(in);
	while (json_key(in)) {
		if (json_is(in, "kind"))
			kind = read_kind_by_name(json_text(in));
		else if (json_is(in, "class"))
			f.class_name = json_string(j);
		else if (json_is(in, "method"))
			f.method = json_string(j);
		else if (json_is(in, "signature"))
			f.signature = json_string(j);
		else if (json_is(in, "file"))
			f.file = json_string(j);
		else if (json_is(in, "module"))
			f.module = json_string(j);
		else if (json_is(in, "line"))
			f.line = (int32_t)(json_u32(in) & INT32_MAX);
		else if (json_is(in, "offset"))
			f.offset = json_u64(in);
		else if (json_is(in, "name"))
			snprintf(name, sizeof(name), "%.2000s", json_text(in));
		else
			json_skip(in);
	}
	if (kind < 0)
		kind = WIRE_KIND_UNKNOWN;
	if (!f.method && !f.module &&
	    *name) { /* a file that was written by hand, or by another program */
		named = read_frame_name(j->p, name, kind);
		f.class_name = named.class_name;
		f.method = named.method;
		f.module = named.module;
	}
	f.kind = (uint8_t)kind;
	id = json_add(j, &j->frames, sizeof(*id));
	if (id)
		*id = profile_intern_frame(j->p, &f);
}

static void json_node(struct json_reader *j)
{
	uint64_t *to = json_add(j, &j->nodes, sizeof(*to)), parent = 0;
	struct json_in *in = &j->in;
	int64_t frame = -1;

	json_array(in);
	if (json_item(in))
		parent = json_u64(in);
	if (json_item(in))
		frame = json_i64(in);
	while (json_item(in))
		json_skip(in);
	/* parents come first, and only the root has no frame */
	if (!to || in->failed)
		return;
	if (j->nodes.n > 1 && (parent >= j->nodes.n - 1 || frame < 0 || frame >= UINT32_MAX))
		json_fail(in, "a parent that does not precede its child, or an unknown frame");
	*to = parent << 32 | (uint64_t)(frame + 1);
}

static void json_row(struct json_reader *j)
{
	struct json_row *to = json_add(j, &j->rows, sizeof(*to));
	struct json_in *in = &j->in;
	uint64_t n[4] = { 0 };
	size_t i = 0;

	json_array(in);
	for (; json_item(in); i++) {
		if (i < ARRAY_SIZE(n))
			n[i] = json_u64(in);
		else
			json_skip(in);
	}
	if (i < ARRAY_SIZE(n))
		json_fail(in, "a row without its four numbers");
	if (to)
		*to = (struct json_row){ n[0], n[1], n[2], n[3], 0, false };
}

static void json_wait(struct json_reader *j)
{
	uint8_t *to = json_add(j, &j->waits, sizeof(*to));
	const char *word = json_text(&j->in);

	for (uint8_t i = 0; to && i < WIRE_WAIT_COUNT; i++)
		if (strcmp(word, wire_wait_names[i]) == 0)
			*to = i;
}

static void json_idle_row(struct json_reader *j)
{
	uint64_t *to = json_add(j, &j->idle, sizeof(*to)), row = json_u64(&j->in);

	if (to)
		*to = row;
}

static void json_span(struct json_reader *j)
{
	uint64_t *to = json_add(j, &j->spans, sizeof(*to));
	struct json_in *in = &j->in;
	struct profile_span s = { 0 };

	json_array(in);
	if (json_item(in))
		s.trace_id = json_string(j);
	if (json_item(in))
		s.span_id = json_string(j);
	while (json_item(in))
		json_skip(in);
	if (to)
		*to = profile_span(j->p, j->p->strings[s.trace_id], j->p->strings[s.span_id]);
}

static void json_row_span(struct json_reader *j)
{
	uint64_t *to = json_add(j, &j->row_spans, sizeof(*to)), span = json_u64(&j->in);

	if (to)
		*to = span;
}

static void json_list(struct json_reader *j, void (*item)(struct json_reader *j))
{
	char key[sizeof(j->in.key)];

	snprintf(key, sizeof(key), "%s", j->in.key);
	json_array(&j->in);
	while (json_item(&j->in)) {
		item(j);
		snprintf(j->in.key, sizeof(key), "%s", key);
	}
}

static void json_event(struct json_reader *j)
{
	const char *name = json_text(&j->in);
	unsigned events = 0;

	if (!report_events_by_name(name, &events) || events & (events - 1))
		json_fail(&j->in, "not cpu, lock, alloc, wall or offcpu");
	j->event = (int)report_event_of(events);
}

static void json_top(struct json_reader *j)
{
	static const struct {
		const char *key;
		void (*item)(struct json_reader *j);
	} lists[] = {
		{ "processes", json_process },	{ "threads", json_thread },
		{ "frames", json_frame },	{ "nodes", json_node },
		{ "rows", json_row },		{ "row_waits", json_wait },
		{ "idle_rows", json_idle_row }, { "spans", json_span },
		{ "row_spans", json_row_span },
	};
	struct json_in *in = &j->in;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (json_is(in, lists[i].key)) {
			json_list(j, lists[i].item);
			return;
		}
	if (json_is(in, "event"))
		json_event(j);
	else if (json_is(in, "begin_ns"))
		j->p->begin_real_ns = json_u64(in);
	else if (json_is(in, "end_ns"))
		j->p->end_real_ns = json_u64(in);
	else if (json_is(in, "min_wait_ns") || json_is(in, "interval_ns") ||
		 json_is(in, "interval_bytes") || json_is(in, "min_ns"))
		j->interval = json_u64(in);
	else if (json_is(in, "no_budget"))
		j->p->no_budget = json_bool(in);
	else if (json_is(in, "cpu_unknown"))
		j->p->cpu_unknown = json_bool(in);
	else if (json_is(in, "overflow"))
		j->overflow = json_u64(in);
	else if (json_is(in, "losses"))
		j->losses = json_losses(in);
	else if (json_is(in, "left_out"))
		json_left_out(j);
	else if (json_is(in, "short_waits"))
		j->short_waits = json_u64(in);
	else if (json_is(in, "short_waits_ns"))
		j->short_waits_ns = json_u64(in);
	else
		json_skip(in);
}

/* ---- resolving ------------------------------------------------------------------------------- */

static int json_threads(struct json_reader *j, uint32_t *ids, struct report_reading *r)
{
	const uint32_t *processes = j->processes.items;
	const struct json_thread *from = j->threads.items;

	for (size_t i = 0; i < j->threads.n; i++) {
		struct profile_thread t = { .tid = from[i].tid, .name = from[i].name };

		if (from[i].process >= j->processes.n)
			return read_wrong(r,
					  "threads: number %zu refers to process %llu, which does "
					  "not exist",
					  i, (unsigned long long)from[i].process);
		t.process = processes[from[i].process];
		ids[i] = profile_thread(j->p, &t);
	}
	return 0;
}

static int json_nodes(struct json_reader *j, uint32_t *ids, struct report_reading *r)
{
	const uint32_t *frames = j->frames.items;
	const uint64_t *from = j->nodes.items;

	for (size_t i = 1; i < j->nodes.n; i++) {
		uint64_t frame = (from[i] & UINT32_MAX) - 1;

		if (frame >= j->frames.n)
			return read_wrong(r,
					  "nodes: number %zu refers to frame %llu, which does "
					  "not exist",
					  i, (unsigned long long)frame);
		ids[i] = profile_node(j->p, ids[from[i] >> 32], frames[frame]);
	}
	return 0;
}

static uint32_t json_span_of(const struct json_reader *j, size_t row)
{
	const uint64_t *of = j->row_spans.items, *spans = j->spans.items;

	return row < j->row_spans.n && of[row] && of[row] <= j->spans.n
		       ? (uint32_t)spans[of[row] - 1]
		       : 0;
}

static int json_rows(struct json_reader *j, const uint32_t *threads, const uint32_t *nodes,
		     struct report_reading *r)
{
	struct json_row *from = j->rows.items;
	const uint64_t *idle = j->idle.items;
	const uint8_t *waits = j->waits.items;

	for (size_t i = 0; i < j->idle.n; i++)
		if (idle[i] < j->rows.n)
			from[idle[i]].idle = true;
	for (size_t i = 0; i < j->rows.n; i++) {
		struct profile_row row = { .event = (uint8_t)j->event,
					   .idle = from[i].idle,
					   .wait = i < j->waits.n ? waits[i] : 0,
					   .samples = from[i].samples,
					   .weight = from[i].weight };

		if (from[i].thread >= j->threads.n || (from[i].node && from[i].node >= j->nodes.n))
			return read_wrong(
				r,
				"rows: number %zu refers to thread %llu or node %llu, which "
				"does not exist",
				i, (unsigned long long)from[i].thread,
				(unsigned long long)from[i].node);
		row.span = json_span_of(j, i);
		row.thread = threads[from[i].thread];
		row.node = from[i].node ? nodes[from[i].node] : 0;
		profile_add_row(j->p, &row);
	}
	return 0;
}

/* Moves the counters of processes to the file's event; while that was not known they were stored
 * under the first event. */
static void json_accounts(struct json_reader *j)
{
	struct profile_process *q = (struct profile_process *)(uintptr_t)j->p->processes;
	int e = j->event;

	for (uint32_t i = 0; i < j->p->n_processes && e > 0; i++) {
		q[i].accounts.of[e] = q[i].accounts.of[0];
		q[i].accounts.of[0] = (struct profile_losses){ 0 };
	}
	j->p->accounts.of[e] = j->losses;
	j->p->accounts.short_waits = j->short_waits;
	j->p->accounts.short_waits_ns = j->short_waits_ns;
	j->p->interval[e] = j->interval;
	j->p->idle_left_out[e] = j->left_out[0];
	j->p->threads_left_out[e] = j->left_out[1];
	j->p->rows_left_out[e] = j->left_out[2];
	j->p->overflow = j->overflow > j->p->overflow ? j->overflow : j->p->overflow;
}

static int json_build(struct json_reader *j, struct report_reading *r)
{
	CLEANUP(freep) uint32_t *threads = calloc(j->threads.n + 1, sizeof(*threads));
	CLEANUP(freep) uint32_t *nodes = calloc(j->nodes.n + 1, sizeof(*nodes));
	int e;

	if (!threads || !nodes)
		return -ENOMEM;
	if (j->event < 0)
		return read_wrong(r, "no \"event\": it is not a profile of kindling");
	e = json_threads(j, threads, r);
	if (e == 0)
		e = json_nodes(j, nodes, r);
	if (e == 0)
		e = json_rows(j, threads, nodes, r);
	json_accounts(j);
	return e;
}

int read_json(const char *bytes, size_t len, struct report_reading *r, struct profile *p)
{
	struct json_reader j = { .p = p, .event = -1 };
	int e = json_init(&j.in, bytes, len);

	if (e < 0)
		return e;
	json_object(&j.in);
	while (json_key(&j.in))
		json_top(&j);
	json_end(&j.in);
	e = j.in.failed ? read_wrong(r, "%s", j.in.why) : json_build(&j, r);
	json_deinit(&j.in);
	free(j.processes.items);
	free(j.threads.items);
	free(j.frames.items);
	free(j.nodes.items);
	free(j.rows.items);
	free(j.waits.items);
	free(j.idle.items);
	free(j.spans.items);
	free(j.row_spans.items);
	return e;
}
