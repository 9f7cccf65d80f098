/* The whole profile as one JSON object; docs/api.md describes it. */
#include "daemon/report/against.h"
#include "daemon/report/formats.h"

#include <stdio.h>
#include "daemon/core/labels.h"
#include "daemon/report/json_out.h"
#include "proto/wire.h"

/* Writes a number whose key ends with the unit of the event, "taken_ns". */
static void json_put_weight(struct text_out *t, const char *name, enum wire_event event, uint64_t n)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s", name, report_events[event].unit);
	json_add_u64(t, key, n);
}

static void json_put_losses(struct text_out *t, const struct profile_accounts *b,
			    enum wire_event event)
{
	const struct profile_losses *l = &b->of[event];

	json_begin_object(t, "losses");
	json_add_u64(t, "taken", l->taken);
	json_put_weight(t, "taken", event, l->taken_weight);
	json_add_u64(t, "delivered", l->delivered);
	json_put_weight(t, "delivered", event, l->delivered_weight);
	json_add_u64(t, "dropped", l->dropped);
	json_put_weight(t, "dropped", event, l->dropped_weight);
	if (l->no_ids)
		json_add_u64(t, "without_ids", l->no_ids);
	json_end_object(t);
	if (event != WIRE_EVENT_LOCK)
		return;
	json_add_u64(t, "short_waits", b->short_waits);
	json_add_u64(t, "short_waits_ns", b->short_waits_ns);
}

/* Writes the summary in the words that all formats use. */
static void json_put_words(struct text_out *t, const struct profile *p, enum wire_event event)
{
	const struct report_event *e = &report_events[event];
	char text[REPORT_TEXT_MAX];

	json_add_string(t, "event", wire_event_names[event]);
	json_add_string(t, "unit", e->unit);
	json_add_string(t, "of", e->of);
	json_add_string(t, "samples_are", e->samples);
	json_add_string(t, "rate", report_rate_text(p, event, text, sizeof(text)));
	json_add_string(t, "absent", report_absent_text(p, event, text, sizeof(text)));
	json_add_string(t, "note", report_note_text(p, event, text, sizeof(text)));
}

/* Writes the sums of the rows, for readers that do not add them up. */
static void json_put_view(struct text_out *t, const struct report_view *v, enum wire_event event)
{
	char mean[64];

	json_begin_object(t, "view");
	json_add_u64(t, "samples", v->samples);
	json_put_weight(t, "weight", event, v->weight);
	snprintf(mean, sizeof(mean), "mean_%s", report_events[event].unit);
	json_add_fixed(t, mean, v->mean, 0);
	if (v->process_cpu_ns) {
		json_add_u64(t, "process_cpu_ns", v->process_cpu_ns);
		json_add_fixed(t, "coverage", v->coverage, 4);
	}
	json_end_object(t);
}

static void json_put_left_out_of(struct text_out *t, const char *key,
				 const struct profile_left_out *l)
{
	json_begin_list(t, key);
	json_add_u64(t, NULL, l->samples);
	json_add_u64(t, NULL, l->weight);
	json_end_list(t);
}

/* Writes [samples, weight] of what filters left out, for reading it back; "absent" has sentences
 * about it. */
static void json_put_left_out(struct text_out *t, const struct profile *p, enum wire_event event)
{
	json_begin_object(t, "left_out");
	json_put_left_out_of(t, "idle", &p->idle_left_out[event]);
	json_put_left_out_of(t, "threads", &p->threads_left_out[event]);
	json_put_left_out_of(t, "stacks", &p->rows_left_out[event]);
	json_end_object(t);
}

/* Begins the object of the profile. */
static void json_put_head(struct text_out *t, const struct profile *p,
			  const struct report_options *o)
{
	enum wire_event event = report_event_of(o->events);
	struct report_view view = report_view_of(p, event);
	char title[512];

	json_begin_object(t, NULL);
	report_title(p, o, title, sizeof(title));
	json_add_string(t, "title", title);
	json_put_words(t, p, event);
	json_add_bool(t, "by_thread", o->threads);
	json_add_bool(t, "merge", o->merge);
	json_add_bool(t, "reverse", o->reverse);
	json_add_u64(t, "begin_ns", p->begin_real_ns);
	json_add_u64(t, "end_ns", p->end_real_ns);
	if (event == WIRE_EVENT_LOCK)
		json_add_u64(t, "min_wait_ns", p->interval[event]);
	else
		json_add_u64(t, event == WIRE_EVENT_ALLOC ? "interval_bytes" : "interval_ns",
			     (uint64_t)view.mean);
	if (event == WIRE_EVENT_OFFCPU)
		json_add_u64(t, "min_ns", p->interval[event]);
	json_add_bool(t, "no_budget", p->no_budget);
	json_add_u64(t, "overflow", p->overflow);
	if (p->cpu_unknown && event == WIRE_EVENT_CPU)
		json_add_bool(t, "cpu_unknown", true);
	json_put_view(t, &view, event);
	json_put_left_out(t, p, event);
	json_put_losses(t, &p->accounts, event);
}

static void json_put_labels(struct text_out *t, const char *labels)
{
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	json_begin_object(t, "labels");
	while (labels_next_text(&labels, key, value))
		json_add_string(t, key, value);
	json_end_object(t);
}

static void json_put_process(struct text_out *t, const struct profile *p, uint32_t process,
			     enum wire_event event)
{
	const struct profile_process *q = &p->processes[process];
	const char *note = report_process_note(p, process, event);

	json_begin_object(t, NULL);
	json_add_u64(t, "pid", q->pid);
	json_add_u64(t, "start_time", q->start_time);
	json_add_u64(t, "ns_pid", q->ns_pid);
	json_add_string(t, "name", p->strings[q->name]);
	json_add_string(t, "jdk", p->strings[q->jdk]);
	json_add_string(t, "container_id", p->strings[q->container_id]);
	json_add_string(t, "container", p->strings[q->container]);
	json_add_string(t, "pod", p->strings[q->pod]);
	json_put_labels(t, p->strings[q->labels]);
	if (*note)
		json_add_string(t, "note", note);
	if (event == WIRE_EVENT_CPU && q->cpu_ns)
		json_add_u64(t, "cpu_ns", q->cpu_ns);
	json_put_losses(t, &q->accounts, event);
	json_end_object(t);
}

static void json_put_processes(struct text_out *t, const struct profile *p, enum wire_event event)
{
	json_begin_list(t, "processes");
	for (uint32_t i = 0; i < p->n_processes; i++)
		json_put_process(t, p, i, event);
	json_end_list(t);
}

/* Virtual threads have an id, except for the one entry that stands for all unnamed ones. */
static void json_put_thread(struct text_out *t, const struct profile *p,
			    const struct profile_thread *of)
{
	json_begin_object(t, NULL);
	json_add_u64(t, "process", of->process);
	if (of->tid < WIRE_VIRTUAL_TID)
		json_add_u64(t, "tid", of->tid);
	else
		json_add_null(t, "tid");
	if (of->tid > WIRE_VIRTUAL_TID)
		json_add_u64(t, "virtual_id", of->tid - WIRE_VIRTUAL_TID);
	else if (of->tid == WIRE_VIRTUAL_TID)
		json_add_null(t, "virtual_id");
	json_add_string(t, "name", p->strings[of->name]);
	json_end_object(t);
}

static void json_put_threads(struct text_out *t, const struct profile *p)
{
	json_begin_list(t, "threads");
	for (uint32_t i = 0; i < p->n_threads; i++)
		json_put_thread(t, p, &p->threads[i]);
	json_end_list(t);
}

static void json_put_frame(struct text_out *t, const struct profile *p,
			   const struct profile_frame *f)
{
	char name[1024];

	report_frame_name(p, f, name, sizeof(name));
	json_begin_object(t, NULL);
	json_add_string(t, "name", name);
	json_add_string(t, "kind",
			f->kind < WIRE_KIND_COUNT ? wire_kind_names[f->kind] : "unknown");
	if (f->class_name)
		json_add_string(t, "class", p->strings[f->class_name]);
	if (f->method)
		json_add_string(t, "method", p->strings[f->method]);
	if (f->signature)
		json_add_string(t, "signature", p->strings[f->signature]);
	if (f->file)
		json_add_string(t, "file", p->strings[f->file]);
	if (f->line > 0)
		json_add_i64(t, "line", f->line);
	if (f->module)
		json_add_string(t, "module", p->strings[f->module]);
	if (f->module && !f->method)
		json_add_u64(t, "offset", f->offset);
	json_end_object(t);
}

static void json_put_frames(struct text_out *t, const struct profile *p)
{
	json_begin_list(t, "frames");
	for (uint32_t i = 0; i < p->n_frames; i++)
		json_put_frame(t, p, &p->frames[i]);
	json_end_list(t);
}

/* Writes nodes as [parent, frame]; node 0 is the root and has no frame. */
static void json_put_nodes(struct text_out *t, const struct profile *p)
{
	json_begin_list(t, "nodes");
	for (uint32_t i = 0; i == 0 || i < p->n_nodes; i++) {
		json_begin_list(t, NULL);
		json_add_u64(t, NULL, i ? p->nodes[i].parent : 0);
		json_add_i64(t, NULL, i ? (int64_t)p->nodes[i].frame : -1);
		json_end_list(t);
	}
	json_end_list(t);
}

/* Writes for each row how its thread waited, and which rows are waits for work. */
static void json_put_waits(struct text_out *t, const struct profile *p)
{
	json_begin_list(t, "row_waits");
	for (uint32_t i = 0; i < p->n_rows; i++)
		json_add_string(t, NULL, wire_wait_names[p->rows[i].wait]);
	json_end_list(t);
	json_begin_list(t, "idle_rows");
	for (uint32_t i = 0; i < p->n_rows; i++)
		if (p->rows[i].idle)
			json_add_u64(t, NULL, i);
	json_end_list(t);
}

/* [trace id, span id], and for each row which of them it has, from 1 on; 0 = none. */
static void json_put_spans(struct text_out *t, const struct profile *p)
{
	json_begin_list(t, "spans");
	for (uint32_t i = 0; i < p->n_spans; i++) {
		json_begin_list(t, NULL);
		json_add_string(t, NULL, p->strings[p->spans[i].trace_id]);
		json_add_string(t, NULL, p->strings[p->spans[i].span_id]);
		json_end_list(t);
	}
	json_end_list(t);
	json_begin_list(t, "row_spans");
	for (uint32_t i = 0; i < p->n_rows; i++)
		json_add_u64(t, NULL, p->rows[i].span);
	json_end_list(t);
}

void write_json_head(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	json_put_head(t, p, o);
	json_put_processes(t, p, report_event_of(o->events));
	json_end_object(t);
}

/* Writes rows as [thread, node, samples, weight], with a baseline also its samples and weight. */
static void json_put_rows(struct text_out *t, const struct profile *p, const struct against *a)
{
	json_begin_list(t, "rows");
	for (uint32_t i = 0; i < p->n_rows; i++) {
		json_begin_list(t, NULL);
		json_add_u64(t, NULL, p->rows[i].thread);
		json_add_u64(t, NULL, p->rows[i].node);
		json_add_u64(t, NULL, p->rows[i].samples);
		json_add_u64(t, NULL, p->rows[i].weight);
		if (a) {
			json_add_u64(t, NULL, a->row_samples[i]);
			json_add_u64(t, NULL, a->row_weights[i]);
		}
		json_end_list(t);
	}
	json_end_list(t);
}

static void json_put_against_method(struct text_out *t, const struct against_method *m,
				    enum wire_event event)
{
	json_begin_object(t, NULL);
	json_add_string(t, "name", m->name);
	json_put_weight(t, "self", event, m->self);
	json_put_weight(t, "total", event, m->total);
	json_put_weight(t, "baseline_self", event, m->base_self);
	json_put_weight(t, "baseline_total", event, m->base_total);
	json_end_object(t);
}

static void json_put_against(struct text_out *t, const struct against *a, enum wire_event event)
{
	json_begin_object(t, "diff");
	json_add_string(t, "by", a->by);
	json_add_rounded(t, "factor", a->factor, 9);
	json_begin_object(t, "baseline");
	json_add_string(t, "title", a->title);
	json_add_u64(t, "begin_ns", a->begin_real_ns);
	json_add_u64(t, "end_ns", a->end_real_ns);
	json_add_u64(t, "samples", a->samples);
	json_put_weight(t, "weight", event, a->weight);
	json_end_object(t);
	json_begin_list(t, "methods");
	for (uint32_t i = 0; i < a->n_methods; i++)
		json_put_against_method(t, &a->methods[i], event);
	json_end_list(t);
	json_end_object(t);
}

void write_json_against(struct text_out *t, const struct profile *p, const struct report_options *o,
			const struct against *a)
{
	enum wire_event event = report_event_of(o->events);

	json_put_head(t, p, o);
	if (a)
		json_put_against(t, a, event);
	json_put_processes(t, p, event);
	json_put_threads(t, p);
	json_put_frames(t, p);
	json_put_nodes(t, p);
	json_put_rows(t, p, a);
	if (event == WIRE_EVENT_LOCK && !a)
		json_put_waits(t, p);
	if (p->n_spans && !a)
		json_put_spans(t, p);
	json_end_object(t);
	json_end_line(t);
}

void write_json(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	write_json_against(t, p, o, NULL);
}
