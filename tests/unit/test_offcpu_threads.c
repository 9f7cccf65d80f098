/* The table of the off-CPU engine's threads: those that slept before, those that begin and end. */
#include "tests/unit/unit.h"
#include <stdio.h>
#include <unistd.h>
#include "daemon/bpf/offcpu_engine_priv.h"
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

static struct offcpu_thread *entry_of(pid_t pid, uint32_t tid)
{
	const struct offcpu_programs *p = &seen.engine->programs;
	struct offcpu_thread *t;
	uint32_t at = 0;

	while ((t = offcpu_threads_next(p, &at)))
		if (t->pid == (uint32_t)pid && (!tid || t->tid == tid))
			break;
	return t;
}

/* A thread may end just before its entry is made. */
static void threads_that_end_while_they_are_added_leave_no_entry(void **state)
{
	const uint32_t gone = OFFCPU_PIDS - 1; /* no thread has this number */
	pid_t pid = offcpu_child(ASLEEP);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	wait_until_asleep(pid, &shared->tids[KINDS - 1]);
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	assert_int_equal(offcpu_threads_of(pid), KINDS + 1);
	entry_of(pid, shared->tids[KINDS - 1])->tid = gone;
	offcpu_engine_tick(seen.engine);
	assert_null(entry_of(pid, gone));
	assert_int_equal(offcpu_threads_of(pid), KINDS);
	offcpu_child_end(pid);
	offcpu_engines_free();
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
