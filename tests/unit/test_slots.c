/* The table of threads: threads have slots whatever their numbers are. */
#include "agent/engine/slots.h"
#include "tests/unit/fake_agent.h"
#include "tests/unit/unit.h"

static int setup(void **state)
{
	const char *why = "";

	(void)state;
	return engine_hold_signal(&why);
}

static int teardown(void **state)
{
	(void)state;
	engine_restore_signal();
	engine_free();
	return 0;
}

/* Threads with the numbers @first and on. */
static void threads_have_slots(uint32_t first, uint32_t n, uint32_t step)
{
	for (uint32_t tid = first; tid < first + n * step; tid += step) {
		struct slot *s = slot_claim(tid);

		assert_non_null(s);
		__atomic_store_n(&s->state, SLOT_HOST, __ATOMIC_RELEASE);
	}
	for (uint32_t tid = first; tid < first + n * step; tid += step) {
		struct slot *s = slot_find_sig(tid);

		assert_non_null(s);
		assert_int_equal(s->tid, tid);
		assert_true(slot_take(s));
		slot_release(s);
	}
}

/* A JVM's threads have numbers in sequence, which begin anywhere. */
static void many_threads_have_slots_wherever_their_numbers_begin(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 64; i++)
		threads_have_slots(100000 + 512 * i, 3000, 1);
	threads_have_slots(100000, 12000, 1);
}

static void numbers_may_have_gaps_for_threads_of_other_processes(void **state)
{
	(void)state;
	threads_have_slots(100000, 5000, 3);
	threads_have_slots(4000000, 2000, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_have_slots_wherever_their_numbers_begin),
		cmocka_unit_test(numbers_may_have_gaps_for_threads_of_other_processes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
