/* The format of `go tool pprof`: gzipped protobuf, samples/count and cpu/nanoseconds. */
#include "daemon/report/formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "pprof.pb-c.h"
#include "proto/wire.h"

/* All messages of one profile in one arena: thousands of small ones, freed together. */
struct arena {
	struct block {
		struct block *next;
		size_t used;
		char bytes[64 * 1024];
	} * blocks;
	bool failed;
};

static void *take(struct arena *a, size_t len)
{
	struct block *b = a->blocks;
	void *p;

	len = (len + 15) & ~(size_t)15;
	if (len > sizeof(b->bytes) || !b || b->used + len > sizeof(b->bytes)) {
		size_t extra = len > sizeof(b->bytes) ? len - sizeof(b->bytes) : 0;

		b = calloc(1, sizeof(*b) + extra);
		if (!b) {
			a->failed = true;
			return NULL;
		}
		b->next = a->blocks;
		a->blocks = b;
	}
	p = b->bytes + b->used;
	b->used += len;
	return p;
}

static void arena_free(struct arena *a)
{
	while (a->blocks) {
		struct block *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
}

/* Fixed strings come first in the string table, the profile's own behind them. */
enum {
	S_EMPTY,
	S_SAMPLES,
	S_COUNT,
	S_CPU,
	S_NANOSECONDS,
	S_THREAD,
	S_TID,
	S_PID,
	S_PROCESS,
	S_KIND,
	S_NO_STACK,
	S_COMMENT,
	S_KINDS, /* names of frames' kinds */
	S_FIXED = S_KINDS + WIRE_KIND_COUNT
};
static const char *const fixed[S_COMMENT] = {
	"",    "samples", "count",   "cpu",  "nanoseconds", "thread",
	"tid", "pid",	  "process", "kind", "[no stack]",
};

struct writer {
	struct arena arena;
	bool annotate;
	const struct profile *p;
	Pprof__Profile out;
	int64_t comment;
	char comment_text[512];
	uint64_t *mappings; /* by string id of the module: mapping id */
};

static Pprof__ValueType *value_type(struct writer *w, int64_t type, int64_t unit)
{
	Pprof__ValueType *v = take(&w->arena, sizeof(*v));

	if (v) {
		pprof__value_type__init(v);
		v->type = type;
		v->unit = unit;
	}
	return v;
}

static Pprof__Label *label(struct writer *w, int64_t key, int64_t str, int64_t num)
{
	Pprof__Label *l = take(&w->arena, sizeof(*l));

	if (l) {
		pprof__label__init(l);
		l->key = key;
		l->str = str;
		l->num = num;
	}
	return l;
}

static char *frame_text(struct writer *w, const struct profile_frame *f, bool with_signature)
{
	char buf[2048];
	size_t n = report_frame_name(w->p, f, buf, sizeof(buf) - 512);
	char *copy;

	if (w->annotate && !with_signature)
		n += (size_t)snprintf(buf + n, 8, "%s", report_kind_mark(f->kind));
	if (with_signature)
		n += (size_t)snprintf(buf + n, 511, "%.500s", w->p->strings[f->signature]);
	copy = take(&w->arena, n + 1);
	if (copy)
		memcpy(copy, buf, n + 1);
	return copy;
}

/* One mapping a module. Offsets are of the file, so that is where it "is mapped". */
static uint64_t mapping_of(struct writer *w, const struct profile_frame *f)
{
	Pprof__Mapping *m;

	if (!f->module)
		return 0;
	if (w->mappings[f->module])
		return w->mappings[f->module];
	m = take(&w->arena, sizeof(*m));
	if (!m)
		return 0;
	pprof__mapping__init(m);
	m->filename = (int64_t)(S_FIXED + f->module);
	m->has_functions = true; /* nothing to look up later */
	m->id = w->out.n_mapping + 1;
	w->out.mapping[w->out.n_mapping++] = m;
	return w->mappings[f->module] = m->id;
}

/* Where samples without a stack are: a sample needs a location, or readers leave it out. */
static void put_no_stack(struct writer *w)
{
	Pprof__Function *fn = take(&w->arena, sizeof(*fn));
	Pprof__Location *loc = take(&w->arena, sizeof(*loc));
	Pprof__Line *line = take(&w->arena, sizeof(*line));
	Pprof__Line **lines = take(&w->arena, sizeof(*lines));

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

static void put_comment(struct writer *w)
{
	const struct profile_losses *l = &w->p->losses;

	snprintf(
		w->comment_text, sizeof(w->comment_text),
		"kindling: one sample per %.3g ms%s; %llu samples taken = %llu delivered + %llu dropped "
		"(%.3f s dropped)",
		(double)w->p->interval_ns / 1e6,
		w->p->no_budget ? ", CPU budget of the agent lifted" : "",
		(unsigned long long)l->taken, (unsigned long long)l->delivered,
		(unsigned long long)l->dropped, (double)l->dropped_ns / 1e9);
	w->comment = S_COMMENT;
	w->out.comment = &w->comment;
	w->out.n_comment = 1;
}

/* Location and function i + 1 are frame i. String table: fixed, the profile's, then two a frame. */
static void put_frames(struct writer *w)
{
	const struct profile *p = w->p;
	size_t n = p->n_frames, base = S_FIXED + p->n_strings;

	w->out.n_string_table = base + 2 * n;
	w->out.string_table = take(&w->arena, w->out.n_string_table * sizeof(char *));
	w->out.n_location = w->out.n_function = n;
	w->out.location = take(&w->arena, (n + 1) * sizeof(void *));
	w->out.function = take(&w->arena, (n + 1) * sizeof(void *));
	w->out.mapping = take(&w->arena, (p->n_strings + 1) * sizeof(void *));
	w->mappings = take(&w->arena, (p->n_strings + 1) * sizeof(uint64_t));
	if (w->arena.failed)
		return;
	put_comment(w);
	for (int i = 0; i < S_COMMENT; i++)
		w->out.string_table[i] = (char *)(uintptr_t)fixed[i];
	w->out.string_table[S_COMMENT] = w->comment_text;
	for (int i = 0; i < WIRE_KIND_COUNT; i++)
		w->out.string_table[S_KINDS + i] = (char *)(uintptr_t)wire_kind_names[i];
	for (uint32_t i = 0; i < p->n_strings; i++)
		w->out.string_table[S_FIXED + i] = (char *)(uintptr_t)p->strings[i];
	for (uint32_t i = 0; i < n && !w->arena.failed; i++) {
		const struct profile_frame *f = &p->frames[i];
		Pprof__Function *fn = take(&w->arena, sizeof(*fn));
		Pprof__Location *loc = take(&w->arena, sizeof(*loc));
		Pprof__Line *line = take(&w->arena, sizeof(*line));
		Pprof__Line **lines = take(&w->arena, sizeof(*lines));

		w->out.string_table[base + 2 * i] = frame_text(w, f, false);
		w->out.string_table[base + 2 * i + 1] = frame_text(w, f, true);
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

static Pprof__Sample *sample(struct writer *w, const struct profile_row *r)
{
	const struct profile *p = w->p;
	const struct profile_thread *t = &p->threads[r->thread];
	const struct profile_process *q = &p->processes[t->process];
	Pprof__Sample *s = take(&w->arena, sizeof(*s));
	size_t depth = 0;

	for (uint32_t node = r->node; node; node = p->nodes[node].parent)
		depth++;
	if (!s)
		return NULL;
	pprof__sample__init(s);
	s->n_location_id = 0;
	s->location_id = take(&w->arena, (depth + 1) * sizeof(uint64_t));
	s->n_value = 2;
	s->value = take(&w->arena, 2 * sizeof(int64_t));
	s->n_label = r->node ? 5 : 4;
	s->label = take(&w->arena, 5 * sizeof(void *));
	if (w->arena.failed)
		return NULL;
	for (uint32_t node = r->node; node; node = p->nodes[node].parent)
		s->location_id[s->n_location_id++] = p->nodes[node].frame + 1;
	if (depth == 0)
		s->location_id[s->n_location_id++] = p->n_frames + 1;
	s->value[0] = (int64_t)r->samples;
	s->value[1] = (int64_t)r->weight_ns;
	s->label[0] = label(w, S_THREAD, S_FIXED + t->name, 0);
	s->label[1] = label(w, S_TID, 0, t->tid);
	s->label[2] = label(w, S_PID, 0, q->pid);
	s->label[3] = label(w, S_PROCESS, S_FIXED + q->name, 0);
	if (r->node) /* of the frame on top: `go tool pprof -tags`, -tagfocus kind=interpreted */
		s->label[4] =
			label(w, S_KIND, S_KINDS + p->frames[p->nodes[r->node].frame].kind, 0);
	return s;
}

static int gzip(const uint8_t *in, size_t len, char **ret, size_t *ret_len)
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

int write_pprof(const struct profile *p, const struct report_options *o, char **ret,
		size_t *ret_len)
{
	struct writer w = { .p = p, .annotate = o->annotate };
	uint8_t *bytes = NULL;
	size_t len;
	int r = -ENOMEM;

	pprof__profile__init(&w.out);
	put_frames(&w);
	w.out.n_sample_type = 2;
	w.out.sample_type = take(&w.arena, 2 * sizeof(void *));
	w.out.n_sample = p->n_rows;
	w.out.sample = take(&w.arena, (p->n_rows + 1) * sizeof(void *));
	if (!w.arena.failed) {
		w.out.sample_type[0] = value_type(&w, S_SAMPLES, S_COUNT);
		w.out.sample_type[1] = value_type(&w, S_CPU, S_NANOSECONDS);
		w.out.period_type = value_type(&w, S_CPU, S_NANOSECONDS);
		w.out.period = (int64_t)p->interval_ns;
		w.out.time_nanos = (int64_t)p->begin_real_ns;
		w.out.duration_nanos = (int64_t)(p->end_real_ns - p->begin_real_ns);
		for (uint32_t i = 0; i < p->n_rows; i++)
			w.out.sample[i] = sample(&w, &p->rows[i]);
	}
	if (!w.arena.failed) {
		len = pprof__profile__get_packed_size(&w.out);
		bytes = malloc(len + 1);
		if (bytes) {
			pprof__profile__pack(&w.out, bytes);
			r = gzip(bytes, len, ret, ret_len);
		}
	}
	free(bytes);
	arena_free(&w.arena);
	return r;
}
