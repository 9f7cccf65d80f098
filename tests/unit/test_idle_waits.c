/* Idle waits: recognised at their end, counted apart, and reported in sums. */
#include "agent/events/idle_waits.h"
#include "agent/events/waits.h"
#include "tests/unit/fake_waits.h"
#include "tests/unit/unit.h"

static void wait_for_work(uint64_t thread, uint64_t ns)
{
	fake_begin(thread, thread, WIRE_WAIT_PARK);
	fake.clock_ns += ns - 1;
	fake_end(thread, thread, WIRE_WAIT_PARK);
}

static void idle_waits_are_told_in_sums(void **state)
{
	(void)state;
	fake.sight = IDLE_YES;
	wait_for_work(64, 5 * MIN); /* the first idle wait of a thread is reported at once */
	fake_drain();
	assert_int_equal(fake.read.n, 1);
	assert_int_equal(fake.read.last.flags & WIRE_LOCK_SUM, WIRE_LOCK_SUM);
	assert_int_equal(fake.read.last.size, 1);
	for (int i = 0; i < 100; i++)
		wait_for_work(64, i % 2 ? MIN / 2 : 5 * MIN); /* short ones, too */
	fake_drain();
	assert_int_equal(fake.read.n, 1);
	fake.clock_ns += NS_PER_S;
	wait_for_work(64, 2 * MIN);
	fake_drain();
	assert_int_equal(fake.read.n, 2);
	assert_int_equal(fake.read.last.size, 101);
	assert_int_equal(fake.read.last.weight, 50 * (MIN / 2 + 5 * MIN) + 2 * MIN);
	assert_int_equal(fake.read.last.class_handle, CLASS);
	assert_in_range(fake.read.last.mono_ns + fake.read.last.weight, fake.clock_ns - 9,
			fake.clock_ns); /* ends now */
	fake_idle_are(102, 50 * (MIN / 2 + 5 * MIN) + 7 * MIN);
	fake_counts_are(fake.short_before, fake.unpaired_before);
	assert_int_equal(fake_counters()->taken, 2);
	fake_counters_are_exact();
}

static void task_that_waits_is_told_whatever_its_worker_did_before(void **state)
{
	(void)state;
	fake.sight = IDLE_YES;
	wait_for_work(64, 5 * MIN);
	wait_for_work(64, 5 * MIN);
	fake_drain();
	fake.read.n = 0;
	fake.sight =
		/* its mark is the same as that of a known site, but a long wait is always
		 * classified anew */
		IDLE_NO;
	wait_for_work(64, 5 * MIN);
	fake_drain();
	assert_int_equal(fake.read.n, 1);
	assert_int_equal(fake.read.last.flags & WIRE_LOCK_SUM, 0);
	assert_int_equal(fake.read.last.owner_tid, 3);
	fake_idle_are(2, 10 * MIN);
}

static void short_waits_at_a_known_place_need_no_look(void **state)
{
	(void)state;
	fake.sight = IDLE_YES;
	wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 1);
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 1);
	fake_idle_are(11, 11 * MIN / 2);
	fake.sight = IDLE_NO;
	fake.return_address++; /* the method was compiled again, or called from elsewhere */
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 2);
	fake.return_address--; /* two slots are known */
	wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 2);
	fake_idle_are(12, 6 * MIN);
	fake_counts_are(fake.short_before + 10, fake.unpaired_before);
}

static void known_places_are_looked_at_again_after_a_user_s_names_change(void **state)
{
	(void)state;
	fake.sight = IDLE_NO;
	wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 1);
	idle_add("org.shop.Loop", 13);
	fake.sight = IDLE_YES;
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 2);
	fake_idle_are(10, 5 * MIN);
	idle_add("", 0);
}

/* A pool whose threads end after a minute without work: nothing else would tell of these waits. */
static void long_idle_waits_that_end_together_are_told(void **state)
{
	uint64_t before = fake_counters()->taken;

	(void)state;
	fake.sight = IDLE_YES;
	for (uint64_t i = 0; i < 40; i++)
		fake_begin(64 + 16 * i, 64 + 16 * i, WIRE_WAIT_PARK);
	fake.clock_ns += 60 * NS_PER_S;
	for (uint64_t i = 0; i < 40; i++)
		fake_end(64 + 16 * i, 64 + 16 * i, WIRE_WAIT_PARK);
	assert_int_equal(fake_counters()->taken, before + 40);
}

static void short_waits_are_summed_for_their_thread(void **state)
{
	uint32_t us[WIRE_WAIT_COUNT];

	(void)state;
	fake.sight = IDLE_NO;
	for (int i = 0; i < 3; i++)
		wait_for_work(64, MIN / 2);
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	fake.clock_ns += MIN / 4 - 1;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	wait_for_work(64, 2 * MIN); /* an event */
	assert_false(idle_waits_take_short(128, us));
	assert_true(idle_waits_take_short(64, us));
	assert_in_range(us[WIRE_WAIT_PARK], 3 * (MIN / 2 / 1000) - 3, 3 * (MIN / 2 / 1000) + 3);
	assert_in_range(us[WIRE_WAIT_ENTER], MIN / 4 / 1000 - 1, MIN / 4 / 1000 + 1);
	assert_int_equal(us[WIRE_WAIT_WAIT], 0);
	assert_false(idle_waits_take_short(64, us)); /* they are taken away */
	wait_for_work(64, MIN / 2);
	idle_waits_halve_short();
	assert_true(idle_waits_take_short(64, us));
	assert_in_range(us[WIRE_WAIT_PARK], MIN / 4 / 1000 - 2, MIN / 4 / 1000 + 2);
	fake.sight = IDLE_YES;
	wait_for_work(192, MIN / 2);
	wait_for_work(192, MIN / 2);
	assert_false(idle_waits_take_short(192, us)); /* idle ones have sums of their own */
}

static void interpreted_frames_are_looked_at_each_time(void **state)
{
	(void)state;
	fake.sight = IDLE_YES;
	fake.frame_kind =
		WIRE_KIND_INTERPRETED; /* another method may have the same return address */
	for (int i = 0; i < 10; i++)
		wait_for_work(64, MIN / 2);
	assert_int_equal(fake.looks, 10);
	fake_idle_are(10, 5 * MIN);
}

static void monitors_are_never_idle_and_old_readers_know_no_sums(void **state)
{
	(void)state;
	fake.sight = IDLE_YES;
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	events.idle_apart = false;
	wait_for_work(64, 5 * MIN);
	wait_for_work(64, MIN / 2);
	fake_drain();
	assert_int_equal(fake.read.n, 2);
	assert_int_equal(fake.looks, 0);
	fake_idle_are(0, 0);
	fake_counts_are(fake.short_before + 1, fake.unpaired_before);
}

/* This holds for any number of threads in a pool. */
static void idle_threads_tell_fifty_times_a_second_in_all(void **state)
{
	uint64_t told_waits = 0, reported_ns = 0, began = fake.clock_ns, took;

	(void)state;
	fake.sight = IDLE_YES;
	for (int i = 0; i < 20000; i++) {
		wait_for_work(64 + 16u * (uint64_t)(i % 400), MIN);
		fake.clock_ns += MIN / 10;
		for (const struct ring_sample *s; (s = ring_peek(&agent.ring, UINT64_MAX));) {
			told_waits += s->size;
			reported_ns += s->weight;
			ring_pop(&agent.ring);
		}
	}
	took = fake.clock_ns - began;
	assert_true(fake_counters()->taken >= took / NS_PER_S * 45);
	assert_true(fake_counters()->taken <= took / NS_PER_S * 50 + 50);
	fake_idle_are(20000, 20000 * MIN);
	assert_true(told_waits <= 20000);
	assert_true(told_waits > 10000); /* the other threads will report theirs */
	assert_int_equal(reported_ns, told_waits * MIN);
	fake_counters_are_exact();
}

/* The agent's thread reported the wait while it went on: then the wait's own end record closes
 * it. */
static void long_idle_wait_is_told_alone(void **state)
{
	(void)state;
	fake.sight = IDLE_YES;
	wait_for_work(64, 5 * MIN);
	wait_for_work(64, 5 * MIN);
	fake.clock_ns += NS_PER_S;
	fake_drain();
	fake_begin(64, 64, WIRE_WAIT_PARK);
	fake.clock_ns += 2 * NS_PER_S;
	fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	fake_end(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 4; i++)
		fake_round_trip();
	assert_int_equal(fake.read.last.mono_ns, fake.reported[0].mono_ns);
	assert_int_equal(fake.read.last.flags, 0);
	assert_int_equal(fake.n_reported, 1); /* no CLOSED */
	fake_idle_are(3, 10 * MIN + fake.read.last.weight);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idle_waits_are_told_in_sums),
		TEST(task_that_waits_is_told_whatever_its_worker_did_before),
		TEST(short_waits_at_a_known_place_need_no_look),
		TEST(known_places_are_looked_at_again_after_a_user_s_names_change),
		TEST(long_idle_waits_that_end_together_are_told),
		TEST(short_waits_are_summed_for_their_thread),
		TEST(interpreted_frames_are_looked_at_each_time),
		TEST(monitors_are_never_idle_and_old_readers_know_no_sums),
		TEST(idle_threads_tell_fifty_times_a_second_in_all),
		TEST(long_idle_wait_is_told_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
