/*
 * The format of https://www.speedscope.app: frames, and profiles of the type "sampled", which are
 * stacks (root first) and weights. There is a profile for each kind of event, or for each event and
 * thread, the heaviest first. Frames whose names print the same are merged, because speedscope
 * lists methods by frame. If there are several JVMs, the first frame is the JVM.
 */
#include "daemon/report/formats.h"
#include "daemon/report/methods.h"

#include <stdio.h>
#include <stdlib.h>
#include "daemon/report/json_out.h"

/* A row of the profile, and the speedscope profile that it goes to. */
struct part {
	uint64_t weight; /* of all rows of that profile */
	uint32_t number; /* number of that profile: the event, or the event and the thread */
	uint32_t row;
};

struct speedscope {
	struct text_out *t;
	const struct profile *p;
	const struct report_options *o;
	struct report_index *index;
	struct part *parts; /* by profile, the heaviest first, then in the order of rows */
	uint32_t *chain; /* has room for the deepest stack */
	bool several;
};

static uint32_t speedscope_number(const struct speedscope *s, const struct profile_row *r)
{
	return s->o->threads ? r->thread * WIRE_EVENT_COUNT + r->event : r->event;
}

static int by_part(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->row < y->row ? -1 : 1;
}

static bool speedscope_sort(struct speedscope *s)
{
	const struct profile *p = s->p;
	size_t numbers = ((size_t)p->n_threads + 1) * WIRE_EVENT_COUNT;
	CLEANUP(freep) uint64_t *sums = calloc(numbers, sizeof(*sums));

	s->parts = calloc((size_t)p->n_rows + 1, sizeof(*s->parts));
	if (!sums || !s->parts)
		return false;
	for (uint32_t i = 0; i < p->n_rows; i++)
		sums[speedscope_number(s, &p->rows[i])] += p->rows[i].weight;
	for (uint32_t i = 0; i < p->n_rows; i++) {
		uint32_t number = speedscope_number(s, &p->rows[i]);

		s->parts[i] = (struct part){ sums[number], number, i };
	}
	qsort(s->parts, p->n_rows, sizeof(*s->parts), by_part);
	return true;
}

static void speedscope_frame(struct speedscope *s, const char *name, uint32_t file)
{
	json_begin_object(s->t, NULL);
	json_add_string(s->t, "name", name);
	if (file)
		json_add_string(s->t, "file", s->p->strings[file]);
	json_end_object(s->t);
}

/* Writes the frames: methods by the number of their name, JVMs, and the one for samples without
 * a stack. */
static bool speedscope_frames(struct speedscope *s)
{
	const struct profile *p = s->p;
	CLEANUP(freep) uint32_t *first = calloc((size_t)s->index->n + 1, sizeof(*first));
	char name[1024];

	if (!first)
		return false;
	for (uint32_t i = p->n_frames; i-- > 0;)
		first[s->index->ids[i]] = i;
	json_begin_object(s->t, "shared");
	json_begin_list(s->t, "frames");
	for (uint32_t i = 0; i < s->index->n; i++) {
		const struct profile_frame *f = &p->frames[first[i]];

		speedscope_frame(s, s->index->names[first[i]], f->file ? f->file : f->module);
	}
	for (uint32_t i = 0; i < p->n_processes; i++) {
		snprintf(name, sizeof(name), "[%s pid=%u]", p->strings[p->processes[i].name],
			 p->processes[i].pid);
		speedscope_frame(s, name, 0);
	}
	speedscope_frame(s, "[no stack]", 0);
	json_end_list(s->t);
	json_end_object(s->t);
	return true;
}

static void speedscope_stack(struct speedscope *s, const struct profile_row *r)
{
	const struct profile *p = s->p;
	uint32_t n = 0;

	json_begin_list(s->t, NULL);
	if (s->several)
		json_add_u64(s->t, NULL, s->index->n + p->threads[r->thread].process);
	for (uint32_t node = r->node; node; node = p->nodes[node].parent)
		s->chain[n++] = s->index->ids[p->nodes[node].frame];
	if (n == 0)
		json_add_u64(s->t, NULL, s->index->n + p->n_processes);
	while (n-- > 0)
		json_add_u64(s->t, NULL, s->chain[n]);
	json_end_list(s->t);
}

/* Writes a profile's name for speedscope's menu: "CPU", "CPU of main tid=8". */
static void speedscope_name(struct speedscope *s, const struct profile_row *r)
{
	const struct profile_thread *thread = &s->p->threads[r->thread];
	char name[1200], number[THREAD_NUMBER_MAX];

	if (s->o->threads)
		snprintf(name, sizeof(name), "%s of %s%s", report_events[r->event].of,
			 s->p->strings[thread->name], thread_number(thread, number));
	else
		snprintf(name, sizeof(name), "%s", report_events[r->event].of);
	json_add_string(s->t, "name", name);
}

/* Writes what is between a profile's name and its samples. */
static void speedscope_begin(struct speedscope *s, enum wire_event event, uint64_t weight)
{
	json_add_string(s->t, "unit", event == WIRE_EVENT_ALLOC ? "bytes" : "nanoseconds");
	json_add_u64(s->t, "startValue", 0);
	json_add_u64(s->t, "endValue", weight);
	json_begin_list(s->t, "samples");
}

/* Writes a profile, whose rows are the parts from @from to @to. */
static void speedscope_profile(struct speedscope *s, uint32_t from, uint32_t to)
{
	const struct profile_row *rows = s->p->rows, *r = &rows[s->parts[from].row];

	if (from)
		json_break_line(s->t);
	json_begin_object(s->t, NULL);
	json_add_string(s->t, "type", "sampled");
	speedscope_name(s, r);
	speedscope_begin(s, (enum wire_event)r->event, s->parts[from].weight);
	for (uint32_t i = from; i < to; i++)
		speedscope_stack(s, &rows[s->parts[i].row]);
	json_end_list(s->t);
	json_begin_list(s->t, "weights");
	for (uint32_t i = from; i < to; i++)
		json_add_u64(s->t, NULL, rows[s->parts[i].row].weight);
	json_end_list(s->t);
	json_end_object(s->t);
}

/* Writes an empty profile, because speedscope opens no file without any. */
static void speedscope_nothing(struct speedscope *s)
{
	enum wire_event event = report_event_of(s->o->events);

	json_begin_object(s->t, NULL);
	json_add_string(s->t, "type", "sampled");
	json_add_string(s->t, "name", report_events[event].of);
	speedscope_begin(s, event, 0);
	json_end_list(s->t);
	json_begin_list(s->t, "weights");
	json_end_list(s->t);
	json_end_object(s->t);
}

static void speedscope_profiles(struct speedscope *s)
{
	uint32_t n = s->p->n_rows, to;

	json_begin_list(s->t, "profiles");
	if (n == 0)
		speedscope_nothing(s);
	for (uint32_t from = 0; from < n; from = to) {
		for (to = from; to < n && s->parts[to].number == s->parts[from].number; to++)
			;
		speedscope_profile(s, from, to);
	}
	json_end_list(s->t);
}

/* Writes the head. The summary is in the name, because there is no other field for it. */
static void speedscope_head(struct speedscope *s)
{
	char title[512], name[512 + REPORT_TEXT_MAX + 100], rate[REPORT_TEXT_MAX];
	enum wire_event event = report_event_of(s->o->events);
	const struct profile_losses *l = &s->p->accounts.of[event];

	report_title(s->p, s->o, title, sizeof(title));
	report_rate_text(s->p, event, rate, sizeof(rate));
	snprintf(name, sizeof(name), "%s: %s, %llu of %llu dropped", title, rate,
		 (unsigned long long)l->dropped, (unsigned long long)l->taken);
	json_begin_object(s->t, NULL);
	json_add_string(s->t, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_add_string(s->t, "exporter", "kindling " KINDLING_VERSION);
	json_add_string(s->t, "name", name);
	json_add_u64(s->t, "activeProfileIndex", 0);
	json_break_line(s->t);
}

void write_speedscope(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	CLEANUP(report_index_freep) struct report_index *index = NULL;
	struct speedscope s = { .t = t, .p = p, .o = o, .several = report_is_of_several(p, o) };

	s.chain = calloc((size_t)p->n_nodes + 1, sizeof(*s.chain));
	if (!s.chain || report_index_new(p, &index) < 0) {
		t->failed = true;
	} else {
		s.index = index;
		speedscope_head(&s);
		t->failed |= !speedscope_frames(&s) || !speedscope_sort(&s);
		if (!t->failed)
			speedscope_profiles(&s);
		json_end_object(t);
		json_end_line(t);
	}
	free(s.chain);
	free(s.parts);
}
