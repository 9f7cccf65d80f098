/* Times off the CPU of children of this program, compared with what they measured themselves.
 * Skipped where the kernel refuses BPF, with the sentence that a user would see. */
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/bpf/host_engine.h"
#include "daemon/bpf/offcpu_engine.h"
#include "daemon/ground/clock.h"
#include "proto/host_cookie.h"
#include "tests/unit/offcpu_children.h"

#define SIGNALS_PER_S 2000
#define LONG_WAITS    40
#define RECORDS_MAX   8192
#define GENERATIONS   60
#define ENOUGH_SWITCHES 220000 /* a second, on two CPUs, to cost more than 1 % without any target */

static const enum offcpu_class class_of_kind[KINDS] = { OFFCPU_SLEEP, OFFCPU_FUTEX, OFFCPU_POLL,
							OFFCPU_PIPE, OFFCPU_SOCKET };

static bool direct; /* signals are delayed by restartable sequences, as before Linux 6.18 */

/* ---- engines --------------------------------------------------------------------------------- */

struct seen {
	struct host_engine *host;
	struct offcpu_engine *engine;
	struct offcpu_interval intervals[RECORDS_MAX];
	uint64_t stack_hashes[RECORDS_MAX];
	unsigned n, stacks;
	unsigned ended, ended_wrong;
};

static struct seen seen;

static uint64_t hash_of_stack(const uint64_t *ips, unsigned n)
{
	uint64_t hash = n;

	for (unsigned i = 0; i < n; i++)
		hash = (hash ^ ips[i]) * 0x9e3779b97f4a7c15ull;
	return hash;
}

static void on_interval(void *userdata, const struct offcpu_interval *i, const uint64_t *ips,
			unsigned n)
{
	struct seen *s = userdata;

	if (s->n < RECORDS_MAX) {
		s->stack_hashes[s->n] = hash_of_stack(ips, n);
		s->intervals[s->n++] = *i;
	}
	s->stacks += n > 0 && ips[0] >> 63;
}

static uint64_t sum_of(const struct offcpu_times *t)
{
	uint64_t ns = t->oncpu_ns + t->runqueue_ns;

	for (int i = 0; i < OFFCPU_CLASS_COUNT; i++)
		ns += t->off_ns[i];
	return ns;
}

static void on_end(void *userdata, const struct offcpu_times *t)
{
	struct seen *s = userdata;

	s->ended++;
	s->ended_wrong += sum_of(t) != t->to_ns - t->from_ns || !t->ended ||
			  t->off_ns[OFFCPU_SLEEP] < NS_PER_MS;
}

static void engines_or_skip(uint64_t signals_per_s)
{
	char why[OFFCPU_ENGINE_WHY_MAX];

	seen.n = seen.stacks = seen.ended = seen.ended_wrong = 0;
	if (host_engine_new(direct, &seen.host, why) < 0 ||
	    offcpu_engine_new(seen.host, signals_per_s, &seen.engine, why) < 0) {
		print_message("no off-CPU engine here: %s\n", why);
		exit(77);
	}
	offcpu_engine_listen(seen.engine, on_interval, on_end, &seen);
}

static void engines_free(void)
{
	seen.engine = offcpu_engine_free(seen.engine);
	seen.host = host_engine_free(seen.host);
}

static void measure_of(uint64_t tenant, pid_t pid, uint64_t min_ns)
{
	struct host_engine_target t = { shared->handler, 10 * NS_PER_MS, SIGPROF };

	assert_int_equal(host_engine_set(seen.host, pid, &t), 0);
	assert_int_equal(offcpu_engine_set(seen.engine, pid, tenant, min_ns), 0);
}

static void measure(pid_t pid, uint64_t handler, uint64_t min_ns)
{
	struct host_engine_target t = { handler, 10 * NS_PER_MS, SIGPROF };

	assert_int_equal(host_engine_set(seen.host, pid, &t), 0);
	assert_int_equal(offcpu_engine_set(seen.engine, pid, 0, min_ns), 0);
}

struct lookup {
	uint32_t tid;
	struct offcpu_times times;
	unsigned n, wrong;
};

static void look_up(void *userdata, const struct offcpu_times *t)
{
	struct lookup *l = userdata;

	l->wrong += sum_of(t) != t->to_ns - t->from_ns;
	if (t->tid != l->tid)
		return;
	l->times = *t;
	l->n++;
}

static struct offcpu_times times_of(pid_t pid, uint32_t tid)
{
	struct lookup l = { .tid = tid };

	(void)offcpu_engine_threads(seen.engine, pid, look_up, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.wrong, 0);
	return l.times;
}

/* ---- waits ----------------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static const struct offcpu_interval *interval_in(uint32_t tid, const struct wait *w)
{
	const struct offcpu_interval *longest = NULL;

	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *v = &seen.intervals[i];

		if (v->tid == tid && v->end_ns <= w->end_ns &&
		    v->end_ns - v->duration_ns >= w->begin_ns &&
		    (!longest || v->duration_ns > longest->duration_ns))
			longest = v;
	}
	return longest;
}

/* Compares the records of one thread with its own clock: every wait, apart from the few that the
 * kernel did not report, has a record that lies inside of it and is as long. */
static void check_waits(int kind)
{
	unsigned found = 0, wrong = 0;

	for (int i = 0; i < WAITS; i++) {
		const struct wait *w = &shared->waits[kind][i];
		const struct offcpu_interval *v = interval_in(shared->tids[kind], w);

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
		const struct offcpu_interval *v = interval_in(shared->tids[kind], w);

		if (v)
			ns[n++] = w->end_ns - w->begin_ns - v->duration_ns;
	}
	qsort(ns, n, sizeof(ns[0]), compare);
	return n ? ns[n / 2] : UINT64_MAX;
}

static void check_times(pid_t pid, int kind)
{
	struct offcpu_times t = times_of(pid, shared->tids[kind]);
	uint64_t off_ns = t.off_ns[class_of_kind[kind]] + t.runqueue_ns, waited_ns = 0;
	int64_t cpu_ns = (int64_t)shared->cpu_ns[kind] - (int64_t)t.oncpu_ns;

	for (int i = 0; i < WAITS; i++)
		waited_ns += shared->waits[kind][i].end_ns - shared->waits[kind][i].begin_ns;
	/* its own clock has only the time of the waits */
	assert_true(cpu_ns < 20 * (int64_t)NS_PER_MS && cpu_ns > -20 * (int64_t)NS_PER_MS);
	assert_true(off_ns > waited_ns - waited_ns / 10);
}

static bool cookie_came(uint32_t tid, uint64_t off_ns)
{
	for (uint32_t i = 0; i < shared->n_cookies && i < COOKIES_MAX; i++)
		if (shared->cookies[i].tid == tid &&
		    host_cookie_is_offcpu(shared->cookies[i].cookie) &&
		    host_cookie_off_ns(shared->cookies[i].cookie) == off_ns)
			return true;
	return false;
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
		came += cookie_came(seen.intervals[i].tid, seen.intervals[i].duration_ns);
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
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(pid, shared->handler, NS_PER_MS);
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
	engines_free();
}

static void waiting_for_a_cpu_is_the_run_queue(void **state)
{
	struct offcpu_times a, b;
	unsigned queued = 0;
	pid_t pid = offcpu_child(COMPETING);

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(pid, shared->handler, NS_PER_MS);
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
	a = times_of(pid, shared->tids[0]);
	b = times_of(pid, shared->tids[1]);
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
	engines_free();
}

/* Was there a signal for this record, or for another one of the same stay in the kernel? */
static bool stay_came(const struct offcpu_interval *v)
{
	for (unsigned i = 0; i < seen.n; i++)
		if (seen.intervals[i].tid == v->tid && seen.intervals[i].stay_ns == v->stay_ns &&
		    cookie_came(v->tid, seen.intervals[i].duration_ns))
			return true;
	return false;
}

/* A cgroup (of either version) whose processes may use a fifth of a CPU; "" = this machine
 * allows none. */
static void make_cgroup(char *ret_path, size_t size)
{
	static const struct {
		const char *parent, *file, *value;
	} ways[] = {
		{ "/sys/fs/cgroup", "cpu.max", "20000 100000" },
		{ "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "20000" },
		{ "/sys/fs/cgroup/cpu,cpuacct", "cpu.cfs_quota_us", "20000" },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char path[160];
		int fd;

		snprintf(ret_path, size, "%s/kindling-test-%d", ways[i].parent, (int)getpid());
		if (mkdir(ret_path, 0700) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", ret_path, ways[i].file);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, ways[i].value, strlen(ways[i].value)) ==
				       (ssize_t)strlen(ways[i].value)) {
			close(fd);
			return;
		}
		if (fd >= 0)
			close(fd);
		rmdir(ret_path);
	}
	ret_path[0] = '\0';
}

static bool enter_cgroup(const char *path, pid_t pid)
{
	char name[160];
	FILE *f;

	snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	f = fopen(name, "we");
	return f && fprintf(f, "%d\n", (int)pid) > 0 && fclose(f) == 0;
}

/* From Linux 6.18 on the kernel shows which threads wait for their CPU quota; before, they count
 * as in the run queue. */
static void a_used_up_quota_is_told_from_the_run_queue(void **state)
{
	struct offcpu_state engine;
	unsigned throttled = 0, came = 0;
	char path[128];
	pid_t pid;

	(void)state;
	path[0] = '\0';
	if (!direct)
		make_cgroup(path, sizeof(path));
	if (!path[0]) {
		print_message("no cgroup with a quota here\n");
		return;
	}
	engines_or_skip(SIGNALS_PER_S);
	offcpu_engine_state(seen.engine, &engine);
	/* this function exists only in those versions of the kernel */
	if (engine.way != OFFCPU_BY_TASK_WORK) {
		engines_free();
		rmdir(path);
		return;
	}
	pid = offcpu_child(COMPETING);
	offcpu_child_wait();
	assert_true(enter_cgroup(path, pid));
	measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < 200 && throttled < 10; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
		throttled = came = 0;
		for (unsigned n = 0; n < seen.n; n++) {
			const struct offcpu_interval *v = &seen.intervals[n];

			if (v->class != OFFCPU_THROTTLED || v->duration_ns < 20 * NS_PER_MS ||
			    !(v->flags & OFFCPU_SIGNALLED))
				continue;
			throttled++;
			came += stay_came(v);
		}
	}
	offcpu_child_end(pid);
	rmdir(path);
	print_message("%u waits for the quota, signals told of %u\n", throttled, came);
	assert_true(throttled >= 10);
	assert_true(came >= throttled - 3); /* one signal of each thread may not have arrived yet */
	engines_free();
}

/* ---- what must not happen -------------------------------------------------------------------- */

static void a_process_with_another_handler_gets_no_signal(void **state)
{
	struct host_engine_counts c;
	pid_t pid = offcpu_child(UNHANDLED);

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	for (int i = 0; i < 200 && seen.n < 200; i++) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	host_engine_counts(seen.host, &c);
	assert_true(seen.n >= 200);
	assert_int_equal(c.off_sent, 0);
	assert_true(c.off_dropped > 0);
	offcpu_child_end(pid); /* SIGPROF would have ended it */
	engines_free();
}

static void a_process_that_is_no_target_has_no_record(void **state)
{
	pid_t pid = offcpu_child(SLEEPING);

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	for (int i = 0; i < 200 && seen.n < 50; i++) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	for (unsigned i = 0; i < seen.n; i++)
		assert_int_equal(seen.intervals[i].pid, pid);
	assert_true(seen.n >= 50);
	offcpu_engine_remove(seen.engine, pid);
	offcpu_engine_drain(seen.engine);
	seen.n = 0;
	usleep(100000);
	offcpu_engine_drain(seen.engine);
	assert_int_equal(seen.n, 0);
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, look_up, &(struct lookup){ 0 }), 0);
	offcpu_child_end(pid);
	engines_free();
}

/* The number of sleeps of @pid so far, and of those whose stack one of @other's has. */
static unsigned sleeps_of(pid_t pid, pid_t other, unsigned *ret_mixed)
{
	unsigned sleeps = 0, mixed = 0;

	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *a = &seen.intervals[i];
		bool same = false;

		if (a->pid != pid || a->class != OFFCPU_SLEEP || a->state != 'S')
			continue;
		for (unsigned k = 0; k < seen.n; k++)
			same |= seen.intervals[k].pid == other &&
				seen.stack_hashes[k] == seen.stack_hashes[i];
		sleeps++;
		mixed += same;
	}
	*ret_mixed = mixed;
	return sleeps;
}

static void a_process_never_gets_the_kernel_stack_of_another(void **state)
{
	unsigned n = 0, n_disguised = 0, mixed = 0, mixed_disguised = 0;
	pid_t pid, disguised = offcpu_child(DISGUISED);

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	pid = offcpu_child(SELDOM);
	offcpu_child_wait();
	measure(disguised, shared->handler, OFFCPU_MIN_NS_LEAST);
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	for (int i = 0; i < 400 && (n < 50 || n_disguised < 50) && seen.n < RECORDS_MAX; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
		n = sleeps_of(pid, disguised, &mixed);
		n_disguised = sleeps_of(disguised, pid, &mixed_disguised);
	}
	print_message("%u sleeps and %u that look like them, %u and %u with a stack of the others\n",
		      n, n_disguised, mixed, mixed_disguised);
	assert_true(n >= 50 && n_disguised >= 50);
	assert_int_equal(mixed + mixed_disguised, 0);
	offcpu_child_end(pid);
	offcpu_child_end(disguised);
	engines_free();
}

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
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	for (int kind = 0; kind < KINDS; kind++)
		wait_until_asleep(pid, &shared->tids[kind]);
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	usleep(20000);
	for (int kind = 0; kind < KINDS; kind++) {
		struct offcpu_times t = times_of(pid, shared->tids[kind]);

		assert_int_equal(t.class, class_of_kind[kind]);
		assert_true(t.syscall_nr >= 0);
		assert_false(t.runs);
		assert_int_equal(t.off_ns[t.class], t.to_ns - t.from_ns);
	}
	offcpu_child_end(pid);
	engines_free();
}

static void signals_beyond_the_budget_are_counted_and_the_minimum_grows(void **state)
{
	uint64_t min_ns = 0, before_ns = 0;
	struct offcpu_counts c;
	pid_t pid = offcpu_child(SLEEPING);

	(void)state;
	engines_or_skip(100);
	offcpu_child_wait();
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_tick(seen.engine);
	for (int i = 0; i < 100; i++) {
		usleep(50000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, &before_ns));
		if (c.over_budget > 100)
			break;
	}
	assert_true(c.over_budget > 100);
	assert_true(c.over_budget_ns > c.over_budget * OFFCPU_MIN_NS_LEAST);
	assert_int_equal(c.intervals, c.signalled + c.over_budget + c.unreachable + c.lost);
	offcpu_engine_tick(seen.engine);
	assert_true(offcpu_engine_target(seen.engine, pid, &c, &min_ns));
	assert_int_equal(before_ns, OFFCPU_MIN_NS_LEAST);
	assert_int_equal(min_ns, 2 * before_ns);
	offcpu_child_end(pid);
	engines_free();
}

static void signals_that_cost_much_become_fewer(void **state)
{
	struct offcpu_state before, after;
	pid_t pid = offcpu_child(MIXED);

	(void)state;
	engines_or_skip(100000);
	offcpu_child_wait();
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_state(seen.engine, &before);
	assert_true(before.all_signals_per_s >= 100000);
	assert_int_equal(before.signal_price_ns, 0);
	for (int i = 0; i < 3; i++) {
		offcpu_engine_tick(seen.engine);
		usleep(500000);
	}
	offcpu_engine_state(seen.engine, &after);
	print_message("a signal costs %lu ns: %lu a second, of %lu\n",
		      (unsigned long)after.signal_price_ns, (unsigned long)after.all_signals_per_s,
		      (unsigned long)before.all_signals_per_s);
	assert_in_range(after.signal_price_ns, 100, 20000);
	assert_true(after.all_signals_per_s < before.all_signals_per_s);
	offcpu_child_end(pid);
	engines_free();
}

static void those_that_use_the_signals_up_leave_others_theirs(void **state)
{
	uint64_t min_ns, deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t greedy[2] = { offcpu_child(SLEEPING), offcpu_child(SLEEPING) }, pid = offcpu_child(SELDOM);
	struct offcpu_counts c = { 0 }, of_greedy;

	(void)state;
	engines_or_skip(200);
	offcpu_child_wait();
	measure(greedy[0], shared->handler, OFFCPU_MIN_NS_LEAST);
	measure(greedy[1], shared->handler, OFFCPU_MIN_NS_LEAST);
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	while (c.signalled < LONG_WAITS && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, &min_ns));
	}
	assert_true(offcpu_engine_target(seen.engine, greedy[0], &of_greedy, &min_ns));
	print_message("%u of %u seldom ones are signalled, %u of %u others\n",
		      (unsigned)c.signalled, (unsigned)c.intervals, (unsigned)of_greedy.signalled,
		      (unsigned)of_greedy.intervals);
	assert_true(of_greedy.over_budget > 0);
	assert_true(c.signalled >= LONG_WAITS);
	assert_int_equal(c.over_budget, 0);
	for (int i = 0; i < 2; i++)
		offcpu_child_end(greedy[i]);
	offcpu_child_end(pid);
	engines_free();
}

static struct offcpu_counts counts_of(pid_t pid)
{
	struct offcpu_counts c;
	uint64_t min_ns;

	assert_true(offcpu_engine_target(seen.engine, pid, &c, &min_ns));
	return c;
}

/* However many targets one tenant has, they share what it has for itself. */
static void a_tenant_of_many_targets_leaves_others_their_signals(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t greedy[8], pid;
	struct offcpu_counts c = { 0 };

	(void)state;
	engines_or_skip(100);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++) {
		greedy[i] = offcpu_child(SLEEPING);
		offcpu_child_wait();
		measure_of(1, greedy[i], OFFCPU_MIN_NS_LEAST);
	}
	pid = offcpu_child(SELDOM);
	offcpu_child_wait();
	measure_of(2, pid, OFFCPU_MIN_NS_LEAST);
	while (c.signalled < LONG_WAITS && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		c = counts_of(pid);
	}
	assert_true(counts_of(greedy[0]).over_budget > 0);
	assert_true(c.signalled >= LONG_WAITS);
	assert_int_equal(c.over_budget, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		offcpu_child_end(greedy[i]);
	offcpu_child_end(pid);
	engines_free();
}

static unsigned known_threads(pid_t pid)
{
	return offcpu_engine_threads(seen.engine, pid, look_up, &(struct lookup){ 0 });
}

/* 64 slots: 32 for whoever comes first, then 12 for each of two tenants. */
static void who_has_many_threads_leaves_others_room_in_the_table(void **state)
{
	pid_t greedy = offcpu_child(MANY), pid;

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	offcpu_engine_limit_threads(seen.engine, 64);
	measure_of(1, greedy, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 200 && counts_of(greedy).crowded < MANY_THREADS - 32; i++)
		usleep(20000);
	assert_true(counts_of(greedy).crowded > 0);
	assert_in_range(known_threads(greedy), 32, 34); /* two CPUs may ask at once */
	pid = offcpu_child(WAITING);
	offcpu_child_wait();
	measure_of(2, pid, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 500 && __atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < KINDS; i++)
		usleep(20000);
	assert_int_equal(counts_of(pid).crowded, 0);
	for (int kind = 0; kind < KINDS; kind++)
		(void)times_of(pid, shared->tids[kind]);
	/* who goes gives its room back, and who is alone has most of the table */
	offcpu_engine_remove(seen.engine, greedy);
	offcpu_child_end(greedy);
	offcpu_engine_remove(seen.engine, pid);
	offcpu_child_end(pid);
	assert_int_equal(known_threads(0), 0);
	greedy = offcpu_child(MANY);
	offcpu_child_wait();
	measure_of(1, greedy, NS_PER_MS);
	__atomic_store_n(&shared->go, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < 200 && counts_of(greedy).crowded < MANY_THREADS - 32; i++)
		usleep(20000);
	assert_in_range(known_threads(greedy), 32, 34);
	offcpu_child_end(greedy);
	engines_free();
}

/* Nobody empties the ring any more, which the greedy ones would fill within a second. */
static void who_fills_the_ring_leaves_others_room_in_it(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t greedy[2], pid;

	(void)state;
	engines_or_skip(100000);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++) {
		greedy[i] = offcpu_child(STORMING);
		offcpu_child_wait();
		measure_of(1, greedy[i], OFFCPU_MIN_NS_LEAST);
	}
	pid = offcpu_child(SELDOM);
	offcpu_child_wait();
	measure_of(2, pid, OFFCPU_MIN_NS_LEAST);
	offcpu_engine_drain(seen.engine);
	while ((counts_of(greedy[0]).lost < 1000 || counts_of(pid).intervals < LONG_WAITS) &&
	       clock_mono_ns() < deadline)
		usleep(20000);
	print_message("lost: %u of %u, of others %u of %u\n", (unsigned)counts_of(pid).lost,
		      (unsigned)counts_of(pid).intervals, (unsigned)counts_of(greedy[0]).lost,
		      (unsigned)counts_of(greedy[0]).intervals);
	assert_true(counts_of(greedy[0]).lost >= 1000);
	assert_true(counts_of(pid).intervals >= LONG_WAITS);
	assert_int_equal(counts_of(pid).lost, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(greedy); i++)
		offcpu_child_end(greedy[i]);
	offcpu_child_end(pid);
	engines_free();
}

static struct offcpu_state tick_after(unsigned ms)
{
	struct offcpu_state s;

	usleep(ms * 1000);
	offcpu_engine_drain(seen.engine);
	offcpu_engine_tick(seen.engine);
	offcpu_engine_state(seen.engine, &s);
	return s;
}

/* A tick measures the time since the last one, so it need not be a second. */
static void a_storm_of_switches_costs_the_wakers_and_then_a_rest(void **state)
{
	pid_t quiet = offcpu_child(SLEEPING), pid;
	struct offcpu_state s = { .wakers = true };
	struct lookup l = { 0 };
	bool without_wakers = false;

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(quiet, shared->handler, NS_PER_MS);
	pid = offcpu_child(STORMING);
	offcpu_child_wait();
	measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < 600 && !s.resting_targets; i++) {
		s = tick_after(100);
		without_wakers |= !s.wakers && !s.resting_targets;
	}
	print_message("%llu switches a second\n", (unsigned long long)s.switches_per_s);
	assert_true(without_wakers);
	/* only the one whose storm it is, also if it is asked for again */
	assert_int_equal(s.resting_targets, 1);
	assert_false(s.resting);
	assert_int_equal(s.rests, 0);
	assert_int_equal(offcpu_engine_rests(seen.engine, pid), 60);
	assert_int_equal(offcpu_engine_rests(seen.engine, quiet), 0);
	assert_true(offcpu_engine_rested_ns(seen.engine, pid) > 0);
	assert_int_equal(offcpu_engine_rested_ns(seen.engine, quiet), 0);
	measure(pid, shared->handler, NS_PER_MS);
	kill(pid, SIGSTOP); /* so many switches cost too much also without being measured */
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, look_up, &l), 1);
	seen.n = 0;
	for (int i = 0; i < 50 && !seen.n; i++)
		s = tick_after(20);
	assert_true(seen.n > 0);
	assert_false(s.resting);
	/* it goes on after its rest, and the next one is longer */
	for (int i = 0; i < 100 && s.resting_targets; i++)
		s = tick_after(1);
	assert_int_equal(s.resting_targets, 0);
	kill(pid, SIGCONT);
	for (int i = 0; i < 600 && !s.resting_targets; i++)
		s = tick_after(100);
	assert_int_equal(offcpu_engine_rests(seen.engine, pid), 120);
	/* until it has been measured for as long as that */
	kill(pid, SIGSTOP);
	for (int i = 0; i < 120 + 120; i++)
		s = tick_after(1);
	assert_int_equal(s.resting_targets, 0);
	kill(pid, SIGCONT);
	for (int i = 0; i < 600 && !s.resting_targets; i++)
		s = tick_after(100);
	assert_int_equal(offcpu_engine_rests(seen.engine, pid), 60);
	offcpu_child_end(pid);
	offcpu_child_end(quiet);
	engines_free();
}

/* A storm of processes that are no targets: all targets rest. */
static void a_storm_of_others_costs_all_a_rest(void **state)
{
	pid_t quiet = offcpu_child(SLEEPING), others[4];
	struct offcpu_state s = { 0 };
	struct lookup l = { 0 };

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(quiet, shared->handler, NS_PER_MS);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = offcpu_child(STORMING);
	for (int i = 0; i < 60 && !s.resting; i++)
		s = tick_after(100);
	print_message("%llu switches a second\n", (unsigned long long)s.switches_per_s);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
		offcpu_child_end(others[i]);
	if (!s.resting && s.switches_per_s < ENOUGH_SWITCHES) {
		offcpu_child_end(quiet);
		engines_free();
		skip(); /* this machine is too slow, or too busy, for such a storm */
	}
	assert_true(s.resting);
	assert_int_equal(s.rests, 1);
	assert_int_equal(s.cost_ppm, 0);
	assert_true(offcpu_engine_rested_ns(seen.engine, quiet) > 0);
	/* nothing is measured during a rest, and a target that comes then is no exception */
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, look_up, &l), 0);
	offcpu_engine_remove(seen.engine, quiet);
	measure(quiet, shared->handler, NS_PER_MS);
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, look_up, &l), 0);
	for (int i = 0; i < 100 && s.resting; i++)
		s = tick_after(1);
	assert_false(s.resting);
	assert_int_equal(offcpu_engine_threads(seen.engine, 0, look_up, &l), 1);
	/* how long it takes until it asks for wakers again depends on what else runs here:
	 * test_offcpu_cost */
	seen.n = 0;
	for (int i = 0; i < 100 && !seen.n; i++)
		s = tick_after(20);
	assert_true(seen.n > 0);
	offcpu_child_end(quiet);
	engines_free();
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

static void threads_that_end_while_they_are_added_leave_no_entry(void **state)
{
	pid_t pid = offcpu_child(CROWDED);
	struct gone added = { 0 }, left = { 0 };

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	for (int i = 0; i < 1000 && added.n < 12; i++) {
		measure(pid, shared->handler, NS_PER_MS);
		added.added_ns = left.added_ns = clock_mono_ns();
		usleep(20000);
		(void)offcpu_engine_threads(seen.engine, pid, count_gone, &added);
		offcpu_engine_tick(seen.engine);
		(void)offcpu_engine_threads(seen.engine, pid, count_gone, &left);
		offcpu_engine_remove(seen.engine, pid);
	}
	print_message("%u threads ended while they were added, %u are left\n", added.n, left.n);
	offcpu_child_end(pid);
	engines_free();
	assert_true(added.n > 0);
	assert_int_equal(left.n, 0);
}

static void a_thread_that_needs_no_stack_has_records_and_no_signals(void **state)
{
	uint64_t min_ns, signalled, deadline = clock_mono_ns() + 60 * NS_PER_S;
	pid_t pid = offcpu_child(WAITING);
	struct offcpu_counts c = { 0 };
	uint32_t spared;

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	spared = __atomic_load_n(&shared->tids[FUTEXES], __ATOMIC_SEQ_CST);
	while (!spared) {
		usleep(1000);
		spared = __atomic_load_n(&shared->tids[FUTEXES], __ATOMIC_SEQ_CST);
	}
	measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < OFFCPU_BARE_STACKS_ENOUGH; i++)
		offcpu_engine_bare_stack(seen.engine, pid, spared);
	/* a thread that starts has one: not enough */
	offcpu_engine_bare_stack(seen.engine, pid, shared->tids[SLEEPS]);
	/* of another process: nothing */
	for (int i = 0; i < OFFCPU_BARE_STACKS_ENOUGH; i++)
		offcpu_engine_bare_stack(seen.engine, getpid(), shared->tids[SLEEPS]);
	__atomic_store_n(&shared->go, 1, __ATOMIC_SEQ_CST);
	while (c.unneeded < WAITS / 2 && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, &min_ns));
	}
	signalled = 0;
	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *v = &seen.intervals[i];

		if (v->host_tid != spared)
			signalled += (v->flags & OFFCPU_SIGNALLED) != 0;
		else if (v->class == OFFCPU_FUTEX)
			assert_int_equal(v->flags & (OFFCPU_SIGNALLED | OFFCPU_UNNEEDED),
					 OFFCPU_UNNEEDED);
		else
			assert_int_equal(v->flags & OFFCPU_UNNEEDED, 0);
	}
	assert_true(c.unneeded >= WAITS / 2);
	assert_true(c.unneeded_ns >= c.unneeded * NS_PER_MS);
	assert_true(signalled > 0);
	assert_int_equal(c.intervals,
			 c.signalled + c.over_budget + c.unreachable + c.unneeded + c.lost);
	offcpu_child_end(pid);
	engines_free();
}

/* Of threads that block the signal, all but the agent's are counted as unreachable. */
static void the_agents_thread_has_no_events(void **state)
{
	uint64_t min_ns, deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct offcpu_counts c = { 0 };
	pid_t pid = offcpu_child(BLOCKING);
	uint32_t tid = 0;

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
	while (c.unreachable < 100 && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
		assert_true(offcpu_engine_target(seen.engine, pid, &c, &min_ns));
	}
	assert_true(c.unreachable >= 100);
	for (unsigned i = 0; i < seen.n; i++) {
		assert_true(!tid || seen.intervals[i].host_tid == tid);
		tid = seen.intervals[i].host_tid;
	}
	offcpu_child_end(pid);
	engines_free();
}

static unsigned count_seen(bool is_long, unsigned flag)
{
	unsigned n = 0;

	for (unsigned i = 0; i < seen.n; i++)
		n += (seen.intervals[i].duration_ns >= LONG_NS) == is_long &&
		     (!flag || seen.intervals[i].flags & flag);
	return n;
}

static void short_times_do_not_use_up_the_signals_of_long_ones(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	unsigned n_short, n_long, short_over, long_over;
	pid_t pid = offcpu_child(MIXED);

	(void)state;
	engines_or_skip(200);
	offcpu_child_wait();
	measure(pid, shared->handler, NS_PER_MS);
	while (count_seen(true, 0) < LONG_WAITS && clock_mono_ns() < deadline) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	n_short = count_seen(false, 0);
	n_long = count_seen(true, 0);
	short_over = count_seen(false, OFFCPU_OVER_BUDGET);
	long_over = count_seen(true, OFFCPU_OVER_BUDGET);
	print_message("over the budget: %u of %u short times, %u of %u long ones\n", short_over,
		      n_short, long_over, n_long);
	assert_true(n_long >= LONG_WAITS);
	assert_true(short_over > n_short / 4);
	assert_true(long_over < n_long / 2);
	offcpu_child_end(pid);
	engines_free();
}

static unsigned threads_of(pid_t pid)
{
	return offcpu_engine_threads(seen.engine, pid, look_up, &(struct lookup){ 0 });
}

static void threads_that_end_leave_their_times(void **state)
{
	pid_t pid = offcpu_child(BEGINNING);

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	measure(pid, shared->handler, NS_PER_MS);
	for (int i = 0; i < 200 && seen.ended < 50; i++) {
		usleep(20000);
		offcpu_engine_drain(seen.engine);
	}
	print_message("%u threads ended, %u with other times than expected\n", seen.ended,
		      seen.ended_wrong);
	assert_true(seen.ended >= 50);
	assert_true(seen.ended_wrong <= seen.ended / 20);
	/* none of them stays in the table */
	assert_in_range(threads_of(pid), 1, 4);
	offcpu_child_end(pid);
	/* the last of them may leave its CPU after its process has been waited for */
	for (int i = 0; i < 100 && threads_of(pid) > 0; i++)
		usleep(20000);
	assert_int_equal(threads_of(pid), 0);
	engines_free();
}

/* The hard case of test_host_engine.c (execve again and again), with a thread that sleeps. */
static void a_process_that_execs_is_never_ended_by_a_signal(void **state)
{
	uint64_t deadline = clock_mono_ns() + 60 * NS_PER_S;
	struct host_engine_counts c;
	uint32_t before = 0;
	int status = 0;
	pid_t pid;

	(void)state;
	memset(shared, 0, sizeof(*shared));
	engines_or_skip(SIGNALS_PER_S);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_offcpu_engine", "again", (char *)NULL);
		_exit(1);
	}
	while (waitpid(pid, &status, WNOHANG) == 0 && clock_mono_ns() < deadline) {
		uint32_t now = __atomic_load_n(&shared->generation, __ATOMIC_SEQ_CST);

		if (now != before && __atomic_load_n(&shared->handler, __ATOMIC_SEQ_CST)) {
			/* like a daemon that learns of the exec at once */
			host_engine_remove(seen.host, pid);
			offcpu_engine_remove(seen.engine, pid);
			measure(pid, shared->handler, OFFCPU_MIN_NS_LEAST);
			before = now;
		}
		usleep(200);
	}
	host_engine_counts(seen.host, &c);
	print_message("%u programs, %llu signals, %llu not sent\n", shared->generation,
		      (unsigned long long)c.off_sent, (unsigned long long)c.off_dropped);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(shared->generation, GENERATIONS);
	assert_true(c.off_sent > GENERATIONS / 4);
	engines_free();
}

/* One life of that process: a handler and short sleeps for a while, then it calls execve. */
static int live_again(void)
{
	uint64_t end_ns = clock_mono_ns() + 200 * NS_PER_MS;

	/* there is no handler yet: a signal left over from the life before would end the process
	 * here */
	offcpu_child_nap(NS_PER_MS / 2);
	shared->handler = 0;
	if (++shared->generation >= GENERATIONS)
		return 0;
	offcpu_child_install();
	shared->n_cookies = 0;
	while (clock_mono_ns() < end_ns && shared->n_cookies < 3)
		offcpu_child_nap(NS_PER_MS / 20);
	execl("/proc/self/exe", "test_offcpu_engine", "again", (char *)NULL);
	return 1;
}

static void targets_come_without_rights(void **state)
{
	pid_t pid = offcpu_child(SLEEPING), holder;
	int status;

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	offcpu_child_wait();
	holder = fork();
	if (holder == 0) {
		struct host_engine_target t = { shared->handler, 10 * NS_PER_MS, SIGPROF };
		unsigned before = seen.n;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		/* the clocks need rights that the warden has in a daemon; if they are refused
		 * here, the test goes on without them */
		(void)host_engine_set(seen.host, pid, &t);
		if (offcpu_engine_set(seen.engine, pid, 0, OFFCPU_MIN_NS_LEAST) < 0)
			_exit(3);
		for (int i = 0; i < 200 && seen.n == before; i++) {
			usleep(20000);
			offcpu_engine_drain(seen.engine);
		}
		_exit(seen.n > before ? 0 : 4);
	}
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	offcpu_child_end(pid);
	engines_free();
}

static void without_rights_there_is_a_sentence(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	pid = fork();
	if (pid == 0) {
		char why[OFFCPU_ENGINE_WHY_MAX] = "";
		struct offcpu_engine *e = NULL;

		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(2);
		_exit(offcpu_engine_new(seen.host, 100, &e, why) < 0 &&
				      strstr(why, "permission denied")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	engines_free();
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

static void a_minimum_that_would_be_a_flood_is_refused(void **state)
{
	(void)state;
	engines_or_skip(SIGNALS_PER_S);
	assert_int_equal(offcpu_engine_set(seen.engine, getpid(), 0, OFFCPU_MIN_NS_LEAST - 1),
			 -EINVAL);
	assert_int_equal(offcpu_engine_set(seen.engine, 0, 0, NS_PER_MS), -EINVAL);
	engines_free();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_have_a_class_a_length_and_a_signal),
		cmocka_unit_test(waiting_for_a_cpu_is_the_run_queue),
		cmocka_unit_test(a_used_up_quota_is_told_from_the_run_queue),
		cmocka_unit_test(a_process_with_another_handler_gets_no_signal),
		cmocka_unit_test(a_process_that_is_no_target_has_no_record),
		cmocka_unit_test(a_process_never_gets_the_kernel_stack_of_another),
		cmocka_unit_test(threads_that_sleep_since_before_have_a_class),
		cmocka_unit_test(signals_beyond_the_budget_are_counted_and_the_minimum_grows),
		cmocka_unit_test(signals_that_cost_much_become_fewer),
		cmocka_unit_test(those_that_use_the_signals_up_leave_others_theirs),
		cmocka_unit_test(a_tenant_of_many_targets_leaves_others_their_signals),
		cmocka_unit_test(who_has_many_threads_leaves_others_room_in_the_table),
		cmocka_unit_test(who_fills_the_ring_leaves_others_room_in_it),
		cmocka_unit_test(a_storm_of_switches_costs_the_wakers_and_then_a_rest),
		cmocka_unit_test(a_storm_of_others_costs_all_a_rest),
		cmocka_unit_test(a_thread_that_needs_no_stack_has_records_and_no_signals),
		cmocka_unit_test(the_agents_thread_has_no_events),
		cmocka_unit_test(threads_that_end_while_they_are_added_leave_no_entry),
		cmocka_unit_test(short_times_do_not_use_up_the_signals_of_long_ones),
		cmocka_unit_test(threads_that_end_leave_their_times),
		cmocka_unit_test(a_process_that_execs_is_never_ended_by_a_signal),
		cmocka_unit_test(targets_come_without_rights),
		cmocka_unit_test(without_rights_there_is_a_sentence),
		cmocka_unit_test(cookies_say_what_was_put_in),
		cmocka_unit_test(a_minimum_that_would_be_a_flood_is_refused),
	};
	bool again = argc > 1 && strcmp(argv[1], "again") == 0;
	int fd = again ? atoi(getenv("WORDS_FD")) : memfd_create("words", 0);
	char number[16];
	int failed = 0;

	snprintf(number, sizeof(number), "%d", fd);
	setenv("WORDS_FD", number, 1);
	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
		return 1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	if (again)
		return live_again();
	for (int i = 0; i < 2; i++) {
		direct = i == 1;
		failed += cmocka_run_group_tests_name(direct ? "by rseq" : "by task work", tests,
						      NULL, NULL);
	}
	return failed;
}
