/* The weights of allocation samples, compared with libm and with a simulated sampler. */
#include <math.h>
#include <stdlib.h>
#include "agent/events/alloc_weight.h"
#include "tests/unit/unit.h"

static void a_weight_is_the_size_divided_by_the_chance_to_be_taken(void **state)
{
	static const uint64_t intervals[] = { 4096, 512 * 1024, 1u << 30 };

	(void)state;
	for (int i = 0; i < 3; i++)
		for (double size = 16; size < 1e12; size *= 1.09) {
			double x = floor(size) / (double)intervals[i];
			double want = x > 0 ? floor(size) / -expm1(-x) : 0;
			double got = (double)alloc_weight((uint64_t)size, intervals[i]);

			assert_true(fabs(got - want) <= 0.51 + want * 1e-6);
		}
}

static void an_object_that_is_always_taken_stands_for_itself(void **state)
{
	(void)state;
	assert_int_equal(alloc_weight(40, 0), 40);
	assert_int_equal(alloc_weight(40ull << 20, 1 << 20), 40ull << 20);
	assert_int_equal(alloc_weight(UINT64_MAX, 1), UINT64_MAX);
}

static void nothing_stands_for_the_interval(void **state)
{
	(void)state;
	assert_int_equal(alloc_weight(0, 4096), 4096);
}

/* Sampling points at random, @interval bytes apart on average; an object is sampled if at least
 * one lies in it. */
static void the_weights_of_each_size_add_up_to_what_was_allocated(void **state)
{
	static const uint64_t sizes[] = { 24, 4096, 65536, 1 << 20, 4 << 20 };
	const uint64_t interval = 512 * 1024;
	double next = 0, at = 0;

	(void)state;
	srand48(7);
	for (int i = 0; i < 5; i++) {
		double sum = 0, truth = 4e10;

		for (double end = at + truth; at < end;) {
			/* small objects between two points are skipped, to save time */
			double skip = floor((next - at) / (double)sizes[i]);

			if (skip > 0)
				at += skip * (double)sizes[i];
			at += (double)sizes[i];
			if (next < at)
				sum += (double)alloc_weight(sizes[i], interval);
			while (next < at)
				next -= log(drand48()) * (double)interval;
		}
		assert_true(fabs(sum / truth - 1) < 0.02);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_weight_is_the_size_divided_by_the_chance_to_be_taken),
		cmocka_unit_test(an_object_that_is_always_taken_stands_for_itself),
		cmocka_unit_test(nothing_stands_for_the_interval),
		cmocka_unit_test(the_weights_of_each_size_add_up_to_what_was_allocated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
