/* Open waits: every OPEN record is followed by the wait's own end record or by CLOSED. */
#include "agent/events/open.h"
#include "agent/events/waits.h"
#include "tests/unit/fake_waits.h"
#include "tests/unit/unit.h"

static void long_wait_is_told_once_while_it_goes_on(void **state)
{
	(void)state;
	fake.blocked_on = (struct owner_monitor){
		.address = 8, .class_handle = CLASS, .identity = 1, .owner = 12
	};
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	for (int i = 0; i < 3; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 0);
	for (int i = 0; i < 10; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.reported[0].flags, WIRE_LOCK_OPEN);
	assert_int_equal(fake.reported[0].tid, 64);
	assert_int_equal(fake.reported[0].class_handle, CLASS);
	assert_int_equal(fake.reported[0].owner_tid, 12);
	assert_in_range(fake.reported[0].weight, NS_PER_S, NS_PER_S + NS_PER_S / 2);
	fake_end(64, 64, WIRE_WAIT_ENTER);
	for (int i = 0; i < 10; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.read.last.mono_ns, fake.reported[0].mono_ns);
	assert_int_equal(fake_counters()->taken, 1);
}

static void lock_of_a_park_is_asked_of_the_jvm(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 6; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.reported[0].class_handle, CLASS);
	assert_int_equal(fake.reported[0].identity, 5);
}

static void wait_that_the_thread_does_not_know_of_is_not_told(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	for (int i = 0; i < 10; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 0);
}

static void owner_that_waits_itself_has_a_stack(void **state)
{
	(void)state;
	fake.blocked_on = (struct owner_monitor){ .address = 8, .owner = 128 };
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	fake.clock_ns += 900 * NS_PER_MS;
	fake_begin(128, 128, WIRE_WAIT_ENTER);
	for (int i = 0; i < 3; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.reported[0].n_frames, 1);
	assert_int_equal(fake.reported[0].n_owner_frames, 1);
}

/* Scans whenever one is due, for this long. */
static void look_for(uint64_t ns)
{
	uint64_t until_ns = fake.clock_ns + ns, next_ns;

	while (fake.clock_ns < until_ns) {
		fake_drain();
		next_ns = open_waits_scan(fake.clock_ns);
		open_waits_sent();
		fake.clock_ns = next_ns < until_ns ? next_ns : until_ns;
	}
}

static void owner_that_sleeps_has_a_stack_soon(void **state)
{
	int wakes;

	(void)state;
	fake.owner_sleeps = true;
	fake.blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	look_for(NS_PER_S); /* nobody waits */
	wakes = fake.n_wakes;
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	assert_int_equal(fake.n_wakes, wakes + 1);
	look_for(9 * NS_PER_MS);
	assert_int_equal(fake.n_reported, 0);
	look_for(60 * NS_PER_MS);
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.reported[0].flags, WIRE_LOCK_OPEN);
	assert_int_equal(fake.reported[0].owner_tid, 12);
	assert_int_equal(fake.reported[0].n_frames, 1);
	assert_int_equal(fake.reported[0].n_owner_frames, 1);
	look_for(3 * NS_PER_S); /* once */
	fake_end(64, 64, WIRE_WAIT_ENTER);
	look_for(NS_PER_S);
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.read.last.mono_ns, fake.reported[0].mono_ns);
	fake_counters_are_exact();
}

static void owner_that_runs_is_left_to_its_samples(void **state)
{
	(void)state;
	fake.blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	look_for(900 * NS_PER_MS);
	assert_int_equal(fake.n_reported, 0);
	look_for(2 * NS_PER_S); /* by now the wait counts as long */
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.reported[0].n_owner_frames, 0);
}

/* The end of a wait below the threshold is not reported. */
static void wait_below_the_threshold_is_not_told_early(void **state)
{
	(void)state;
	fake.owner_sleeps = true;
	events.lock_min_ns = 200 * NS_PER_MS;
	fake.blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	fake_begin(64, 64, WIRE_WAIT_ENTER);
	look_for(190 * NS_PER_MS);
	assert_int_equal(fake.n_reported, 0);
	look_for(500 * NS_PER_MS);
	assert_int_equal(fake.n_reported, 1);
}

static uint32_t told_of_sleepers(int waits)
{
	fake.n_reported = 0;
	for (int i = 0; i < waits; i++) {
		fake_begin(64, 64, WIRE_WAIT_ENTER);
		look_for(100 * NS_PER_MS);
		fake_end(64, 64, WIRE_WAIT_ENTER);
	}
	return fake.n_reported;
}

static void owners_that_sleep_have_a_budget(void **state)
{
	(void)state;
	fake.owner_sleeps = true;
	fake.blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	assert_in_range(told_of_sleepers(60), 59, 60);
	fake.tell_cost_ns =
		NS_PER_MS; /* per scan: first 5 from the saved budget, then one in 400 ms */
	assert_in_range(told_of_sleepers(60), 2, 20);
}

/* Threads that hold a lock for a moment each, one after the other: there is nothing to report. */
static void short_waits_are_looked_at_seldom(void **state)
{
	uint64_t end_ns, next_ns = 0;
	int n = 0;

	(void)state;
	fake.owner_sleeps = true;
	fake.blocked_on = (struct owner_monitor){ .address = 8, .owner = 12 };
	look_for(NS_PER_S);
	for (end_ns = fake.clock_ns + 10 * NS_PER_S; fake.clock_ns < end_ns;) {
		fake_begin(64, 64, WIRE_WAIT_ENTER);
		for (int i = 0; i < 4; i++) {
			fake.clock_ns += NS_PER_MS;
			if (fake.clock_ns < next_ns && !open_waits_are_due())
				continue;
			next_ns = open_waits_scan(fake.clock_ns);
			n++;
		}
		fake_end(64, 64, WIRE_WAIT_ENTER);
		fake_drain();
	}
	assert_int_equal(fake.n_reported, 0);
	assert_in_range(n, 10, 60);
}

static void wait_whose_end_is_lost_is_closed(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 6; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	while (fake_counters()->drop[WIRE_DROP_RING_FULL].n == 0) {
		fake_begin(128, 128, WIRE_WAIT_ENTER);
		fake.clock_ns += 2 * MIN;
		fake_end(128, 128, WIRE_WAIT_ENTER);
	}
	fake_end(64, 64, WIRE_WAIT_PARK); /* no room */
	fake_begin(64, 64, WIRE_WAIT_PARK); /* the slot is used again */
	for (int i = 0; i < 3; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 2);
	assert_int_equal(fake.reported[1].flags, WIRE_LOCK_CLOSED);
	assert_int_equal(fake.reported[1].mono_ns, fake.reported[0].mono_ns);
	assert_int_equal(fake.reported[1].tid, fake.reported[0].tid);
	for (int i = 0; i < 8; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 3); /* the next one, as OPEN */
	assert_int_equal(fake.reported[2].flags, WIRE_LOCK_OPEN);
}

static void wait_that_the_reader_did_not_get_is_told_again(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	fake.clock_ns += 2 * NS_PER_S;
	(void)open_waits_scan(fake.clock_ns);
	open_waits_lost();
	assert_int_equal(fake.n_reported, 1);
	fake_round_trip();
	assert_int_equal(fake.n_reported, 2);
	assert_int_equal(fake.reported[1].mono_ns, fake.reported[0].mono_ns);
	/* nor its end */
	fake_end(64, 64, WIRE_WAIT_PARK);
	fake_drain();
	open_waits_lost();
	fake_round_trip();
	assert_int_equal(fake.n_reported, 3);
	assert_int_equal(fake.reported[2].flags, WIRE_LOCK_CLOSED);
	for (int i = 0; i < 4; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 3);
}

static void wait_is_told_again_when_the_reader_has_forgotten_its_stack(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	fake_begin(128, 128, WIRE_WAIT_PARK);
	for (int i = 0; i < 6; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 2);
	open_waits_again();
	assert_true(open_waits_are_due());
	fake_end(128, 128, WIRE_WAIT_PARK); /* this wait has its stack in its own record */
	for (int i = 0; i < 4; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 3);
	assert_int_equal(fake.reported[2].flags, WIRE_LOCK_OPEN);
	assert_int_equal(fake.reported[2].tid, 64);
	assert_int_equal(fake.reported[2].mono_ns,
			 fake.reported[fake.reported[0].tid == 64 ? 0 : 1].mono_ns);
	assert_int_equal(fake.reported[2].n_frames, 1);
	fake_end(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 4; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 3);
	assert_int_equal(fake.read.n, 2);
}

/* A wait's end, or its repeated report after a RESET, must not leave it open for ever. */
static void wait_that_ends_unseen_before_it_is_told_again_is_closed(void **state)
{
	(void)state;
	fake_begin(64, 64, WIRE_WAIT_PARK);
	for (int i = 0; i < 6; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	open_waits_again();
	fake_end(64, 64, WIRE_WAIT_PARK);
	fake_drain();
	open_waits_lost();
	for (int i = 0; i < 4; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 2);
	assert_int_equal(fake.reported[1].flags, WIRE_LOCK_CLOSED);
}

static void next_look_is_when_the_next_wait_becomes_long(void **state)
{
	static const struct wait_lock nobodys;
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(open_waits_scan(fake.clock_ns), fake.clock_ns + 8 * NS_PER_S);
	wait_begin(64, 64, WIRE_WAIT_PARK, 0, &nobodys);
	begin_ns = fake.clock_ns;
	fake.clock_ns += 400 * NS_PER_MS;
	wait_begin(128, 128, WIRE_WAIT_PARK, 0, &nobodys);
	assert_int_equal(open_waits_scan(fake.clock_ns), begin_ns + NS_PER_S);
	fake.clock_ns = begin_ns + 2 * NS_PER_S;
	assert_int_equal(open_waits_scan(fake.clock_ns), fake.clock_ns + 8 * NS_PER_S);
	assert_int_equal(fake.n_reported, 2);
	open_waits_sent();
	assert_int_equal(open_waits_scan(fake.clock_ns), fake.clock_ns + 8 * NS_PER_S);
	/* its end record is on its way, or lost */
	fake_end(64, 64, WIRE_WAIT_PARK);
	assert_int_equal(open_waits_scan(fake.clock_ns), fake.clock_ns + 250 * NS_PER_MS);
	fake_drain();
	open_waits_sent();
	fake_end(128, 128, WIRE_WAIT_PARK);
}

static void wait_that_begins_long_before_the_next_look_wakes(void **state)
{
	(void)state;
	fake.n_wakes = 0;
	(void)open_waits_scan(fake.clock_ns);
	assert_false(open_waits_are_due());
	fake_begin(64, 64, WIRE_WAIT_PARK);
	assert_true(open_waits_are_due());
	fake_begin(128, 128, WIRE_WAIT_PARK);
	assert_int_equal(fake.n_wakes, 1);
	(void)open_waits_scan(fake.clock_ns);
	assert_false(open_waits_are_due());
	fake_end(64, 64, WIRE_WAIT_PARK);
	/* the scan that is due for the other wait is early enough */
	fake_begin(64, 64, WIRE_WAIT_PARK);
	assert_int_equal(fake.n_wakes, 1);
}

/* Parks that become long one after the other, @gap_ns apart, for @ns. Returns the number of scans.
 * @forgets: the reader has lost the stacks each time, so a scan is always due. */
static int scans_of_long_parks(bool forgets, uint64_t gap_ns, uint64_t ns)
{
	const uint64_t end_ns = fake.clock_ns + ns, threads = 1100 * NS_PER_MS / gap_ns;
	static const struct wait_lock nobodys;
	uint64_t next_ns = 0, before_ns;
	int n = 0;

	for (uint64_t i = 0; fake.clock_ns < end_ns; i++, fake.clock_ns += gap_ns) {
		uint64_t thread = 64 + i % threads;

		if (i >= threads)
			fake_end(thread, thread, WIRE_WAIT_PARK);
		wait_begin(thread, thread, WIRE_WAIT_PARK, 0, &nobodys);
		fake_drain();
		if (forgets)
			open_waits_again();
		if (fake.clock_ns < next_ns && !open_waits_are_due())
			continue;
		before_ns = next_ns;
		next_ns = open_waits_scan(fake.clock_ns);
		open_waits_sent();
		n += next_ns != before_ns; /* a call that is too early changes nothing */
	}
	return n;
}

static void waits_that_become_long_at_any_moment_are_looked_for_seldom(void **state)
{
	(void)state;
	assert_in_range(scans_of_long_parks(false, 5 * NS_PER_MS, 10 * NS_PER_S), 30, 42);
	assert_int_equal(fake.n_reported,
			 sizeof(fake.reported) /
				 sizeof(fake.reported[0])); /* all that it has room for */
}

static void scans_have_a_share_of_the_time(void **state)
{
	(void)state;
	fake.tell_cost_ns = 10 * NS_PER_MS;
	/* 240 scans of that length are 1/250 of 10 minutes; and the saved time */
	assert_in_range(scans_of_long_parks(true, 20 * NS_PER_MS, 600 * NS_PER_S), 200, 260);
	fake.tell_cost_ns = 0;
}

static void virtual_thread_without_a_carrier_is_told_without_a_stack(void **state)
{
	(void)state;
	fake.carrier_number = WIRE_VIRTUAL_TID | 31;
	fake_begin(64, 31, WIRE_WAIT_WAIT);
	for (int i = 0; i < 6; i++)
		fake_round_trip();
	assert_int_equal(fake.n_reported, 1);
	assert_int_equal(fake.reported[0].tid, WIRE_VIRTUAL_TID | 31);
	assert_int_equal(fake.reported[0].n_frames, 0);
}

static void wait_older_than_the_session_is_one_like_all_others(void **state)
{
	static const struct wait_lock nothing_known;
	int32_t slot;

	(void)state;
	slot = waits_add(64, 64, WIRE_WAIT_ENTER, &nothing_known);
	assert_true(slot >= 0);
	assert_int_equal(waits_add(64, 64, WIRE_WAIT_ENTER, &nothing_known), -1);
	fake.clock_ns += 5 * MIN;
	fake_end(64, 64, WIRE_WAIT_ENTER);
	fake_drain();
	assert_int_equal(fake.read.n, 1);
	slot = waits_add(64, 64, WIRE_WAIT_ENTER, &nothing_known);
	waits_remove((uint32_t)slot, waits_at((uint32_t)slot)->begin_ns);
	assert_int_equal(waits_find(64), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(long_wait_is_told_once_while_it_goes_on),
		TEST(lock_of_a_park_is_asked_of_the_jvm),
		TEST(wait_that_the_thread_does_not_know_of_is_not_told),
		TEST(owner_that_waits_itself_has_a_stack),
		TEST(owner_that_sleeps_has_a_stack_soon),
		TEST(owner_that_runs_is_left_to_its_samples),
		TEST(wait_below_the_threshold_is_not_told_early),
		TEST(owners_that_sleep_have_a_budget),
		TEST(short_waits_are_looked_at_seldom),
		TEST(wait_whose_end_is_lost_is_closed),
		TEST(wait_that_the_reader_did_not_get_is_told_again),
		TEST(wait_is_told_again_when_the_reader_has_forgotten_its_stack),
		TEST(wait_that_ends_unseen_before_it_is_told_again_is_closed),
		TEST(next_look_is_when_the_next_wait_becomes_long),
		TEST(waits_that_become_long_at_any_moment_are_looked_for_seldom),
		TEST(scans_have_a_share_of_the_time),
		TEST(wait_that_begins_long_before_the_next_look_wakes),
		TEST(virtual_thread_without_a_carrier_is_told_without_a_stack),
		TEST(wait_older_than_the_session_is_one_like_all_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
