#include "tests/unit/unit.h"
#include "daemon/profile/live.h"

#define T0 (1000 * LIVE_WINDOW_NS)

static uint64_t window_weight;
static int windows;

static uint64_t weight_of(const struct profile *p)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->n_rows; i++)
		sum += p->rows[i].weight_ns;
	return sum;
}

static void on_window(void *userdata, const struct profile *w)
{
	(void)userdata;
	windows++;
	window_weight += weight_of(w);
}

static const struct live_process app = { .pid = 5, .name = "app" };

static void add(struct live_source *s, struct stream *stream, uint64_t real_ns)
{
	struct stream_sample sample = { .tid = 9, .thread = "main", .weight_ns = 10 };

	live_add(s, stream, &sample, real_ns, 10);
}

static void every_sample_ends_in_exactly_one_window(void **state)
{
	const struct stream_ops ops = { 0 };
	struct live_source *source;
	struct stream *stream;
	struct live *live;

	(void)state;
	windows = 0;
	window_weight = 0;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(on_window, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &app, &source), 0);
	live_tick(live, T0);
	for (uint64_t t = 0; t < 35; t++) {
		add(source, stream, T0 + t * LIVE_SLICE_NS);
		live_tick(live, T0 + t * LIVE_SLICE_NS);
		if (t >= 12) /* later than any open window: still counted */
			add(source, stream, T0 + (t - 12) * LIVE_SLICE_NS);
	}
	assert_int_equal(windows, 3);
	live_source_free(source);
	live_free(live);
	assert_int_equal(window_weight, (35 + 23) * 10);
	stream_free(stream);
}

static void a_query_sees_seconds_and_windows_once(void **state)
{
	const struct stream_ops ops = { 0 };
	struct live_source *source;
	struct stream *stream;
	struct profile *p;
	struct live *live;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(NULL, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &app, &source), 0);
	live_tick(live, T0);
	for (uint64_t t = 0; t < 25; t++) {
		add(source, stream, T0 + t * LIVE_SLICE_NS);
		live_tick(live, T0 + t * LIVE_SLICE_NS);
	}
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(live, T0, T0 + 100 * LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(weight_of(p), 250);
	p = profile_free(p);
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(live_query(live, T0 + 22 * LIVE_SLICE_NS, T0 + 24 * LIVE_SLICE_NS, NULL, p), 0);
	assert_int_equal(weight_of(p), 20);
	profile_free(p);
	live_source_free(source);
	live_free(live);
	stream_free(stream);
}

static void a_recording_has_its_own_profile(void **state)
{
	const struct stream_ops ops = { 0 };
	struct live_tap *tap, *second;
	struct live_source *source;
	struct stream *stream;
	struct live *live;

	(void)state;
	assert_int_equal(stream_new(&ops, NULL, &stream), 0);
	assert_int_equal(live_new(NULL, NULL, &live), 0);
	assert_int_equal(live_source_new(live, &app, &source), 0);
	add(source, stream, T0);
	assert_int_equal(live_tap_new(source, &tap), 0);
	assert_true(live_tap_new(source, &second) < 0);
	add(source, stream, T0 + 1);
	assert_int_equal(weight_of(live_tap_profile(tap)), 10);
	live_source_free(source); /* the target is gone: what was recorded stays */
	assert_int_equal(weight_of(live_tap_profile(tap)), 10);
	live_tap_free(tap);
	live_free(live);
	stream_free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_ends_in_exactly_one_window),
		cmocka_unit_test(a_query_sees_seconds_and_windows_once),
		cmocka_unit_test(a_recording_has_its_own_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
