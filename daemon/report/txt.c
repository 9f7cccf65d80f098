/* The format for terminals: the methods with the most self time, and the hottest stacks. */
#include "daemon/report/against.h"
#include "daemon/report/formats.h"
#include "daemon/report/methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define METHODS_MAX 60
#define TRACES_MAX  10
#define TRACE_LINES 40

static int by_weight(const void *a, const void *b)
{
	const struct profile_row *x = *(const struct profile_row *const *)a;
	const struct profile_row *y = *(const struct profile_row *const *)b;

	return x->weight < y->weight ? 1 : x->weight > y->weight ? -1 : 0;
}

static double txt_percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void txt_put_accounts(struct text_out *t, const struct profile *p, enum wire_event event)
{
	const struct report_event *e = &report_events[event];
	const struct profile_losses *l = &p->accounts.of[event];
	char text[REPORT_TEXT_MAX];

	text_printf(t, "%s: %llu taken = %llu delivered + %llu dropped (%.3f %s dropped)\n",
		    e->samples, (unsigned long long)l->taken, (unsigned long long)l->delivered,
		    (unsigned long long)l->dropped, (double)l->dropped_weight / e->large_size,
		    e->large);
	text_put(t, report_absent_text(p, event, text, sizeof(text)));
	if (*report_note_text(p, event, text, sizeof(text)))
		text_printf(t, "note: %s\n", text);
	if (p->no_budget)
		text_put(t, "the agent's CPU budget did not apply to this recording\n");
	if (p->overflow)
		text_printf(t, "%llu samples had no room for their stack: [profile full]\n",
			    (unsigned long long)p->overflow);
}

/* Says that the profile has neither a JVM nor a time. */
static void txt_put_nothing(struct text_out *t, const struct report_options *o)
{
	if (o->title)
		text_printf(t, "%s\n", o->title);
	text_put(t, "nothing was recorded of these JVMs in that time: the newest samples arrive "
		    "within a second, and `kindling status` tells why a JVM is not profiled\n");
}

static void txt_put_header(struct text_out *t, const struct profile *p,
			   const struct report_options *o)
{
	enum wire_event event = report_event_of(o->events);
	char title[512], begin[64] = "", end[64] = "", sum[64], rate[REPORT_TEXT_MAX];
	time_t from = (time_t)(p->begin_real_ns / 1000000000ull);
	time_t to = (time_t)(p->end_real_ns / 1000000000ull);
	struct tm tm;

	if (report_is_of_nothing(p)) {
		txt_put_nothing(t, o);
		return;
	}
	report_title(p, o, title, sizeof(title));
	report_sum_text(p, event, sum, sizeof(sum));
	report_rate_text(p, event, rate, sizeof(rate));
	strftime(begin, sizeof(begin), "%Y-%m-%d %H:%M:%S", localtime_r(&from, &tm));
	strftime(end, sizeof(end), "%H:%M:%S", localtime_r(&to, &tm));
	text_printf(t, "%s\n", title);
	if (p->end_real_ns)
		text_printf(t, "%s to %s, ", begin, end);
	text_printf(t, "%s, %s\n", sum, rate);
	txt_put_accounts(t, p, event);
}

static void put_trace(struct text_out *t, const struct profile *p, const struct profile_row *r,
		      uint64_t total)
{
	const struct report_event *e = &report_events[r->event];
	const struct profile_thread *thread = &p->threads[r->thread];
	char name[512], number[THREAD_NUMBER_MAX];
	int lines = 0;

	text_printf(t, "\n%.3f %s, %.2f%%, %llu %.*s, thread \"%s\"%s\n",
		    (double)r->weight / e->large_size, e->large, txt_percent(r->weight, total),
		    (unsigned long long)r->samples, (int)strlen(e->samples) - (r->samples == 1),
		    e->samples, p->strings[thread->name], thread_number(thread, number));
	for (uint32_t node = r->node; node; node = p->nodes[node].parent) {
		const struct profile_frame *f = &p->frames[p->nodes[node].frame];

		if (++lines > TRACE_LINES) {
			text_put(t, "    ...\n");
			break;
		}
		report_frame_name(p, f, name, sizeof(name));
		if (f->line > 0)
			text_printf(t, "    %s(%s:%d)\n", name, p->strings[f->file], f->line);
		else
			text_printf(t, "    %s\n", name);
	}
}

static void txt_put_methods(struct text_out *t, const struct profile *p,
			    const struct report_event *e, uint64_t total)
{
	CLEANUP(report_index_freep) struct report_index *index = NULL;
	char self[16], all[16];
	struct report_methods m;

	if (report_index_new(p, &index) < 0 ||
	    report_methods(p, index, UINT32_MAX, REPORT_BY_SELF, &m) < 0) {
		t->failed = true;
		return;
	}
	snprintf(self, sizeof(self), "self %s", e->large);
	snprintf(all, sizeof(all), "total %s", e->large);
	text_printf(t, "\n%10s %8s %10s %8s %10s  %s\n", self, "self%", all, "total%", e->samples,
		    "method");
	for (uint32_t i = 0; i < m.n && i < METHODS_MAX; i++)
		text_printf(t, "%10.3f %7.2f%% %10.3f %7.2f%% %10llu  %s\n",
			    (double)m.methods[i].self / e->large_size,
			    txt_percent(m.methods[i].self, total),
			    (double)m.methods[i].total / e->large_size,
			    txt_percent(m.methods[i].total, total),
			    (unsigned long long)m.methods[i].samples, m.methods[i].name);
	report_methods_free(&m);
}

void write_txt(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	const struct profile_row **rows = calloc(p->n_rows + 1, sizeof(*rows));
	uint64_t total = 0;

	if (!rows) {
		t->failed = true;
		return;
	}
	for (uint32_t i = 0; i < p->n_rows; i++) {
		rows[i] = &p->rows[i];
		total += p->rows[i].weight;
	}
	txt_put_header(t, p, o);
	if (report_is_of_nothing(p)) {
		free(rows);
		return;
	}
	txt_put_methods(t, p, &report_events[report_event_of(o->events)], total);
	qsort(rows, p->n_rows, sizeof(*rows), by_weight);
	text_put(t, "\nhottest stacks\n");
	for (uint32_t i = 0; i < p->n_rows && i < TRACES_MAX; i++)
		put_trace(t, p, rows[i], total);
	free(rows);
}

/* ---- differences ----------------------------------------------------------------------------- */

/* Writes what the baseline is, "2026-11-21 14:00:00 to 14:05:00, 12.310 s of CPU, 1231 samples",
 * and its factor. */
static void put_baseline(struct text_out *t, const struct report_event *e, uint64_t now,
			 const struct against *a)
{
	time_t from = (time_t)(a->begin_real_ns / 1000000000ull);
	time_t to = (time_t)(a->end_real_ns / 1000000000ull);
	double grown = against_grown(a, now, a->weight);
	char begin[64], end[64];
	struct tm tm;

	strftime(begin, sizeof(begin), "%Y-%m-%d %H:%M:%S", localtime_r(&from, &tm));
	strftime(end, sizeof(end), "%H:%M:%S", localtime_r(&to, &tm));
	text_printf(t, "\nbaseline: %s\n", a->title);
	if (a->end_real_ns)
		text_printf(t, "%s to %s, ", begin, end);
	text_printf(t, "%.3f %s of %s, %llu %s\n", (double)a->weight / e->large_size, e->large,
		    e->of, (unsigned long long)a->samples, e->samples);
	text_printf(t, "its numbers are multiplied by %.6g, so that both are of the same %s\n",
		    a->factor, strcmp(a->by, "time") == 0 ? "length" : "total");
	text_printf(t, "%+.3f %s in all, %+.2f%% of the baseline\n", grown / e->large_size,
		    e->large, a->weight ? 100 * grown / (a->factor * (double)a->weight) : 0.0);
}

static void put_changes(struct text_out *t, const struct report_event *e, const struct against *a)
{
	text_printf(t, "\n%10s %10s %10s %10s %10s %10s  method, in %s\n", "self diff", "self now",
		    "self base", "total diff", "total now", "total base", e->large);
	for (uint32_t i = 0; i < a->n_methods && i < METHODS_MAX; i++) {
		const struct against_method *m = &a->methods[i];

		text_printf(t, "%+10.3f %10.3f %10.3f %+10.3f %10.3f %10.3f  %s\n",
			    against_grown(a, m->self, m->base_self) / e->large_size,
			    (double)m->self / e->large_size,
			    a->factor * (double)m->base_self / e->large_size,
			    against_grown(a, m->total, m->base_total) / e->large_size,
			    (double)m->total / e->large_size,
			    a->factor * (double)m->base_total / e->large_size, m->name);
	}
	if (a->n_methods > METHODS_MAX)
		text_printf(t, "and %u methods with smaller differences\n",
			    a->n_methods - METHODS_MAX);
}

void write_txt_against(struct text_out *t, const struct profile *p, const struct report_options *o,
		       const struct against *a)
{
	enum wire_event event = report_event_of(o->events);
	uint64_t total = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		total += p->rows[i].weight;
	txt_put_header(t, p, o);
	put_baseline(t, &report_events[event], total, a);
	put_changes(t, &report_events[event], a);
}
