/* How the minimum of times off the CPU adapts, second by second. */
#include "tests/unit/unit.h"
#include <stdint.h>
#include "daemon/bpf/offcpu_minimum.h"

#define ASKED_NS      1000000ull
#define SIGNALS_PER_S 400
#define OWN_PER_S     40
#define RECORDS_PER_S 800
#define FEW	      (SIGNALS_PER_S / 4) /* the minimum could be shorter */

static const struct offcpu_allowance allowance = {
	.own_signals = OWN_PER_S * 8 / 7, /* an eighth is for times in the run queue */
	.signals = SIGNALS_PER_S,
	.records = RECORDS_PER_S,
};

static struct offcpu_minimum minimum;
static const struct offcpu_minimums *const waits = &minimum.now[OFFCPU_WAITS];
static const struct offcpu_minimums *const queued = &minimum.now[OFFCPU_QUEUED];
static struct offcpu_signal_counts counts;

static void begin(void)
{
	minimum = (struct offcpu_minimum){ 0 };
	counts = (struct offcpu_signal_counts){ 0 };
	offcpu_minimum_begin(&minimum, ASKED_NS, &allowance);
}

static void count(enum offcpu_part part, unsigned signals, unsigned over, unsigned below)
{
	counts.parts[part].intervals += signals + over + below;
	counts.parts[part].signalled += signals;
	counts.parts[part].over_budget += over;
}

static void tick(void)
{
	offcpu_minimum_tick(&minimum, &counts, &allowance);
	assert_true(waits->record_ns <= waits->signal_ns);
	assert_true(queued->record_ns <= queued->signal_ns);
}

/* One second with this many waits, and @below too short for a signal; returns the minimum for their
 * signals after it. */
static uint64_t second_below(unsigned signals, unsigned over, unsigned below)
{
	count(OFFCPU_WAITS, signals, over, below);
	tick();
	return waits->signal_ns;
}

static uint64_t second(unsigned signals, unsigned over)
{
	return second_below(signals, over, 0);
}

/* As begin(), after waits for work were spared signals, which was not enough. */
static void begin_spared(void)
{
	begin();
	assert_int_equal(second(0, OWN_PER_S + 1), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_LONG);
	assert_int_equal(second_below(0, 0, RECORDS_PER_S + 1), ASKED_NS);
	assert_int_equal(waits->record_ns, ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_LONG_RECORDS);
}

static void waits_for_work_lose_their_signals_when_there_are_many(void **state)
{
	(void)state;
	begin();
	assert_int_equal(second(SIGNALS_PER_S / 4, 0), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_NOTHING);
	assert_int_equal(second(SIGNALS_PER_S / 4 + 1, 0), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_SIGNALS);
	/* with those that are spared there would be as many again */
	for (int i = 0; i < 20; i++) {
		counts.spared += SIGNALS_PER_S / 4;
		assert_int_equal(second(1, 0), ASKED_NS);
		assert_int_equal(minimum.spares, OFFCPU_SPARES_SIGNALS);
	}
	counts.spared += SIGNALS_PER_S / 4 - 1;
	assert_int_equal(second(1, 0), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_NOTHING);
}

static void waits_for_work_give_way_before_it_grows(void **state)
{
	(void)state;
	begin();
	assert_int_equal(second(350, 50), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_SIGNALS);
	assert_int_equal(second(350, 51), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_LONG);
	/* it was enough; with those that are spared there would be too many again */
	for (int i = 0; i < 20; i++) {
		counts.spared += 300;
		assert_int_equal(second(100, 0), ASKED_NS);
		assert_int_equal(minimum.spares, OFFCPU_SPARES_LONG);
	}
	counts.spared += 99;
	assert_int_equal(second(100, 0), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_SIGNALS);
	/* first the minimum is as it was asked for, then they have signals again */
	begin_spared();
	assert_int_equal(second(400, 4000), 2 * ASKED_NS);
	for (int i = 0; i < 5; i++)
		assert_true(minimum.spares == OFFCPU_SPARES_LONG_RECORDS && second(FEW, 0) > 0);
	assert_int_equal(waits->signal_ns, ASKED_NS);
	for (int i = 0; i < 5; i++)
		assert_true(minimum.spares == OFFCPU_SPARES_LONG_RECORDS &&
			    second(0, 0) == ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_NOTHING);
}

static void a_half_with_signals_is_a_sample(void **state)
{
	(void)state;
	begin_spared();
	for (int i = 0; i < 20; i++)
		assert_int_equal(second(340, 340), ASKED_NS);
	assert_int_equal(second(340, 341), 2 * ASKED_NS);
	assert_int_equal(waits->record_ns, ASKED_NS);
}

static void records_go_on_until_there_are_too_many(void **state)
{
	(void)state;
	begin_spared();
	/* those that have become too short for a signal still have records */
	assert_int_equal(second(200, 400), 2 * ASKED_NS);
	assert_int_equal(second_below(100, 0, 500), 2 * ASKED_NS);
	assert_int_equal(waits->record_ns, ASKED_NS);
	assert_int_equal(second_below(100, 0, RECORDS_PER_S - 100), 2 * ASKED_NS);
	assert_int_equal(waits->record_ns, ASKED_NS);
	(void)second_below(100, 0, RECORDS_PER_S - 99);
	assert_int_equal(waits->record_ns, 2 * ASKED_NS);
	assert_false(waits->samples);
	for (int i = 0; i < 4; i++)
		(void)second_below(100, 0, RECORDS_PER_S / 2 - 101);
	assert_int_equal(waits->record_ns, 2 * ASKED_NS);
	(void)second_below(100, 0, RECORDS_PER_S / 2 - 101);
	assert_int_equal(waits->record_ns, ASKED_NS);
	/* waits for work give way before it grows */
	begin();
	(void)second_below(100, 0, RECORDS_PER_S);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_RECORDS);
	assert_int_equal(waits->record_ns, ASKED_NS);
	/* with those that are spared there would be too many again; signals are still not short */
	for (int i = 0; i < 20; i++) {
		counts.spared += RECORDS_PER_S;
		(void)second_below(FEW, 0, 0);
		assert_int_equal(minimum.spares, OFFCPU_SPARES_RECORDS);
	}
	(void)second_below(100, 0, RECORDS_PER_S);
	assert_int_equal(waits->record_ns, 2 * ASKED_NS);
	assert_int_equal(waits->signal_ns, 2 * ASKED_NS);
	(void)second(0, OWN_PER_S + 1);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_LONG);
}

static void records_come_back_before_signals_suffice(void **state)
{
	(void)state;
	begin();
	(void)second_below(FEW, 0, RECORDS_PER_S);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_RECORDS);
	for (int i = 0; i < 4; i++) {
		(void)second(SIGNALS_PER_S / 2, 0);
		assert_int_equal(minimum.spares, OFFCPU_SPARES_RECORDS);
	}
	/* with those that are spared there would be half of what is allowed */
	counts.spared += RECORDS_PER_S / 2 - SIGNALS_PER_S / 2;
	(void)second(SIGNALS_PER_S / 2, 0);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_RECORDS);
	counts.spared += RECORDS_PER_S / 2 - SIGNALS_PER_S / 2 - 1;
	(void)second(SIGNALS_PER_S / 2, 0);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_SIGNALS);
}

/* As a third of 300 threads after the other is known to wait for work. */
static void it_does_not_grow_while_more_is_spared(void **state)
{
	(void)state;
	begin_spared();
	for (int i = 1; i <= 3; i++) {
		counts.spared += (unsigned)i * 5000;
		assert_int_equal(second(340, 15000 - (unsigned)i * 4000), ASKED_NS);
		assert_int_equal(waits->record_ns, ASKED_NS);
		assert_true(waits->samples);
	}
	counts.spared += 16000;
	assert_int_equal(second(340, 3000), 2 * ASKED_NS);
	assert_int_equal(waits->record_ns, 2 * ASKED_NS);
	assert_false(waits->samples);
}

/* One second in which so many threads asked, and so many more would have. */
static uint64_t habit_after(unsigned asked, unsigned unasked)
{
	counts.asked += asked;
	counts.unasked += unasked;
	(void)second(asked, 0);
	return minimum.habit_ns;
}

static void threads_ask_later_while_not_all_may(void **state)
{
	(void)state;
	begin();
	assert_int_equal(habit_after(200, 0), OFFCPU_HABIT_NS);
	for (uint64_t ns = 2 * OFFCPU_HABIT_NS; ns <= OFFCPU_HABIT_NS_MAX; ns *= 2)
		assert_int_equal(habit_after(200, 1), ns);
	assert_int_equal(habit_after(200, 1000), OFFCPU_HABIT_NS_MAX);
	for (int i = 0; i < 20; i++)
		assert_int_equal(habit_after(SIGNALS_PER_S / 8, 0), OFFCPU_HABIT_NS_MAX);
	assert_int_equal(habit_after(SIGNALS_PER_S / 8 - 1, 0), OFFCPU_HABIT_NS_MAX / 2);
	for (int i = 0; i < 5; i++)
		(void)habit_after(0, 0);
	assert_int_equal(minimum.habit_ns, OFFCPU_HABIT_NS);
}

static void a_burst_does_not_lengthen_it(void **state)
{
	(void)state;
	begin();
	/* an eighth of all, in several seconds */
	for (int i = 0; i < 20; i++)
		assert_int_equal(second(350, 50), ASKED_NS);
	assert_int_equal(second(7, 1), ASKED_NS);
}

static void others_that_use_the_signals_up_do_not_lengthen_it(void **state)
{
	(void)state;
	begin();
	assert_int_equal(second(0, OWN_PER_S), ASKED_NS);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_NOTHING);
	begin_spared();
	assert_int_equal(second(0, OWN_PER_S), ASKED_NS);
	assert_int_equal(second(0, OWN_PER_S + 1), 2 * ASKED_NS);
}

static void more_than_twice_the_signals_double_it_each_second(void **state)
{
	(void)state;
	begin_spared();
	assert_int_equal(second(350, 351), 2 * ASKED_NS);
	assert_int_equal(second(400, 4000), 4 * ASKED_NS);
	for (int i = 0; i < 20; i++)
		(void)second(400, 4000);
	assert_in_range(waits->signal_ns, OFFCPU_MIN_NS_MAX, 2 * OFFCPU_MIN_NS_MAX);
}

static void records_are_sampled_if_nearly_all_are_of_one_length(void **state)
{
	(void)state;
	begin_spared();
	(void)second_below(300, 0, RECORDS_PER_S);
	assert_int_equal(waits->record_ns, 2 * ASKED_NS);
	(void)second_below(100, 0, RECORDS_PER_S / 4 - 101);
	assert_int_equal(waits->record_ns, ASKED_NS);
	assert_false(waits->samples);
	(void)second_below(300, 0, RECORDS_PER_S);
	assert_int_equal(waits->record_ns, ASKED_NS);
	assert_true(waits->samples);
	(void)second_below(100, 0, RECORDS_PER_S - 100);
	assert_int_equal(waits->record_ns, ASKED_NS);
	assert_false(waits->samples);
}

static void a_minimum_that_leaves_hardly_any_is_taken_back(void **state)
{
	(void)state;
	begin_spared();
	/* nearly all are as long as four times the minimum */
	assert_int_equal(second(340, 400), 2 * ASKED_NS);
	assert_int_equal(second(340, 400), 4 * ASKED_NS);
	assert_int_equal(second(340, 400), 8 * ASKED_NS);
	assert_int_equal(second(FEW - 1, 0), 4 * ASKED_NS);
	for (int i = 0; i < 59; i++)
		assert_int_equal(second(340, 400), 4 * ASKED_NS);
	/* it is tried again after a minute */
	assert_int_equal(second(340, 400), 8 * ASKED_NS);
	/* a quarter of the signals is enough */
	assert_int_equal(second(FEW, 0), 8 * ASKED_NS);
	assert_int_equal(second(340, 400), 16 * ASKED_NS);
}

static void five_seconds_with_few_halve_it_to_what_was_asked_for(void **state)
{
	(void)state;
	begin_spared();
	(void)second(400, 4000);
	(void)second(400, 4000);
	for (int i = 0; i < 4; i++)
		assert_int_equal(second(SIGNALS_PER_S / 2 - 1, 0), 4 * ASKED_NS);
	assert_int_equal(second(SIGNALS_PER_S / 2 - 1, 0), 2 * ASKED_NS);
	for (int i = 0; i < 4; i++)
		(void)second(0, 0);
	assert_int_equal(second(0, 0), ASKED_NS);
	for (int i = 0; i < 20; i++)
		assert_int_equal(second(0, 0), ASKED_NS);
}

static void a_second_with_many_begins_the_five_anew(void **state)
{
	(void)state;
	begin_spared();
	(void)second(400, 4000);
	for (int i = 0; i < 4; i++)
		(void)second(FEW, 0);
	assert_int_equal(second(SIGNALS_PER_S / 2, 0), 2 * ASKED_NS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(second(0, 0), 2 * ASKED_NS);
	assert_int_equal(second(0, 0), ASKED_NS);
}

/* One second with so many waits, and so many times in the run queue. */
static void second_of_both(unsigned waiting, unsigned over, unsigned queueing, unsigned queued_over)
{
	count(OFFCPU_WAITS, waiting, over, 0);
	count(OFFCPU_QUEUED, queueing, queued_over, 0);
	tick();
}

static void times_in_the_run_queue_have_what_waits_leave(void **state)
{
	(void)state;
	begin();
	assert_int_equal(minimum.queued.signals, SIGNALS_PER_S);
	assert_int_equal(minimum.queued.records, RECORDS_PER_S);
	/* in a moment there may be twice as many waits as usual */
	second_of_both(100, 0, 200, 0);
	assert_int_equal(minimum.queued.signals, SIGNALS_PER_S - 200);
	assert_int_equal(minimum.queued.records, RECORDS_PER_S - 100);
	second_of_both(SIGNALS_PER_S / 2, 0, 50, 0);
	assert_int_equal(minimum.queued.signals, SIGNALS_PER_S / 8);
	second_of_both(0, RECORDS_PER_S, 50, 0);
	assert_int_equal(minimum.queued.records, RECORDS_PER_S / 8);
	second_of_both(0, 0, 0, 0);
	assert_int_equal(minimum.queued.signals, SIGNALS_PER_S);
	assert_int_equal(minimum.queued.records, RECORDS_PER_S);
}

static void too_many_in_the_run_queue_lengthen_only_their_own_minimums(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 4; i++)
		second_of_both(SIGNALS_PER_S / 2, 0, 50, 2000);
	assert_int_equal(waits->signal_ns, ASKED_NS);
	assert_int_equal(waits->record_ns, ASKED_NS);
	assert_true(minimum.spares <= OFFCPU_SPARES_SIGNALS);
	assert_int_equal(queued->signal_ns, 16 * ASKED_NS);
	assert_int_equal(queued->record_ns, 16 * ASKED_NS);
	for (int i = 0; i < 5; i++)
		second_of_both(SIGNALS_PER_S / 2, 0, 10, 0);
	assert_int_equal(queued->record_ns, 8 * ASKED_NS);
	/* a record is enough for those that are too many for a signal */
	begin();
	second_of_both(SIGNALS_PER_S / 2, 0, 100, 101);
	assert_int_equal(queued->signal_ns, 2 * ASKED_NS);
	assert_int_equal(queued->record_ns, ASKED_NS);
}

static void times_in_the_run_queue_give_way_first(void **state)
{
	(void)state;
	begin();
	/* they have had nearly all, and waits that begin now lack signals and records */
	second_of_both(0, 0, SIGNALS_PER_S, 0);
	second_of_both(50, 200, SIGNALS_PER_S - 50, RECORDS_PER_S);
	assert_true(minimum.spares <= OFFCPU_SPARES_SIGNALS);
	assert_int_equal(minimum.queued.signals, SIGNALS_PER_S / 8);
	/* it was not enough */
	second_of_both(50, 200, SIGNALS_PER_S / 8, 0);
	assert_int_equal(minimum.spares, OFFCPU_SPARES_LONG);
	second_of_both(50, 200, SIGNALS_PER_S / 8, 0);
	assert_int_equal(waits->signal_ns, 2 * ASKED_NS);
}

static void waits_have_what_times_in_the_run_queue_do_not_need(void **state)
{
	const unsigned least = RECORDS_PER_S / 8;

	(void)state;
	begin_spared();
	second_of_both(100, 0, 0, 0);
	second_of_both(100, RECORDS_PER_S - 100, 0, 0);
	assert_int_equal(waits->record_ns, ASKED_NS);
	second_of_both(100, RECORDS_PER_S - 100 - least, 0, least);
	assert_int_equal(waits->record_ns, ASKED_NS);
	second_of_both(100, RECORDS_PER_S - 99 - least, 0, least);
	assert_int_equal(waits->record_ns, 2 * ASKED_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_does_not_lengthen_it),
		cmocka_unit_test(waits_for_work_lose_their_signals_when_there_are_many),
		cmocka_unit_test(waits_for_work_give_way_before_it_grows),
		cmocka_unit_test(others_that_use_the_signals_up_do_not_lengthen_it),
		cmocka_unit_test(a_half_with_signals_is_a_sample),
		cmocka_unit_test(records_are_sampled_if_nearly_all_are_of_one_length),
		cmocka_unit_test(a_minimum_that_leaves_hardly_any_is_taken_back),
		cmocka_unit_test(it_does_not_grow_while_more_is_spared),
		cmocka_unit_test(threads_ask_later_while_not_all_may),
		cmocka_unit_test(records_come_back_before_signals_suffice),
		cmocka_unit_test(records_go_on_until_there_are_too_many),
		cmocka_unit_test(more_than_twice_the_signals_double_it_each_second),
		cmocka_unit_test(five_seconds_with_few_halve_it_to_what_was_asked_for),
		cmocka_unit_test(a_second_with_many_begins_the_five_anew),
		cmocka_unit_test(times_in_the_run_queue_have_what_waits_leave),
		cmocka_unit_test(too_many_in_the_run_queue_lengthen_only_their_own_minimums),
		cmocka_unit_test(times_in_the_run_queue_give_way_first),
		cmocka_unit_test(waits_have_what_times_in_the_run_queue_do_not_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
