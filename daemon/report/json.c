/* The whole profile as one JSON object; docs/api.md describes it. */
#include "daemon/report/formats.h"

#include "proto/wire.h"

static void put_losses(struct text_out *t, const struct profile_books *b, enum wire_event event)
{
	const struct profile_losses *l = &b->of[event];
	const char *unit = report_events[event].unit;

	text_printf(t,
		    ",\"losses\":{\"taken\":%llu,\"taken_%s\":%llu,\"delivered\":%llu,"
		    "\"delivered_%s\":%llu,\"dropped\":%llu,\"dropped_%s\":%llu}",
		    (unsigned long long)l->taken, unit, (unsigned long long)l->taken_weight,
		    (unsigned long long)l->delivered, unit, (unsigned long long)l->delivered_weight,
		    (unsigned long long)l->dropped, unit, (unsigned long long)l->dropped_weight);
	if (event == WIRE_EVENT_LOCK)
		text_printf(t, ",\"short_waits\":%llu,\"short_waits_ns\":%llu",
			    (unsigned long long)b->short_waits,
			    (unsigned long long)b->short_waits_ns);
}

/* What the page says of the whole, in words that are the same in all formats. */
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

/* The sums of the rows, for who does not add them up. */
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
	put_view(t, &view, event);
	put_losses(t, &p->books, event);
}

/* Up to its name. A virtual thread has an id, and all those without a name not even that. */
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

static void put_owners(struct text_out *t, const struct profile *p, enum wire_event event)
{
	text_put(t, ",\"processes\":[");
	for (uint32_t i = 0; i < p->n_processes; i++) {
		const struct profile_process *q = &p->processes[i];

		text_printf(t, "%s{\"pid\":%u,\"ns_pid\":%u,\"name\":", i ? "," : "", q->pid,
			    q->ns_pid);
		text_json(t, p->strings[q->name]);
		text_put(t, ",\"jdk\":");
		text_json(t, p->strings[q->jdk]);
		text_put(t, ",\"container_id\":");
		text_json(t, p->strings[q->container_id]);
		text_put(t, ",\"container\":");
		text_json(t, p->strings[q->container]);
		text_put(t, ",\"pod\":");
		text_json(t, p->strings[q->pod]);
		if (event == WIRE_EVENT_CPU && q->cpu_ns)
			text_printf(t, ",\"cpu_ns\":%llu", (unsigned long long)q->cpu_ns);
		put_losses(t, &q->books, event);
		text_put(t, "}");
	}
	text_put(t, "],\"threads\":[");
	for (uint32_t i = 0; i < p->n_threads; i++) {
		put_thread_number(t, i ? "," : "", &p->threads[i]);
		text_json(t, p->strings[p->threads[i].name]);
		text_put(t, "}");
	}
	text_put(t, "]");
}

static void put_frame(struct text_out *t, const struct profile *p, const struct profile_frame *f)
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

void write_json(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	put_head(t, p, o);
	put_owners(t, p, report_event_of(o->events));
	text_put(t, ",\"frames\":[");
	for (uint32_t i = 0; i < p->n_frames; i++) {
		if (i)
			text_put(t, ",");
		put_frame(t, p, &p->frames[i]);
	}
	/* [parent, frame]; node 0 is the root and has no frame */
	text_put(t, "],\"nodes\":[[0,-1]");
	for (uint32_t i = 1; i < p->n_nodes; i++)
		text_printf(t, ",[%u,%u]", p->nodes[i].parent, p->nodes[i].frame);
	text_put(t, "],\"rows\":[");
	for (uint32_t i = 0; i < p->n_rows; i++)
		text_printf(t, "%s[%u,%u,%llu,%llu]", i ? "," : "", p->rows[i].thread,
			    p->rows[i].node, (unsigned long long)p->rows[i].samples,
			    (unsigned long long)p->rows[i].weight);
	text_put(t, "]}\n");
}
