/* Trace ids of rows: kept if asked for, bounded, and never at the expense of a weight. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/profile/live.h"

#define T0	 (1000 * LIVE_WINDOW_NS)
#define HEAD_LEN 4 /* "KPRF", then the version */

static const struct live_process app = { .pid = 5, .name = "app" };

static uint32_t thread_of(struct profile *p, uint32_t pid)
{
	const struct profile_process q = { .pid = pid, .start_time = 1 };
	const struct profile_thread t = { .process = profile_process(p, &q), .tid = 9 };

	return profile_thread(p, &t);
}

static void add_row(struct profile *p, uint32_t pid, const char *trace, const char *span,
		    uint64_t weight)
{
	const struct profile_row row = { .thread = thread_of(p, pid),
					 .span = profile_span(p, trace, span),
					 .samples = 1,
					 .weight = weight };

	profile_add_row(p, &row);
}

/* One thread and one stack with two spans of a trace and with no span; a span of another
 * process. */
static struct profile *spans(void)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	add_row(p, 7, "t1", "s1", 10);
	add_row(p, 7, "t1", "s2", 20);
	add_row(p, 7, "t1", "s1", 100);
	add_row(p, 7, NULL, NULL, 1000);
	add_row(p, 8, "t2", "", 10000);
	profile_book_rows(p);
	return p;
}

static uint64_t weight_of_span(const struct profile *p, const char *trace, const char *span)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++) {
		const struct profile_row *r = &p->rows[i];

		if (!r->span ? !*trace
			     : strcmp(p->strings[p->spans[r->span - 1].trace_id], trace) == 0 &&
				       strcmp(p->strings[p->spans[r->span - 1].span_id], span) == 0)
			sum += r->weight;
	}
	return sum;
}

static void check_spans(const struct profile *p)
{
	assert_int_equal(p->n_spans, 3);
	assert_int_equal(p->n_rows, 4);
	assert_int_equal(weight_of_span(p, "t1", "s1"), 110);
	assert_int_equal(weight_of_span(p, "t1", "s2"), 20);
	assert_int_equal(weight_of_span(p, "t2", ""), 10000);
	assert_int_equal(weight_of_span(p, "", ""), 1000);
}

static void rows_of_two_spans_stay_apart(void **state)
{
	struct profile *p = spans(), *q;

	(void)state;
	check_spans(p);
	assert_int_equal(profile_new(&q), 0);
	assert_int_equal(profile_merge(q, p, NULL), 0);
	check_spans(q);
	assert_int_equal(profile_merge(q, p, NULL), 0);
	assert_int_equal(q->n_rows, 4);
	assert_int_equal(weight_of_span(q, "t1", "s2"), 40);
	profile_free(q);
	assert_int_equal(profile_copy(p, &q), 0);
	check_spans(q);
	profile_free(q);
	profile_free(p);
}

static void without_ids_the_sums_are_the_same(void **state)
{
	const struct profile_filter plain = { .no_spans = true };
	struct profile *p = spans(), *q;

	(void)state;
	assert_int_equal(profile_new(&q), 0);
	assert_int_equal(profile_merge(q, p, &plain), 0);
	assert_int_equal(q->n_rows, 2);
	assert_int_equal(q->n_spans, 0);
	assert_int_equal(q->rows[0].weight, 1130);
	assert_int_equal(q->rows[0].samples, 4);
	assert_int_equal(q->accounts.of[WIRE_EVENT_CPU].no_ids, 0);
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	profile_free(q);
	profile_free(p);
}

static void a_part_has_the_ids_of_its_process(void **state)
{
	struct profile *p = spans(), *q;
	struct profile_parts *parts;

	(void)state;
	assert_int_equal(profile_parts_new(p, &parts), 0);
	assert_int_equal(profile_parts_get(parts, 1, &q), 0);
	assert_int_equal(q->n_spans, 1);
	assert_int_equal(weight_of_span(q, "t2", ""), 10000);
	profile_free(q);
	assert_int_equal(profile_parts_get(parts, 0, &q), 0);
	assert_int_equal(q->n_spans, 2);
	assert_int_equal(weight_of_span(q, "t1", "s1"), 110);
	profile_free(q);
	profile_parts_free(parts);
	profile_free(p);
}

static void bytes_have_the_ids(void **state)
{
	struct profile_slices *slices;
	struct profile *p = spans(), *q;
	uint8_t *bytes;
	size_t len;

	(void)state;
	profile_book_no_ids(p, 0, WIRE_EVENT_CPU, 3);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(bytes[HEAD_LEN], 6);
	assert_int_equal(profile_decode(bytes, len, &q), 0);
	check_spans(q);
	assert_memory_equal(&q->accounts, &p->accounts, sizeof(p->accounts));
	add_row(q, 7, "t1", "s1", 1); /* found again */
	assert_int_equal(weight_of_span(q, "t1", "s1"), 111);
	assert_int_equal(q->n_spans, 3);
	profile_free(q);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(profile_decode(bytes, cut, &q), -EBADMSG);
	free(bytes);
	assert_int_equal(profile_encode_slice(p, &bytes, &len), 0);
	assert_int_equal(profile_slices_new(&slices), 0);
	assert_int_equal(profile_slices_read(slices, bytes, len, &q), 0);
	check_spans(q);
	profile_slices_free(slices);
	free(bytes);
	profile_free(p);
}

static void a_profile_without_ids_is_what_earlier_daemons_read(void **state)
{
	struct profile *p;
	uint8_t *bytes;
	size_t len;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	add_row(p, 7, NULL, NULL, 1000);
	assert_int_equal(profile_encode(p, &bytes, &len), 0);
	assert_int_equal(bytes[HEAD_LEN], 5);
	free(bytes);
	profile_free(p);
}

/* If room is short, a stack takes precedence over its ids. */
static void samples_without_room_for_ids_are_added_without_them(void **state)
{
	struct profile *p;
	char trace[40];
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit(p, 64u << 10, 1);
	for (unsigned i = 0; i < 10000; i++) {
		snprintf(trace, sizeof(trace), "%032x", i);
		add_row(p, 7, trace, "s", 1);
	}
	for (uint32_t i = 0; i < p->n_rows; i++)
		sum += p->rows[i].weight;
	assert_int_equal(sum, 10000);
	assert_in_range(p->n_spans, 10, 2000);
	profile_free(p);
}

static void merging_counts_what_loses_its_ids(void **state)
{
	struct profile *p, *q;
	uint64_t with = 0;
	char trace[40];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(trace, sizeof(trace), "%032x", i);
		add_row(p, 7, trace, "s", 1);
	}
	assert_int_equal(profile_new(&q), 0);
	profile_limit(q, 64u << 10, 1);
	assert_int_equal(profile_merge(q, p, NULL), 0);
	for (uint32_t i = 0; i < q->n_rows; i++)
		with += q->rows[i].span ? q->rows[i].samples : 0;
	assert_int_equal(profile_samples(q), 5000);
	assert_in_range(with, 10, 2000);
	assert_int_equal(q->accounts.of[WIRE_EVENT_CPU].no_ids, 5000 - with);
	profile_free(q);
	profile_free(p);
}

/* ---- windows and recordings ------------------------------------------------------------------ */

struct setup {
	struct stream *stream;
	struct live *live;
	struct live_source *source;
};

static struct setup opened(bool keep)
{
	const struct stream_ops ops = { 0 };
	struct setup u;

	assert_int_equal(stream_new(&ops, NULL, &u.stream), 0);
	assert_int_equal(live_new(NULL, NULL, &u.live), 0);
	live_keep_ids(u.live, keep);
	assert_int_equal(live_source_new(u.live, &app, &u.source), 0);
	live_tick(u.live, T0);
	return u;
}

static void closed(struct setup *u)
{
	live_source_free(u->source);
	live_free(u->live);
	stream_free(u->stream);
}

static void add_samples(struct setup *u, unsigned spans)
{
	for (unsigned i = 0; i < spans; i++) {
		char span[20];
		const struct stream_context trace = { "t", span };
		const struct stream_sample sample = {
			.tid = 9, .thread = "main", .weight_ns = 10, .trace = &trace
		};

		snprintf(span, sizeof(span), "%016x", i);
		live_add(u->source, u->stream, &sample, NULL, T0, 10);
	}
}

static struct profile *second_of(struct setup *u)
{
	struct profile *p;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(u->live, T0, T0 + LIVE_SLICE_NS, NULL, p), 0);
	return p;
}

static void windows_have_ids_only_if_they_are_to_be_kept(void **state)
{
	struct setup u = opened(false);
	struct profile *p;

	(void)state;
	add_samples(&u, 3);
	p = second_of(&u);
	assert_int_equal(p->n_spans, 0);
	assert_int_equal(p->n_rows, 1);
	profile_free(p);
	closed(&u);
	u = opened(true);
	add_samples(&u, 3);
	p = second_of(&u);
	assert_int_equal(p->n_spans, 3);
	assert_int_equal(p->n_rows, 3);
	profile_free(p);
	closed(&u);
}

static void more_spans_than_a_window_takes_are_counted(void **state)
{
	struct setup u = opened(true);
	struct profile *p;

	(void)state;
	add_samples(&u, LIVE_SPANS_MAX + 5);
	add_samples(&u, 7); /* known ones */
	p = second_of(&u);
	assert_int_equal(p->n_spans, LIVE_SPANS_MAX);
	assert_int_equal(profile_samples(p), LIVE_SPANS_MAX + 12);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].no_ids, 5);
	assert_int_equal(p->processes[0].accounts.of[WIRE_EVENT_CPU].no_ids, 5);
	profile_free(p);
	closed(&u);
}

static void a_recording_chooses_for_itself(void **state)
{
	struct setup u = opened(false);
	struct live_tap *tap;
	struct profile *p;

	(void)state;
	assert_int_equal(live_tap_new(u.source, 1, true, T0, &tap), 0);
	add_samples(&u, LIVE_SPANS_MAX + 5);
	assert_int_equal(live_tap_profile(tap)->n_spans, LIVE_SPANS_MAX + 5);
	assert_int_equal(live_tap_profile(tap)->accounts.of[WIRE_EVENT_CPU].no_ids, 0);
	live_tap_free(tap);
	p = second_of(&u);
	assert_int_equal(p->n_spans, 0);
	profile_free(p);
	assert_int_equal(live_tap_new(u.source, 1, false, T0, &tap), 0);
	add_samples(&u, 2);
	assert_int_equal(live_tap_profile(tap)->n_spans, 0);
	assert_int_equal(live_tap_profile(tap)->rows[0].weight, 20);
	live_tap_free(tap);
	closed(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_of_two_spans_stay_apart),
		cmocka_unit_test(without_ids_the_sums_are_the_same),
		cmocka_unit_test(a_part_has_the_ids_of_its_process),
		cmocka_unit_test(bytes_have_the_ids),
		cmocka_unit_test(a_profile_without_ids_is_what_earlier_daemons_read),
		cmocka_unit_test(samples_without_room_for_ids_are_added_without_them),
		cmocka_unit_test(merging_counts_what_loses_its_ids),
		cmocka_unit_test(windows_have_ids_only_if_they_are_to_be_kept),
		cmocka_unit_test(more_spans_than_a_window_takes_are_counted),
		cmocka_unit_test(a_recording_chooses_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
