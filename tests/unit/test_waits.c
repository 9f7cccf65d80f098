/*
 * Waits from begin to end, through the ring: every wait is counted once, in one slot, whichever
 * table is full.
 */
#include <pthread.h>
#include <string.h>
#include "agent/events/waits.h"
#include "tests/unit/fake_waits.h"
#include "tests/unit/unit.h"

static void long_wait_comes_with_all_that_is_known_of_it(void **state)
{
	uint64_t began;

	(void)state;
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	began = fake.clock_ns;
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	fake_drain();
	assert_int_equal(fake.read.n, 1);
	assert_int_equal(fake.read.last.mono_ns, began);
	assert_int_equal(fake.read.last.weight, 5 * MIN + 1);
	assert_int_equal(fake.read.last.wait, WIRE_WAIT_ENTER);
	assert_int_equal(fake.named,
			 /* copied now, because it may be gone when the event is read */
			 fake.read.last.tid);
	assert_int_equal(fake.read.last.class_handle, CLASS);
	assert_int_equal(fake.read.last.identity, 9);
	assert_int_equal(fake.read.last.owner_tid, 3);
	assert_int_equal(fake.read.last.tid, 77);
	assert_int_equal(fake.read.last.n_frames, 1);
	assert_int_equal(fake_counters()->taken, 1);
	fake_counters_are_exact();
	fake_counts_are(fake.short_before, fake.unpaired_before);
}

/* Whoever ends a wait of its own pays for waking the agent's thread, which costs more than the
 * wait's record. */
static void long_wait_does_not_wake_a_writer_that_rests(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		agent.writer_idle = i ? WRITER_IDLE : WRITER_RESTS;
		fake_begin(64, 64, WIRE_WAIT_ENTER);
		fake.clock_ns += 5 * MIN;
		fake_end(64, 64, WIRE_WAIT_ENTER);
		assert_int_equal(agent.writer_idle, i ? WRITER_WORKS : WRITER_RESTS);
		fake_drain();
	}
}

static void owner_that_is_found_meanwhile_is_in_the_place_of_its_mark(void **state)
{
	const struct wait_lock lock = { .identity = 9, .owner_tid = 1u << 30 | 5 };

	(void)state;
	fake.found_owner = fake.ended_marks = 0;
	wait_begin(64, 64, WIRE_WAIT_ENTER, 0, &lock);
	fake.found_owner = 4712;
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	fake_drain();
	assert_int_equal(fake.read.last.owner_tid, 4712);
	assert_true(fake.ended_marks > 0);
	fake.ended_marks = 0;
	wait_begin(64, 64, WIRE_WAIT_ENTER, 0, &lock);
	fake_end(64, 64, WIRE_WAIT_ENTER); /* too short to be reported: its slot is released too */
	assert_true(fake.ended_marks > 0);
	fake.found_owner = 0;
	wait_begin(64, 64, WIRE_WAIT_ENTER, 0, &lock);
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	fake_drain();
	assert_int_equal(fake.read.last.owner_tid, 0); /* never the mark */
}

static void short_wait_is_only_counted(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	fake.clock_ns += MIN / 2;
	fake_end(64, 64, WIRE_WAIT_PARK);
	fake_drain();
	assert_int_equal(fake.read.n, 0);
	assert_int_equal(fake_counters()->taken, 0);
	fake_counts_are(fake.short_before + 1, fake.unpaired_before);
}

static void end_without_its_begin_is_counted(void **state)
{
	(void)state;
	fake_end(64, 64, WIRE_WAIT_WAIT);
	fake_begin(64, 64, WIRE_WAIT_WAIT);
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER); /* of another kind */
	fake_end(64, 64, WIRE_WAIT_WAIT); /* the slot is free again */
	fake_drain();
	assert_int_equal(fake.read.n, 0);
	fake_counts_are(fake.short_before, fake.unpaired_before + 3);
}

static void virtual_thread_s_wait_ends_on_another_carrier(void **state)
{
	(void)state;
	fake_begin(64, 31, WIRE_WAIT_WAIT);
	fake_begin(64, 32, WIRE_WAIT_WAIT); /* the next wait on the same carrier */
	fake.clock_ns += 5 * MIN;
	fake_end(128, 31, WIRE_WAIT_WAIT);
	fake_end(192, 32, WIRE_WAIT_WAIT);
	fake_drain();
	assert_int_equal(fake.read.n, 2);
	fake_counts_are(fake.short_before, fake.unpaired_before);
}

static void begin_whose_end_was_not_told_is_forgotten_at_the_next(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	fake.clock_ns += 50 * MIN;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_PARK);
	fake_drain();
	assert_int_equal(fake.read.n, 1);
	assert_in_range(fake.read.ns, 5 * MIN, 5 * MIN + 10);
}

static void nothing_happens_while_waits_are_off(void **state)
{
	(void)state;
	events.on = 0;
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	fake_drain();
	assert_int_equal(fake.read.n, 0);
	assert_int_equal(waits_used(), 0);
	fake_counts_are(fake.short_before, fake.unpaired_before);
}

static void full_ring_costs_waits_but_not_the_accounts(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2000; i++) {
		fake_begin(64, 64, WIRE_WAIT_ENTER);
		fake.clock_ns += 2 * MIN;
		fake_end(64, 64, WIRE_WAIT_ENTER);
	}
	fake_drain();
	assert_true(fake_counters()->drop[WIRE_DROP_RING_FULL].n > 0);
	assert_int_equal(fake_counters()->taken, 2000);
	assert_int_equal(fake.read.n, fake_counters()->pushed);
	assert_int_equal(fake.read.ns, fake_counters()->pushed_weight);
	fake_counters_are_exact();
}

static void few_threads_keep_to_a_small_part_of_the_table(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 20000; i++) {
		fake_begin(64 * (i % 20 + 1), 64 * (i % 20 + 1), WIRE_WAIT_PARK);
		fake_end(64 * (i % 20 + 1), 64 * (i % 20 + 1), WIRE_WAIT_PARK);
	}
	assert_in_range(waits_used(), 1, WAITS_MAX / 16);
	fake_counts_are(fake.short_before + 20000, fake.unpaired_before);
}

static void many_wait_at_once(void **state)
{
	const uint64_t n = 8000;

	(void)state;
	for (uint64_t i = 1; i <= n; i++)
		fake_begin(0x7f0000000000 + 4096 * i, 0x7f0000000000 + 4096 * i, WIRE_WAIT_PARK);
	for (uint64_t i = 1; i <= n; i++)
		fake_end(0x7f0000000000 + 4096 * i, 0x7f0000000000 + 4096 * i, WIRE_WAIT_PARK);
	fake_counts_are(fake.short_before + n, fake.unpaired_before);
}

static void more_than_the_table_holds_are_counted_as_unpaired(void **state)
{
	const uint64_t n = 3 * WAITS_MAX;
	uint64_t too_short, ns, unpaired;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 1; i <= n; i++)
			fake_begin(64 * i, 64 * i, WIRE_WAIT_PARK);
		for (uint64_t i = 1; i <= n; i++)
			fake_end(64 * i, 64 * i, WIRE_WAIT_PARK);
	}
	waits_counts(&too_short, &ns, &unpaired);
	too_short -= fake.short_before;
	unpaired -= fake.unpaired_before;
	assert_int_equal(too_short + unpaired, 2 * n);
	assert_in_range(too_short, WAITS_MAX, 2 * WAITS_MAX);
}

#define THREADS 6
#define ROUNDS	20000

static void *wait_often(void *number)
{
	uint64_t me = 64 * (1 + (uint64_t)(uintptr_t)number);

	for (int i = 0; i < ROUNDS; i++) {
		fake_begin(me, me, WIRE_WAIT_ENTER);
		fake_end(me, me, WIRE_WAIT_ENTER);
	}
	return NULL;
}

static void many_threads_at_once_lose_nothing(void **state)
{
	pthread_t threads[THREADS];
	struct wait copy;

	(void)state;
	events.lock_min_ns = 0;
	for (uint64_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, wait_often, (void *)(uintptr_t)i), 0);
	while (__atomic_load_n(&fake_counters()->taken, __ATOMIC_RELAXED) < THREADS * ROUNDS) {
		fake_drain();
		for (uint32_t i = 0; i < waits_used(); i++)
			if (waits_copy(i, &copy))
				assert_int_equal(copy.key, copy.java_thread);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	fake_drain();
	assert_int_equal(fake_counters()->taken, THREADS * ROUNDS);
	assert_int_equal(fake.read.n, fake_counters()->pushed);
	fake_counters_are_exact();
	fake_counts_are(fake.short_before, fake.unpaired_before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(long_wait_comes_with_all_that_is_known_of_it),
		TEST(long_wait_does_not_wake_a_writer_that_rests),
		TEST(owner_that_is_found_meanwhile_is_in_the_place_of_its_mark),
		TEST(short_wait_is_only_counted),
		TEST(end_without_its_begin_is_counted),
		TEST(virtual_thread_s_wait_ends_on_another_carrier),
		TEST(begin_whose_end_was_not_told_is_forgotten_at_the_next),
		TEST(nothing_happens_while_waits_are_off),
		TEST(full_ring_costs_waits_but_not_the_accounts),
		TEST(few_threads_keep_to_a_small_part_of_the_table),
		TEST(many_wait_at_once),
		TEST(more_than_the_table_holds_are_counted_as_unpaired),
		TEST(many_threads_at_once_lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
