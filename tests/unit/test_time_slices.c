/* Slices of time: what they hold adds up, and takes memory as there are reasons. */
#include "tests/unit/unit.h"
#include "daemon/timeline/time_slices.h"

#include <string.h>

#define S  1000000000ull
#define MS 1000000ull
#define N  6u
enum { LOCK, PARK, POLL, OTHER };

static struct time_slice slices[N];
static size_t bytes;
static const struct time_ring ring = { slices, N, 5 * S, &bytes };

static int begin(void **state)
{
	(void)state;
	memset(slices, 0, sizeof(slices));
	bytes = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	time_ring_deinit(&ring);
	return bytes == 0 ? 0 : -1;
}

static struct time_sum all(void)
{
	struct time_sum sum = { 0 };

	time_sum_add(&sum, &ring, 1, UINT64_MAX);
	return sum;
}

/* A second for one reason after the other. */
static void pass(uint64_t from_s, uint64_t to_s, uint32_t reason)
{
	for (uint64_t s = from_s; s < to_s; s++) {
		struct time_passed p = { .wall = S / 1000 };

		p.off[reason] = S / 1000;
		time_ring_spread(&ring, p, s * S, (s + 1) * S);
	}
}

static void a_slice_takes_room_for_the_reasons_that_it_has(void **state)
{
	size_t one;

	(void)state;
	pass(100, 130, PARK);
	one = bytes;
	assert_in_range(one, 1, N * 4 * sizeof(struct time_part));
	assert_int_equal(all().row.off_ns[PARK], 30 * S);
	for (uint32_t reason = 0; reason < TIME_LEDGER_REASONS; reason++)
		pass(120 + reason % 3, 121 + reason % 3, reason);
	assert_true(bytes > one);
	assert_int_equal(all().row.wall_ns, 30 * S + TIME_LEDGER_REASONS * S);
	/* slices that are used again keep their room */
	one = bytes;
	pass(200, 230, PARK);
	assert_int_equal(bytes, one);
	assert_int_equal(all().row.off_ns[PARK], 30 * S);
	assert_int_equal(all().row.off_ns[LOCK], 0);
}

static void a_second_may_belong_to_two_slices(void **state)
{
	struct time_passed p = { .wall = 1000, .cpu = 300, .off = { [POLL] = 700 } };
	struct time_sum first = { 0 };

	(void)state;
	time_ring_spread(&ring, p, 104 * S + 600 * MS, 105 * S + 600 * MS);
	time_sum_add(&first, &ring, 21, 21);
	assert_int_equal(first.row.wall_ns, 400 * 1000);
	assert_int_equal(first.row.off_ns[POLL], 280 * 1000);
	assert_int_equal(all().row.wall_ns, 1000 * 1000);
	assert_int_equal(all().row.cpu_ns, 300 * 1000);
	assert_int_equal(all().row.off_ns[POLL], 700 * 1000);
}

static void time_moves_from_the_newest_slices(void **state)
{
	struct time_sum newest = { 0 };

	(void)state;
	pass(100, 110, POLL);
	time_ring_move(&ring, 110 * S - 1, 2 + POLL, 0, 6 * S / 1000);
	assert_int_equal(all().row.off_ns[POLL], 4 * S);
	assert_int_equal(all().row.cpu_ns, 6 * S);
	time_sum_add(&newest, &ring, 22, 22);
	assert_int_equal(newest.row.cpu_ns, 5 * S);
	time_ring_move(&ring, 110 * S - 1, 0, 2 + PARK, S / 1000);
	assert_int_equal(all().row.off_ns[PARK], S);
	/* no more than there is */
	time_ring_move(&ring, 110 * S - 1, 2 + LOCK, 1, S);
	assert_int_equal(all().row.runqueue_ns, 0);
}

static void explanations_have_their_source(void **state)
{
	struct time_reason why = { 11, 101 * S, 103 * S, OTHER, PARK, false, 0 };
	struct time_sum sum;

	(void)state;
	time_ring_explain(&ring, &why);
	why.is_wait = true;
	why.part_ns = S;
	time_ring_explain(&ring, &why);
	sum = all();
	assert_int_equal(sum.n_from, 1);
	assert_int_equal(sum.from[0], OTHER);
	assert_int_equal(sum.explained[0][PARK], 2 * S);
	assert_int_equal(sum.waited[0][PARK], S);
	assert_int_equal(sum.row.wall_ns, 0);
}

static void more_explanations_than_a_slice_takes_are_left_out(void **state)
{
	struct time_sum sum;
	size_t full;

	(void)state;
	for (uint8_t from = 0; from < TIME_LEDGER_REASONS; from++)
		for (uint8_t reason = 0; reason < TIME_LEDGER_REASONS; reason++) {
			struct time_reason why = { 11, 101 * S, 102 * S, from, reason, false, 0 };

			time_ring_explain(&ring, &why);
		}
	full = bytes;
	assert_in_range(full, 1, 64 * sizeof(struct time_part));
	sum = all();
	assert_int_equal(sum.explained[0][PARK], S);
	assert_int_equal(sum.explained[TIME_SOURCES][PARK], 0);
}

static void times_older_than_the_ring_are_lost(void **state)
{
	(void)state;
	pass(200, 201, PARK);
	pass(200 - 5 * N, 201 - 5 * N, PARK);
	assert_int_equal(all().row.wall_ns, S);
	time_ring_spread(&ring, (struct time_passed){ .wall = 1 }, 0, 200 * S);
	assert_int_equal(all().row.wall_ns, S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_slice_takes_room_for_the_reasons_that_it_has,
						begin, end),
		cmocka_unit_test_setup_teardown(a_second_may_belong_to_two_slices, begin, end),
		cmocka_unit_test_setup_teardown(time_moves_from_the_newest_slices, begin, end),
		cmocka_unit_test_setup_teardown(explanations_have_their_source, begin, end),
		cmocka_unit_test_setup_teardown(more_explanations_than_a_slice_takes_are_left_out,
						begin, end),
		cmocka_unit_test_setup_teardown(times_older_than_the_ring_are_lost, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
