/*
 * The format of `go tool pprof`: gzipped protobuf. Each kind of event has two values, with the
 * names that they have in Go's own profiles: samples/count and cpu/nanoseconds, contentions/count
 * and delay/nanoseconds, alloc_objects/count (which are samples here: objects are not counted) and
 * alloc_space/bytes. If the profile has trace ids, the labels trace_id and span_id of a sample say
 * in which trace it was taken.
 */
#include "daemon/report/formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "pprof.pb-c.h"
#include "daemon/report/pprof_words.h"
#include "daemon/report/arena.h"
#include "proto/wire.h"
#include "daemon/ground/utf8.h"

#define LABELS_MAX    9
#define SPAN_ID_CHARS 16
#define SIGNATURE_MAX 480 /* bytes; longer ones are cut */
#define KIND_MAX      32 /* bytes of " [kind]" */

/* The string table begins with these; the profile's own strings follow. */
enum {
	S_EMPTY,
	S_COUNT,
	S_NANOSECONDS,
	S_BYTES,
	S_SAMPLES,
	S_CPU,
	S_CONTENTIONS,
	S_DELAY,
	S_ALLOC_OBJECTS,
	S_ALLOC_SPACE,
	S_WALL_SAMPLES,
	S_WALL,
	S_OFFCPU_INTERVALS,
	S_OFFCPU,
	S_THREAD,
	S_TID,
	S_VIRTUAL_ID,
	S_PID,
	S_PROCESS,
	S_KIND,
	S_WAIT,
	S_IDLE,
	S_TRACE_ID,
	S_SPAN_ID,
	S_NO_STACK,
	S_PROGRAMS,
	S_COMMENTS, /* two for each event: one for people, one for reading it back */
	S_KINDS = S_COMMENTS + 2 * WIRE_EVENT_COUNT, /* names of frames' kinds */
	S_WAITS = S_KINDS + WIRE_KIND_COUNT,
	S_FIXED = S_WAITS + WIRE_WAIT_COUNT
};
static const char *const fixed[S_COMMENTS] = {
	"",
	"count",
	"nanoseconds",
	"bytes",
	"samples",
	"cpu",
	"contentions",
	"delay",
	"alloc_objects",
	"alloc_space",
	"wall_samples",
	"wall",
	"offcpu_intervals",
	"offcpu",
	"thread",
	"tid",
	"virtual_id",
	"pid",
	"process",
	"kind",
	"wait",
	"idle",
	"trace_id",
	"span_id",
	"[no stack]",
	"JVMs",
};

const struct pprof_words pprof_words[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = { "samples", "cpu" },
	[WIRE_EVENT_LOCK] = { "contentions", "delay" },
	[WIRE_EVENT_ALLOC] = { "alloc_objects", "alloc_space" },
	[WIRE_EVENT_WALL] = { "wall_samples", "wall" },
	[WIRE_EVENT_OFFCPU] = { "offcpu_intervals", "offcpu" },
};

static const struct {
	int64_t samples, weight, unit;
} value_types[WIRE_EVENT_COUNT] = {
	[WIRE_EVENT_CPU] = { S_SAMPLES, S_CPU, S_NANOSECONDS },
	[WIRE_EVENT_LOCK] = { S_CONTENTIONS, S_DELAY, S_NANOSECONDS },
	[WIRE_EVENT_ALLOC] = { S_ALLOC_OBJECTS, S_ALLOC_SPACE, S_BYTES },
	[WIRE_EVENT_WALL] = { S_WALL_SAMPLES, S_WALL, S_NANOSECONDS },
	[WIRE_EVENT_OFFCPU] = { S_OFFCPU_INTERVALS, S_OFFCPU, S_NANOSECONDS },
};

struct writer {
	struct arena arena;
	bool annotate, no_labels;
	const struct profile *p;
	Pprof__Profile out;
	unsigned events; /* bits */
	int64_t comments[2 * WIRE_EVENT_COUNT];
	char comment_texts[WIRE_EVENT_COUNT][3 * REPORT_TEXT_MAX];
	uint64_t *mappings; /* by the module's string: id of its mapping */
	uint8_t *bytes; /* samples, locations and functions, encoded */
	size_t bytes_len, bytes_cap;
};

static Pprof__ValueType *value_type(struct writer *w, int64_t type, int64_t unit)
{
	Pprof__ValueType *v = arena_take(&w->arena, sizeof(*v));

	if (v) {
		pprof__value_type__init(v);
		v->type = type;
		v->unit = unit;
	}
	return v;
}

/* Makes a frame's name, and its system name, which has its signature and kind. */
static void pprof_name_frame(struct writer *w, const struct profile_frame *f, char **ret_name,
			     char **ret_system)
{
	const char *signature = w->p->strings[f->signature];
	const char *mark = w->annotate ? report_kind_mark(f->kind) : "";
	size_t len = strnlen(signature, SIGNATURE_MAX), n;
	char buf[2048];

	(void)report_frame_name(w->p, f, buf, sizeof(buf) - SIGNATURE_MAX - KIND_MAX);
	n = utf8_mend(buf);
	strcpy(buf + n, mark);
	*ret_name = arena_copy(&w->arena, buf, n + strlen(mark) + 1);
	memcpy(buf + n, signature, len);
	snprintf(buf + n + len, KIND_MAX, " [%s]",
		 f->kind < WIRE_KIND_COUNT ? wire_kind_names[f->kind] : "unknown");
	*ret_system = arena_copy(&w->arena, buf, n + utf8_mend(buf + n) + 1);
}

/* Writes the first mapping, which readers take for the program. */
static void put_program(struct writer *w)
{
	Pprof__Mapping *m = arena_take(&w->arena, sizeof(*m));

	if (!m)
		return;
	pprof__mapping__init(m);
	m->filename =
		w->p->n_processes == 1 ? (int64_t)(S_FIXED + w->p->processes[0].name) : S_PROGRAMS;
	m->has_functions = true; /* readers need not look for symbols */
	m->id = w->out.n_mapping + 1;
	w->out.mapping[w->out.n_mapping++] = m;
}

/* The mapping of a frame's module, or the program's. Offsets are those in the file, so the file
 * is "mapped" at 0. */
static uint64_t mapping_of(struct writer *w, const struct profile_frame *f)
{
	Pprof__Mapping *m;

	if (!f->module)
		return 1;
	if (w->mappings[f->module])
		return w->mappings[f->module];
	m = arena_take(&w->arena, sizeof(*m));
	if (!m)
		return 0;
	pprof__mapping__init(m);
	m->filename = (int64_t)(S_FIXED + f->module);
	m->has_functions = true; /* readers need not look for symbols */
	m->id = w->out.n_mapping + 1;
	w->out.mapping[w->out.n_mapping++] = m;
	return w->mappings[f->module] = m->id;
}

static void put_comment(struct writer *w, enum wire_event event)
{
	const struct profile_losses *l = &w->p->accounts.of[event];
	const struct report_event *e = &report_events[event];
	char sum[64], rate[REPORT_TEXT_MAX], absent[REPORT_TEXT_MAX], note[REPORT_TEXT_MAX];

	report_sum_text(w->p, event, sum, sizeof(sum));
	report_rate_text(w->p, event, rate, sizeof(rate));
	report_absent_text(w->p, event, absent, sizeof(absent));
	report_note_text(w->p, event, note, sizeof(note));
	for (char *c = strchr(absent, '\n'); c; c = strchr(c, '\n'))
		*c = c[1] ? ',' : '\0'; /* each line becomes a comment */
	snprintf(w->comment_texts[event], sizeof(w->comment_texts[event]),
		 "kindling: %s, %s%s; %llu %s taken = %llu delivered + %llu dropped "
		 "(%.3f %s dropped)%s%s%s%s",
		 sum, rate, w->p->no_budget ? ", CPU budget of the agent lifted" : "",
		 (unsigned long long)l->taken, e->samples, (unsigned long long)l->delivered,
		 (unsigned long long)l->dropped, (double)l->dropped_weight / e->large_size,
		 e->large, *absent ? "; " : "", absent, *note ? "; " : "", note);
	w->comments[w->out.n_comment++] = S_COMMENTS + (int64_t)event;
	w->out.comment = w->comments;
}

/* Makes a comment of what the format has no field for: counters, processes and spans, as in the
 * head of a json file. */
static char *put_head_comment(struct writer *w, enum wire_event event)
{
	const struct report_options o = { .events = 1u << event };
	struct text_out t = { 0 };
	char *head, *copy = NULL;
	size_t len;

	text_put(&t, PPROF_COMMENT);
	write_json_head(&t, w->p, &o);
	if (text_take(&t, &head, &len) == 0) {
		copy = arena_copy(&w->arena, head, len + 1);
		free(head);
	}
	w->arena.failed |= !copy;
	w->comments[w->out.n_comment++] = S_COMMENTS + WIRE_EVENT_COUNT + (int64_t)event;
	return copy;
}

static void put_comments(struct writer *w)
{
	static char none[] = "";
	char **heads = w->out.string_table + S_COMMENTS + WIRE_EVENT_COUNT;

	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (w->events & 1u << e)
			put_comment(w, (enum wire_event)e);
		w->out.string_table[S_COMMENTS + e] = w->comment_texts[e];
	}
	for (int e = 0; e < WIRE_EVENT_COUNT; e++)
		heads[e] = w->events & 1u << e ? put_head_comment(w, (enum wire_event)e) : none;
}

static void put_fixed_strings(struct writer *w)
{
	for (int i = 0; i < S_COMMENTS; i++)
		w->out.string_table[i] = (char *)(uintptr_t)fixed[i];
	for (int i = 0; i < WIRE_KIND_COUNT; i++)
		w->out.string_table[S_KINDS + i] = (char *)(uintptr_t)wire_kind_names[i];
	for (int i = 0; i < WIRE_WAIT_COUNT; i++)
		w->out.string_table[S_WAITS + i] = (char *)(uintptr_t)wire_wait_names[i];
	put_comments(w);
}

static void pprof_need(struct writer *w, uint32_t string)
{
	w->out.string_table[S_FIXED + string] = (char *)(uintptr_t)w->p->strings[string];
}

/* Sets the strings of the profile that something refers to. Others are empty: names of classes and
 * methods are in those of their frames. */
static void pprof_put_strings(struct writer *w)
{
	const struct profile *p = w->p;
	char **to = w->out.string_table + S_FIXED;

	for (uint32_t i = 0; i < p->n_strings; i++)
		to[i] = (char *)(uintptr_t)p->strings[0];
	for (uint32_t i = 0; i < p->n_processes; i++)
		pprof_need(w, p->processes[i].name);
	for (uint32_t i = 0; i < p->n_threads; i++)
		pprof_need(w, p->threads[i].name);
	for (uint32_t i = 0; i < p->n_frames; i++)
		pprof_need(w, p->frames[i].file ? p->frames[i].file : p->frames[i].module);
	for (uint32_t i = 0; i < p->n_frames; i++)
		pprof_need(w, p->frames[i].module);
	for (uint32_t i = 0; i < p->n_spans; i++) {
		pprof_need(w, p->spans[i].trace_id);
		pprof_need(w, p->spans[i].span_id);
	}
}

/* Makes the tables of strings and mappings. The table of strings gets two for each frame, behind
 * those of the profile. */
static void pprof_put_tables(struct writer *w)
{
	const struct profile *p = w->p;

	w->out.n_string_table = S_FIXED + p->n_strings + 2 * (size_t)p->n_frames;
	w->out.string_table = arena_take(&w->arena, w->out.n_string_table * sizeof(char *));
	w->out.mapping = arena_take(&w->arena, (p->n_strings + 2) * sizeof(void *));
	w->mappings = arena_take(&w->arena, (p->n_strings + 1) * sizeof(uint64_t));
	if (w->arena.failed)
		return;
	put_fixed_strings(w);
	pprof_put_strings(w);
	put_program(w);
}

/* ---- samples, locations, functions -----------------------------------------------------------
 *
 * They are most of a profile, so their bytes are written as they are, in the encoding of
 * pprof.proto, without a message in memory for each of them and their labels.
 */

#define PPROF_TAG(field, type) ((uint8_t)((field) << 3 | (type)))
#define PPROF_VARINT	       0
#define PPROF_BYTES	       2
#define VARINT_MAX	       10 /* bytes */
#define LABEL_MAX	       (2 + 3 * (1 + VARINT_MAX)) /* bytes */
#define FIELDS_MAX	       (2 + 5 * (1 + VARINT_MAX)) /* bytes of a location or a function */

static uint8_t *pprof_put_varint(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p++ = (uint8_t)v;
	return p;
}

static size_t pprof_varint_size(uint64_t v)
{
	return v ? (size_t)(63 - __builtin_clzll(v)) / 7 + 1 : 1;
}

/* A field of a message, left out if it is 0. */
static uint8_t *pprof_put_field(uint8_t *p, unsigned field, int64_t v)
{
	if (!v)
		return p;
	*p++ = PPROF_TAG(field, PPROF_VARINT);
	return pprof_put_varint(p, (uint64_t)v);
}

static uint8_t *pprof_put_label(uint8_t *p, int64_t key, int64_t str, int64_t num)
{
	uint8_t *begin = p;

	p += 2;
	p = pprof_put_field(p, 1, key);
	p = pprof_put_field(p, 2, str);
	p = pprof_put_field(p, 3, num);
	begin[0] = PPROF_TAG(3, PPROF_BYTES);
	begin[1] = (uint8_t)(p - begin - 2);
	_Static_assert(LABEL_MAX < 0x80, "a length of one byte");
	return p;
}

static uint8_t *pprof_put_labels(const struct writer *w, uint8_t *to, const struct profile_row *r)
{
	const struct profile *p = w->p;
	const struct profile_thread *t = &p->threads[r->thread];
	const struct profile_process *q = &p->processes[t->process];

	to = pprof_put_label(to, S_THREAD, S_FIXED + (int64_t)t->name, 0);
	if (t->tid < WIRE_VIRTUAL_TID)
		to = pprof_put_label(to, S_TID, 0, t->tid);
	else if (t->tid >
		 WIRE_VIRTUAL_TID) /* unless it is the entry of all unnamed virtual threads */
		to = pprof_put_label(to, S_VIRTUAL_ID, 0, t->tid - WIRE_VIRTUAL_TID);
	to = pprof_put_label(to, S_PID, 0, q->pid);
	to = pprof_put_label(to, S_PROCESS, S_FIXED + (int64_t)q->name, 0);
	if (r->node) /* the leaf's kind: for `go tool pprof -tags` and -tagfocus kind=interpreted */
		to = pprof_put_label(to, S_KIND, S_KINDS + p->frames[p->nodes[r->node].frame].kind,
				     0);
	if (r->event == WIRE_EVENT_LOCK)
		to = pprof_put_label(to, S_WAIT, S_WAITS + r->wait, 0);
	return r->idle ? pprof_put_label(to, S_IDLE, 0, 1) : to;
}

static bool pprof_is_hex(const char *s, size_t n)
{
	return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* Adds the trace ids as labels. If labels of samples are left out only span_id is added: Pyroscope
 * recognizes it by its 16 hex digits and makes no series of it, whereas older versions make one for
 * each trace_id. */
static uint8_t *pprof_put_ids(const struct writer *w, uint8_t *to, const struct profile_row *r)
{
	const struct profile_span *span = r->span ? &w->p->spans[r->span - 1] : NULL;

	if (!span)
		return to;
	if (!w->no_labels)
		to = pprof_put_label(to, S_TRACE_ID, S_FIXED + (int64_t)span->trace_id, 0);
	if (span->span_id &&
	    (!w->no_labels || pprof_is_hex(w->p->strings[span->span_id], SPAN_ID_CHARS)))
		to = pprof_put_label(to, S_SPAN_ID, S_FIXED + (int64_t)span->span_id, 0);
	return to;
}

/* Writes two values for each event of the profile; only those of the row's event are not 0. */
static uint8_t *pprof_put_values(const struct writer *w, uint8_t *to, const struct profile_row *r)
{
	for (unsigned e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (!(w->events & 1u << e))
			continue;
		to = pprof_put_varint(to, e == r->event ? r->samples : 0);
		to = pprof_put_varint(to, e == r->event ? r->weight : 0);
	}
	return to;
}

/* Writes the locations of a stack, leaf first. */
static uint8_t *pprof_put_stack(const struct profile *p, uint8_t *to, uint32_t leaf)
{
	for (uint32_t node = leaf; node; node = p->nodes[node].parent)
		to = pprof_put_varint(to, (uint64_t)p->nodes[node].frame + 1);
	return leaf ? to : pprof_put_varint(to, (uint64_t)p->n_frames + 1);
}

static size_t pprof_stack_size(const struct profile *p, uint32_t leaf)
{
	size_t len = leaf ? 0 : pprof_varint_size((uint64_t)p->n_frames + 1);

	for (uint32_t node = leaf; node; node = p->nodes[node].parent)
		len += pprof_varint_size((uint64_t)p->nodes[node].frame + 1);
	return len;
}

/* Room for @len more bytes; NULL = no memory. */
static uint8_t *pprof_room(struct writer *w, size_t len)
{
	size_t cap = 2 * w->bytes_cap + len + 65536;
	uint8_t *p;

	if (len <= w->bytes_cap - w->bytes_len)
		return w->bytes + w->bytes_len;
	p = realloc(w->bytes, cap);
	if (!p)
		return NULL;
	w->bytes = p;
	w->bytes_cap = cap;
	return p + w->bytes_len;
}

static bool report_pprof_sample(struct writer *w, const struct profile_row *r)
{
	uint8_t values[2 * WIRE_EVENT_COUNT * VARINT_MAX], labels[LABELS_MAX * LABEL_MAX], *end, *p;
	size_t stack_len = pprof_stack_size(w->p, r->node), values_len, labels_len, len;

	values_len = (size_t)(pprof_put_values(w, values, r) - values);
	end = w->no_labels ? labels : pprof_put_labels(w, labels, r);
	labels_len = (size_t)(pprof_put_ids(w, end, r) - labels);
	len = 1 + pprof_varint_size(stack_len) + stack_len + 1 + pprof_varint_size(values_len) +
	      values_len + labels_len;
	p = pprof_room(w, 1 + VARINT_MAX + len);
	if (!p)
		return false;
	*p++ = PPROF_TAG(2, PPROF_BYTES);
	p = pprof_put_varint(p, len);
	*p++ = PPROF_TAG(1, PPROF_BYTES);
	p = pprof_put_varint(p, stack_len);
	p = pprof_put_stack(w->p, p, r->node);
	*p++ = PPROF_TAG(2, PPROF_BYTES);
	p = pprof_put_varint(p, values_len);
	memcpy(p, values, values_len);
	memcpy(p + values_len, labels, labels_len);
	w->bytes_len = (size_t)(p + values_len + labels_len - w->bytes);
	return true;
}

/* Writes a message of less than 128 bytes. */
static uint8_t *pprof_put_message(uint8_t *p, unsigned field, const uint8_t *begin,
				  const uint8_t *end)
{
	_Static_assert(FIELDS_MAX < 0x80, "a length of one byte");
	*p++ = PPROF_TAG(field, PPROF_BYTES);
	*p++ = (uint8_t)(end - begin);
	memcpy(p, begin, (size_t)(end - begin));
	return p + (end - begin);
}

/* A location, and the function of its only line, have the same number. */
static bool pprof_put_location(struct writer *w, uint64_t id, uint64_t mapping, uint64_t address,
			       int64_t line)
{
	uint8_t fields[FIELDS_MAX], lines[FIELDS_MAX], *end, *lines_end, *to;

	to = pprof_room(w, 2 + FIELDS_MAX);
	if (!to)
		return false;
	lines_end = pprof_put_field(lines, 1, (int64_t)id);
	lines_end = pprof_put_field(lines_end, 2, line);
	end = pprof_put_field(fields, 1, (int64_t)id);
	end = pprof_put_field(end, 2, (int64_t)mapping);
	end = pprof_put_field(end, 3, (int64_t)address);
	end = pprof_put_message(end, 4, lines, lines_end);
	to = pprof_put_message(to, 4, fields, end);
	w->bytes_len = (size_t)(to - w->bytes);
	return true;
}

static bool pprof_put_function(struct writer *w, uint64_t id, int64_t name, int64_t system,
			       int64_t file)
{
	uint8_t fields[FIELDS_MAX], *end, *to = pprof_room(w, 2 + FIELDS_MAX);

	if (!to)
		return false;
	end = pprof_put_field(fields, 1, (int64_t)id);
	end = pprof_put_field(end, 2, name);
	end = pprof_put_field(end, 3, system);
	end = pprof_put_field(end, 4, file);
	to = pprof_put_message(to, 5, fields, end);
	w->bytes_len = (size_t)(to - w->bytes);
	return true;
}

/* Frame i has location and function i + 1. The last ones are those of samples without a stack:
 * readers leave out samples without a location. */
static bool pprof_put_frames(struct writer *w)
{
	const struct profile *p = w->p;
	uint32_t base = S_FIXED + p->n_strings, n = p->n_frames;

	for (uint32_t i = 0; i < n; i++) {
		const struct profile_frame *f = &p->frames[i];

		if (!pprof_put_location(w, i + 1, mapping_of(w, f), f->offset,
					f->line > 0 ? f->line : 0))
			return false;
	}
	if (!pprof_put_location(w, n + 1, 0, 0, 0))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const struct profile_frame *f = &p->frames[i];
		char **names = &w->out.string_table[base + 2 * i];

		pprof_name_frame(w, f, &names[0], &names[1]);
		if (w->arena.failed ||
		    !pprof_put_function(w, i + 1, base + 2 * i, base + 2 * i + 1,
					S_FIXED + (int64_t)(f->file ? f->file : f->module)))
			return false;
	}
	return pprof_put_function(w, n + 1, S_NO_STACK, S_NO_STACK, 0);
}

static int pprof_gzip(const uint8_t *in, size_t len, char **ret, size_t *ret_len)
{
	z_stream z = { 0 };
	uLong bound;
	char *out;
	int r;

	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&z, len) + 32;
	out = malloc(bound);
	if (!out) {
		deflateEnd(&z);
		return -ENOMEM;
	}
	z.next_in = (uint8_t *)(uintptr_t)in;
	z.avail_in = (uInt)len;
	z.next_out = (uint8_t *)out;
	z.avail_out = (uInt)bound;
	r = deflate(&z, Z_FINISH);
	*ret_len = z.total_out;
	deflateEnd(&z);
	if (r != Z_STREAM_END) {
		free(out);
		return -EIO;
	}
	*ret = out;
	return 0;
}

static void put_types(struct writer *w)
{
	const struct profile *p = w->p;
	enum wire_event first = report_event_of(w->events);

	w->out.sample_type = arena_take(&w->arena, (size_t)2 * WIRE_EVENT_COUNT * sizeof(void *));
	if (w->arena.failed)
		return;
	for (int e = 0; e < WIRE_EVENT_COUNT; e++) {
		if (!(w->events & 1u << e))
			continue;
		w->out.sample_type[w->out.n_sample_type++] =
			value_type(w, value_types[e].samples, S_COUNT);
		w->out.sample_type[w->out.n_sample_type++] =
			value_type(w, value_types[e].weight, value_types[e].unit);
	}
	w->out.default_sample_type = value_types[first].weight;
	w->out.period_type = value_type(w, value_types[first].weight, value_types[first].unit);
	w->out.period = (int64_t)report_view_of(p, first).mean;
	w->out.time_nanos = (int64_t)p->begin_real_ns;
	w->out.duration_nanos = (int64_t)(p->end_real_ns - p->begin_real_ns);
}

/* Packs the profile: types, samples, locations and functions, the rest. */
static int pprof_pack(struct writer *w, uint8_t **ret, size_t *ret_len)
{
	Pprof__Profile types = PPROF__PROFILE__INIT;
	size_t types_len, rest_len;
	uint8_t *p;

	types.n_sample_type = w->out.n_sample_type;
	types.sample_type = w->out.sample_type;
	w->out.n_sample_type = 0;
	types_len = pprof__profile__get_packed_size(&types);
	rest_len = pprof__profile__get_packed_size(&w->out);
	p = malloc(types_len + w->bytes_len + rest_len + 1);
	if (!p)
		return -ENOMEM;
	pprof__profile__pack(&types, p);
	if (w->bytes_len)
		memcpy(p + types_len, w->bytes, w->bytes_len);
	pprof__profile__pack(&w->out, p + types_len + w->bytes_len);
	*ret = p;
	*ret_len = types_len + w->bytes_len + rest_len;
	return 0;
}

int write_pprof(const struct profile *p, const struct report_options *o, char **ret,
		size_t *ret_len)
{
	struct writer w = {
		.p = p, .annotate = o->annotate, .no_labels = o->no_labels, .events = o->events
	};
	uint8_t *bytes = NULL;
	size_t len;
	bool ok;
	int r = -ENOMEM;

	pprof__profile__init(&w.out);
	pprof_put_tables(&w);
	put_types(&w);
	ok = !w.arena.failed;
	for (uint32_t i = 0; i < p->n_rows && ok; i++)
		ok = report_pprof_sample(&w, &p->rows[i]);
	ok = ok && pprof_put_frames(&w);
	if (ok && !w.arena.failed)
		r = pprof_pack(&w, &bytes, &len);
	free(w.bytes);
	arena_free(&w.arena);
	if (r == 0)
		r = pprof_gzip(bytes, len, ret, ret_len);
	free(bytes);
	return r;
}
