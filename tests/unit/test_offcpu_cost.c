/* What the off-CPU engine does when it costs a host too much, second by second. */
#include "tests/unit/unit.h"
#include "daemon/bpf/offcpu_cost.h"
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
}

static void wakers_come_back_after_a_minute_that_leaves_room_for_them(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	/* seconds that are too costly for wakers do not count */
	assert_int_equal(seconds(OFFCPU_REST_TICKS - 1, OFFCPU_COST_PPM_NO_WAKERS), OFFCPU_GOES_ON);
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

static void above_a_percent_it_rests_for_a_minute_and_tries_again(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(seconds(OFFCPU_COST_TICKS, OFFCPU_COST_PPM_MAX + 1), OFFCPU_RESTS);
		assert_int_equal(cost.rests, i);
		assert_int_equal(seconds(OFFCPU_REST_TICKS, 0), OFFCPU_RESUMES);
		assert_int_equal(cost.resting, 0);
	}
	/* the storm is over */
	assert_int_equal(seconds(OFFCPU_REST_TICKS, 100), OFFCPU_WITH_WAKERS);
	assert_false(cost.no_wakers);
	assert_int_equal(seconds(1000, 100), OFFCPU_GOES_ON);
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
	struct offcpu_share one[] = { SHARE(1, 9000), SHARE(2, 500), SHARE(0, 0), SHARE(3, 2000) };
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

static void a_rest_of_some_is_no_rest_of_all(void **state)
{
	(void)state;
	half_a_percent_costs_the_wakers(state);
	assert_int_equal(seconds(OFFCPU_COST_TICKS, OFFCPU_COST_PPM_MAX + 1), OFFCPU_RESTS);
	offcpu_cost_spare(&cost);
	assert_int_equal(cost.resting, 0);
	assert_int_equal(cost.rests, 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_changes_nothing),
		cmocka_unit_test(half_a_percent_costs_the_wakers),
		cmocka_unit_test(wakers_come_back_after_a_minute_that_leaves_room_for_them),
		cmocka_unit_test(tries_in_vain_become_rare),
		cmocka_unit_test(above_a_percent_it_rests_for_a_minute_and_tries_again),
		cmocka_unit_test(who_costs_most_rests_alone),
		cmocka_unit_test(who_costs_less_than_its_share_does_not_rest),
		cmocka_unit_test(a_rest_of_some_is_no_rest_of_all),
		cmocka_unit_test(signals_get_what_the_rest_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
