/* Frames at the root that all threads of one name have in common. */
#include "agent/output/roots.h"
#include "proto/wire.h"
#include "tests/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define METHOD(n)                                              \
	{                                                      \
		.where = (n), .bci = 7, .kind = WIRE_KIND_JAVA \
	}
#define NATIVE                                            \
	{                                                 \
		.where = 0x7000, .kind = WIRE_KIND_NATIVE \
	}

static const struct walk_frame run[] = { METHOD(9), METHOD(3), METHOD(2), METHOD(1), NATIVE };
static const struct walk_frame other[] = { METHOD(8), METHOD(2), METHOD(1) };
static const struct walk_frame stranger[] = { METHOD(8), METHOD(5), METHOD(1) };
static const struct walk_frame foreign[] = { METHOD(8) };
static const struct walk_frame ending[] = { NATIVE, NATIVE };

static void seen(const char *name, const struct walk_frame *frames, size_t n)
{
	roots_seen(1, name, frames, (uint32_t)n);
}

static void one_sample_speaks_for_two_frames(void **state)
{
	struct walk_frame got[ROOTS_DEPTH];

	(void)state;
	assert_int_equal(roots_of(1, "none", got), 0);
	seen("one-1", run, COUNT(run));
	assert_int_equal(roots_of(1, "one-27", got), 2);
	assert_int_equal(got[0].where, 2);
	assert_int_equal(got[1].where, 1);
	assert_int_equal(got[1].bci, -1);
}

static void common_frames_stay(void **state)
{
	struct walk_frame got[ROOTS_DEPTH];

	(void)state;
	seen("pool-1-thread-1", run, COUNT(run));
	seen("pool-1-thread-2", run, COUNT(run));
	assert_int_equal(roots_of(1, "pool-3-thread-9", got), 4);
	assert_int_equal(got[0].where, 9);
	seen("pool-1-thread-3", ending, COUNT(ending)); /* it says nothing */
	seen("pool-1-thread-3", other, COUNT(other));
	assert_int_equal(roots_of(1, "pool-3-thread-9", got), 2);
	assert_int_equal(got[0].where, 2);
	seen("pool-1-thread-4", stranger, COUNT(stranger));
	assert_int_equal(roots_of(1, "pool-3-thread-9", got), 1);
	assert_int_equal(got[0].where, 1);
}

static void a_rare_root_or_a_stack_that_is_on_its_way_changes_nothing(void **state)
{
	struct walk_frame got[ROOTS_DEPTH];

	(void)state;
	for (int i = 0; i < 20; i++)
		seen("task", run, COUNT(run));
	seen("task", foreign, COUNT(foreign)); /* as Thread.exit() */
	seen("task", run + 3, 2); /* the thread has not called anything yet */
	assert_int_equal(roots_of(1, "task", got), 4);
	for (int i = 0; i < 25; i++)
		seen("task", foreign, COUNT(foreign)); /* no longer rare */
	assert_int_equal(roots_of(1, "task", got), 1);
	assert_int_equal(got[0].where, 8);
}

static void handles_are_forgotten_with_the_ids(void **state)
{
	struct walk_frame got[ROOTS_DEPTH];

	(void)state;
	seen("forgotten", run, COUNT(run));
	assert_int_equal(roots_of(2, "forgotten", got), 0);
	assert_int_equal(roots_of(0, "forgotten", got), 0);
	assert_int_equal(roots_of(1, "another", got), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_sample_speaks_for_two_frames),
		cmocka_unit_test(common_frames_stay),
		cmocka_unit_test(a_rare_root_or_a_stack_that_is_on_its_way_changes_nothing),
		cmocka_unit_test(handles_are_forgotten_with_the_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
