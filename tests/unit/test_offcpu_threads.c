/* The table of the off-CPU engine's threads: those that slept before, those that begin and end. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include <unistd.h>
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000

static const enum offcpu_class class_of_kind[KINDS] = { OFFCPU_SLEEP, OFFCPU_FUTEX, OFFCPU_POLL,
							OFFCPU_PIPE, OFFCPU_SOCKET };

static void wait_until_asleep(pid_t pid, const uint32_t *tid)
{
	char path[64], state = 0;

	while (!__atomic_load_n(tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)pid, *tid);
	while (state != 'S') {
		FILE *f = fopen(path, "re");

		assert_non_null(f);
		(void)!fscanf(f, "%*d (%*[^)]) %c", &state);
		fclose(f);
		usleep(1000);
	}
}

static void threads_that_sleep_since_before_have_a_class(void **state)
{
	pid_t pid = offcpu_child(ASLEEP);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	for (int kind = 0; kind < KINDS; kind++)
		wait_until_asleep(pid, &shared->tids[kind]);
	offcpu_measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	usleep(20000);
	for (int kind = 0; kind < KINDS; kind++) {
		struct offcpu_times t = offcpu_times_of(pid, shared->tids[kind]);

		assert_int_equal(t.class, class_of_kind[kind]);
		assert_true(t.syscall_nr >= 0);
		assert_false(t.runs);
		assert_int_equal(t.off_ns[t.class], t.to_ns - t.from_ns);
	}
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* Entries of threads that are gone, of those that were there when they were added. */
struct gone {
	uint64_t added_ns;
	unsigned n;
};

static void count_gone(void *userdata, const struct offcpu_times *t)
{
	struct gone *gone = userdata;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%u", (int)t->pid, t->host_tid);
	gone->n += t->from_ns <= gone->added_ns && access(path, F_OK) < 0;
}

/* The number of such entries that stay. A thread that ends just now leaves /proc before it leaves
 * its CPU, and its entry goes with the latter. */
static unsigned entries_that_stay(pid_t pid, uint64_t added_ns)
{
	struct gone gone = { .added_ns = added_ns };

	for (int i = 0; i < 100; i++) {
		gone.n = 0;
		(void)offcpu_engine_threads(seen.engine, pid, count_gone, &gone);
		if (!gone.n)
			break;
		usleep(20000);
	}
	return gone.n;
}

static void threads_that_end_while_they_are_added_leave_no_entry(void **state)
{
	pid_t pid = offcpu_child(CROWDED);
	struct gone added = { 0 };
	unsigned left = 0;

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	for (int i = 0; i < 1000 && added.n < 12; i++) {
		offcpu_measure(pid, shared->handler, NS_PER_MS);
		added.added_ns = clock_mono_ns();
		usleep(20000);
		(void)offcpu_engine_threads(seen.engine, pid, count_gone, &added);
		offcpu_engine_tick(seen.engine);
		left += entries_that_stay(pid, added.added_ns);
		offcpu_engine_remove(seen.engine, pid);
	}
	print_message("%u threads ended while they were added, %u are left\n", added.n, left);
	offcpu_child_end(pid);
	offcpu_engines_free();
	assert_true(added.n > 0);
	assert_int_equal(left, 0);
}

static void threads_that_end_leave_their_times(void **state)
{
	pid_t pid = offcpu_child(BEGINNING);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < 200 && seen.ended < 50; i++) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	print_message("%u threads ended, %u with other times than expected\n", seen.ended,
		      seen.ended_wrong);
	assert_true(seen.ended >= 50);
	assert_true(seen.ended_wrong <= seen.ended / 20);
	/* none of them stays in the table */
	assert_in_range(offcpu_threads_of(pid), 1, 4);
	offcpu_child_end(pid);
	/* the last of them may leave its CPU after its process has been waited for */
	for (int i = 0; i < 100 && offcpu_threads_of(pid) > 0; i++)
		usleep(20000);
	assert_int_equal(offcpu_threads_of(pid), 0);
	offcpu_engines_free();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_sleep_since_before_have_a_class),
		cmocka_unit_test(threads_that_end_while_they_are_added_leave_no_entry),
		cmocka_unit_test(threads_that_end_leave_their_times),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_RSEQ);
}
