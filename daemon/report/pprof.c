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

static Pprof__Label *pprof_label(struct writer *w, int64_t key, int64_t str, int64_t num)
{
	Pprof__Label *l = arena_take(&w->arena, sizeof(*l));

	if (l) {
		pprof__label__init(l);
		l->key = key;
		l->str = str;
		l->num = num;
	}
	return l;
}

static char *pprof_frame_text(struct writer *w, const struct profile_frame *f, bool with_signature)
{
	char buf[2048];
	size_t n = report_frame_name(w->p, f, buf, sizeof(buf) - 512);
	char *copy;

	if (w->annotate && !with_signature)
		n += (size_t)snprintf(buf + n, 8, "%s", report_kind_mark(f->kind));
	if (with_signature)
		(void)snprintf(buf + n, 511, "%.480s [%s]", w->p->strings[f->signature],
			       f->kind < WIRE_KIND_COUNT ? wire_kind_names[f->kind] : "unknown");
	n = utf8_mend(buf);
	copy = arena_take(&w->arena, n + 1);
	if (copy)
		memcpy(copy, buf, n + 1);
	return copy;
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

/* Writes the location of samples without a stack: readers leave out samples without a location. */
static void put_no_stack(struct writer *w)
{
	Pprof__Function *fn = arena_take(&w->arena, sizeof(*fn));
	Pprof__Location *loc = arena_take(&w->arena, sizeof(*loc));
	Pprof__Line *line = arena_take(&w->arena, sizeof(*line));
	Pprof__Line **lines = arena_take(&w->arena, sizeof(*lines));

	if (w->arena.failed)
		return;
	pprof__function__init(fn);
	pprof__location__init(loc);
	pprof__line__init(line);
	fn->id = loc->id = line->function_id = w->p->n_frames + 1;
	fn->name = fn->system_name = S_NO_STACK;
	lines[0] = line;
	loc->line = lines;
	loc->n_line = 1;
	w->out.function[w->out.n_function++] = fn;
	w->out.location[w->out.n_location++] = loc;
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

/* Frame i has location and function i + 1. The string table gets two strings for each frame,
 * behind those of the profile. */
static void pprof_put_frames(struct writer *w)
{
	const struct profile *p = w->p;
	size_t n = p->n_frames, base = S_FIXED + p->n_strings;

	w->out.n_string_table = base + 2 * n;
	w->out.string_table = arena_take(&w->arena, w->out.n_string_table * sizeof(char *));
	w->out.n_location = w->out.n_function = n;
	w->out.location = arena_take(&w->arena, (n + 1) * sizeof(void *));
	w->out.function = arena_take(&w->arena, (n + 1) * sizeof(void *));
	w->out.mapping = arena_take(&w->arena, (p->n_strings + 2) * sizeof(void *));
	w->mappings = arena_take(&w->arena, (p->n_strings + 1) * sizeof(uint64_t));
	if (w->arena.failed)
		return;
	put_fixed_strings(w);
	put_program(w);
	for (uint32_t i = 0; i < p->n_strings; i++)
		w->out.string_table[S_FIXED + i] = (char *)(uintptr_t)p->strings[i];
	for (uint32_t i = 0; i < n && !w->arena.failed; i++) {
		const struct profile_frame *f = &p->frames[i];
		Pprof__Function *fn = arena_take(&w->arena, sizeof(*fn));
		Pprof__Location *loc = arena_take(&w->arena, sizeof(*loc));
		Pprof__Line *line = arena_take(&w->arena, sizeof(*line));
		Pprof__Line **lines = arena_take(&w->arena, sizeof(*lines));

		w->out.string_table[base + 2 * i] = pprof_frame_text(w, f, false);
		w->out.string_table[base + 2 * i + 1] = pprof_frame_text(w, f, true);
		if (w->arena.failed)
			return;
		pprof__function__init(fn);
		pprof__location__init(loc);
		pprof__line__init(line);
		fn->id = loc->id = line->function_id = i + 1;
		fn->name = (int64_t)(base + 2 * i);
		fn->system_name = (int64_t)(base + 2 * i + 1);
		fn->filename = (int64_t)(S_FIXED + (f->file ? f->file : f->module));
		line->line = f->line > 0 ? f->line : 0;
		lines[0] = line;
		loc->line = lines;
		loc->n_line = 1;
		loc->address = f->offset;
		loc->mapping_id = mapping_of(w, f);
		w->out.function[i] = fn;
		w->out.location[i] = loc;
	}
	put_no_stack(w);
}

/* Writes two values for each event of the profile; only those of the row's event are not 0. */
static bool put_values(struct writer *w, Pprof__Sample *s, const struct profile_row *r)
{
	unsigned before = w->events & ((1u << r->event) - 1);
	size_t at = 2 * (size_t)__builtin_popcount(before);

	s->n_value = 2 * (size_t)__builtin_popcount(w->events);
	s->value = arena_take(&w->arena, s->n_value * sizeof(int64_t));
	if (!s->value)
		return false;
	s->value[at] = (int64_t)r->samples;
	s->value[at + 1] = (int64_t)r->weight;
	return true;
}

static void pprof_put_labels(struct writer *w, Pprof__Sample *s, const struct profile_row *r)
{
	const struct profile *p = w->p;
	const struct profile_thread *t = &p->threads[r->thread];
	const struct profile_process *q = &p->processes[t->process];

	s->label[s->n_label++] = pprof_label(w, S_THREAD, S_FIXED + t->name, 0);
	if (t->tid < WIRE_VIRTUAL_TID)
		s->label[s->n_label++] = pprof_label(w, S_TID, 0, t->tid);
	else if (t->tid >
		 WIRE_VIRTUAL_TID) /* unless it is the entry of all unnamed virtual threads */
		s->label[s->n_label++] = pprof_label(w, S_VIRTUAL_ID, 0, t->tid - WIRE_VIRTUAL_TID);
	s->label[s->n_label++] = pprof_label(w, S_PID, 0, q->pid);
	s->label[s->n_label++] = pprof_label(w, S_PROCESS, S_FIXED + q->name, 0);
	if (r->node) /* the leaf's kind: for `go tool pprof -tags` and -tagfocus kind=interpreted */
		s->label[s->n_label++] = pprof_label(
			w, S_KIND, S_KINDS + p->frames[p->nodes[r->node].frame].kind, 0);
	if (r->event == WIRE_EVENT_LOCK)
		s->label[s->n_label++] = pprof_label(w, S_WAIT, S_WAITS + r->wait, 0);
	if (r->idle)
		s->label[s->n_label++] = pprof_label(w, S_IDLE, 0, 1);
}

static bool pprof_is_hex(const char *s, size_t n)
{
	return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

/* Adds the trace ids as labels. If labels of samples are left out only span_id is added: Pyroscope
 * recognizes it by its 16 hex digits and makes no series of it, whereas older versions make one for
 * each trace_id. */
static void pprof_put_ids(struct writer *w, Pprof__Sample *s, const struct profile_row *r)
{
	const struct profile_span *span = r->span ? &w->p->spans[r->span - 1] : NULL;

	if (!span)
		return;
	if (!w->no_labels)
		s->label[s->n_label++] =
			pprof_label(w, S_TRACE_ID, S_FIXED + (int64_t)span->trace_id, 0);
	if (span->span_id &&
	    (!w->no_labels || pprof_is_hex(w->p->strings[span->span_id], SPAN_ID_CHARS)))
		s->label[s->n_label++] =
			pprof_label(w, S_SPAN_ID, S_FIXED + (int64_t)span->span_id, 0);
}

static Pprof__Sample *report_pprof_sample(struct writer *w, const struct profile_row *r)
{
	const struct profile *p = w->p;
	Pprof__Sample *s = arena_take(&w->arena, sizeof(*s));
	size_t depth = 0;

	for (uint32_t node = r->node; node; node = p->nodes[node].parent)
		depth++;
	if (!s)
		return NULL;
	pprof__sample__init(s);
	s->location_id = arena_take(&w->arena, (depth + 1) * sizeof(uint64_t));
	s->label = arena_take(&w->arena, LABELS_MAX * sizeof(void *));
	if (!put_values(w, s, r) || w->arena.failed)
		return NULL;
	for (uint32_t node = r->node; node; node = p->nodes[node].parent)
		s->location_id[s->n_location_id++] = p->nodes[node].frame + 1;
	if (depth == 0)
		s->location_id[s->n_location_id++] = p->n_frames + 1;
	if (!w->no_labels)
		pprof_put_labels(w, s, r);
	pprof_put_ids(w, s, r);
	return s;
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

int write_pprof(const struct profile *p, const struct report_options *o, char **ret,
		size_t *ret_len)
{
	struct writer w = {
		.p = p, .annotate = o->annotate, .no_labels = o->no_labels, .events = o->events
	};
	uint8_t *bytes = NULL;
	size_t len;
	int r = -ENOMEM;

	pprof__profile__init(&w.out);
	pprof_put_frames(&w);
	put_types(&w);
	w.out.n_sample = p->n_rows;
	w.out.sample = arena_take(&w.arena, (p->n_rows + 1) * sizeof(void *));
	for (uint32_t i = 0; i < p->n_rows && !w.arena.failed; i++)
		w.out.sample[i] = report_pprof_sample(&w, &p->rows[i]);
	if (!w.arena.failed) {
		len = pprof__profile__get_packed_size(&w.out);
		bytes = malloc(len + 1);
		if (bytes) {
			pprof__profile__pack(&w.out, bytes);
			r = pprof_gzip(bytes, len, ret, ret_len);
		}
	}
	free(bytes);
	arena_free(&w.arena);
	return r;
}
