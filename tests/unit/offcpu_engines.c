/* See offcpu_engines.h. */
#include "tests/unit/offcpu_engines.h"
#include "proto/host_cookie.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "daemon/bpf/offcpu_engine_priv.h"
#include "tests/unit/unit.h"

enum offcpu_way offcpu_way;
struct offcpu_seen seen;

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
	struct offcpu_seen *s = userdata;

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
	struct offcpu_seen *s = userdata;

	s->ended++;
	s->ended_wrong += sum_of(t) != t->to_ns - t->from_ns || !t->ended ||
			  t->off_ns[OFFCPU_SLEEP] < NS_PER_MS;
}

void offcpu_engines_or_skip(uint64_t signals_per_s)
{
	bool exits = getenv("OFFCPU_SYSCALL_EXITS") != NULL;
	char why[OFFCPU_ENGINE_WHY_MAX];

	seen.n = seen.stacks = seen.ended = seen.ended_wrong = 0;
	if (host_engine_new(offcpu_way != OFFCPU_BY_TASK_WORK, &seen.host, why) < 0 ||
	    (offcpu_way == OFFCPU_BY_OWN_SIGNAL
		     ? offcpu_engine_new_by(seen.host, offcpu_way, signals_per_s, exits,
					    &seen.engine, why)
		     : offcpu_engine_new(seen.host, signals_per_s, exits, &seen.engine, why)) < 0) {
		print_message("no off-CPU engine here: %s\n", why);
		exit(77);
	}
	offcpu_engine_listen(seen.engine, on_interval, on_end, &seen);
}

void offcpu_engines_free(void)
{
	seen.engine = offcpu_engine_free(seen.engine);
	seen.host = host_engine_free(seen.host);
}

void offcpu_measure_of(uint64_t tenant, pid_t pid, uint64_t min_ns)
{
	struct host_engine_target t = { shared->handler, 10 * NS_PER_MS, SIGPROF, OWN_SIGNAL };

	assert_int_equal(host_engine_set(seen.host, pid, &t), 0);
	assert_int_equal(offcpu_engine_set(seen.engine, pid, tenant, min_ns), 0);
}

void offcpu_measure(pid_t pid, uint64_t handler, uint64_t min_ns)
{
	struct host_engine_target t = { handler, 10 * NS_PER_MS, SIGPROF, OWN_SIGNAL };

	assert_int_equal(host_engine_set(seen.host, pid, &t), 0);
	assert_int_equal(offcpu_engine_set(seen.engine, pid, 0, min_ns), 0);
}

uint64_t offcpu_waits_over_budget(pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (seen.engine->entries[i].pid == pid)
			return offcpu_mapped(seen.engine, i)->parts[OFFCPU_WAITS].over_budget;
	return UINT64_MAX;
}

void offcpu_counts_add_up(pid_t pid)
{
	struct offcpu_minimums minimums[OFFCPU_PARTS];
	struct offcpu_counts c;
	int status;

	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_true(offcpu_engine_target(seen.engine, pid, &c, minimums));
	assert_int_equal(c.intervals,
			 c.signalled + c.over_budget + c.unreachable + c.unneeded + c.lost);
	kill(pid, SIGCONT);
}

void offcpu_look_up(void *userdata, const struct offcpu_times *t)
{
	struct offcpu_lookup *l = userdata;

	l->wrong += sum_of(t) != t->to_ns - t->from_ns;
	if (t->tid != l->tid)
		return;
	l->times = *t;
	l->n++;
}

struct offcpu_times offcpu_times_of(pid_t pid, uint32_t tid)
{
	struct offcpu_lookup l = { .tid = tid };

	(void)offcpu_engine_threads(seen.engine, pid, offcpu_look_up, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.wrong, 0);
	return l.times;
}

static bool is_within(const struct offcpu_interval *v, const struct wait *w)
{
	return v->end_ns - v->duration_ns + CLOCKS_APART_NS >= w->begin_ns &&
	       v->end_ns <= w->end_ns + CLOCKS_APART_NS;
}

const struct offcpu_interval *offcpu_interval_in(uint32_t tid, const struct wait *w)
{
	const struct offcpu_interval *longest = NULL;

	for (unsigned i = 0; i < seen.n; i++) {
		const struct offcpu_interval *v = &seen.intervals[i];

		if (v->tid == tid && is_within(v, w) &&
		    (!longest || v->duration_ns > longest->duration_ns))
			longest = v;
	}
	return longest;
}

unsigned offcpu_threads_of(pid_t pid)
{
	return offcpu_engine_threads(seen.engine, pid, offcpu_look_up,
				     &(struct offcpu_lookup){ 0 });
}

bool offcpu_engines_shared(void)
{
	const char *of_parent = getenv("WORDS_FD");
	int fd = of_parent ? atoi(of_parent) : memfd_create("words", 0);
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	setenv("WORDS_FD", number, 1);
	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
		return false;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return shared != MAP_FAILED;
}

bool offcpu_cookie_came(uint32_t tid, uint64_t off_ns)
{
	bool is_own = offcpu_engine_way(seen.engine) == OFFCPU_BY_OWN_SIGNAL;

	if (is_own)
		off_ns = HOST_COOKIE_OFFCPU_UNKNOWN_NS;
	for (uint32_t i = 0; i < shared->n_cookies && i < COOKIES_MAX; i++)
		if (shared->cookies[i].tid == tid &&
		    host_cookie_is_offcpu(shared->cookies[i].cookie) &&
		    host_cookie_off_ns(shared->cookies[i].cookie) == off_ns) {
			if (is_own)
				shared->cookies[i].tid = 0;
			return true;
		}
	return false;
}

bool offcpu_stay_came(const struct offcpu_interval *v)
{
	for (unsigned i = 0; i < seen.n; i++)
		if (seen.intervals[i].tid == v->tid && seen.intervals[i].stay_ns == v->stay_ns &&
		    offcpu_cookie_came(v->tid, seen.intervals[i].duration_ns))
			return true;
	return false;
}
