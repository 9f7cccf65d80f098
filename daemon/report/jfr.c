/*
 * The format of JDK Flight Recorder: one chunk, which `jfr`, JDK Mission Control and other tools
 * read.
 *
 * A profile has weights by thread and stack, but no moments. kindling.CpuTime has exactly that: one
 * event for each row. Tools, however, expect jdk.ExecutionSample: so there are as many of these as
 * there were samples, all for the same CPU time (the setting "interval"), spread over the span.
 * What remains of a row, less than an interval, is added to the next one. Likewise
 * kindling.WaitTime, kindling.OffCpuTime and kindling.Allocated are the rows, and of the JDK's own
 * events there are as many as there were, each with the mean of its row, so that the sum is exact.
 */
#include "daemon/report/formats.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/core/labels.h"
#include "daemon/report/jfr_priv.h"

/* instances of jdk.ExecutionSample; if there were more samples, the interval is longer */
#define SAMPLES_MAX	    2000000u
#define DEFAULT_INTERVAL_NS 10000000ull

/* ---- bytes ----------------------------------------------------------------------------------- */

void jfr_u64(struct text_out *t, uint64_t v)
{
	uint8_t b[9];
	size_t n = 0;

	for (; n < 8 && v > 0x7f; v >>= 7)
		b[n++] = (uint8_t)(v | 0x80);
	b[n++] = (uint8_t)v;
	text_bytes(t, (const char *)b, n);
}

static void put_big_endian(struct text_out *t, uint64_t v, unsigned bytes)
{
	while (bytes--) {
		uint8_t b = (uint8_t)(v >> 8 * bytes);

		text_bytes(t, &b, 1);
	}
}

void jfr_string(struct text_out *t, const char *s)
{
	size_t len = strlen(s);

	text_bytes(t, "\3", 1); /* UTF-8 */
	jfr_u64(t, len);
	text_bytes(t, s, len);
}

size_t jfr_begin(struct text_out *t, enum jfr_type type)
{
	size_t at = t->len;

	text_bytes(t, "\0\0\0\0\0", 5);
	jfr_u64(t, type);
	return at;
}

void jfr_end(struct text_out *t, size_t at)
{
	uint64_t size = t->len - at;

	for (unsigned i = 0; i < 5 && !t->failed; i++)
		t->p[at + i] = (char)((size >> 7 * i & 0x7f) | (i < 4 ? 0x80 : 0));
}

/* ---- events ---------------------------------------------------------------------------------- */

static size_t begin_event(struct jfr *j, enum jfr_type type, uint64_t after_ns)
{
	size_t at = jfr_begin(j->t, type);

	jfr_u64(j->t, JFR_START_TICKS + after_ns);
	return at;
}

static void jfr_put_thread_and_stack(struct jfr *j, const struct profile_row *r)
{
	jfr_u64(j->t, r->thread + 1ull);
	jfr_u64(j->t, jfr_stack_of(j, r) + 1ull);
}

/* The last fields of kindling's own events; null without ids. */
static void jfr_put_ids(struct jfr *j, const struct profile_row *r)
{
	const struct profile_span *s = r->span ? &j->p->spans[r->span - 1] : NULL;
	const uint32_t ids[] = { s ? s->trace_id : 0, s ? s->span_id : 0 };

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (ids[i])
			jfr_string(j->t, j->p->strings[ids[i]]);
		else
			text_bytes(j->t, "", 1); /* null */
}

static void put_setting(struct jfr *j, enum jfr_type of, const char *name, const char *value)
{
	size_t at = begin_event(j, JFR_ACTIVE_SETTING, 0);

	jfr_u64(j->t, of);
	jfr_string(j->t, name);
	jfr_string(j->t, value);
	jfr_end(j->t, at);
}

/* The key of a label: "label.service", with several processes "4711.label.service". */
static void jfr_put_labels(struct jfr *j, const struct profile_process *q)
{
	const char *labels = j->p->strings[q->labels];
	char key[LABEL_KEY_SIZE], value[LABEL_VALUE_SIZE], name[LABEL_KEY_SIZE + 32], pid[16];

	snprintf(pid, sizeof(pid), "%u.", q->pid);
	while (labels_next_text(&labels, key, value)) {
		snprintf(name, sizeof(name), "%slabel.%s", j->p->n_processes > 1 ? pid : "", key);
		put_setting(j, JFR_EXECUTION_SAMPLE, name, value);
	}
}

/* Writes the summary that other formats have in their head. */
static void jfr_put_summary(struct jfr *j, enum wire_event event)
{
	char sum[64], rate[REPORT_TEXT_MAX], absent[REPORT_TEXT_MAX], note[REPORT_TEXT_MAX];
	char text[3 * REPORT_TEXT_MAX];

	report_sum_text(j->p, event, sum, sizeof(sum));
	report_rate_text(j->p, event, rate, sizeof(rate));
	report_absent_text(j->p, event, absent, sizeof(absent));
	report_note_text(j->p, event, note, sizeof(note));
	snprintf(text, sizeof(text), "%s, %s\n%s%s", sum, rate, absent, note);
	text[strlen(text) - (text[strlen(text) - 1] == '\n')] = '\0';
	jfr_string(j->t, text);
}

static void jfr_put_accounts(struct jfr *j, uint64_t interval_ns)
{
	const struct profile_losses *l = &j->p->accounts.of[WIRE_EVENT_CPU];
	struct report_view view = report_view_of(j->p, WIRE_EVENT_CPU);
	size_t at = begin_event(j, JFR_ACCOUNTS, 0);
	char text[32];

	jfr_u64(j->t, l->taken);
	jfr_u64(j->t, l->delivered);
	jfr_u64(j->t, l->dropped);
	jfr_u64(j->t, l->dropped_weight);
	jfr_u64(j->t, (uint64_t)view.mean);
	jfr_u64(j->t, view.samples);
	jfr_u64(j->t, view.weight);
	jfr_u64(j->t, view.process_cpu_ns);
	jfr_put_summary(j, WIRE_EVENT_CPU);
	jfr_end(j->t, at);
	snprintf(text, sizeof(text), "%llu ns", (unsigned long long)interval_ns);
	put_setting(j, JFR_EXECUTION_SAMPLE, "event", "cpu");
	put_setting(j, JFR_EXECUTION_SAMPLE, "interval", text);
	put_setting(j, JFR_EXECUTION_SAMPLE, "period", text);
}

static void put_cpu_time(struct jfr *j, const struct profile_row *r, uint64_t span_ns)
{
	size_t at = begin_event(j, JFR_CPU_TIME, span_ns / 2);

	jfr_put_thread_and_stack(j, r);
	jfr_u64(j->t, r->samples);
	jfr_u64(j->t, r->weight);
	jfr_put_ids(j, r);
	jfr_end(j->t, at);
}

/* Moment @n of as many as there are: multiples of the golden ratio, modulo 1, are spread evenly
 * whatever their number. */
static uint64_t moment_ns(uint64_t n, uint64_t span_ns)
{
	uint64_t part = (n * 0x9e3779b97f4a7c15ull) >> 32;

	return (uint64_t)((double)span_ns * ((double)part / 4294967296.0));
}

static void put_execution_samples(struct jfr *j, const struct profile_row *r, uint64_t interval_ns,
				  uint64_t span_ns)
{
	for (; j->carried_ns >= interval_ns && !j->t->failed; j->carried_ns -= interval_ns) {
		size_t at = begin_event(j, JFR_EXECUTION_SAMPLE, moment_ns(j->n++, span_ns));

		jfr_put_thread_and_stack(j, r);
		jfr_u64(j->t, 0); /* STATE_DEFAULT */
		jfr_end(j->t, at);
	}
}

/* Writes a wait of @weight ns, or an allocation of @weight bytes. */
static void jfr_put_one(struct jfr *j, const struct profile_row *r, uint64_t weight,
			uint64_t after_ns)
{
	static const enum jfr_type waits[WIRE_WAIT_COUNT] = {
		[WIRE_WAIT_ENTER] = JFR_MONITOR_ENTER,
		[WIRE_WAIT_WAIT] = JFR_MONITOR_WAIT,
		[WIRE_WAIT_PARK] = JFR_THREAD_PARK,
	};
	/* how many fields follow the class: no previous owner, no timeout, no address */
	static const int zeros[WIRE_WAIT_COUNT] = { 2, 4, 3 };
	bool is_wait = r->event == WIRE_EVENT_LOCK;
	size_t at = begin_event(j, is_wait ? waits[r->wait] : JFR_ALLOCATION, after_ns);

	if (is_wait)
		jfr_u64(j->t, weight);
	jfr_put_thread_and_stack(j, r);
	jfr_u64(j->t, jfr_class_of(j, r));
	for (int i = 0; is_wait && i < zeros[r->wait]; i++)
		jfr_u64(j->t, 0);
	if (!is_wait)
		jfr_u64(j->t, weight);
	jfr_end(j->t, at);
}

/* The frame on top of an interval's stack: "sleep", "lock org.shop.Cache". */
static const char *jfr_reason_of(const struct jfr *j, const struct profile_row *r)
{
	const struct profile_frame *f = &j->p->frames[j->p->nodes[r->node].frame];

	return r->node && f->kind == WIRE_KIND_CLASS ? j->p->strings[f->method] : "";
}

static void jfr_put_interval(struct jfr *j, const struct profile_row *r, uint64_t weight,
			     uint64_t after_ns)
{
	size_t at = begin_event(j, JFR_OFFCPU, after_ns);

	jfr_u64(j->t, weight);
	jfr_put_thread_and_stack(j, r);
	jfr_string(j->t, jfr_reason_of(j, r));
	jfr_put_ids(j, r);
	jfr_end(j->t, at);
}

static void jfr_put_intervals(struct jfr *j, const struct profile_row *r, uint64_t span_ns)
{
	size_t at = begin_event(j, JFR_OFFCPU_TIME, span_ns / 2);

	jfr_put_thread_and_stack(j, r);
	jfr_string(j->t, jfr_reason_of(j, r));
	jfr_u64(j->t, r->samples);
	jfr_u64(j->t, r->weight);
	jfr_put_ids(j, r);
	jfr_end(j->t, at);
}

static void jfr_put_sum(struct jfr *j, const struct profile_row *r, uint64_t span_ns)
{
	size_t at = begin_event(j, r->event == WIRE_EVENT_LOCK ? JFR_WAIT_TIME : JFR_ALLOCATED,
				span_ns / 2);

	jfr_put_thread_and_stack(j, r);
	jfr_u64(j->t, jfr_class_of(j, r));
	jfr_u64(j->t, r->samples);
	jfr_u64(j->t, r->weight);
	jfr_put_ids(j, r);
	jfr_end(j->t, at);
}

/* Writes as many events as there were, at most this event's share of SAMPLES_MAX. */
static void put_each(struct jfr *j, const struct profile_row *r, uint64_t all, uint64_t span_ns)
{
	uint64_t n = all > SAMPLES_MAX ? r->samples * SAMPLES_MAX / all : r->samples,
		 left = r->weight;

	for (n = n ? n : 1; n && !j->t->failed; n--) {
		if (r->event == WIRE_EVENT_OFFCPU)
			jfr_put_interval(j, r, left / n, moment_ns(j->n++, span_ns));
		else
			jfr_put_one(j, r, left / n, moment_ns(j->n++, span_ns));
		left -= left / n;
	}
}

static void jfr_put_rows(struct jfr *j, uint64_t interval_ns, uint64_t span_ns)
{
	const struct profile *p = j->p;
	uint64_t all = profile_samples(p);

	j->carried_ns = interval_ns / 2;
	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (r->event == WIRE_EVENT_CPU) {
			put_cpu_time(j, r, span_ns);
			j->carried_ns += r->weight;
			put_execution_samples(j, r, interval_ns, span_ns);
		} else {
			if (r->event == WIRE_EVENT_OFFCPU)
				jfr_put_intervals(j, r, span_ns);
			else
				jfr_put_sum(j, r, span_ns);
			put_each(j, r, all, span_ns);
		}
	}
}

/* The CPU time that each jdk.ExecutionSample stands for, ns. */
static uint64_t sample_interval_ns(const struct profile *p)
{
	uint64_t all_ns = 0, n = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		if (p->rows[i].event != WIRE_EVENT_CPU)
			continue;
		n += p->rows[i].samples;
		all_ns += p->rows[i].weight;
	}
	if (n > SAMPLES_MAX)
		n = SAMPLES_MAX;
	return n && all_ns > n ? all_ns / n : DEFAULT_INTERVAL_NS;
}

static void put_event_accounts(struct jfr *j, enum wire_event event)
{
	const struct profile_losses *l = &j->p->accounts.of[event];
	struct report_view view = report_view_of(j->p, event);
	size_t at = begin_event(j, JFR_EVENT_ACCOUNTS, 0);

	jfr_string(j->t, wire_event_names[event]);
	jfr_u64(j->t, l->taken);
	jfr_u64(j->t, l->delivered);
	jfr_u64(j->t, l->dropped);
	jfr_u64(j->t, l->dropped_weight);
	jfr_u64(j->t, j->p->interval[event]);
	jfr_u64(j->t, view.samples);
	jfr_u64(j->t, view.weight);
	jfr_put_summary(j, event);
	jfr_end(j->t, at);
}

/* ---- the chunk ------------------------------------------------------------------------------- */

static void jfr_put_header(struct text_out *t, uint64_t pools_at, uint64_t types_at,
			   const struct profile *p)
{
	struct text_out h = { 0 };

	text_bytes(&h, "FLR\0\0\2\0\0", 8); /* version 2.0 */
	put_big_endian(&h, t->len, 8);
	put_big_endian(&h, pools_at, 8);
	put_big_endian(&h, types_at, 8);
	put_big_endian(&h, p->begin_real_ns, 8);
	put_big_endian(&h, p->end_real_ns - p->begin_real_ns, 8);
	put_big_endian(&h, JFR_START_TICKS, 8);
	put_big_endian(&h, 1000000000, 8); /* ticks per second */
	put_big_endian(&h, 3, 4); /* finished; packed integers, the file's last chunk */
	if (h.failed || t->failed)
		t->failed = true;
	else
		memcpy(t->p, h.p, h.len);
	free(h.p);
}

static void put_chunk(struct jfr *j)
{
	const struct profile *p = j->p;
	uint64_t span_ns =
		p->end_real_ns > p->begin_real_ns ? p->end_real_ns - p->begin_real_ns : 1;
	uint64_t interval_ns = sample_interval_ns(p), pools_at, types_at;
	static const char header[68];

	text_bytes(j->t, header, sizeof(header));
	if (j->events & 1u << WIRE_EVENT_CPU)
		jfr_put_accounts(j, interval_ns);
	for (int e = WIRE_EVENT_LOCK; e < WIRE_EVENT_COUNT; e++)
		if (j->events & 1u << e)
			put_event_accounts(j, (enum wire_event)e);
	for (uint32_t i = 0; i < p->n_processes; i++)
		jfr_put_labels(j, &p->processes[i]);
	jfr_put_rows(j, interval_ns, span_ns);
	pools_at = j->t->len;
	jfr_put_pools(j);
	types_at = j->t->len;
	jfr_put_types(j->t, JFR_START_TICKS);
	jfr_put_header(j->t, pools_at, types_at, p);
}

void write_jfr(struct text_out *t, const struct profile *p, const struct report_options *o)
{
	struct jfr j = { .t = t, .p = p, .events = o->events };

	j.order = calloc(p->n_frames + 1, sizeof(*j.order));
	j.method = calloc(p->n_frames + 1, sizeof(*j.method));
	j.string_used = calloc(p->n_strings + 1, 1);
	j.class_used = calloc(p->n_strings + 1, 1);
	j.leaf_used = calloc(p->n_nodes + 1, 1);
	if (j.order && j.method && j.string_used && j.class_used && j.leaf_used) {
		jfr_number(&j);
		put_chunk(&j);
	} else {
		t->failed = true;
	}
	free(j.order);
	free(j.method);
	free(j.string_used);
	free(j.class_used);
	free(j.leaf_used);
}
