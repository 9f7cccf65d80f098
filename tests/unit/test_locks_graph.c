#include "tests/unit/unit.h"
#include "daemon/locks/graph.h"

static struct locks_open waits[64];
static uint32_t n;

static struct locks_open *wait_for(uint32_t tid, enum wire_wait how, uint32_t owner)
{
	waits[n] = (struct locks_open){ .tid = tid, .owner_tid = owner, .wait = (uint8_t)how, .begin_ns = 100 + n };
	return &waits[n++];
}

static struct lock_graph graph(void)
{
	struct lock_graph g;

	assert_int_equal(lock_graph_new(waits, n, &g), 0);
	return g;
}

static const struct lock_edge *edge(const struct lock_graph *g, uint32_t tid)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (g->edges[i].wait->tid == tid)
			return &g->edges[i];
	fail();
	return NULL;
}

static int begin(void **state)
{
	(void)state;
	n = 0;
	return 0;
}

static void nobody_waits(void **state)
{
	struct lock_graph g = graph();

	(void)state;
	assert_int_equal(g.n + g.n_cycles + g.n_blockers, 0);
	lock_graph_free(&g);
}

static void two_that_wait_for_each_other_are_a_deadlock(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(1, WIRE_WAIT_ENTER, 2);
	wait_for(2, WIRE_WAIT_ENTER, 1);
	wait_for(3, WIRE_WAIT_ENTER, 9);
	g = graph();
	assert_int_equal(g.n_cycles, 1);
	assert_int_equal(g.n_deadlocks, 1);
	assert_true(edge(&g, 1)->deadlock && edge(&g, 2)->deadlock);
	assert_int_equal(edge(&g, 3)->cycle, 0);
	assert_int_equal(edge(&g, 1)->depth, 0);
	lock_graph_free(&g);
}

static void a_circle_goes_through_monitors_and_locks(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(10, WIRE_WAIT_PARK, 11);
	wait_for(11, WIRE_WAIT_ENTER, 12);
	wait_for(12, WIRE_WAIT_PARK, 10);
	/* and two threads that wait for one of them */
	wait_for(20, WIRE_WAIT_ENTER, 11);
	wait_for(21, WIRE_WAIT_PARK, 20);
	g = graph();
	assert_int_equal(g.n_deadlocks, 1);
	assert_int_equal(edge(&g, 10)->cycle, edge(&g, 12)->cycle);
	assert_int_equal(edge(&g, 20)->cycle, 0);
	assert_int_equal(edge(&g, 20)->depth, 1);
	assert_int_equal(edge(&g, 21)->depth, 2);
	assert_int_equal(edge(&g, 11)->behind, 2);
	assert_int_equal(g.n_blockers, 0);
	lock_graph_free(&g);
}

static void a_time_limit_makes_a_circle_no_deadlock(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(1, WIRE_WAIT_PARK, 2)->flags = WIRE_LOCK_OPEN | WIRE_LOCK_TIMED;
	wait_for(2, WIRE_WAIT_ENTER, 1)->flags = WIRE_LOCK_OPEN;
	g = graph();
	assert_int_equal(g.n_cycles, 1);
	assert_int_equal(g.n_deadlocks, 0);
	assert_false(edge(&g, 1)->deadlock || edge(&g, 2)->deadlock);
	lock_graph_free(&g);
}

static void object_wait_is_no_circle(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(1, WIRE_WAIT_WAIT, 2);
	wait_for(2, WIRE_WAIT_ENTER, 1);
	g = graph();
	assert_int_equal(g.n_cycles, 0);
	assert_int_equal(edge(&g, 2)->next, edge(&g, 1) - g.edges);
	assert_int_equal(edge(&g, 1)->next, -1);
	lock_graph_free(&g);
}

static void one_that_holds_its_own_lock_is_no_circle(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(1, WIRE_WAIT_PARK, 1);
	g = graph();
	assert_int_equal(g.n_cycles + g.n_blockers, 0);
	lock_graph_free(&g);
}

static void the_one_that_most_wait_for_comes_first(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(1, WIRE_WAIT_ENTER, 50);
	wait_for(2, WIRE_WAIT_ENTER, 60);
	wait_for(3, WIRE_WAIT_ENTER, 2);
	wait_for(4, WIRE_WAIT_PARK, 3);
	wait_for(5, WIRE_WAIT_PARK, 0);
	g = graph();
	assert_int_equal(g.n_blockers, 2);
	assert_int_equal(g.blockers[0].tid, 60);
	assert_int_equal(g.blockers[0].behind, 3);
	assert_int_equal(g.blockers[1].behind, 1);
	assert_int_equal(edge(&g, 4)->depth, 3);
	lock_graph_free(&g);
}

static void of_two_waits_of_a_thread_the_newer_one_is_true(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(1, WIRE_WAIT_ENTER, 2);
	wait_for(2, WIRE_WAIT_ENTER, 1);
	wait_for(1, WIRE_WAIT_ENTER, 7);
	g = graph();
	assert_int_equal(g.n, 2);
	assert_int_equal(g.n_cycles, 0);
	assert_int_equal(g.blockers[0].tid, 7);
	lock_graph_free(&g);
}

static void threads_without_a_number_are_in_no_circle(void **state)
{
	struct lock_graph g;

	(void)state;
	wait_for(WIRE_VIRTUAL_TID, WIRE_WAIT_PARK, 1);
	wait_for(WIRE_VIRTUAL_TID, WIRE_WAIT_PARK, 1);
	wait_for(1, WIRE_WAIT_PARK, WIRE_VIRTUAL_TID);
	g = graph();
	assert_int_equal(g.n, 3);
	assert_int_equal(g.n_cycles, 0);
	assert_int_equal(edge(&g, 1)->behind, 2);
	lock_graph_free(&g);
}

static void a_long_chain_needs_no_deep_stack(void **state)
{
	enum { LENGTH = 16384 };
	struct locks_open *chain = calloc(LENGTH, sizeof(*chain));
	struct lock_graph g;

	(void)state;
	for (uint32_t i = 0; i < LENGTH; i++)
		chain[i] = (struct locks_open){ .tid = i + 1, .owner_tid = i + 2 };
	assert_int_equal(lock_graph_new(chain, LENGTH, &g), 0);
	assert_int_equal(edge(&g, 1)->depth, LENGTH);
	assert_int_equal(g.blockers[0].behind, LENGTH);
	lock_graph_free(&g);
	chain[LENGTH - 1].owner_tid = 1;
	assert_int_equal(lock_graph_new(chain, LENGTH, &g), 0);
	assert_int_equal(g.n_deadlocks, 1);
	lock_graph_free(&g);
	free(chain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nobody_waits, begin),
		cmocka_unit_test_setup(two_that_wait_for_each_other_are_a_deadlock, begin),
		cmocka_unit_test_setup(a_circle_goes_through_monitors_and_locks, begin),
		cmocka_unit_test_setup(a_time_limit_makes_a_circle_no_deadlock, begin),
		cmocka_unit_test_setup(object_wait_is_no_circle, begin),
		cmocka_unit_test_setup(one_that_holds_its_own_lock_is_no_circle, begin),
		cmocka_unit_test_setup(the_one_that_most_wait_for_comes_first, begin),
		cmocka_unit_test_setup(of_two_waits_of_a_thread_the_newer_one_is_true, begin),
		cmocka_unit_test_setup(threads_without_a_number_are_in_no_circle, begin),
		cmocka_unit_test_setup(a_long_chain_needs_no_deep_stack, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
