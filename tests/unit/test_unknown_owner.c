/*
 * Owners that the JVM does not know when a wait begins, with a stand-in for the JVM: monitors are
 * numbers, the address of a monitor's object is ten times its number, and two tables hold which
 * thread has locked which object.
 */
#include "agent/base/agent.h"
#include "agent/events/unknown_owner.h"
#include "agent/events/virtual_states.h"
#include "agent/hotspot/frozen_locks.h"
#include "agent/hotspot/layout.h"
#include "agent/hotspot/owner.h"
#include "agent/hotspot/virtual_price.h"
#include "agent/hotspot/virtual_sets.h"
#include "tests/unit/unit.h"

#define FROZEN 3 /* virtual threads without a carrier, numbers 101 to 103 */

struct agent agent = { .wake_fd = -1 };
struct vm_layout vm_sig;

/* ---- stand-ins ---- */

static uint64_t clock_ns, cpu_ns, look_costs_ns;
static uint64_t known_monitor; /* the monitor whose owner the JVM knows by now */
static uint64_t running_has; /* the object that thread 7 has locked */
static uint64_t frozen_have[FROZEN];
static bool jvm_tells, in_sets;
static uint32_t looks, cheap_looks, wakes;
static uint64_t moves; /* CPU time that each search takes */
static uint64_t moved; /* distance by which the collector has moved all objects */

uint64_t mono_ns(void)
{
	return clock_ns;
}

uint64_t thread_cpu_ns(uint32_t tid)
{
	(void)tid;
	return cpu_ns;
}

bool owner_is_unknown(uint64_t monitor, uint64_t *ret_object)
{
	*ret_object = 10 * monitor + moved;
	moved += moves;
	return monitor != known_monitor;
}

uint32_t owner_by_lock_stack(uint64_t object)
{
	return object == running_has ? 7 : 0;
}

bool virtual_threads_used(void)
{
	return true;
}

void agent_wake(void)
{
	wakes++;
}

bool frozen_locks_init(JNIEnv *env)
{
	(void)env;
	return jvm_tells;
}

uint32_t frozen_locks(JNIEnv *env, jobject thread, uint64_t ret[FROZEN_LOCKS_MAX])
{
	(void)env;
	ret[0] = frozen_have[(uintptr_t)thread - 1];
	if (ret[0])
		ret[0] += moved;
	return ret[0] != 0;
}

uint32_t frozen_number(JNIEnv *env, jobject thread)
{
	(void)env;
	return 100 + (uint32_t)(uintptr_t)thread;
}

uint32_t frozen_locks_at(uint64_t thread, uint64_t ret[FROZEN_LOCKS_MAX])
{
	return frozen_locks(NULL, (jobject)(uintptr_t)thread, ret);
}

uint32_t frozen_number_at(uint64_t thread)
{
	return 100 + (uint32_t)thread;
}

void virtual_sets_newest(bool (*look)(uint64_t thread, void *context), void *context)
{
	cheap_looks++;
	if (in_sets)
		(void)look(FROZEN, context);
}

void virtual_sets_each(bool (*look)(uint64_t thread, void *context), void *context)
{
	for (uint64_t i = 1; in_sets && i <= FROZEN; i++)
		if (!look(i, context))
			return;
}

void virtual_threads_each(bool (*look)(JNIEnv *env, jobject thread, void *context), void *context)
{
	looks++;
	cpu_ns += look_costs_ns;
	for (uintptr_t i = 1; i <= FROZEN; i++)
		if (!look(NULL, (jobject)i, context))
			return;
}

void virtual_states_end(void)
{
}

/* ---- the tests ---- */

static uint64_t tick(void)
{
	clock_ns += NS_PER_MS;
	return unknown_owner_source.tick(clock_ns);
}

static int setup(void **state)
{
	struct wire_start start = { .monitors = WIRE_MONITORS_ALWAYS };
	const char *note = "";

	(void)state;
	known_monitor = running_has = cpu_ns = look_costs_ns = moved = moves = 0;
	memset(frozen_have, 0, sizeof(frozen_have));
	jvm_tells = true;
	in_sets = false;
	clock_ns += 100 * NS_PER_S;
	vm_sig.version = 25;
	if (unknown_owner_source.begin(&start, &note) < 0)
		return -1;
	(void)tick(); /* the very first search */
	looks = cheap_looks = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unknown_owner_source.end();
	return 0;
}

static void owner_that_runs_is_found(void **state)
{
	uint32_t mark = unknown_owner_seek(5);

	(void)state;
	assert_true(mark);
	wakes = 0;
	unknown_owner_wake_agent(4711);
	assert_false(unknown_owner_source.due());
	unknown_owner_wake_agent(mark);
	unknown_owner_wake_agent(mark);
	assert_true(unknown_owner_source.due());
	assert_int_equal(wakes, 1);
	assert_int_equal(unknown_owner_answer(mark), 0);
	running_has = 50;
	(void)tick();
	assert_false(unknown_owner_source.due());
	assert_int_equal(looks, 0);
	assert_int_equal(unknown_owner_answer(mark), 7);
	assert_int_equal(unknown_owner_end(mark), 7);
}

static void owner_without_a_carrier_is_found(void **state)
{
	uint32_t mark = unknown_owner_seek(5), other = unknown_owner_seek(6);

	(void)state;
	moved = 3; /* since it was locked */
	frozen_have[1] = 50;
	(void)tick();
	assert_int_equal(looks, 1);
	assert_int_equal(unknown_owner_end(mark), 102);
	assert_int_equal(unknown_owner_end(other), 0);
}

static void owner_in_a_set_is_found_without_java_code(void **state)
{
	uint32_t mark = unknown_owner_seek(5);

	(void)state;
	in_sets = true;
	moved = 3;
	for (uint32_t i = 0; i < FROZEN; i++) { /* the last wait has just begun */
		frozen_have[i] = 50;
		(void)tick();
		assert_int_equal(unknown_owner_end(mark), 101 + i);
		assert_int_equal(looks, 0);
		frozen_have[i] = 0;
		mark = unknown_owner_seek(5);
	}
}

static void owner_of_a_lock_that_moves_is_looked_for_again(void **state)
{
	uint32_t mark = unknown_owner_seek(5);

	(void)state;
	running_has = 50;
	moves = 1;
	assert_true(tick() < UINT64_MAX);
	assert_int_equal(unknown_owner_answer(mark), 0);
	moved = moves = 0;
	(void)tick();
	assert_int_equal(unknown_owner_end(mark), 7);
}

static void number_of_a_thread_is_no_mark(void **state)
{
	(void)state;
	assert_int_equal(unknown_owner_answer(0), 0);
	assert_int_equal(unknown_owner_end(4711), 4711);
	assert_int_equal(unknown_owner_end(WIRE_VIRTUAL_TID | 1u << 30 | 5),
			 WIRE_VIRTUAL_TID | 1u << 30 | 5);
}

static void owner_that_let_go_is_not_found_any_more(void **state)
{
	uint32_t mark = unknown_owner_seek(5);

	(void)state;
	known_monitor = 5; /* and another thread has the lock now */
	running_has = 50;
	assert_int_equal(tick(), UINT64_MAX);
	known_monitor = 0;
	(void)tick();
	assert_int_equal(unknown_owner_end(mark), 0);
}

static void owner_is_looked_for_as_long_as_somebody_waits(void **state)
{
	uint32_t mark = unknown_owner_seek(5);
	uint64_t next = tick();

	(void)state;
	assert_in_range(next, clock_ns + NS_PER_MS, clock_ns + 2 * NS_PER_MS);
	clock_ns += 10 * NS_PER_S;
	next = tick();
	assert_in_range(next, clock_ns + 100 * NS_PER_MS, clock_ns + 250 * NS_PER_MS);
	running_has = 50;
	assert_int_equal(tick(), UINT64_MAX);
	assert_int_equal(unknown_owner_end(mark), 7);
	mark = unknown_owner_seek(6);
	assert_int_equal(unknown_owner_end(mark), 0);
	assert_int_equal(tick(), UINT64_MAX);
}

static void a_later_waiter_has_the_answer_at_once(void **state)
{
	uint32_t mark = unknown_owner_seek(5);

	(void)state;
	running_has = 50;
	(void)tick();
	assert_int_equal(unknown_owner_seek(5), 7);
	assert_int_equal(unknown_owner_end(mark), 7);
	/* no thread waits any more: the lock may have another owner */
	mark = unknown_owner_seek(5);
	assert_int_equal(unknown_owner_answer(mark), 0);
	assert_int_equal(unknown_owner_end(mark), 0);
}

static void mark_that_ended_says_nothing(void **state)
{
	uint32_t mark = unknown_owner_seek(5), next;

	(void)state;
	assert_int_equal(unknown_owner_end(mark), 0);
	for (int i = 0; i < 1000; i++) {
		next = unknown_owner_seek(6);
		assert_int_not_equal(next, mark);
		assert_int_equal(unknown_owner_end(next), 0);
	}
	next = unknown_owner_seek(6);
	running_has = 60;
	(void)tick();
	assert_int_equal(unknown_owner_end(mark), 0);
	assert_int_equal(unknown_owner_end(next), 7);
}

static void more_than_there_is_room_for_stay_unknown(void **state)
{
	uint32_t marks[100], n = 0;

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		if ((marks[n] = unknown_owner_seek(5 + i)))
			n++;
	assert_int_equal(n, 64);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(unknown_owner_end(marks[i]), 0);
	assert_true(unknown_owner_seek(5));
}

static void looks_at_all_keep_to_their_share(void **state)
{
	uint64_t begin_ns;

	(void)state;
	(void)unknown_owner_seek(5);
	begin_ns = clock_ns;
	look_costs_ns = 4 * NS_PER_MS;
	for (int i = 0; i < 4000; i++)
		(void)tick();
	/* half of the saved budget, then one part of 400 */
	assert_in_range(looks * look_costs_ns, 20 * NS_PER_MS,
			(clock_ns - begin_ns) / 400 + 15 * NS_PER_MS);
	assert_int_equal(cheap_looks, 4000); /* they do not use this budget */
}

static void jvm_that_does_not_tell_costs_no_looks(void **state)
{
	uint32_t mark = unknown_owner_seek(5);

	(void)state;
	jvm_tells = false;
	frozen_have[0] = 50;
	(void)tick();
	assert_int_equal(looks, 0);
	assert_int_equal(unknown_owner_end(mark), 0);
}

static void nothing_is_sought_before_24(void **state)
{
	struct wire_start start = { .monitors = WIRE_MONITORS_ALWAYS };
	const char *note = "";

	(void)state;
	unknown_owner_source.end();
	assert_int_equal(unknown_owner_seek(5), 0);
	vm_sig.version = 21;
	assert_true(unknown_owner_source.begin(&start, &note) < 0);
	assert_int_equal(unknown_owner_seek(5), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(owner_that_runs_is_found),
		TEST(owner_without_a_carrier_is_found),
		TEST(owner_in_a_set_is_found_without_java_code),
		TEST(owner_of_a_lock_that_moves_is_looked_for_again),
		TEST(number_of_a_thread_is_no_mark),
		TEST(owner_that_let_go_is_not_found_any_more),
		TEST(owner_is_looked_for_as_long_as_somebody_waits),
		TEST(a_later_waiter_has_the_answer_at_once),
		TEST(mark_that_ended_says_nothing),
		TEST(more_than_there_is_room_for_stay_unknown),
		TEST(looks_at_all_keep_to_their_share),
		TEST(jvm_that_does_not_tell_costs_no_looks),
		TEST(nothing_is_sought_before_24),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
