/* What the off-CPU engine does when it costs a host too much, second by second. */
#include "tests/unit/unit.h"
#include "daemon/bpf/offcpu_cost.h"
#include "daemon/ground/clock.h"
#include "daemon/ground/mem.h"

static struct offcpu_cost cost;

/* So many seconds at @ppm; returns what came of the last. In those before nothing happened. */
static enum offcpu_step seconds(unsigned n, uint64_t ppm)
{
	for (unsigned i = 1; i < n; i++)
		assert_int_equal(offcpu_cost_tick(&cost, ppm), OFFCPU_GOES_ON);
	return offcpu_cost_tick(&cost, ppm);
}

static void begin(void)
{
	cost = (struct offcpu_cost){ 0 };
}

static void a_burst_changes_nothing(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 10; i++) {
		assert_int_equal(seconds(2, 100000), OFFCPU_GOES_ON);
		assert_int_equal(seconds(1, OFFCPU_COST_PPM_NO_WAKERS), OFFCPU_GOES_ON);
	}
	assert_false(cost.no_wakers);
}

static void half_a_percent_costs_the_wakers(void **state)
{
	(void)state;
	begin();
	assert_int_equal(seconds(OFFCPU_COST_TICKS, OFFCPU_COST_PPM_NO_WAKERS + 1),
			 OFFCPU_WITHOUT_WAKERS);
	assert_true(cost.no_wakers);
	/* a percent is allowed then */
	assert_int_equal(seconds(1000, OFFCPU_COST_PPM_MAX), OFFCPU_GOES_ON);
	/* what wakers cost before is no debt */
	begin();
	assert_int_equal(seconds(OFFCPU_COST_TICKS, 5 * OFFCPU_COST_PPM_MAX),
			 OFFCPU_WITHOUT_WAKERS);
	assert_int_equal(seconds(10, OFFCPU_COST_PPM_MAX), OFFCPU_GOES_ON);
	begin();
	assert_int_equal(seconds(OFFCPU_COST_TICKS, OFFCPU_COST_PPM_NO_WAKERS + 1),
			 OFFCPU_WITHOUT_WAKERS);
}

static void wakers_come_back_after_a_minute_that_leaves_room_for_them(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	/* seconds that are too costly for wakers do not count */
	assert_int_equal(seconds(OFFCPU_PAUSE_TICKS - 1, OFFCPU_COST_PPM_NO_WAKERS),
			 OFFCPU_GOES_ON);
	assert_int_equal(seconds(100, OFFCPU_COST_PPM_NO_WAKERS + 1), OFFCPU_GOES_ON);
	assert_int_equal(seconds(1, OFFCPU_COST_PPM_NO_WAKERS), OFFCPU_WITH_WAKERS);
	assert_false(cost.no_wakers);
}

/* A host that always switches that often: wakers cost it 0.6 %, and all the rest 0.4 %. */
static void tries_in_vain_become_rare(void **state)
{
	static const unsigned pauses[] = { 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600 };

	(void)state;
	begin();
	for (unsigned i = 0; i < ARRAY_SIZE(pauses); i++) {
		assert_int_equal(seconds(OFFCPU_COST_TICKS, 6000), OFFCPU_WITHOUT_WAKERS);
		assert_int_equal(cost.pause_left, pauses[i]);
		assert_int_equal(seconds(pauses[i], 4000), OFFCPU_WITH_WAKERS);
	}
	/* the host has become quieter for as long as the pause was */
	assert_int_equal(seconds(3600, 3000), OFFCPU_GOES_ON);
	assert_int_equal(seconds(OFFCPU_COST_TICKS, 6000), OFFCPU_WITHOUT_WAKERS);
	assert_int_equal(cost.pause_left, 60);
}

/* What it costs in the long run, in ppm, on a host on which measuring costs @ppm; and for which
 * part of the time, in percent, it measures. */
static uint64_t in_the_long_run(uint64_t ppm, unsigned *ret_percent)
{
	uint64_t sum = 0, measured = 0;
	const unsigned n = 10000;

	begin();
	assert_int_equal(seconds(OFFCPU_COST_TICKS, ppm), OFFCPU_WITHOUT_WAKERS);
	cost.pause_left = UINT32_MAX;
	for (unsigned i = 0; i < n; i++) {
		bool rests = cost.resting;

		sum += rests ? 0 : ppm;
		measured += !rests;
		offcpu_cost_tick(&cost, rests ? 0 : ppm);
	}
	*ret_percent = (unsigned)(measured * 100 / n);
	return sum / n;
}

static void above_a_percent_it_measures_a_part_of_the_time(void **state)
{
	unsigned percent;

	(void)state;
	assert_in_range(in_the_long_run(OFFCPU_COST_PPM_MAX, &percent), 9999, 10000);
	assert_int_equal(percent, 100);
	assert_in_range(in_the_long_run(11000, &percent), 9900, 10100);
	assert_in_range(percent, 90, 91);
	assert_in_range(in_the_long_run(15000, &percent), 9900, 10100);
	assert_in_range(percent, 66, 67);
	assert_in_range(in_the_long_run(30000, &percent), 9900, 10100);
	assert_in_range(percent, 33, 34);
	assert_in_range(in_the_long_run(500000, &percent), 9800, 10200);
	assert_in_range(percent, 1, 2);
}

static void it_measures_for_some_seconds_and_rests_for_some(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	for (unsigned i = 1; i <= 3; i++) {
		/* half a percent too much: twelve seconds of it are six seconds' worth */
		assert_int_equal(seconds(12, OFFCPU_COST_PPM_MAX * 3 / 2), OFFCPU_RESTS);
		assert_int_equal(cost.rests, i);
		assert_int_equal(seconds(6, 0), OFFCPU_RESUMES);
		assert_false(cost.resting);
	}
	/* also if it costs a lot, three seconds are measured */
	assert_int_equal(seconds(3, OFFCPU_COST_PPM_MAX * 5), OFFCPU_RESTS);
	assert_int_equal(seconds(12, 0), OFFCPU_RESUMES);
	/* the storm is over */
	assert_int_equal(seconds(OFFCPU_PAUSE_TICKS, 100), OFFCPU_WITH_WAKERS);
	assert_false(cost.no_wakers);
	assert_int_equal(seconds(1000, 100), OFFCPU_GOES_ON);
}

static void a_cost_that_comes_and_goes_is_a_debt_too(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(seconds(1, OFFCPU_COST_PPM_MAX * 2), OFFCPU_GOES_ON);
		assert_int_equal(seconds(1, OFFCPU_COST_PPM_MAX / 2), OFFCPU_GOES_ON);
	}
	assert_int_equal(seconds(1, OFFCPU_COST_PPM_MAX * 2), OFFCPU_RESTS);
}

static void a_refused_attach_is_a_minute_and_a_debt_has_a_limit(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	offcpu_cost_rest(&cost);
	assert_int_equal(cost.rests, 1);
	assert_int_equal(seconds(60, 0), OFFCPU_RESUMES);
	assert_int_equal(seconds(3, 1000000000), OFFCPU_RESTS);
	assert_int_equal(seconds(OFFCPU_DEBT_TICKS_MAX, 0), OFFCPU_RESUMES);
}

static unsigned ticks_to_pay(uint64_t debt_ppm, uint64_t cost_ppm)
{
	uint64_t left_ppm = debt_ppm;
	unsigned n = 0;

	for (; left_ppm; n++)
		left_ppm = offcpu_cost_pay(debt_ppm, left_ppm, cost_ppm);
	return n;
}

static void who_rests_alone_pays_with_what_the_others_leave(void **state)
{
	(void)state;
	assert_int_equal(ticks_to_pay(60000, 0), 6);
	assert_int_equal(ticks_to_pay(60000, 5000), 12);
	/* a minute, whatever the others cost */
	assert_int_equal(ticks_to_pay(60000, 9900), 60);
	assert_int_equal(ticks_to_pay(60000, 20000), 60);
	assert_int_equal(ticks_to_pay(6000000, 9900), 60);
	assert_int_equal(ticks_to_pay(1, 20000), 1);
}

static void choose(struct offcpu_share *s, unsigned n, uint64_t ppm, bool some, const char *rests)
{
	char got[8] = "";

	assert_int_equal(offcpu_cost_choose(s, n, ppm), some);
	for (unsigned i = 0; i < n; i++)
		got[i] = s[i].rests ? 'r' : '-';
	assert_string_equal(got, rests);
}

#define SHARE(of, n) { .tenant = (of), .ppm = (n) }

static void who_costs_most_rests_alone(void **state)
{
	struct offcpu_share one[] = { SHARE(1, 9000), SHARE(2, 500), SHARE(4, 0), SHARE(3, 2000) };
	/* a tenant with many targets is judged by their sum, and they rest in turns */
	struct offcpu_share many[] = { SHARE(1, 3000), SHARE(2, 4000), SHARE(1, 3500), SHARE(1, 3200) };
	struct offcpu_share two[] = { SHARE(1, 9000), SHARE(2, 8000), SHARE(3, 100) };

	(void)state;
	choose(one, 4, 12000, true, "r---");
	choose(many, 4, 14000, true, "--rr");
	choose(two, 3, 18000, true, "r--");
	/* the other switches of the host may be too much as well, but they come second */
	two[0].rests = false;
	choose(two, 3, 35000, true, "rr-");
}

static void who_costs_less_than_its_share_does_not_rest(void **state)
{
	/* the host's other switches cost too much: nobody here is to blame */
	struct offcpu_share s[] = { SHARE(1, 2000), SHARE(2, 3000) };

	(void)state;
	choose(s, 2, 25000, false, "--");
}

static void the_only_tenant_rests_as_a_whole(void **state)
{
	struct offcpu_share s[] = { SHARE(1, 9000), SHARE(1, 0), SHARE(1, 8000) };

	(void)state;
	choose(s, 3, 22000, false, "---");
	choose(s, 1, 12000, false, "-");
	choose(s, 0, 12000, false, "");
	/* also one that costs nothing is not to lose its times */
	s[1].tenant = 2;
	choose(s, 3, 22000, true, "r-r");
}

static void a_rest_of_some_is_no_rest_of_all(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	assert_int_equal(seconds(12, OFFCPU_COST_PPM_MAX * 3 / 2), OFFCPU_RESTS);
	/* the debt is theirs */
	assert_int_equal(offcpu_cost_spare(&cost), 6 * OFFCPU_COST_PPM_MAX);
	assert_false(cost.resting);
	assert_int_equal(cost.rests, 0);
	assert_int_equal(seconds(11, OFFCPU_COST_PPM_MAX * 3 / 2), OFFCPU_GOES_ON);
	assert_int_equal(seconds(1, OFFCPU_COST_PPM_MAX * 3 / 2), OFFCPU_RESTS);
	offcpu_cost_spare(&cost);
	assert_int_equal(seconds(10, OFFCPU_COST_PPM_NO_WAKERS), OFFCPU_GOES_ON);
}

/* Two CPUs, of which 1 % each pays for 1,000 signals a second in all. */
static void signals_get_what_the_rest_leaves(void **state)
{
	(void)state;
	/* cheap ones, or a price that is not known yet */
	assert_int_equal(offcpu_cost_signals(500, 1000, 2, 1000), 1000);
	assert_int_equal(offcpu_cost_signals(500, 0, 2, 1000), 1000);
	/* 0.1 % for the rest, so 0.3 % for signals of 10 us: together with room for wakers */
	assert_int_equal(offcpu_cost_signals(1000, 10000, 2, 1000), 600);
	assert_int_equal(offcpu_cost_signals(1000, 8000, 2, 1000), 750);
	assert_int_equal(offcpu_cost_signals(1000, 10000, 4, 2000), 1200);
	/* nothing is left for them, and they keep half */
	assert_int_equal(offcpu_cost_signals(3999, 10000, 2, 1000), 500);
	assert_int_equal(offcpu_cost_signals(100000, 10000, 2, 1000), 500);
	assert_int_equal(offcpu_cost_signals(100000, 10000, 2, 120), 100);
	assert_int_equal(offcpu_cost_signals(100000, 10000, 2, 60), 60);
	/* the rest costs the wakers in any case: then what the limit of a rest leaves */
	assert_int_equal(offcpu_cost_signals(4000, 10000, 2, 1000), 800);
}

/* Of @n seconds in which it uses @used_ms of CPU time and measuring it costs @cost_us: those in
 * which it is measured, in percent. */
static unsigned measured_percent(struct offcpu_own *o, unsigned n, uint64_t used_ms,
				 uint64_t cost_us)
{
	unsigned measured = 0;

	for (unsigned i = 0; i < n; i++) {
		measured += !o->resting;
		offcpu_cost_own(o, NS_PER_S, used_ms * NS_PER_MS, cost_us * 1000);
	}
	return measured * 100 / n;
}

static void a_target_has_a_limit_of_its_own(void **state)
{
	struct offcpu_own o = { 0 };

	(void)state;
	/* 2 % of what it uses */
	assert_int_equal(measured_percent(&o, 1000, 2000, 40000), 100);
	assert_int_equal(measured_percent(&o, 1000, 8000, 160000), 100);
	assert_in_range(measured_percent(&o, 1000, 2000, 80000), 49, 51);
	assert_in_range(measured_percent(&o, 1000, 2000, 200000), 19, 21);
	/* who uses little may cost 1 % of a CPU */
	o = (struct offcpu_own){ 0 };
	assert_int_equal(measured_percent(&o, 1000, 10, 10000), 100);
	assert_in_range(measured_percent(&o, 1000, 10, 20000), 49, 51);
	/* the cost is for the length of the tick */
	o = (struct offcpu_own){ 0 };
	for (int i = 0; i < 100; i++)
		assert_false(offcpu_cost_own(&o, NS_PER_S / 2, 0, 5000000));
	for (int i = 0; i < 100; i++)
		offcpu_cost_own(&o, NS_PER_S / 2, 0, 10000000);
	assert_true(o.owed_ns > 0);
}

static void a_targets_own_rest_is_a_minute_at_most(void **state)
{
	struct offcpu_own o = { 0 };

	(void)state;
	assert_int_equal(measured_percent(&o, 3, 1000, 100000000), 100);
	assert_true(o.resting);
	assert_int_equal(measured_percent(&o, 60, 1000, 0), 0);
	assert_false(o.resting);
	/* also if it uses less then */
	assert_int_equal(measured_percent(&o, 3, 8000, 100000000), 100);
	assert_int_equal(measured_percent(&o, 60, 0, 0), 0);
	assert_false(o.resting);
	/* and what it cost in the three seconds of a burst is paid in those after it */
	assert_int_equal(measured_percent(&o, 2, 1000, 60000), 100);
	assert_int_equal(measured_percent(&o, 100, 1000, 10000), 100);
	assert_int_equal(o.owed_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_changes_nothing),
		cmocka_unit_test(half_a_percent_costs_the_wakers),
		cmocka_unit_test(wakers_come_back_after_a_minute_that_leaves_room_for_them),
		cmocka_unit_test(tries_in_vain_become_rare),
		cmocka_unit_test(above_a_percent_it_measures_a_part_of_the_time),
		cmocka_unit_test(it_measures_for_some_seconds_and_rests_for_some),
		cmocka_unit_test(a_cost_that_comes_and_goes_is_a_debt_too),
		cmocka_unit_test(a_refused_attach_is_a_minute_and_a_debt_has_a_limit),
		cmocka_unit_test(who_rests_alone_pays_with_what_the_others_leave),
		cmocka_unit_test(who_costs_most_rests_alone),
		cmocka_unit_test(who_costs_less_than_its_share_does_not_rest),
		cmocka_unit_test(the_only_tenant_rests_as_a_whole),
		cmocka_unit_test(a_rest_of_some_is_no_rest_of_all),
		cmocka_unit_test(signals_get_what_the_rest_leaves),
		cmocka_unit_test(a_target_has_a_limit_of_its_own),
		cmocka_unit_test(a_targets_own_rest_is_a_minute_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
