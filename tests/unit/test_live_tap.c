#include "tests/unit/live_end.h"

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
	assert_int_equal(live_tap_new(source, 1, false, T0, &tap), 0);
	assert_true(live_tap_new(source, 1, false, T0, &second) < 0);
	add(source, stream, T0 + 1);
	assert_int_equal(weight_of(live_tap_profile(tap)), 10);
	live_source_free(source); /* the target is gone: its recorded samples stay */
	assert_int_equal(weight_of(live_tap_profile(tap)), 10);
	live_tap_free(tap);
	live_free(live);
	stream_free(stream);
}

static void a_recording_takes_its_events_alone(void **state)
{
	const struct profile_accounts dropped = { .of = { { 0 }, { 1, 10, 0, 0, 1, 10, 0 } },
						  .short_waits = 5 };
	struct setup u = opened();
	struct live_tap *tap;
	struct profile *p;

	(void)state;
	assert_int_equal(live_tap_new(u.source, 1u << WIRE_EVENT_LOCK, false, T0, &tap), 0);
	add(u.source, u.stream, T0);
	add_event(&u, WIRE_EVENT_LOCK, "", 77);
	live_add_accounts(u.source, &dropped);
	live_note_interval(u.source, WIRE_EVENT_LOCK, 2000000);
	live_note_interval(u.source, WIRE_EVENT_OFFCPU, 9);
	p = live_tap_profile(tap);
	assert_int_equal(p->interval[WIRE_EVENT_LOCK], 2000000);
	assert_int_equal(p->interval[WIRE_EVENT_OFFCPU], 0);
	assert_int_equal(weight_of(p), 77);
	assert_int_equal(p->accounts.of[WIRE_EVENT_CPU].taken, 0);
	assert_int_equal(p->accounts.of[WIRE_EVENT_LOCK].taken, 2);
	assert_int_equal(p->accounts.of[WIRE_EVENT_LOCK].delivered_weight, 77);
	assert_int_equal(p->accounts.short_waits, 5);
	live_tap_free(tap);
	closed(&u);
}

static void a_recording_is_as_long_as_it_took_whatever_times_events_have(void **state)
{
	struct setup u = opened();
	struct live_tap *tap;

	(void)state;
	assert_int_equal(live_tap_new(u.source, 1u << WIRE_EVENT_CPU, false, T0, &tap), 0);
	add(u.source, u.stream, T0 - LIVE_SLICE_NS);
	add(u.source, u.stream, UINT64_MAX / 2);
	live_add_cpu(u.source, 50, T0, T0 + 9);
	live_tap_end(tap, T0 + 9);
	assert_int_equal(live_tap_profile(tap)->begin_real_ns, T0);
	assert_int_equal(live_tap_profile(tap)->end_real_ns, T0 + 9);
	assert_int_equal(profile_cpu_ns(live_tap_profile(tap)), 50);
	live_tap_free(tap);
	closed(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_has_its_own_profile),
		cmocka_unit_test(a_recording_takes_its_events_alone),
		cmocka_unit_test(a_recording_is_as_long_as_it_took_whatever_times_events_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
