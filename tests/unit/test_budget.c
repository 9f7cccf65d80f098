#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include "agent/base/events.h"
#include "agent/engine/cpu_timer.h"
#include "agent/engine/handler_cost.h"
#include "agent/output/budget.h"
#include "agent/output/writer.h"

struct agent agent;
struct engine engine;
struct events events;

static uint64_t clock_ns, thread_ns, process_ns;
static char note[256], interval_note[256];
static uint64_t process_share_ms = 1000; /* of CPU in a second */

uint64_t mono_ns(void)
{
	return clock_ns;
}

uint64_t thread_cpu_ns(uint32_t tid)
{
	(void)tid;
	return thread_ns;
}

void handler_cost_account(void)
{
}

uint64_t process_cpu_ns(void)
{
	return process_ns;
}

void engine_set_interval(uint64_t interval_ns)
{
	engine.interval_ns = interval_ns;
}

enum writer_result writer_fault(enum wire_type type, uint32_t code, const char *step,
				const char *what)
{
	assert_int_equal(type, WIRE_NOTE);
	assert_int_equal(code, 0);
	if (strcmp(step, "interval") == 0)
		strncpy(interval_note, what, sizeof(interval_note) - 1);
	else
		strncpy(note, what, sizeof(note) - 1);
	return WRITER_OK;
}

static const struct wire_start start = { .interval_ns = 10 * NS_PER_MS };

static int begin(void **state)
{
	(void)state;
	memset(&agent.counters, 0, sizeof(agent.counters));
	process_share_ms = 1000;
	engine.interval_ns = start.interval_ns;
	engine.running = true;
	events.lock_min_ns = events_lock_min_ns(&start);
	engine.host = 1; /* no tick */
	agent.housekeeping_ns = thread_ns = 0;
	budget_begin(&start);
	note[0] = interval_note[0] = '\0';
	return 0;
}

/* A second of a process that uses one CPU: 1 % of it is 10 ms. */
static void second(uint64_t handler_ms, uint64_t waits_ms)
{
	struct event_counters *waits = &agent.counters.of[WIRE_EVENT_LOCK];

	clock_ns += NS_PER_S;
	process_ns += process_share_ms * NS_PER_MS;
	agent.counters.handler_ns += handler_ms * NS_PER_MS;
	agent.counters.of[WIRE_EVENT_CPU].taken += NS_PER_S / engine.interval_ns;
	waits->cost_ns += waits_ms * NS_PER_MS;
	waits->taken += 1000 * waits_ms;
	(void)budget_keep(&start);
}

static void seconds(int n, uint64_t handler_ms, uint64_t waits_ms)
{
	for (int i = 0; i < n; i++)
		second(handler_ms, waits_ms);
}

static void within_the_budget_nothing_changes(void **state)
{
	(void)state;
	seconds(20, 4, 4);
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
	assert_string_equal(note, "");
}

/* A second of a process that uses one CPU; each sample costs @sample_ns, and the agent's thread
 * @thread_ns besides. */
static void second_of_samples(uint64_t sample_us, uint64_t fixed_ms)
{
	uint64_t samples = NS_PER_S / engine.interval_ns;

	clock_ns += NS_PER_S;
	process_ns += process_share_ms * NS_PER_MS;
	samples = samples * process_share_ms / 1000;
	agent.counters.of[WIRE_EVENT_CPU].taken += samples;
	agent.counters.handler_ns += samples * sample_us * 500;
	thread_ns += samples * sample_us * 500 + fixed_ms * NS_PER_MS;
	agent.housekeeping_ns += fixed_ms * NS_PER_MS;
	(void)budget_keep(&start);
}

static void samples(int n, uint64_t sample_us, uint64_t fixed_ms)
{
	for (int i = 0; i < n; i++)
		second_of_samples(sample_us, fixed_ms);
}

static void samples_that_cost_too_much_come_as_rarely_as_they_must(void **state)
{
	(void)state;
	samples(20, 250, 0); /* 2.5 % at 10 ms */
	assert_in_range(engine.interval_ns, 24 * NS_PER_MS, 26 * NS_PER_MS);
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
	assert_string_equal(interval_note,
			    "a sample every 25 ms of CPU time instead of every 10 ms, which would "
			    "take 2.5 % of the application's CPU time: max_cpu is 1 %");
}

static void a_process_with_little_cpu_time_may_be_charged_more_than_max_cpu(void **state)
{
	(void)state;
	process_share_ms = 50;
	samples(60, 500, 0); /* 2.5 ms a second at 10 ms */
	assert_in_range(engine.interval_ns, 20 * NS_PER_MS, 26 * NS_PER_MS);
	assert_non_null(strstr(interval_note, "would take 5 % of the application's CPU time: max_cpu "
					      "is 1 %, but 1 ms a second is always allowed"));
}

static void the_cost_of_the_start_does_not_count(void **state)
{
	(void)state;
	samples(4, 900, 20);
	for (int i = 0; i < 60; i++) {
		samples(1, 90, 0);
		assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	}
	assert_string_equal(interval_note, "");
}

static void costs_that_no_interval_changes_make_it_no_longer(void **state)
{
	(void)state;
	samples(60, 40, 30); /* 0.4 % and 3 % */
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
}

static void interval_comes_back_as_soon_as_it_fits(void **state)
{
	(void)state;
	samples(20, 250, 0);
	assert_true(engine.interval_ns > 20 * NS_PER_MS);
	samples(15, 95, 0); /* 0.95 %: not below half */
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	assert_string_equal(interval_note, "");
	samples(60, 95, 0);
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
}

/* Fewer samples cost more each; that alone must not keep the interval long. */
static void rare_samples_may_cost_more(void **state)
{
	(void)state;
	samples(20, 150, 0);
	assert_in_range(engine.interval_ns, 14 * NS_PER_MS, 16 * NS_PER_MS);
	process_share_ms = 400; /* the application does less, as does max_cpu */
	samples(2, 150, 0);
	process_share_ms = 1000;
	samples(20, 210, 0);
	assert_in_range(engine.interval_ns, 20 * NS_PER_MS, 22 * NS_PER_MS);
	samples(30, 95, 0);
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
}

static void interval_comes_back_where_nothing_is_sampled(void **state)
{
	(void)state;
	samples(20, 250, 0);
	assert_true(engine.interval_ns > 20 * NS_PER_MS);
	process_share_ms = 1;
	samples(30, 250, 0);
	process_share_ms = 1000;
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
}

/* A process that uses a quarter of a CPU, with cold caches, as measured on an idle machine. */
static void little_work_keeps_its_interval(void **state)
{
	(void)state;
	process_share_ms = 250;
	for (int i = 0; i < 60; i++) {
		second_of_samples(60, 1);
		assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	}
	process_share_ms = 1000;
}

/* Timers have no interval below the tick, so a step that stays below it would save nothing. */
static void interval_below_the_tick_begins_there(void **state)
{
	struct wire_start fine = start;
	struct timespec tick;

	(void)state;
	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	fine.interval_ns = NS_PER_MS;
	engine.host = 0;
	engine.interval_ns = NS_PER_MS;
	budget_begin(&fine);
	for (int i = 0; i < 20; i++) {
		uint64_t n = NS_PER_S / (uint64_t)tick.tv_nsec;

		if (engine.interval_ns > NS_PER_MS)
			break;
		clock_ns += NS_PER_S;
		process_ns += NS_PER_S;
		agent.counters.of[WIRE_EVENT_CPU].taken += n;
		agent.counters.handler_ns += 15 * NS_PER_MS; /* 1.5 % */
		(void)budget_keep(&fine);
	}
	assert_in_range(engine.interval_ns, (uint64_t)tick.tv_nsec * 14 / 10,
			(uint64_t)tick.tv_nsec * 16 / 10);
}

/* A second of a process that uses a tenth of a CPU and leaves it often: 200 times off the CPU of
 * 30 us each cost six times what max_cpu allows. Its 10 samples of 30 us and its 10 waits fit. */
static void times_off_the_cpu_are_not_what_samples_or_waits_cost(void **state)
{
	(void)state;
	process_share_ms = 100;
	events.lock_min_ns = 8 * NS_PER_MS; /* raised before */
	for (int i = 0; i < 60; i++) {
		agent.counters.of[WIRE_EVENT_OFFCPU].taken += 200;
		agent.counters.of[WIRE_EVENT_LOCK].taken += 10;
		agent.counters.handler_ns += 3 * NS_PER_MS;
		thread_ns += 3 * NS_PER_MS;
		second_of_samples(30, 0);
		assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	}
	assert_string_equal(interval_note, "");
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
	process_share_ms = 1000;
}

static void waits_that_cost_too_much_are_only_counted_until_they_cost_less(void **state)
{
	(void)state;
	seconds(5, 1, 60);
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	assert_true(events.lock_min_ns >= 4 * NS_PER_MS);
	assert_non_null(strstr(note, "are only counted"));
	seconds(60, 1, 1);
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
	assert_string_equal(note, "");
}

/* A quarter of a second of a process that uses one CPU. */
static bool quarter(uint64_t waits_ms)
{
	clock_ns += NS_PER_S / 4;
	process_ns += NS_PER_S / 4;
	agent.counters.of[WIRE_EVENT_LOCK].cost_ns += waits_ms * NS_PER_MS;
	agent.counters.of[WIRE_EVENT_LOCK].taken += 1000 * waits_ms;
	return budget_check_waits(&start);
}

static void waits_that_cost_far_too_much_are_not_told_for_long(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_false(quarter(4));
	for (int i = 0; i < 1000; i++)
		budget_wait(i < 995 ? 25 * NS_PER_MS : 70 * NS_PER_MS);
	assert_true(quarter(60));
	/* the remaining ones are a hundredth of those before */
	assert_in_range(events.lock_min_ns, 26 * NS_PER_MS, 69 * NS_PER_MS);
	assert_non_null(strstr(note, "waits below 33 ms are only counted"));
	assert_false(quarter(1));
}

static void burst_of_waits_is_reported(void **state)
{
	(void)state;
	assert_false(quarter(0));
	assert_false(quarter(9));
	assert_false(quarter(0));
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
}

static void waits_of_a_process_that_does_little_else_are_told(void **state)
{
	(void)state;
	process_share_ms = 8;
	seconds(10, 0, 6);
	process_share_ms = 1000;
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
}

static void without_cpu_samples_the_threshold_alone_moves(void **state)
{
	(void)state;
	engine.running = false;
	seconds(8, 0, 60);
	assert_int_equal(engine.interval_ns, 10 * NS_PER_MS);
	assert_true(events.lock_min_ns > NS_PER_MS);
}

static void a_recording_without_a_budget_keeps_both(void **state)
{
	struct wire_start free_of_it = start;

	(void)state;
	free_of_it.flags = WIRE_START_NO_BUDGET;
	for (int i = 0; i < 10; i++) {
		clock_ns += NS_PER_S;
		agent.counters.of[WIRE_EVENT_LOCK].cost_ns += NS_PER_S;
		assert_false(budget_keep(&free_of_it));
	}
	assert_int_equal(events.lock_min_ns, NS_PER_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(within_the_budget_nothing_changes, begin),
		cmocka_unit_test_setup(samples_that_cost_too_much_come_as_rarely_as_they_must,
				       begin),
		cmocka_unit_test_setup(
			a_process_with_little_cpu_time_may_be_charged_more_than_max_cpu, begin),
		cmocka_unit_test_setup(the_cost_of_the_start_does_not_count, begin),
		cmocka_unit_test_setup(costs_that_no_interval_changes_make_it_no_longer, begin),
		cmocka_unit_test_setup(interval_comes_back_as_soon_as_it_fits, begin),
		cmocka_unit_test_setup(rare_samples_may_cost_more, begin),
		cmocka_unit_test_setup(interval_comes_back_where_nothing_is_sampled, begin),
		cmocka_unit_test_setup(little_work_keeps_its_interval, begin),
		cmocka_unit_test_setup(times_off_the_cpu_are_not_what_samples_or_waits_cost, begin),
		cmocka_unit_test_setup(interval_below_the_tick_begins_there, begin),
		cmocka_unit_test_setup(
			waits_that_cost_too_much_are_only_counted_until_they_cost_less, begin),
		cmocka_unit_test_setup(waits_that_cost_far_too_much_are_not_told_for_long, begin),
		cmocka_unit_test_setup(burst_of_waits_is_reported, begin),
		cmocka_unit_test_setup(waits_of_a_process_that_does_little_else_are_told, begin),
		cmocka_unit_test_setup(without_cpu_samples_the_threshold_alone_moves, begin),
		cmocka_unit_test_setup(a_recording_without_a_budget_keeps_both, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
