/* Trace ids in files: a format writes them in its own way, or adds up samples that differ only
 * in them. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include <string.h>
#include "daemon/report/read.h"
#include "daemon/report/report.h"
#include "otlp.pb-c.h"

#define TRACE "0123456789abcdef0123456789abcdef"
#define SPAN  "fedcba9876543210"

static void add_row(struct profile *p, const char *trace, const char *span, uint64_t weight)
{
	struct profile_frame f = { .kind = WIRE_KIND_C2, .line = 7 };
	struct profile_process q = { .pid = 7, .start_time = 1 };
	struct profile_thread t = { .tid = 8 };
	struct profile_row row = { .samples = 1, .weight = weight };

	f.class_name = profile_string(p, "org.shop.Cart");
	f.method = profile_string(p, "sum");
	q.name = profile_string(p, "org.shop.Main");
	t.process = profile_process(p, &q);
	t.name = profile_string(p, "main");
	row.thread = profile_thread(p, &t);
	row.node = profile_node(p, 0, profile_intern_frame(p, &f));
	row.span = profile_span(p, trace, span);
	profile_add_row(p, &row);
}

/* One stack in two spans with OpenTelemetry's ids, in spans with ids of Zipkin, SkyWalking and
 * an MDC, and without a span. */
static struct profile *example(void)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	p->begin_real_ns = 1000000000;
	p->end_real_ns = 2000000000;
	add_row(p, TRACE, SPAN, 1);
	add_row(p, TRACE, "0000000000000001", 20);
	add_row(p, SPAN, SPAN, 300);
	add_row(p, "a.7.17", "a.7.16-0", 4000);
	add_row(p, "request-9", "", 50000);
	add_row(p, NULL, NULL, 600000);
	profile_book_rows(p);
	return p;
}

static char *written(const struct profile *p, enum report_format format, bool no_labels,
		     size_t *len)
{
	const struct report_options o = { .no_labels = no_labels };
	char *out;

	assert_int_equal(report_write(p, format, &o, &out, len), 0);
	return out;
}

static void a_format_without_a_place_for_ids_has_each_stack_once(void **state)
{
	struct profile *p = example();
	size_t len;
	char *out = written(p, REPORT_COLLAPSED, false, &len);

	(void)state;
	assert_string_equal(out, "org.shop.Cart.sum 654321\n");
	free(out);
	profile_free(p);
}

static uint64_t weight_of_span(const struct profile *p, const char *trace, const char *span)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_span *s =
			p->rows[i].span ? &p->spans[p->rows[i].span - 1] : NULL;

		if (strcmp(s ? p->strings[s->trace_id] : "", trace) == 0 &&
		    strcmp(s ? p->strings[s->span_id] : "", span) == 0)
			sum += p->rows[i].weight;
	}
	return sum;
}

static struct profile *read_back(const struct profile *p, enum report_format format, bool no_labels)
{
	struct report_reading r = { .event = -1 };
	struct profile *q;
	size_t len;
	char *out = written(p, format, no_labels, &len);

	assert_int_equal(report_read(format, out, len, &r, &q), 0);
	free(out);
	return q;
}

static void pprof_and_json_give_the_ids_back(void **state)
{
	static const enum report_format formats[] = { REPORT_PPROF, REPORT_JSON };
	struct profile *p = example();

	(void)state;
	profile_book_no_ids(p, 0, WIRE_EVENT_CPU, 3);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		struct profile *q = read_back(p, formats[i], false);

		assert_int_equal(q->n_spans, 5);
		assert_int_equal(weight_of_span(q, TRACE, SPAN), 1);
		assert_int_equal(weight_of_span(q, TRACE, "0000000000000001"), 20);
		assert_int_equal(weight_of_span(q, "a.7.17", "a.7.16-0"), 4000);
		assert_int_equal(weight_of_span(q, "request-9", ""), 50000);
		assert_int_equal(weight_of_span(q, "", ""), 600000);
		assert_int_equal(q->accounts.of[WIRE_EVENT_CPU].no_ids, 3);
		profile_free(q);
	}
	profile_free(p);
}

/* For Pyroscope: older versions make a series of each trace_id, and take other texts for 0. */
static void without_labels_pprof_has_span_ids_of_16_digits_alone(void **state)
{
	struct profile *p = example(), *q;

	(void)state;
	q = read_back(p, REPORT_PPROF, true);
	assert_int_equal(q->n_spans, 0); /* our own reader ignores a span id without a trace id */
	for (uint32_t i = 0; i < q->n_strings; i++)
		assert_string_not_equal(q->strings[i], "a.7.16-0");
	assert_int_equal(q->n_rows, 1);
	assert_int_equal(q->rows[0].weight, 654321);
	profile_free(q);
	profile_free(p);
}

static const char *attribute(const Otlp__ProfilesDictionary *d, const Otlp__Sample *s,
			     const char *key)
{
	for (size_t i = 0; i < s->n_attribute_indices; i++) {
		const Otlp__KeyValueAndUnit *a = d->attribute_table[s->attribute_indices[i]];

		if (strcmp(d->string_table[a->key_strindex], key) == 0)
			return a->value->string_value;
	}
	return "";
}

static const char *link_of(const Otlp__ProfilesDictionary *d, const Otlp__Sample *s, char buf[64])
{
	const Otlp__Link *l = d->link_table[s->link_index];
	size_t n = 0;

	assert_int_equal(l->trace_id.len, 16);
	assert_int_equal(l->span_id.len, 8);
	for (size_t i = 0; i < 16; i++)
		n += (size_t)snprintf(buf + n, 64 - n, "%02x", l->trace_id.data[i]);
	for (size_t i = 0; i < 8; i++)
		n += (size_t)snprintf(buf + n, 64 - n, "%s%02x", i ? "" : "/", l->span_id.data[i]);
	return buf;
}

static void otlp_samples_link_to_their_spans(void **state)
{
	static const struct {
		const char *link, *trace_id, *span_id;
	} want[] = {
		{ TRACE "/" SPAN, "", "" },
		{ TRACE "/0000000000000001", "", "" },
		{ "0000000000000000" SPAN "/" SPAN, "", "" },
		{ "00000000000000000000000000000000/0000000000000000", "a.7.17", "a.7.16-0" },
		{ "00000000000000000000000000000000/0000000000000000", "request-9", "" },
		{ "00000000000000000000000000000000/0000000000000000", "", "" },
	};
	struct profile *p = example();
	Otlp__ExportRequest *r;
	Otlp__Profile *profile;
	char *out, buf[64];
	size_t len;

	(void)state;
	out = written(p, REPORT_OTLP, false, &len);
	r = otlp__export_request__unpack(NULL, len, (uint8_t *)out);
	free(out);
	assert_non_null(r);
	profile = r->resource_profiles[0]->scope_profiles[0]->profiles[0];
	assert_int_equal(r->dictionary->n_link_table, 4);
	assert_int_equal(profile->n_samples, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const Otlp__Sample *s = profile->samples[i];

		assert_string_equal(link_of(r->dictionary, s, buf), want[i].link);
		assert_string_equal(attribute(r->dictionary, s, "kindling.trace_id"),
				    want[i].trace_id);
		assert_string_equal(attribute(r->dictionary, s, "kindling.span_id"),
				    want[i].span_id);
	}
	otlp__export_request__free_unpacked(r, NULL);
	profile_free(p);
}

static void samples_that_lost_their_ids_are_counted(void **state)
{
	struct profile *p = example();
	size_t len;
	char *out;

	(void)state;
	profile_book_no_ids(p, 0, WIRE_EVENT_CPU, 3);
	out = written(p, REPORT_TXT, false, &len);
	assert_non_null(strstr(
		out, "3 samples without their trace ids, because there were too many spans\n"));
	free(out);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_without_a_place_for_ids_has_each_stack_once),
		cmocka_unit_test(pprof_and_json_give_the_ids_back),
		cmocka_unit_test(without_labels_pprof_has_span_ids_of_16_digits_alone),
		cmocka_unit_test(otlp_samples_link_to_their_spans),
		cmocka_unit_test(samples_that_lost_their_ids_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
