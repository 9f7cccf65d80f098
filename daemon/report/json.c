/* The whole profile as one JSON object; docs/api.md describes it. */
#include "daemon/report/against.h"
#include "daemon/report/formats.h"

#include "daemon/core/labels.h"
#include "proto/wire.h"

static void json_put_losses(struct text_out *t, const struct profile_accounts *b,
			    enum wire_event event)
{
	const struct profile_losses *l = &b->of[event];
	const char *unit = report_events[event].unit;

	text_printf(t,
		    ",\"losses\":{\"taken\":%llu,\"taken_%s\":%llu,\"delivered\":%llu,"
		    "\"delivered_%s\":%llu,\"dropped\":%llu,\"dropped_%s\":%llu",
		    (unsigned long long)l->taken, unit, (unsigned long long)l->taken_weight,
		    (unsigned long long)l->delivered, unit, (unsigned long long)l->delivered_weight,
		    (unsigned long long)l->dropped, unit, (unsigned long long)l->dropped_weight);
	if (l->no_ids)
		text_printf(t, ",\"without_ids\":%llu", (unsigned long long)l->no_ids);
	text_put(t, "}");
	if (event == WIRE_EVENT_LOCK)
		text_printf(t, ",\"short_waits\":%llu,\"short_waits_ns\":%llu",
			    (unsigned long long)b->short_waits,
			    (unsigned long long)b->short_waits_ns);
}

/* Writes the summary in the words that all formats use. */
static void put_words(struct text_out *t, const struct profile *p, enum wire_event event)
{
	const struct report_event *e = &report_events[event];
	char text[REPORT_TEXT_MAX];

	text_printf(
		t,
		",\"event\":\"%s\",\"unit\":\"%s\",\"of\":\"%s\",\"samples_are\":\"%s\",\"rate\":",
		wire_event_names[event], e->unit, e->of, e->samples);
	text_json(t, report_rate_text(p, event, text, sizeof(text)));
	text_put(t, ",\"absent\":");
	text_json(t, report_absent_text(p, event, text, sizeof(text)));
	text_put(t, ",\"note\":");
	text_json(t, report_note_text(p, event, text, sizeof(text)));
}

/* Writes the sums of the rows, for readers that do not add them up. */
static void put_view(struct text_out *t, const struct report_view *v, enum wire_event event)
{
	const char *unit = report_events[event].unit;

	text_printf(t, ",\"view\":{\"samples\":%llu,\"weight_%s\":%llu,\"mean_%s\":%.0f",
		    (unsigned long long)v->samples, unit, (unsigned long long)v->weight, unit,
		    v->mean);
	if (v->process_cpu_ns)
		text_printf(t, ",\"process_cpu_ns\":%llu,\"coverage\":%.4f",
			    (unsigned long long)v->process_cpu_ns, v->coverage);
	text_put(t, "}");
}

/* Writes [samples, weight] of what filters left out, for reading it back; "absent" has sentences
 * about it. */
static void json_put_left_out(struct text_out *t, const struct profile *p, enum wire_event event)
{
	const struct profile_left_out *idle = &p->idle_left_out[event];
	const struct profile_left_out *threads = &p->threads_left_out[event];
	const struct profile_left_out *rows = &p->rows_left_out[event];

	text_printf(t,
		    ",\"left_out\":{\"idle\":[%llu,%llu],\"threads\":[%llu,%llu],"
		    "\"stacks\":[%llu,%llu]}",
		    (unsigned long long)idle->samples, (unsigned long long)idle->weight,
		    (unsigned long long)threads->samples, (unsigned long long)threads->weight,
		    (unsigned long long)rows->samples, (unsigned long long)rows->weight);
}

static void put_head(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	enum wire_event event = report_event_of(o->events);
	struct report_view view = report_view_of(p, event);
	char title[512];

	report_title(p, o, title, sizeof(title));
	text_put(t, "{\"title\":");
	text_json(t, title);
	put_words(t, p, event);
	text_put(t, o->threads ? ",\"by_thread\":true" : ",\"by_thread\":false");
	text_put(t, o->merge ? ",\"merge\":true" : ",\"merge\":false");
	text_put(t, o->reverse ? ",\"reverse\":true" : ",\"reverse\":false");
	text_printf(t,
		    ",\"begin_ns\":%llu,\"end_ns\":%llu,\"%s\":%llu,\"no_budget\":%s,"
		    "\"overflow\":%llu",
		    (unsigned long long)p->begin_real_ns, (unsigned long long)p->end_real_ns,
		    event == WIRE_EVENT_LOCK	? "min_wait_ns"
		    : event == WIRE_EVENT_ALLOC ? "interval_bytes"
						: "interval_ns",
		    event == WIRE_EVENT_LOCK ? (unsigned long long)p->interval[event]
					     : (unsigned long long)view.mean,
		    p->no_budget ? "true" : "false", (unsigned long long)p->overflow);
	if (p->cpu_unknown && event == WIRE_EVENT_CPU)
		text_put(t, ",\"cpu_unknown\":true");
	put_view(t, &view, event);
	json_put_left_out(t, p, event);
	json_put_losses(t, &p->accounts, event);
}

/* Writes a thread up to its name. Virtual threads have an id, except for the one entry that stands
 * for all unnamed ones. */
static void put_thread_number(struct text_out *t, const char *comma,
			      const struct profile_thread *of)
{
	text_printf(t, "%s{\"process\":%u,", comma, of->process);
	if (of->tid < WIRE_VIRTUAL_TID)
		text_printf(t, "\"tid\":%u,\"name\":", of->tid);
	else if (of->tid > WIRE_VIRTUAL_TID)
		text_printf(t,
			    "\"tid\":null,\"virtual_id\":%u,\"name\":", of->tid - WIRE_VIRTUAL_TID);
	else
		text_put(t, "\"tid\":null,\"virtual_id\":null,\"name\":");
}

static void json_put_labels(struct text_out *t, const char *labels)
{
	const char *comma = "";
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE];

	text_put(t, ",\"labels\":{");
	while (labels_next_text(&labels, key, value)) {
		text_put(t, comma);
		text_json(t, key);
		text_put(t, ":");
		text_json(t, value);
		comma = ",";
	}
	text_put(t, "}");
}

static void json_put_processes(struct text_out *t, const struct profile *p, enum wire_event event)
{
	text_put(t, ",\"processes\":[");
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];

		text_printf(t, "%s{\"pid\":%u,\"start_time\":%llu,\"ns_pid\":%u,\"name\":",
			    i ? "," : "", q->pid, (unsigned long long)q->start_time, q->ns_pid);
		text_json(t, p->strings[q->name]);
		text_put(t, ",\"jdk\":");
		text_json(t, p->strings[q->jdk]);
		text_put(t, ",\"container_id\":");
		text_json(t, p->strings[q->container_id]);
		text_put(t, ",\"container\":");
		text_json(t, p->strings[q->container]);
		text_put(t, ",\"pod\":");
		text_json(t, p->strings[q->pod]);
		json_put_labels(t, p->strings[q->labels]);
		if (event == WIRE_EVENT_CPU && q->note) {
			text_put(t, ",\"note\":");
			text_json(t, p->strings[q->note]);
		}
		if (event == WIRE_EVENT_CPU && q->cpu_ns)
			text_printf(t, ",\"cpu_ns\":%llu", (unsigned long long)q->cpu_ns);
		json_put_losses(t, &q->accounts, event);
		text_put(t, "}");
	}
	text_put(t, "]");
}

static void json_put_threads(struct text_out *t, const struct profile *p)
{
	text_put(t, ",\"threads\":[");
	for (uint32_t i = 0; i < p->n_threads; i++) {
		put_thread_number(t, i ? "," : "", &p->threads[i]);
		text_json(t, p->strings[p->threads[i].name]);
		text_put(t, "}");
	}
	text_put(t, "]");
}

static void json_put_frame(struct text_out *t, const struct profile *p,
			   const struct profile_frame *f)
{
	char name[1024];

	report_frame_name(p, f, name, sizeof(name));
	text_put(t, "{\"name\":");
	text_json(t, name);
	text_printf(t, ",\"kind\":\"%s\"",
		    f->kind < WIRE_KIND_COUNT ? wire_kind_names[f->kind] : "unknown");
	if (f->class_name) {
		text_put(t, ",\"class\":");
		text_json(t, p->strings[f->class_name]);
	}
	if (f->method) {
		text_put(t, ",\"method\":");
		text_json(t, p->strings[f->method]);
	}
	if (f->signature) {
		text_put(t, ",\"signature\":");
		text_json(t, p->strings[f->signature]);
	}
	if (f->file) {
		text_put(t, ",\"file\":");
		text_json(t, p->strings[f->file]);
	}
	if (f->line > 0)
		text_printf(t, ",\"line\":%d", f->line);
	if (f->module) {
		text_put(t, ",\"module\":");
		text_json(t, p->strings[f->module]);
		if (!f->method)
			text_printf(t, ",\"offset\":%llu", (unsigned long long)f->offset);
	}
	text_put(t, "}");
}

/* Writes for each row how its thread waited, and which rows are waits for work. */
static void json_put_waits(struct text_out *t, const struct profile *p)
{
	const char *comma = "";

	text_put(t, ",\"row_waits\":[");
	for (uint32_t i = 0; i < p->n_rows; i++)
		text_printf(t, "%s\"%s\"", i ? "," : "", wire_wait_names[p->rows[i].wait]);
	text_put(t, "],\"idle_rows\":[");
	for (uint32_t i = 0; i < p->n_rows; i++) {
		if (!p->rows[i].idle)
			continue;
		text_printf(t, "%s%u", comma, i);
		comma = ",";
	}
	text_put(t, "]");
}

/* [trace id, span id], and for each row which of them it has, from 1 on; 0 = none. */
static void json_put_spans(struct text_out *t, const struct profile *p)
{
	text_put(t, ",\"spans\":[");
	for (uint32_t i = 0; i < p->n_spans; i++) {
		text_put(t, i ? ",[" : "[");
		text_json(t, p->strings[p->spans[i].trace_id]);
		text_put(t, ",");
		text_json(t, p->strings[p->spans[i].span_id]);
		text_put(t, "]");
	}
	text_put(t, "],\"row_spans\":[");
	for (uint32_t i = 0; i < p->n_rows; i++)
		text_printf(t, "%s%u", i ? "," : "", p->rows[i].span);
	text_put(t, "]");
}

void write_json_head(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	put_head(t, p, o);
	json_put_processes(t, p, report_event_of(o->events));
	text_put(t, "}");
}

/* Writes rows as [thread, node, samples, weight], with a baseline also its samples and weight. */
static void json_put_rows(struct text_out *t, const struct profile *p, const struct against *a)
{
	text_put(t, "],\"rows\":[");
	for (uint32_t i = 0; i < p->n_rows; i++) {
		text_printf(t, "%s[%u,%u,%llu,%llu", i ? "," : "", p->rows[i].thread,
			    p->rows[i].node, (unsigned long long)p->rows[i].samples,
			    (unsigned long long)p->rows[i].weight);
		if (a)
			text_printf(t, ",%llu,%llu", (unsigned long long)a->row_samples[i],
				    (unsigned long long)a->row_weights[i]);
		text_put(t, "]");
	}
	text_put(t, "]");
}

static void put_against(struct text_out *t, const struct against *a, const char *unit)
{
	text_printf(t, ",\"diff\":{\"by\":\"%s\",\"factor\":%.9g,\"baseline\":{\"title\":", a->by,
		    a->factor);
	text_json(t, a->title);
	text_printf(t,
		    ",\"begin_ns\":%llu,\"end_ns\":%llu,\"samples\":%llu,\"weight_%s\":%llu},"
		    "\"methods\":[",
		    (unsigned long long)a->begin_real_ns, (unsigned long long)a->end_real_ns,
		    (unsigned long long)a->samples, unit, (unsigned long long)a->weight);
	for (uint32_t i = 0; i < a->n_methods; i++) {
		const struct against_method *m = &a->methods[i];

		text_put(t, i ? ",{\"name\":" : "{\"name\":");
		text_json(t, m->name);
		text_printf(t,
			    ",\"self_%s\":%llu,\"total_%s\":%llu,\"baseline_self_%s\":%llu,"
			    "\"baseline_total_%s\":%llu}",
			    unit, (unsigned long long)m->self, unit, (unsigned long long)m->total,
			    unit, (unsigned long long)m->base_self, unit,
			    (unsigned long long)m->base_total);
	}
	text_put(t, "]}");
}

void write_json_against(struct text_out *t, const struct profile *p, const struct report_options *o,
			const struct against *a)
{
	enum wire_event event = report_event_of(o->events);

	put_head(t, p, o);
	if (a)
		put_against(t, a, report_events[event].unit);
	json_put_processes(t, p, event);
	json_put_threads(t, p);
	text_put(t, ",\"frames\":[");
	for (uint32_t i = 0; i < p->n_frames; i++) {
		if (i)
			text_put(t, ",");
		json_put_frame(t, p, &p->frames[i]);
	}
	/* [parent, frame]; node 0 is the root and has no frame */
	text_put(t, "],\"nodes\":[[0,-1]");
	for (uint32_t i = 1; i < p->n_nodes; i++)
		text_printf(t, ",[%u,%u]", p->nodes[i].parent, p->nodes[i].frame);
	json_put_rows(t, p, a);
	if (event == WIRE_EVENT_LOCK && !a)
		json_put_waits(t, p);
	if (p->n_spans && !a)
		json_put_spans(t, p);
	text_put(t, "}\n");
}

void write_json(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	write_json_against(t, p, o, NULL);
}
