/*
 * The format of `go tool pprof`, gzipped or not. A file that kindling wrote is restored completely,
 * because its comments have what the format has no field for (write_pprof()). Of other programs'
 * files those types are read that mean the same: CPU time, waits, allocated bytes, wall-clock time.
 */
#include "daemon/report/readers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "daemon/ground/utf8.h"
#include "daemon/report/event_names.h"
#include "daemon/report/pprof_words.h"
#include "pprof.pb-c.h"

#define DEPTH_MAX 65536

/* The memory of unpacked messages, at most READ_MEMORY_MAX however small the packed ones are. */
struct pprof_memory {
	size_t left;
};

/* The indices of an event's values in a sample; -1 = none. */
struct pprof_column {
	int samples, weight;
	int64_t factor; /* ns or bytes per sample if values are counts; 0 = they are weights */
};

struct pprof_location {
	uint64_t id;
	const Pprof__Location *of;
};

struct pprof_reader {
	struct report_reading *r;
	struct profile *p;
	const Pprof__Profile *in;
	struct pprof_column columns[WIRE_EVENT_COUNT];
	struct pprof_location *locations; /* by id */
	Pprof__Function **functions; /* by id */
	Pprof__Mapping **mappings; /* by id */
	unsigned events; /* bits */
	bool has_counters; /* in a comment */
};

/* ---- unpacking ------------------------------------------------------------------------------- */

static void *pprof_alloc(void *userdata, size_t size)
{
	struct pprof_memory *m = userdata;
	size_t *p;

	if (size + 16 > m->left)
		return NULL;
	p = malloc(size + 16);
	if (!p)
		return NULL;
	m->left -= size + 16;
	*p = size;
	return (char *)p + 16;
}

static void pprof_free(void *userdata, void *at)
{
	struct pprof_memory *m = userdata;
	char *p = at;

	if (!p)
		return;
	m->left += *(size_t *)(void *)(p - 16) + 16;
	free(p - 16);
}

/* Unpacks into @ret, at most READ_BYTES_MAX; copies what is not packed. */
static int pprof_inflate(struct report_reading *r, const char *bytes, size_t len, uint8_t **ret,
			 size_t *ret_len)
{
	z_stream z = { .next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (uInt)len };
	CLEANUP(freep) uint8_t *out = NULL;
	size_t cap = 0;
	int e;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return -ENOMEM;
	do {
		uint8_t *more = cap < READ_BYTES_MAX ? realloc(out, cap ? 2 * cap : 1 << 20) : NULL;

		if (!more) {
			inflateEnd(&z);
			return cap < READ_BYTES_MAX ? -ENOMEM
						    : read_wrong(r, "it holds more than %lu MiB",
								 READ_BYTES_MAX >> 20);
		}
		out = more;
		z.next_out = out + cap;
		z.avail_out = (uInt)(cap ? cap : 1 << 20);
		cap = cap ? 2 * cap : 1 << 20;
		e = inflate(&z, Z_NO_FLUSH);
	} while (e == Z_OK && z.avail_out == 0);
	*ret_len = z.total_out;
	inflateEnd(&z);
	if (e != Z_STREAM_END)
		return read_wrong(r, "its compression is broken or cut off, %zu bytes in",
				  len - z.avail_in);
	*ret = TAKE_PTR(out);
	return 0;
}

static const char *pprof_text(const struct pprof_reader *x, int64_t index)
{
	if (index < 0 || (uint64_t)index >= x->in->n_string_table)
		return "";
	return x->in->string_table[index];
}

static uint32_t pprof_string(struct pprof_reader *x, int64_t index)
{
	return profile_string(x->p, pprof_text(x, index));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int by_location(const void *a, const void *b)
{
	const struct pprof_location *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_function(const void *a, const void *b)
{
	const Pprof__Function *x = *(Pprof__Function *const *)a, *y = *(Pprof__Function *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_mapping(const void *a, const void *b)
{
	const Pprof__Mapping *x = *(Pprof__Mapping *const *)a, *y = *(Pprof__Mapping *const *)b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int pprof_tables(struct pprof_reader *x)
{
	x->locations = calloc(x->in->n_location + 1, sizeof(*x->locations));
	x->functions = calloc(x->in->n_function + 1, sizeof(*x->functions));
	x->mappings = calloc(x->in->n_mapping + 1, sizeof(*x->mappings));
	if (!x->locations || !x->functions || !x->mappings)
		return -ENOMEM;
	for (size_t i = 0; i < x->in->n_location; i++)
		x->locations[i] =
			(struct pprof_location){ x->in->location[i]->id, x->in->location[i] };
	for (size_t i = 0; i < x->in->n_function; i++)
		x->functions[i] = x->in->function[i];
	for (size_t i = 0; i < x->in->n_mapping; i++)
		x->mappings[i] = x->in->mapping[i];
	qsort(x->locations, x->in->n_location, sizeof(*x->locations), by_location);
	qsort(x->functions, x->in->n_function, sizeof(*x->functions), by_function);
	qsort(x->mappings, x->in->n_mapping, sizeof(*x->mappings), by_mapping);
	return 0;
}

static const Pprof__Location *pprof_location(const struct pprof_reader *x, uint64_t id)
{
	const struct pprof_location key = { .id = id };
	const struct pprof_location *found =
		bsearch(&key, x->locations, x->in->n_location, sizeof(key), by_location);

	return found ? found->of : NULL;
}

static const Pprof__Function *pprof_function(const struct pprof_reader *x, uint64_t id)
{
	Pprof__Function key = { .id = id }, *p = &key;
	Pprof__Function **found =
		bsearch(&p, x->functions, x->in->n_function, sizeof(p), by_function);

	return found ? *found : NULL;
}

static const Pprof__Mapping *pprof_mapping(const struct pprof_reader *x, uint64_t id)
{
	Pprof__Mapping key = { .id = id }, *p = &key;
	Pprof__Mapping **found = bsearch(&p, x->mappings, x->in->n_mapping, sizeof(p), by_mapping);

	return found ? *found : NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int pprof_unit_is(const struct pprof_reader *x, const Pprof__ValueType *t, int e)
{
	return strcmp(pprof_text(x, t->unit), e == WIRE_EVENT_ALLOC ? "bytes" : "nanoseconds") == 0;
}

/* For files that only count samples: "samples/count" with a period of CPU time. */
static void pprof_counts(struct pprof_reader *x)
{
	const Pprof__ValueType *t = x->in->period_type;
	struct pprof_column *c = &x->columns[WIRE_EVENT_CPU];

	if (c->weight >= 0 || c->samples < 0 || !t || x->in->period <= 0 ||
	    strcmp(pprof_text(x, t->type), "cpu") != 0 || !pprof_unit_is(x, t, WIRE_EVENT_CPU))
		return;
	c->weight = c->samples;
	c->factor = x->in->period;
	x->events |= 1u << WIRE_EVENT_CPU;
}

static int pprof_columns(struct pprof_reader *x)
{
	char names[160] = "";
	size_t n = 0;

	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		x->columns[e] = (struct pprof_column){ -1, -1, 0 };
	for (size_t i = 0; i < x->in->n_sample_type; i++) {
		const Pprof__ValueType *t = x->in->sample_type[i];
		const char *name = pprof_text(x, t->type);

		n += n < sizeof(names) ? (size_t)snprintf(names + n, sizeof(names) - n, "%s%.40s",
							  n ? ", " : "", name)
				       : 0;
		for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
			if (strcmp(name, pprof_words[e].samples) == 0)
				x->columns[e].samples = (int)i;
			if (strcmp(name, pprof_words[e].weight) != 0 || !pprof_unit_is(x, t, e))
				continue;
			x->columns[e].weight = (int)i;
			x->events |= 1u << e;
		}
	}
	pprof_counts(x);
	if (x->r->event >= 0)
		x->events &= 1u << x->r->event;
	if (!x->events)
		return read_wrong(x->r,
				  "no values that kindling reads (cpu, delay, alloc_space or "
				  "wall); it has: %s",
				  names);
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The kind of a frame, derived from its system name: "java.lang.Thread.run()V [c2]" for the name
 * "java.lang.Thread.run". What is between the two goes to @signature. -1: kindling did not write
 * it. */
static int pprof_kind(const char *name, const char *system, char *signature, size_t size)
{
	size_t len = strlen(name), n = strlen(system);
	const char *bracket = strrchr(system, '[');
	char kind[32] = "";

	*signature = '\0';
	if (n <= len || strncmp(system, name, len) != 0 || !bracket || bracket == system ||
	    bracket[-1] != ' ' || system[n - 1] != ']' || bracket < system + len)
		return -1;
	snprintf(kind, sizeof(kind), "%.*s", (int)(system + n - 1 - bracket - 1), bracket + 1);
	if (bracket - 1 > system + len)
		snprintf(signature, size, "%.*s", (int)(bracket - 1 - system - len), system + len);
	return read_kind_by_name(kind);
}

static uint32_t pprof_frame(struct pprof_reader *x, const Pprof__Location *l,
			    const Pprof__Line *line)
{
	const Pprof__Function *fn = line ? pprof_function(x, line->function_id) : NULL;
	const Pprof__Mapping *m = pprof_mapping(x, l->mapping_id);
	char name[8001], signature[8001], address[32];
	struct profile_frame f;
	int kind, mark;

	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)l->address);
	snprintf(name, sizeof(name), "%s", fn ? pprof_text(x, fn->name) : address);
	mark = read_kind_mark(name);
	kind = fn ? pprof_kind(name, pprof_text(x, fn->system_name), signature, sizeof(signature))
		  : WIRE_KIND_NATIVE;
	f = read_frame_name(x->p, name, kind >= 0 ? kind : mark);
	/* the first mapping is the program, not a library */
	if (m && x->in->n_mapping && m != x->in->mapping[0] && f.kind != WIRE_KIND_SYNTHETIC)
		f.module = pprof_string(x, m->filename);
	if (fn && (!m || m == x->in->mapping[0] || fn->filename != m->filename))
		f.file = pprof_string(x, fn->filename);
	if (fn && kind >= 0)
		f.signature = profile_string(x->p, signature);
	f.line = line && line->line > 0 && line->line < INT32_MAX ? (int32_t)line->line : -1;
	f.offset = f.kind == WIRE_KIND_NATIVE && f.module && !f.method ? l->address : 0;
	return profile_intern_frame(x->p, &f);
}

/* Adds a location's frames. The first line is inlined into the next, and so on; the last one is
 * the caller. */
static uint32_t pprof_push(struct pprof_reader *x, uint32_t node, const Pprof__Location *l)
{
	if (!l->n_line)
		return profile_node(x->p, node, pprof_frame(x, l, NULL));
	for (size_t i = l->n_line; i-- > 0;)
		node = profile_node(x->p, node, pprof_frame(x, l, l->line[i]));
	return node;
}

static bool pprof_is_no_stack(const struct pprof_reader *x, const Pprof__Sample *s)
{
	const Pprof__Location *l =
		s->n_location_id == 1 ? pprof_location(x, s->location_id[0]) : NULL;
	const Pprof__Function *fn =
		l && l->n_line == 1 ? pprof_function(x, l->line[0]->function_id) : NULL;

	return fn && strcmp(pprof_text(x, fn->name), "[no stack]") == 0;
}

static int pprof_stack(struct pprof_reader *x, const Pprof__Sample *s, size_t number, uint32_t *ret)
{
	*ret = 0;
	if (s->n_location_id > DEPTH_MAX)
		return read_wrong(x->r, "sample %zu: its stack has %zu frames, too many", number,
				  s->n_location_id);
	if (pprof_is_no_stack(x, s))
		return 0;
	for (size_t i = s->n_location_id; i-- > 0;) {
		const Pprof__Location *l = pprof_location(x, s->location_id[i]);

		if (!l)
			return read_wrong(x->r, "sample %zu: location %llu, which does not exist",
					  number, (unsigned long long)s->location_id[i]);
		*ret = pprof_push(x, *ret, l);
	}
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct pprof_labels {
	const char *thread, *process, *wait, *trace_id, *span_id;
	int64_t tid, virtual_id, pid; /* -1 = none */
	bool idle;
};

static void pprof_note_label(struct pprof_reader *x, const char *key)
{
	size_t n = strlen(x->r->note);

	if (n == 0)
		snprintf(x->r->note, sizeof(x->r->note), "labels left out: %.40s", key);
	else if (n < sizeof(x->r->note) - 60 && !strstr(x->r->note, key))
		snprintf(x->r->note + n, sizeof(x->r->note) - n, ", %.40s", key);
}

static struct pprof_labels pprof_labels(struct pprof_reader *x, const Pprof__Sample *s)
{
	struct pprof_labels l = { .thread = "", .tid = -1, .virtual_id = -1, .pid = -1 };

	for (size_t i = 0; i < s->n_label; i++) {
		const char *key = pprof_text(x, s->label[i]->key);
		const char *text = pprof_text(x, s->label[i]->str);
		int64_t n = s->label[i]->num;

		if (strcmp(key, "thread") == 0)
			l.thread = text;
		else if (strcmp(key, "tid") == 0)
			l.tid = n >= 0 && n < WIRE_VIRTUAL_TID ? n : -1;
		else if (strcmp(key, "virtual_id") == 0)
			l.virtual_id = n >= 0 && n < WIRE_VIRTUAL_TID ? n : -1;
		else if (strcmp(key, "pid") == 0)
			l.pid = n >= 0 && n <= UINT32_MAX ? n : -1;
		else if (strcmp(key, "process") == 0)
			l.process = text;
		else if (strcmp(key, "wait") == 0)
			l.wait = text;
		else if (strcmp(key, "trace_id") == 0)
			l.trace_id = text;
		else if (strcmp(key, "span_id") == 0)
			l.span_id = text;
		else if (strcmp(key, "idle") == 0)
			l.idle = n != 0;
		else if (strcmp(key, "kind") != 0)
			pprof_note_label(x, key);
	}
	return l;
}

/* The sample's process: one that the comments name, a new one, or, if it has no labels, the
 * file's only one. */
static uint32_t pprof_process(struct pprof_reader *x, const struct pprof_labels *l)
{
	struct profile_process q = { .pid = l->pid < 0 ? 0 : (uint32_t)l->pid };

	for (uint32_t i = 0; i < x->p->n_processes; i++)
		if (x->p->processes[i].pid == q.pid &&
		    (!l->process ||
		     strcmp(x->p->strings[x->p->processes[i].name], l->process) == 0))
			return i;
	if (l->process)
		q.name = profile_string(x->p, l->process);
	else
		q.name = x->in->n_mapping ? pprof_string(x, x->in->mapping[0]->filename)
					  : profile_string(x->p, "pprof");
	return profile_process(x->p, &q);
}

static uint32_t pprof_thread(struct pprof_reader *x, const struct pprof_labels *l)
{
	struct profile_thread t = { .process = pprof_process(x, l), .tid = WIRE_VIRTUAL_TID };

	if (l->tid >= 0)
		t.tid = (uint32_t)l->tid;
	else if (l->virtual_id >= 0)
		t.tid = WIRE_VIRTUAL_TID + (uint32_t)l->virtual_id;
	else if (!x->has_counters)
		t.tid = 0;
	t.name = profile_string(x->p, l->thread);
	return profile_thread(x->p, &t);
}

/* A sample's value in a column; 0 if there is no such column. */
static int pprof_value(struct pprof_reader *x, const Pprof__Sample *s, int column, size_t number,
		       uint64_t *ret)
{
	*ret = 0;
	if (column < 0)
		return 0;
	if (s->value[column] < 0)
		return read_wrong(x->r,
				  "sample %zu: value %d is negative; a difference of two profiles "
				  "cannot be read",
				  number, column);
	*ret = (uint64_t)s->value[column];
	return 0;
}

static int pprof_row(struct pprof_reader *x, const Pprof__Sample *s, size_t number, int e,
		     struct profile_row *row)
{
	const struct pprof_column *c = &x->columns[e];
	int r = pprof_value(x, s, c->samples, number, &row->samples);

	if (r == 0)
		r = pprof_value(x, s, c->weight, number, &row->weight);
	if (r == 0 && c->factor &&
	    __builtin_mul_overflow(row->weight, (uint64_t)c->factor, &row->weight))
		r = read_wrong(x->r, "sample %zu: a value that is too large", number);
	row->event = (uint8_t)e;
	if (r == 0 && (row->samples || row->weight))
		profile_add_row(x->p, row);
	return r;
}

static int pprof_sample(struct pprof_reader *x, const Pprof__Sample *s, size_t number)
{
	struct pprof_labels l = pprof_labels(x, s);
	struct profile_row row = { .idle = l.idle };
	int r;

	if (s->n_value != x->in->n_sample_type)
		return read_wrong(x->r, "sample %zu: %zu values, there are %zu types", number,
				  s->n_value, x->in->n_sample_type);
	r = pprof_stack(x, s, number, &row.node);
	row.thread = pprof_thread(x, &l);
	row.span = profile_span(x->p, l.trace_id, l.span_id);
	for (uint8_t i = 0; l.wait && i < WIRE_WAIT_COUNT; i++)
		if (strcmp(l.wait, wire_wait_names[i]) == 0)
			row.wait = i;
	for (int e = 0; r == 0 && e < WIRE_EVENT_COUNT; e++)
		if (x->events & 1u << e)
			r = pprof_row(x, s, number, e, &row);
	return r;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Restores what write_pprof() stored in a comment: an event's counters, processes and spans. */
static int pprof_comment(struct pprof_reader *x, const char *json)
{
	struct report_reading r = { .event = -1 };
	CLEANUP(profile_freep) struct profile *head = NULL;
	int e = report_read(REPORT_JSON, json, strlen(json), &r, &head);

	if (e < 0)
		return e == -EBADMSG ? read_wrong(x->r, "its comment of kindling: %s", r.why) : e;
	x->has_counters = true;
	return profile_merge(x->p, head, NULL);
}

static int pprof_comments(struct pprof_reader *x)
{
	size_t len = strlen(PPROF_COMMENT);
	int e = 0;

	for (size_t i = 0; e == 0 && i < x->in->n_comment; i++) {
		const char *text = pprof_text(x, x->in->comment[i]);

		if (strncmp(text, PPROF_COMMENT, len) == 0)
			e = pprof_comment(x, text + len);
	}
	return e;
}

static int pprof_profile(struct pprof_reader *x)
{
	int e = pprof_columns(x);

	if (e == 0)
		e = pprof_tables(x);
	if (e == 0)
		e = pprof_comments(x);
	for (size_t i = 0; e == 0 && i < x->in->n_sample; i++)
		e = pprof_sample(x, x->in->sample[i], i);
	if (e < 0)
		return e;
	if (!x->has_counters) {
		x->p->begin_real_ns = x->in->time_nanos > 0 ? (uint64_t)x->in->time_nanos : 0;
		x->p->end_real_ns =
			x->p->begin_real_ns +
			(x->in->duration_nanos > 0 ? (uint64_t)x->in->duration_nanos : 0);
		profile_book_rows(x->p);
	}
	return 0;
}

int read_pprof(const char *bytes, size_t len, struct report_reading *r, struct profile *p)
{
	struct pprof_memory memory = { .left = READ_MEMORY_MAX };
	ProtobufCAllocator allocator = { pprof_alloc, pprof_free, &memory };
	struct pprof_reader x = { .r = r, .p = p };
	CLEANUP(freep) uint8_t *plain = NULL;
	Pprof__Profile *in;
	int e = 0;

	if (len >= 2 && bytes[0] == 0x1f && (uint8_t)bytes[1] == 0x8b) {
		e = pprof_inflate(r, bytes, len, &plain, &len);
		if (e < 0)
			return e;
	}
	in = pprof__profile__unpack(&allocator, len, plain ? plain : (const uint8_t *)bytes);
	if (!in)
		return read_wrong(r, "it is not a pprof profile, or has too many entries");
	for (size_t i = 0; i < in->n_string_table; i++)
		(void)utf8_mend(in->string_table[i]);
	x.in = in;
	e = in->n_string_table && !*in->string_table[0]
		    ? pprof_profile(&x)
		    : read_wrong(r, "it is not a pprof profile: its first string is not empty");
	free(x.locations);
	free(x.functions);
	free(x.mappings);
	pprof__profile__free_unpacked(in, &allocator);
	return e;
}
