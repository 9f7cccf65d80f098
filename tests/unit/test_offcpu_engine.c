/* Times off the CPU of children of this program, compared with what they measured themselves. */
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "daemon/bpf/offcpu_engine_priv.h"
#include "proto/host_cookie.h"
#include "tests/unit/halts.h"
#include "tests/unit/offcpu_engines.h"

#define SIGNALS_PER_S 2000

static const enum offcpu_class class_of_kind[KINDS] = { OFFCPU_SLEEP, OFFCPU_FUTEX, OFFCPU_POLL,
							OFFCPU_PIPE, OFFCPU_SOCKET };

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Compares the records of one thread with its own clock: every wait, apart from the few that the
 * kernel did not report, has a record that lies inside of it and is as long. */
static void check_waits(int kind)
{
	unsigned found = 0, wrong = 0;

	for (int i = 0; i < WAITS; i++) {
		const struct wait *w = &shared->waits[kind][i];
		const struct offcpu_interval *v = offcpu_interval_in(shared->tids[kind], w);

		if (w->end_ns - w->begin_ns < 2 * NS_PER_MS) { /* the feeder was ahead */
			found++;
			continue;
		}
		if (!v)
			continue;
		found++;
		wrong += v->class != class_of_kind[kind] || v->state != 'S' ||
			 v->runqueue_ns > v->duration_ns || v->host_tid != v->tid;
	}
	assert_int_equal(wrong, 0);
	assert_in_range(found, WAITS - 2, WAITS);
}

/* The median difference between a wait's length as its thread measured it and as the kernel did. */
static uint64_t typical_difference(int kind)
{
	uint64_t ns[WAITS];
	unsigned n = 0;

	for (int i = 0; i < WAITS; i++) {
		const struct wait *w = &shared->waits[kind][i];
		const struct offcpu_interval *v = offcpu_interval_in(shared->tids[kind], w);

		if (v)
			ns[n++] = w->end_ns - w->begin_ns - v->duration_ns;
	}
	qsort(ns, n, sizeof(ns[0]), compare);
	return n ? ns[n / 2] : UINT64_MAX;
}

static void check_times(pid_t pid, int kind)
{
	struct offcpu_times t = offcpu_times_of(pid, shared->tids[kind]);
	uint64_t off_ns = t.off_ns[class_of_kind[kind]] + t.runqueue_ns, waited_ns = 0;
	int64_t cpu_ns = (int64_t)shared->cpu_ns[kind] - (int64_t)t.oncpu_ns;

	for (int i = 0; i < WAITS; i++)
		waited_ns += shared->waits[kind][i].end_ns - shared->waits[kind][i].begin_ns;
	/* its own clock has only the time of the waits */
	assert_true(cpu_ns < 20 * (int64_t)NS_PER_MS && cpu_ns > -20 * (int64_t)NS_PER_MS);
	assert_true(off_ns > waited_ns - waited_ns / 10);
}

/* Is this the last record of a stay in the kernel, the one that the agent gets? */
static bool is_last_of_stay(unsigned at)
{
	for (unsigned i = at + 1; i < seen.n; i++)
		if (seen.intervals[i].tid == seen.intervals[at].tid)
			return seen.intervals[i].stay_ns != seen.intervals[at].stay_ns;
	return false; /* its signal may not have arrived yet */
}

static void check_signals(void)
{
	unsigned sent = 0, came = 0;

	for (unsigned i = 0; i < seen.n; i++) {
		if (!(seen.intervals[i].flags & OFFCPU_SIGNALLED) || !is_last_of_stay(i))
			continue;
		sent++;
		came += offcpu_cookie_came(seen.intervals[i].tid, seen.intervals[i].duration_ns);
	}
	print_message("%u signals of %u came, with their times\n", came, sent);
	assert_true(sent > KINDS * WAITS / 2);
	assert_true(came >= sent - sent / 50);
}

/* Waits of one kind in the same system call have one kernel stack; those of other system calls have
 * others, which the BPF program must not mix up when it keeps stacks. */
static void check_stacks(void)
{
	unsigned equal = 0, mixed = 0;

	for (unsigned i = 0; i < seen.n; i++)
		for (unsigned k = i + 1; k < seen.n; k++) {
			const struct offcpu_interval *a = &seen.intervals[i], *b = &seen.intervals[k];
			bool same = seen.stack_hashes[i] == seen.stack_hashes[k];

			if (a->state != 'S' || b->state != 'S')
				continue;
			if (a->syscall_nr != b->syscall_nr)
				mixed += same;
			else if (a->class == OFFCPU_SLEEP && same)
				equal++;
		}
	assert_int_equal(mixed, 0);
	assert_true(equal > WAITS);
}

static void waits_have_a_class_a_length_and_a_signal(void **state)
{
	pid_t pid = offcpu_child(WAITING);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 600 && __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < KINDS; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
	}
	assert_int_equal(shared->done, KINDS);
	offcpu_engine_drain(seen.engine);
	for (int kind = 0; kind < KINDS; kind++) {
		uint64_t ns = typical_difference(kind);

		print_message("kind %d: %llu us longer for the thread than for the kernel\n", kind,
			      (unsigned long long)ns / 1000);
		check_waits(kind);
		check_times(pid, kind);
		assert_true(ns < 2 * NS_PER_MS); /* about 10 us if nothing else runs */
	}
	assert_true(seen.stacks > seen.n / 2);
	check_stacks();
	check_signals();
	offcpu_child_end(pid);
	offcpu_engines_free();
}

/* Waits of the thread that reads a pipe, which began after @from_ns; sets how many name the thread
 * that woke it. */
static unsigned count_reads(uint64_t from_ns, unsigned *ret_named)
{
	unsigned n = 0;

	*ret_named = 0;
	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *v = &seen.intervals[i];

		if (v->class != OFFCPU_PIPE || v->end_ns - v->duration_ns < from_ns)
			continue;
		n++;
		*ret_named += v->waker_tid != 0;
	}
	return n;
}

/* Has a child's waits measured, and after some of them does not ask for wakers any more. Returns
 * the number of reads that began after that. */
static unsigned count_reads_without_wakers(unsigned *ret_named)
{
	pid_t pid = offcpu_child(WAITING);
	uint64_t from_ns;
	unsigned n = 0;

	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 30000 && n < WAITS / 4; i++) {
		usleep(1000);
		offcpu_engine_drain(seen.engine);
		n = count_reads(0, ret_named);
	}
	assert_true(*ret_named > 0);
	offcpu_detach_wakers(&seen.engine->programs);
	from_ns = clock_mono_ns();
	for (int i = 0; i < 3000 && __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < KINDS; i++)
		usleep(10000);
	offcpu_engine_drain(seen.engine);
	n = count_reads(from_ns, ret_named);
	offcpu_child_end(pid);
	offcpu_engines_free();
	return n;
}

/* A thread's slot still has its last waker then. */
static void nobody_is_named_when_wakers_are_not_asked_for(void **state)
{
	unsigned n = 0, named;

	(void)state;
	/* on a busy machine the child may end before */
	for (int i = 0; i < 5 && !n; i++)
		n = count_reads_without_wakers(&named);
	assert_true(n > 0);
	assert_int_equal(named, 0);
}

static void waiting_for_a_cpu_is_the_run_queue(void **state)
{
	struct offcpu_times a, b;
	unsigned queued = 0;
	pid_t pid = offcpu_child(COMPETING);

	(void)state;
	offcpu_engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < 200 && queued < 20; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
		queued = 0;
		for (unsigned n = 0; n < seen.n; n++)
			queued += seen.intervals[n].class == OFFCPU_RUNQUEUE &&
				  seen.intervals[n].state == 'R' &&
				  seen.intervals[n].runqueue_ns == seen.intervals[n].duration_ns;
	}
	assert_true(queued >= 20);
	a = offcpu_times_of(pid, shared->tids[0]);
	b = offcpu_times_of(pid, shared->tids[1]);
	print_message("ran %llu and %llu ms, waited %llu and %llu ms for it\n",
		      (unsigned long long)(a.oncpu_ns / NS_PER_MS),
		      (unsigned long long)(b.oncpu_ns / NS_PER_MS),
		      (unsigned long long)(a.runqueue_ns / NS_PER_MS),
		      (unsigned long long)(b.runqueue_ns / NS_PER_MS));
	/* together they cannot have had more than the one CPU */
	assert_true(a.oncpu_ns + b.oncpu_ns <
		    (a.to_ns - a.from_ns) + (a.to_ns - a.from_ns) / 20 + 20 * NS_PER_MS);
	assert_true(a.runqueue_ns > (a.to_ns - a.from_ns) / 4);
	offcpu_child_end(pid);
	offcpu_engines_free();
}

#define HALTED_NS (60 * NS_PER_MS)

/* Halts a child three times; returns the times of its first thread since then. */
static bool times_of_halted(enum offcpu_manner manner, size_t way, struct offcpu_times *ret)
{
	struct offcpu_times before;
	pid_t pid = offcpu_child(manner);
	struct halt h;
	bool fine = halt_new(&h, way, pid);

	if (fine) {
		offcpu_engines_or_skip(SIGNALS_PER_S);
		offcpu_child_wait();
		offcpu_measure(pid, shared->handler, NS_PER_MS);
		usleep(100000);
		before = offcpu_times_of(pid, (uint32_t)pid);
		for (int i = 0; i < 3; i++) {
			halt_begin(&h);
			usleep(HALTED_NS / 1000);
			/* since Linux 6.1 the freezer of v1 does not wake a thread that sleeps */
			if (manner == COMPETING || way != HALT_V1)
				assert_true(offcpu_times_of(pid, (uint32_t)pid).halted);
			halt_end(&h);
			usleep(100000);
			assert_false(offcpu_times_of(pid, (uint32_t)pid).halted);
		}
		offcpu_engine_drain(seen.engine);
		*ret = offcpu_times_of(pid, (uint32_t)pid);
		for (int i = 0; i < OFFCPU_RUNQUEUE; i++)
			ret->off_ns[i] -= before.off_ns[i];
		print_message("%s: other %llu, sleep %llu, fault %llu ms\n", h.name,
			      (unsigned long long)ret->off_ns[OFFCPU_OTHER] / NS_PER_MS,
			      (unsigned long long)ret->off_ns[OFFCPU_SLEEP] / NS_PER_MS,
			      (unsigned long long)ret->off_ns[OFFCPU_FAULT] / NS_PER_MS);
	}
	offcpu_child_end(pid);
	halt_free(&h);
	if (fine)
		offcpu_engines_free();
	return fine;
}

/* A thread that is halted does not wait for what its system call waits for. */
static void a_halted_thread_waits_for_something_else(void **state)
{
	struct offcpu_times t;

	(void)state;
	for (size_t way = 0; way < HALT_WAYS; way++) {
		if (times_of_halted(COMPETING, way, &t)) {
			assert_true(t.off_ns[OFFCPU_OTHER] > 2 * HALTED_NS);
			assert_true(t.off_ns[OFFCPU_FAULT] < HALTED_NS / 2);
		}
		if (!times_of_halted(SELDOM, way, &t))
			continue;
		if (way != HALT_V1)
			assert_in_range(t.off_ns[OFFCPU_OTHER], 2 * HALTED_NS, 4 * HALTED_NS);
		assert_true(t.off_ns[OFFCPU_SLEEP] > 2 * HALTED_NS);
	}
}

/* A sleep of minutes goes on in another call of the kernel's each time, which is the same sleep. */
static void a_sleep_that_was_halted_keeps_its_name(void **state)
{
	unsigned sleeps = 0;
	struct offcpu_times t;

	(void)state;
	if (!times_of_halted(LONG, HALT_SIGNAL, &t))
		return;
	for (unsigned i = 0; i < seen.n; i++) {
		assert_true(seen.intervals[i].syscall_nr != SYS_restart_syscall);
		sleeps += seen.intervals[i].class == OFFCPU_SLEEP;
	}
	assert_true(sleeps >= 2);
}

static void cookies_say_what_was_put_in(void **state)
{
	uint64_t c = host_cookie_offcpu(123456789, 7);

	(void)state;
	assert_true(host_cookie_is_offcpu(c));
	assert_int_equal(host_cookie_off_ns(c), 123456789);
	assert_int_equal(host_cookie_intervals(c), 7);
	c = host_cookie_offcpu(UINT64_MAX, UINT64_MAX);
	assert_int_equal(host_cookie_off_ns(c), HOST_COOKIE_OFFCPU_NS_MAX);
	assert_int_equal(host_cookie_intervals(c), HOST_COOKIE_OFFCPU_TICK_MAX);
	assert_false(host_cookie_is_offcpu(NS_PER_S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_have_a_class_a_length_and_a_signal),
		cmocka_unit_test(nobody_is_named_when_wakers_are_not_asked_for),
		cmocka_unit_test(waiting_for_a_cpu_is_the_run_queue),
		cmocka_unit_test(a_halted_thread_waits_for_something_else),
		cmocka_unit_test(a_sleep_that_was_halted_keeps_its_name),
		cmocka_unit_test(cookies_say_what_was_put_in),
	};

	return offcpu_engines_run(tests, OFFCPU_BY_OWN_SIGNAL);
}
