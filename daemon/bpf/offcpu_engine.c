/* See offcpu_engine.h. */
#include "daemon/bpf/offcpu_engine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/bpf/bpf_priv.h"
#include "daemon/bpf/offcpu_cost.h"
#include "daemon/bpf/offcpu_minimum.h"
#include "daemon/bpf/offcpu_priv.h"
#include "daemon/bpf/offcpu_tenants.h"
#include "daemon/ground/clock.h"
#include "offcpu.skel.h"

#define WINDOW_NS	  (1ULL << 27) /* as WINDOW_SHIFT of offcpu_signals.bpf.h */
#define COST_EVERY	  64 /* as in offcpu.bpf.c */
#define SIGNALS_PER_S_MIN 50
#define SIGNALS_PER_S_MAX 5000
#define BUDGET_NS	  (NS_PER_S / 100) /* per second, for signals: 1 % of a CPU */
#define WALK_NS		  10000 /* estimated cost of a signal in the agent */
#define STARTS_NS	  (50 * NS_PER_MS) /* per tick, for the threads of targets that go on */

/* estimated cost of calling a program that finds nothing to do: what an empty one adds to a switch,
 * measured by tests/bench/switches.c */
#define CALL_NS 100

/* The daemon's own data of a target; the mapped table has the rest at the same index. */
struct offcpu_entry {
	pid_t pid; /* 0 = free */
	uint64_t tenant;
	struct offcpu_minimum minimum;
	bool is_new; /* since the last tick */
	uint64_t timed_ns, cost_ppm; /* at the last tick */
	/* It rests for as long as left_ppm is not 0; see offcpu_cost_pay(). */
	uint64_t debt_ppm, left_ppm;
	uint64_t starts_ns; /* since the last tick: what it took to read its threads */
	uint64_t ticks; /* the last 64, the latest in bit 0: set = it was measured */
	unsigned n_ticks; /* since it is a target */
	uint64_t rested_ns; /* the last tick at which it rested; 0 = none */
};

struct offcpu_engine {
	struct offcpu_programs programs;
	enum offcpu_way way;
	struct offcpu_entry entries[OFFCPU_TARGETS_MAX];
	unsigned n;
	struct offcpu_tenants tenants;
	uint64_t threads_max; /* slots of the table of threads */
	/* at most: of one target and of all, as it was asked for; and what their cost allows now */
	uint64_t signals_per_s;
	uint64_t signals_now_per_s, all_signals_now_per_s;
	long n_cpus;
	struct ring_buffer *ring;
	offcpu_interval_fn *on_interval;
	offcpu_times_fn *on_end;
	void *userdata;
	struct offcpu_counts gone; /* of removed targets */
	/* cost of the programs */
	uint64_t tick_ns, ctxt, timed_ns, signals, signals_ns;
	uint64_t switches_per_s, cost_ppm, rest_ppm;
	uint64_t signal_price_ns; /* the latest; 0 = none was sent yet */
	uint64_t learnt_ns; /* since the last tick: what offcpu_learn() took */
	struct offcpu_cost cost;
	uint64_t reduced_since_ns;
	uint64_t rested_ns; /* the last tick at which all rested; 0 = none */
};

/* ---- targets --------------------------------------------------------------------------------- */

static struct offcpu_target *offcpu_mapped(const struct offcpu_engine *e, size_t i)
{
	return &e->programs.targets[i];
}

static struct offcpu_entry *offcpu_find(struct offcpu_engine *e, pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid == pid)
			return &e->entries[i];
	return NULL;
}

static bool offcpu_rests(const struct offcpu_entry *entry)
{
	return entry->left_ppm > 0;
}

static uint64_t offcpu_per_window(uint64_t per_s)
{
	return per_s * WINDOW_NS / NS_PER_S + 1;
}

/* Tells the programs the shortest minimum of all targets, because they ignore what is shorter, and
 * what each target and tenant has for itself. */
static void offcpu_update_shares(struct offcpu_engine *e)
{
	uint64_t ns = UINT64_MAX, own = e->programs.bpf->bss->shared_max;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_target *m = offcpu_mapped(e, i);

		if (!e->entries[i].pid)
			continue;
		if (m->min_ns < ns)
			ns = m->min_ns;
		m->own_max = offcpu_tenants_part(&e->tenants, m->tenant, own);
	}
	e->programs.bpf->bss->floor_ns = ns;
	offcpu_tenants_share(&e->tenants, &e->programs, e->threads_max);
}

/* After the start of some targets. */
static void offcpu_learn(struct offcpu_engine *e)
{
	uint64_t begin_ns = clock_mono_ns();

	offcpu_learn_sleeps(&e->programs);
	e->learnt_ns += clock_mono_ns() - begin_ns;
}

/* Starts measuring the target at index @i; offcpu_learn() has to follow. */
static int offcpu_start(struct offcpu_engine *e, size_t i)
{
	struct offcpu_target *m = offcpu_mapped(e, i);
	__u32 pid = (__u32)e->entries[i].pid, index = (__u32)i;
	uint64_t begin_ns = clock_mono_ns();

	e->entries[i].is_new = true;
	m->since_ns = begin_ns;
	if (bpf_map_update_elem(bpf_map__fd(e->programs.bpf->maps.indexes), &pid, &index, BPF_ANY) <
	    0)
		return -errno;
	__atomic_store_n(&m->pid, pid, __ATOMIC_RELEASE);
	offcpu_threads_add(&e->programs, (pid_t)pid, (uint16_t)i, m->since_ns);
	offcpu_mark(&e->programs, (pid_t)pid, true);
	e->entries[i].starts_ns += clock_mono_ns() - begin_ns;
	return 0;
}

static void offcpu_stop(struct offcpu_engine *e, size_t i)
{
	__u32 pid = (__u32)e->entries[i].pid;

	offcpu_mark(&e->programs, (pid_t)pid, false);
	(void)bpf_map_delete_elem(bpf_map__fd(e->programs.bpf->maps.indexes), &pid);
	__atomic_store_n(&offcpu_mapped(e, i)->pid, 0, __ATOMIC_RELEASE);
	offcpu_threads_drop(&e->programs, (pid_t)pid);
}

static int offcpu_add(struct offcpu_engine *e, pid_t pid, uint64_t tenant, uint64_t min_ns)
{
	struct offcpu_entry *entry = offcpu_find(e, 0);
	size_t i;
	int r;

	if (!entry)
		return -ENOSPC;
	i = (size_t)(entry - e->entries);
	*entry = (struct offcpu_entry){ .pid = pid,
					.tenant = tenant,
					.minimum.asked_ns = min_ns };
	*offcpu_mapped(e, i) = (struct offcpu_target){
		.tenant = offcpu_tenants_join(&e->tenants, &e->programs, tenant),
		.min_ns = min_ns,
		.signals_max = offcpu_per_window(e->signals_now_per_s),
	};
	e->n++;
	offcpu_update_shares(e);
	if (e->cost.resting)
		return 0;
	r = offcpu_attach(&e->programs);
	if (r == 0)
		r = offcpu_start(e, i);
	if (r == 0)
		offcpu_learn(e);
	if (r < 0)
		offcpu_engine_remove(e, pid);
	return r;
}

int offcpu_engine_set(struct offcpu_engine *e, pid_t pid, uint64_t tenant, uint64_t min_ns)
{
	struct offcpu_entry *entry;

	if (pid <= 0 || min_ns < OFFCPU_MIN_NS_LEAST)
		return -EINVAL;
	entry = offcpu_find(e, pid);
	if (!entry)
		return offcpu_add(e, pid, tenant, min_ns);
	if (entry->minimum.asked_ns != min_ns) {
		entry->minimum.asked_ns = min_ns;
		offcpu_mapped(e, (size_t)(entry - e->entries))->min_ns = min_ns;
		offcpu_update_shares(e);
	}
	return 0;
}

static void offcpu_add_counts(const struct offcpu_target *t, struct offcpu_counts *to)
{
	to->intervals += t->intervals;
	to->interval_ns += t->interval_ns;
	to->signalled += t->signalled;
	to->signalled_ns += t->signalled_ns;
	to->over_budget += t->over_budget;
	to->over_budget_ns += t->over_budget_ns;
	to->unreachable += t->unreachable;
	to->unreachable_ns += t->unreachable_ns;
	to->unneeded += t->unneeded;
	to->unneeded_ns += t->unneeded_ns;
	to->lost += t->lost;
	to->lost_ns += t->lost_ns;
	to->crowded += t->crowded;
}

void offcpu_engine_remove(struct offcpu_engine *e, pid_t pid)
{
	struct offcpu_entry *entry = pid > 0 ? offcpu_find(e, pid) : NULL;
	size_t i;

	if (!entry)
		return;
	i = (size_t)(entry - e->entries);
	offcpu_stop(e, i);
	offcpu_add_counts(offcpu_mapped(e, i), &e->gone);
	offcpu_tenants_leave(&e->tenants, offcpu_mapped(e, i)->tenant);
	entry->pid = 0;
	e->n--;
	offcpu_update_shares(e);
	if (!e->n)
		offcpu_detach(&e->programs);
}

void offcpu_engine_bare_stack(struct offcpu_engine *e, pid_t pid, uint32_t host_tid)
{
	offcpu_threads_bare_stack(&e->programs, pid, host_tid);
}

/* ---- records --------------------------------------------------------------------------------- */

static void offcpu_on_interval(struct offcpu_engine *e, const struct offcpu_record *r, size_t size)
{
	size_t head = offsetof(struct offcpu_record, ips);
	struct offcpu_interval i = {
		.pid = (pid_t)r->pid,
		.tid = r->own_tid,
		.host_tid = r->tid,
		.end_ns = r->end_ns,
		.duration_ns = r->duration_ns,
		.runqueue_ns = r->runqueue_ns,
		.stay_ns = r->stay_ns,
		.waker_pid = r->waker_pid,
		.waker_tid = r->waker_tid,
		.waker_own_tid = r->waker_own_tid,
		.syscall_nr = r->syscall_nr,
		.class = r->class < OFFCPU_CLASS_COUNT ? (enum offcpu_class)r->class : OFFCPU_OTHER,
		.state = (char)r->state,
		.flags = r->flags,
	};

	e->on_interval(e->userdata, &i, (const uint64_t *)r->ips,
		       (unsigned)((size - head) / sizeof(r->ips[0])));
}

static int offcpu_on_record(void *userdata, void *data, size_t size)
{
	struct offcpu_engine *e = userdata;
	const struct offcpu_record *r = data;
	const struct offcpu_end *end = data;
	struct offcpu_times times;

	if (size >= offsetof(struct offcpu_record, ips) && r->kind == OFFCPU_INTERVAL &&
	    e->on_interval) {
		offcpu_on_interval(e, r, size);
	} else if (size >= sizeof(*end) && end->kind == OFFCPU_ENDED && e->on_end) {
		offcpu_threads_times(&end->thread, end->thread.since_ns, &times);
		times.ended = true;
		e->on_end(e->userdata, &times);
	}
	return 0;
}

int offcpu_engine_fd(const struct offcpu_engine *e)
{
	return ring_buffer__epoll_fd(e->ring);
}

void offcpu_engine_listen(struct offcpu_engine *e, offcpu_interval_fn *on_interval,
			  offcpu_times_fn *on_end, void *userdata)
{
	e->on_interval = on_interval;
	e->on_end = on_end;
	e->userdata = userdata;
}

void offcpu_engine_limit_threads(struct offcpu_engine *e, uint64_t max)
{
	e->threads_max = max;
	offcpu_update_shares(e);
}

void offcpu_engine_drain(struct offcpu_engine *e)
{
	(void)ring_buffer__consume(e->ring);
	__atomic_fetch_add(&e->programs.bpf->bss->drains, 1, __ATOMIC_SEQ_CST);
}

unsigned offcpu_engine_threads(const struct offcpu_engine *e, pid_t pid, offcpu_times_fn *fn,
			       void *userdata)
{
	struct offcpu_thread copy;
	struct offcpu_times times;
	unsigned n = 0;

	for (size_t i = 0; i < OFFCPU_THREADS; i++) {
		const struct offcpu_thread *t = &e->programs.threads[i];

		if (!t->tid || (pid && t->pid != (uint32_t)pid) || !offcpu_threads_copy(t, &copy))
			continue;
		offcpu_threads_times(&copy, clock_mono_ns(), &times);
		fn(userdata, &times);
		n++;
	}
	return n;
}

/* ---- budgets --------------------------------------------------------------------------------- */

static void offcpu_tick_target(struct offcpu_engine *e, size_t i)
{
	struct offcpu_entry *entry = &e->entries[i];
	struct offcpu_target *m = offcpu_mapped(e, i);
	uint64_t own_per_s =
		offcpu_tenants_part(&e->tenants, m->tenant, e->all_signals_now_per_s / 2);

	if (offcpu_rests(entry))
		return;
	if (entry->is_new)
		offcpu_threads_prune(&e->programs, entry->pid);
	entry->is_new = false;
	m->signals_max = offcpu_per_window(e->signals_now_per_s);
	m->min_ns = offcpu_minimum_tick(&entry->minimum, m->min_ns, m->signalled, m->over_budget,
					own_per_s, e->signals_now_per_s);
}

static uint64_t offcpu_read_switches(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long long n = 0;
	char line[4096];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "ctxt %llu", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* What each target costs, of the time of all CPUs: by the timed runs, its signals, and the reading
 * of its threads at the end of a rest. Returns the sum of the last. */
static uint64_t offcpu_measure_targets(struct offcpu_engine *e, uint64_t all_ns)
{
	uint64_t starts_ns = 0;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_entry *entry = &e->entries[i];
		const struct offcpu_target *m = offcpu_mapped(e, i);
		uint64_t timed_ns = m->timed_ns, ns;

		if (!entry->pid)
			continue;
		ns = (timed_ns - entry->timed_ns) * COST_EVERY +
		     (m->signalled - entry->minimum.signalled) * e->signal_price_ns +
		     entry->starts_ns;
		entry->cost_ppm = (uint64_t)((double)ns * 1e6 / (double)all_ns);
		entry->timed_ns = timed_ns;
		starts_ns += entry->starts_ns;
		entry->starts_ns = 0;
	}
	return starts_ns;
}

/* Sets the numbers of signals for the next second. @all_per_s: of all targets. */
static void offcpu_allow_signals(struct offcpu_engine *e, uint64_t all_per_s)
{
	e->all_signals_now_per_s = all_per_s;
	e->signals_now_per_s = all_per_s < e->signals_per_s ? all_per_s : e->signals_per_s;
	e->programs.bpf->bss->shared_max = offcpu_per_window(all_per_s) / 2;
}

/* What the rest of the work cost decides how many signals there may be. */
static void offcpu_budget_signals(struct offcpu_engine *e, uint64_t signals, uint64_t signals_ns,
				  uint64_t rest_ppm)
{
	uint64_t most = e->signals_per_s * (uint64_t)e->n_cpus;

	if (signals)
		e->signal_price_ns = signals_ns / signals;
	/* few runs are timed: the mean of some seconds */
	e->rest_ppm = (3 * e->rest_ppm + rest_ppm) / 4;
	offcpu_allow_signals(e, offcpu_cost_signals(e->rest_ppm, e->signal_price_ns,
						    (unsigned)e->n_cpus, most));
}

/* How many programs run at a switch at most: at the switch itself, at the wake-up before it, and on the
 * way back to user mode. */
static unsigned offcpu_calls(const struct offcpu_engine *e)
{
	return 1 + !e->programs.no_wakers + (e->way == OFFCPU_BY_RSEQ);
}

/* Estimates the cost from the timed runs, the signals and the number of switches. */
static void offcpu_measure(struct offcpu_engine *e)
{
	const struct offcpu_bpf__bss *bss = e->programs.bpf->bss;
	uint64_t now = clock_mono_ns(), ctxt = offcpu_read_switches(), timed_ns = bss->timed_ns;
	uint64_t signals = bss->signals, signals_ns = bss->signals_ns, rest_ns, all_ns, ns;

	if (e->tick_ns && now > e->tick_ns && ctxt >= e->ctxt) {
		all_ns = (now - e->tick_ns) * (uint64_t)e->n_cpus;
		rest_ns = (timed_ns - e->timed_ns) * COST_EVERY +
			  (ctxt - e->ctxt) * offcpu_calls(e) * CALL_NS;
		e->switches_per_s =
			(uint64_t)((double)(ctxt - e->ctxt) * 1e9 / (double)(now - e->tick_ns));
		ns = rest_ns + signals_ns - e->signals_ns + e->learnt_ns +
		     offcpu_measure_targets(e, all_ns);
		e->cost_ppm = (uint64_t)((double)ns * 1e6 / (double)all_ns);
		offcpu_budget_signals(e, signals - e->signals, signals_ns - e->signals_ns,
				      (uint64_t)((double)rest_ns * 1e6 / (double)all_ns));
	}
	e->tick_ns = now;
	e->ctxt = ctxt;
	e->timed_ns = timed_ns;
	e->signals = signals;
	e->signals_ns = signals_ns;
	e->learnt_ns = 0;
}

/* If some targets cost more than their share only they rest; false = all have to. */
static bool offcpu_rest_costly(struct offcpu_engine *e)
{
	static struct offcpu_share shares[OFFCPU_TARGETS_MAX];
	uint64_t debt_ppm;
	unsigned n = 0;

	for (unsigned i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid)
			shares[n++] = (struct offcpu_share){ .index = i,
							     .tenant = e->entries[i].tenant,
							     .ppm = e->entries[i].cost_ppm };
	if (!offcpu_cost_choose(shares, n, e->cost_ppm))
		return false;
	debt_ppm = offcpu_cost_spare(&e->cost);
	for (const struct offcpu_share *s = shares; s < shares + n; s++) {
		struct offcpu_entry *entry = &e->entries[s->index];

		if (!s->rests)
			continue;
		offcpu_stop(e, s->index);
		entry->debt_ppm = entry->left_ppm = debt_ppm;
	}
	return true;
}

/* Those whose threads take long to read start at later ticks. */
static void offcpu_end_rests(struct offcpu_engine *e)
{
	const uint64_t until_ns = clock_mono_ns() + STARTS_NS;
	bool some = false;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_entry *entry = &e->entries[i];
		uint64_t left_ppm;

		if (!entry->pid || !offcpu_rests(entry))
			continue;
		left_ppm = offcpu_cost_pay(entry->debt_ppm, entry->left_ppm, e->cost_ppm);
		if (left_ppm) {
			entry->left_ppm = left_ppm;
		} else if (clock_mono_ns() < until_ns) {
			entry->left_ppm = 0;
			some |= offcpu_start(e, i) == 0;
		}
	}
	if (some)
		offcpu_learn(e);
}

static void offcpu_rest(struct offcpu_engine *e)
{
	offcpu_detach(&e->programs);
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid)
			offcpu_stop(e, i);
}

/* The kernel refused to attach programs: the next try is in a minute. */
static void offcpu_rest_refused(struct offcpu_engine *e)
{
	offcpu_cost_rest(&e->cost);
	offcpu_rest(e);
}

static void offcpu_resume(struct offcpu_engine *e)
{
	if (offcpu_attach(&e->programs) < 0) {
		offcpu_rest_refused(e);
		return;
	}
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid)
			e->entries[i].debt_ppm = e->entries[i].left_ppm = 1;
	offcpu_end_rests(e);
}

static void offcpu_limit_cost(struct offcpu_engine *e)
{
	enum offcpu_step step = offcpu_cost_tick(&e->cost, e->cost_ppm);

	e->programs.no_wakers = e->cost.no_wakers;
	if (step == OFFCPU_RESTS && offcpu_rest_costly(e))
		return;
	if (step == OFFCPU_WITHOUT_WAKERS)
		offcpu_detach_wakers(&e->programs);
	else if (step == OFFCPU_WITH_WAKERS && offcpu_attach(&e->programs) < 0)
		offcpu_rest_refused(e);
	else if (step == OFFCPU_RESTS)
		offcpu_rest(e);
	else if (step == OFFCPU_RESUMES)
		offcpu_resume(e);
}

static void offcpu_note_reduced(struct offcpu_engine *e)
{
	if (!e->cost.no_wakers && !e->cost.resting)
		e->reduced_since_ns = 0;
	else if (!e->reduced_since_ns)
		e->reduced_since_ns = clock_mono_ns();
}

static void offcpu_note_rests(struct offcpu_engine *e)
{
	uint64_t now_ns = clock_mono_ns();

	if (e->cost.resting)
		e->rested_ns = now_ns;
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_entry *entry = &e->entries[i];
		bool rests = e->cost.resting || offcpu_rests(entry);

		if (!entry->pid)
			continue;
		if (offcpu_rests(entry))
			entry->rested_ns = now_ns;
		entry->ticks = entry->ticks << 1 | !rests;
		entry->n_ticks++;
	}
}

void offcpu_engine_tick(struct offcpu_engine *e)
{
	if (!e->n) {
		e->tick_ns = 0;
		e->cost_ppm = e->rest_ppm = 0;
		e->cost.resting = false;
		e->cost.debt_ppm = 0;
		offcpu_allow_signals(e, e->signals_per_s * (uint64_t)e->n_cpus);
		offcpu_note_reduced(e);
		return;
	}
	offcpu_measure(e);
	if (!e->cost.resting)
		offcpu_end_rests(e);
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid && !e->cost.resting)
			offcpu_tick_target(e, i);
	offcpu_update_shares(e);
	offcpu_limit_cost(e);
	offcpu_note_reduced(e);
	offcpu_note_rests(e);
}

void offcpu_engine_state(const struct offcpu_engine *e, struct offcpu_state *ret)
{
	*ret = (struct offcpu_state){
		.way = e->way,
		.targets = e->n,
		.resting = e->cost.resting,
		.wakers = !e->programs.no_wakers,
		.reduced_since_ns = e->reduced_since_ns,
		.wakers_again_s = e->cost.no_wakers ? e->cost.pause_left : 0,
		.signals_per_s = e->signals_now_per_s,
		.all_signals_per_s = e->all_signals_now_per_s,
		.signal_price_ns = e->signal_price_ns,
		.switches_per_s = e->switches_per_s,
		.cost_ppm = e->cost.resting ? 0 : e->cost_ppm,
		.rests = e->cost.rests,
		.missed = e->programs.bpf->bss->missed,
		.ends_lost = e->programs.bpf->bss->ends_lost,
	};
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		if (!e->entries[i].pid)
			continue;
		if (offcpu_mapped(e, i)->min_ns > ret->min_ns)
			ret->min_ns = offcpu_mapped(e, i)->min_ns;
		ret->resting_targets += offcpu_rests(&e->entries[i]);
	}
}

void offcpu_engine_counts(const struct offcpu_engine *e, struct offcpu_counts *ret)
{
	*ret = e->gone;
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid)
			offcpu_add_counts(offcpu_mapped(e, i), ret);
}

bool offcpu_engine_target(const struct offcpu_engine *e, pid_t pid, struct offcpu_counts *ret,
			  uint64_t *ret_min_ns)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		if (pid <= 0 || e->entries[i].pid != pid)
			continue;
		*ret = (struct offcpu_counts){ 0 };
		offcpu_add_counts(offcpu_mapped(e, i), ret);
		*ret_min_ns = offcpu_mapped(e, i)->min_ns;
		return true;
	}
	return false;
}

unsigned offcpu_engine_measured(const struct offcpu_engine *e, pid_t pid, unsigned *ret_of)
{
	*ret_of = 0;
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		const struct offcpu_entry *entry = &e->entries[i];

		if (pid <= 0 || entry->pid != pid)
			continue;
		*ret_of = entry->n_ticks < OFFCPU_LAST_TICKS ? entry->n_ticks : OFFCPU_LAST_TICKS;
		return (unsigned)__builtin_popcountll(entry->ticks &
						      ((1ULL << OFFCPU_LAST_TICKS) - 1));
	}
	return 0;
}

uint64_t offcpu_engine_rested_ns(const struct offcpu_engine *e, pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (pid > 0 && e->entries[i].pid == pid && e->entries[i].rested_ns > e->rested_ns)
			return e->entries[i].rested_ns;
	return e->rested_ns;
}

/* ---- life cycle ------------------------------------------------------------------------------ */

uint64_t offcpu_engine_affordable(uint64_t price_ns)
{
	uint64_t n = BUDGET_NS / (price_ns + WALK_NS);

	if (n < SIGNALS_PER_S_MIN)
		return SIGNALS_PER_S_MIN;
	return n > SIGNALS_PER_S_MAX ? SIGNALS_PER_S_MAX : n;
}

int offcpu_engine_new(struct host_engine *host, uint64_t signals_per_s, struct offcpu_engine **ret,
		      char *why)
{
	CLEANUP(offcpu_engine_freep) struct offcpu_engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return bpf_refuse(ENOMEM, "open BPF program for off-CPU time", why,
				  OFFCPU_ENGINE_WHY_MAX);
	e->signals_per_s = signals_per_s;
	e->n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (e->n_cpus < 1)
		e->n_cpus = 1;
	e->threads_max = OFFCPU_THREADS;
	e->way = host_engine_puts_off(host) ? OFFCPU_BY_TASK_WORK : OFFCPU_BY_RSEQ;
	r = offcpu_load(host, e->way, &e->programs, why);
	if (r < 0)
		return r;
	offcpu_allow_signals(e, signals_per_s * (uint64_t)e->n_cpus);
	e->ring = ring_buffer__new(bpf_map__fd(e->programs.bpf->maps.records), offcpu_on_record, e,
				   NULL);
	if (!e->ring)
		return bpf_refuse(errno, "map BPF ring", why, OFFCPU_ENGINE_WHY_MAX);
	*ret = TAKE_PTR(e);
	return 0;
}

struct offcpu_engine *offcpu_engine_free(struct offcpu_engine *e)
{
	if (!e)
		return NULL;
	ring_buffer__free(e->ring);
	offcpu_unload(&e->programs);
	free(e);
	return NULL;
}
