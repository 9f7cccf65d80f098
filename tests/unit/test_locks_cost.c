/*
 * Made-up data costs the daemon little for each byte: thousands of open waits, all of one thread
 * number, and RESETs during them. The limits are for CPU time, far above what is needed and far
 * below the cost of going through all waits each time.
 */
#include <time.h>
#include "tests/unit/unit.h"
#include "daemon/ground/clock.h"
#include "daemon/locks/locks.h"

#define NOW 1000000000000ull

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void open_wait(struct locks *l, uint32_t tid, uint64_t begin_ns)
{
	const struct stream_lock w = { .begin_ns = begin_ns,
				       .duration_ns = NOW - begin_ns,
				       .tid = tid,
				       .flags = WIRE_LOCK_OPEN,
				       .class_name = "org.shop.Stock",
				       .identity = 1,
				       .waits = 1 };

	locks_add(l, NULL, &w, false, NOW);
}

static uint32_t count(const struct locks *l)
{
	struct locks_open *open;
	uint32_t n;

	assert_int_equal(locks_open(l, NOW, &open, &n), 0);
	free(open);
	return n;
}

static void test_many_waits_of_one_number(void **state)
{
	CLEANUP(locks_freep) struct locks *l = NULL;
	double begin;

	(void)state;
	assert_int_equal(locks_new(NOW, &l), 0);
	begin = cpu_s();
	for (int again = 0; again < 10; again++)
		for (uint32_t i = 1; i <= LOCKS_OPEN_MAX; i++)
			open_wait(l, WIRE_VIRTUAL_TID, NOW - i);
	assert_true(cpu_s() - begin < 1);
	assert_int_equal(count(l), LOCKS_OPEN_MAX);
	begin = cpu_s();
	for (uint32_t i = 1; i <= LOCKS_OPEN_MAX; i++) {
		const struct stream_lock w = { .begin_ns = NOW - i,
					       .tid = WIRE_VIRTUAL_TID,
					       .flags = WIRE_LOCK_CLOSED,
					       .class_name = "",
					       .waits = 1 };

		locks_add(l, NULL, &w, false, NOW);
	}
	assert_true(cpu_s() - begin < 1);
	assert_int_equal(count(l), 0);
}

static void test_one_thread_waits_for_one_thing(void **state)
{
	CLEANUP(locks_freep) struct locks *l = NULL;
	struct locks_open *open;
	uint32_t n;

	(void)state;
	assert_int_equal(locks_new(NOW, &l), 0);
	for (uint32_t i = 10000; i > 0; i--)
		open_wait(l, 7, NOW - i);
	open_wait(l, 7, NOW - 5000); /* it comes too late */
	assert_int_equal(locks_open(l, NOW, &open, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(open[0].begin_ns, NOW - 1);
	free(open);
}

static void test_resets_while_many_wait(void **state)
{
	CLEANUP(locks_freep) struct locks *l = NULL;
	double begin;

	(void)state;
	assert_int_equal(locks_new(NOW, &l), 0);
	for (uint32_t i = 1; i <= LOCKS_OPEN_MAX; i++)
		open_wait(l, i, NOW - i);
	assert_int_equal(count(l), LOCKS_OPEN_MAX);
	begin = cpu_s();
	for (int i = 0; i < 100000; i++)
		locks_reset(l);
	assert_true(cpu_s() - begin < 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_waits_of_one_number),
		cmocka_unit_test(test_one_thread_waits_for_one_thing),
		cmocka_unit_test(test_resets_while_many_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
