#include "tests/unit/unit.h"
#include "daemon/profile/kernel_stacks.h"

static struct kernel_stacks_counts counts;

static int setup(void **state)
{
	counts = (struct kernel_stacks_counts){ 0 };
	return kernel_stacks_new(&counts, (struct kernel_stacks **)state);
}

static int teardown(void **state)
{
	kernel_stacks_free(*state);
	return 0;
}

static void add(struct kernel_stacks *s, uint32_t tid, uint64_t ns)
{
	kernel_stacks_add(s, tid, ns, &ns, 1);
}

/* The number of kernel stacks that a sample gets; *ret_first: the tick of the first. */
static unsigned take(struct kernel_stacks *s, uint32_t tid, uint64_t ns, uint64_t *ret_first)
{
	struct kernel_stack *k;
	unsigned n = kernel_stacks_take(s, tid, ns, &k);

	*ret_first = k ? k->ips[0] : 0;
	kernel_stack_free_all(k);
	return n;
}

static void a_sample_gets_the_ticks_of_its_own_thread_up_to_its_time(void **state)
{
	uint64_t first;

	add(*state, 7, 100);
	add(*state, 8, 100);
	add(*state, 7, 101);
	assert_int_equal(take(*state, 9, 1000, &first), 0);
	assert_int_equal(take(*state, 7, 100, &first), 1);
	assert_int_equal(first, 100);
	assert_int_equal(take(*state, 7, 200, &first), 1);
	assert_int_equal(first, 101);
	assert_int_equal(take(*state, 7, 300, &first), 0);
	assert_int_equal(take(*state, 8, 99, &first), 0);
	assert_int_equal(counts.matched, 2);
	assert_int_equal(counts.unmatched, 0);
}

static void a_tick_of_the_time_before_the_last_sample_is_nobodys(void **state)
{
	uint64_t first;

	add(*state, 7, 100);
	assert_int_equal(take(*state, 7, 200, &first), 1);
	add(*state, 7, 200);
	add(*state, 7, 201);
	assert_int_equal(take(*state, 7, 300, &first), 1);
	assert_int_equal(first, 201);
	assert_int_equal(counts.unmatched, 1);
}

static void a_thread_number_in_the_same_bucket_is_another_thread(void **state)
{
	uint64_t first;

	add(*state, 1, 100);
	add(*state, 257, 101);
	assert_int_equal(take(*state, 257, 200, &first), 1);
	assert_int_equal(first, 101);
	assert_int_equal(take(*state, 1, 200, &first), 1);
	assert_int_equal(first, 100);
}

static void a_sample_shares_its_weight_among_its_newest_ticks(void **state)
{
	uint64_t first;

	for (uint64_t i = 1; i <= KERNEL_STACKS_A_SAMPLE + 3; i++)
		add(*state, 7, i);
	assert_int_equal(take(*state, 7, 1000, &first), KERNEL_STACKS_A_SAMPLE);
	assert_int_equal(first, 4);
	assert_int_equal(counts.matched, KERNEL_STACKS_A_SAMPLE);
	assert_int_equal(counts.unmatched, 3);
}

static void overflow_is_counted_and_room_comes_back(void **state)
{
	uint64_t first;

	for (uint64_t i = 0; i < KERNEL_STACKS_MAX + 10; i++)
		add(*state, 7 + i % 3, 100 + i);
	assert_int_equal(counts.lost, 10);
	assert_int_equal(take(*state, 7, 1ul << 40, &first), KERNEL_STACKS_A_SAMPLE);
	add(*state, 8, 1ul << 41);
	assert_int_equal(counts.lost, 10);
	assert_int_equal(counts.taken, KERNEL_STACKS_MAX + 11);
}

static void old_ones_and_their_threads_are_given_up(void **state)
{
	uint64_t first;

	for (uint32_t i = 0; i < KERNEL_STACKS_THREADS - 1; i++)
		add(*state, i, 1000);
	add(*state, 5000, 2 * KERNEL_STACKS_AGE_NS);
	kernel_stacks_expire(*state, 2 * KERNEL_STACKS_AGE_NS);
	assert_int_equal(counts.unmatched, KERNEL_STACKS_THREADS - 1);
	assert_int_equal(take(*state, 5, UINT64_MAX, &first), 0);
	assert_int_equal(take(*state, 5000, UINT64_MAX, &first), 1);
	add(*state, 6000, 5);
	assert_int_equal(counts.lost, 0);
}

static void a_stack_that_is_too_deep_is_cut_at_its_root(void **state)
{
	uint64_t ips[KERNEL_STACKS_FRAMES + 5] = { 1, 2, 3 };
	struct kernel_stack *k;

	kernel_stacks_add(*state, 7, 100, ips, KERNEL_STACKS_FRAMES + 5);
	assert_int_equal(kernel_stacks_take(*state, 7, 100, &k), 1);
	assert_int_equal(k->n, KERNEL_STACKS_FRAMES);
	assert_int_equal(k->ips[2], 3);
	kernel_stack_free_all(k);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sample_gets_the_ticks_of_its_own_thread_up_to_its_time),
		TEST(a_tick_of_the_time_before_the_last_sample_is_nobodys),
		TEST(a_thread_number_in_the_same_bucket_is_another_thread),
		TEST(a_sample_shares_its_weight_among_its_newest_ticks),
		TEST(overflow_is_counted_and_room_comes_back),
		TEST(old_ones_and_their_threads_are_given_up),
		TEST(a_stack_that_is_too_deep_is_cut_at_its_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
