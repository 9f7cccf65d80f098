/* See offcpu_engine.h. */
#include "daemon/bpf/offcpu_engine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/bpf/bpf_priv.h"
#include "daemon/bpf/offcpu_engine_priv.h"
#include "daemon/ground/clock.h"
#include "offcpu.skel.h"

#define SIGNALS_PER_S_MIN 50
#define SIGNALS_PER_S_MAX 5000
#define BUDGET_NS	  (NS_PER_S / 100) /* per second, for signals: 1 % of a CPU */
#define WALK_NS		  10000 /* estimated cost of a signal in the agent */

/* ---- targets --------------------------------------------------------------------------------- */

static struct offcpu_entry *offcpu_find(struct offcpu_engine *e, pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid == pid)
			return &e->entries[i];
	return NULL;
}

void offcpu_update_shares(struct offcpu_engine *e)
{
	uint64_t ns = UINT64_MAX, own = e->programs.bpf->bss->shared_max, part;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_target *m = offcpu_mapped(e, i);

		if (!e->entries[i].pid)
			continue;
		part = offcpu_tenants_part(&e->tenants, m->tenant, own);
		m->parts[OFFCPU_QUEUED].own_max = part / OFFCPU_QUEUED_PART;
		m->parts[OFFCPU_WAITS].own_max = part - part / OFFCPU_QUEUED_PART;
		for (int k = 0; k < OFFCPU_PARTS; k++)
			if (m->parts[k].min_ns < ns)
				ns = m->parts[k].min_ns;
	}
	e->programs.bpf->bss->floor_ns = ns;
	offcpu_tenants_share(&e->tenants, &e->programs, e->threads_max);
}

void offcpu_started(struct offcpu_engine *e)
{
	uint64_t begin_ns = clock_mono_ns();

	offcpu_threads_add(&e->programs);
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid && e->entries[i].is_new && !e->entries[i].stopped)
			offcpu_mark(&e->programs, e->entries[i].pid, true);
	e->starts_ns += clock_mono_ns() - begin_ns;
}

int offcpu_start(struct offcpu_engine *e, size_t i)
{
	struct offcpu_target *m = offcpu_mapped(e, i);
	__u32 pid = (__u32)e->entries[i].pid, index = (__u32)i;

	e->entries[i].is_new = true;
	m->since_ns = clock_mono_ns();
	if (bpf_map_update_elem(bpf_map__fd(e->programs.bpf->maps.indexes), &pid, &index, BPF_ANY) <
	    0)
		return -errno;
	e->entries[i].stopped = false;
	__atomic_store_n(&m->pid, pid, __ATOMIC_RELEASE);
	return 0;
}

void offcpu_stop(struct offcpu_engine *e, size_t i)
{
	__u32 pid = (__u32)e->entries[i].pid;

	e->entries[i].stopped = true;
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
	*entry = (struct offcpu_entry){ .pid = pid, .tenant = tenant, .stopped = true };
	(void)clock_process_cpu_ns(pid, &entry->used_ns);
	*offcpu_mapped(e, i) = (struct offcpu_target){
		.tenant = offcpu_tenants_join(&e->tenants, &e->programs, tenant),
	};
	offcpu_begin_target(e, i, min_ns);
	e->n++;
	offcpu_update_shares(e);
	if (e->cost.resting)
		return 0;
	r = offcpu_attach(&e->programs);
	if (r == 0)
		r = offcpu_start(e, i);
	if (r == 0)
		offcpu_started(e);
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
		offcpu_begin_target(e, (size_t)(entry - e->entries), min_ns);
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
	to->spared += t->spared;
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
	struct offcpu_thread *t = offcpu_threads_find(&e->programs, pid, host_tid);

	if (t && t->bare_stacks < OFFCPU_BARE_STACKS_ENOUGH)
		t->bare_stacks++;
}

void offcpu_engine_idle_habit(struct offcpu_engine *e, pid_t pid, uint32_t host_tid,
			      enum offcpu_class class, bool always, uint64_t end_ns)
{
	struct offcpu_thread *t = offcpu_threads_find(&e->programs, pid, host_tid);

	/* while signals are not short, a record of another wait, which has the habit's reason too,
	 * is worse than a signal */
	if (!t || (!always && e->entries[t->target].minimum.spares < OFFCPU_SPARES_LONG))
		return;
	t->idle_class = class;
	__atomic_store_n(&t->idle_ns, end_ns, __ATOMIC_RELEASE);
}

void offcpu_engine_waits_for_work(struct offcpu_engine *e, pid_t pid, uint32_t host_tid,
				  uint64_t end_ns)
{
	struct offcpu_thread *t = offcpu_threads_find(&e->programs, pid, host_tid);

	if (!t || t->idle_ns || e->entries[t->target].minimum.spares < OFFCPU_SPARES_LONG)
		return;
	t->idle_class = OFFCPU_FUTEX;
	__atomic_store_n(&t->idle_ns, end_ns, __ATOMIC_RELEASE);
}

void offcpu_engine_told_habit(struct offcpu_engine *e, pid_t pid, uint32_t host_tid,
			      uint64_t end_ns)
{
	struct offcpu_thread *t = offcpu_threads_find(&e->programs, pid, host_tid);
	uint32_t told = (uint32_t)(end_ns >> OFFCPU_TOLD_SHIFT);

	if (t)
		__atomic_store_n(&t->told, told, __ATOMIC_RELEASE);
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
		.throttled_ns = (uint64_t)r->throttled_us * 1000,
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
	const struct offcpu_thread *t;
	struct offcpu_thread copy;
	struct offcpu_times times;
	unsigned n = 0;
	uint32_t at = 0;

	while ((t = offcpu_threads_next(&e->programs, &at))) {
		if ((pid && t->pid != (uint32_t)pid) || !offcpu_threads_copy(t, &copy))
			continue;
		offcpu_threads_times(&copy, clock_mono_ns(), &times);
		fn(userdata, &times);
		n++;
	}
	return n;
}

enum offcpu_way offcpu_engine_way(const struct offcpu_engine *e)
{
	return e->way;
}

/* ---- state ----------------------------------------------------------------------------------- */

static void offcpu_longest(struct offcpu_minimums *longest, const struct offcpu_minimums *m)
{
	if (m->record_ns > longest->record_ns)
		longest->record_ns = m->record_ns;
	if (m->signal_ns > longest->signal_ns)
		longest->signal_ns = m->signal_ns;
	longest->samples |= m->samples;
}

void offcpu_engine_state(const struct offcpu_engine *e, struct offcpu_state *ret)
{
	*ret = (struct offcpu_state){
		.way = e->way,
		.syscall_exits = e->programs.syscall_exits,
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
		for (int part = 0; part < OFFCPU_PARTS; part++)
			offcpu_longest(&ret->minimums[part], &e->entries[i].minimum.now[part]);
		ret->resting_targets += !e->cost.resting && e->entries[i].stopped;
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
			  struct offcpu_minimums ret_minimums[OFFCPU_PARTS])
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		if (pid <= 0 || e->entries[i].pid != pid)
			continue;
		*ret = (struct offcpu_counts){ 0 };
		offcpu_add_counts(offcpu_mapped(e, i), ret);
		memcpy(ret_minimums, e->entries[i].minimum.now, sizeof(e->entries[i].minimum.now));
		return true;
	}
	return false;
}

uint64_t offcpu_engine_without_slot(const struct offcpu_engine *e, pid_t pid)
{
	uint64_t n = 0;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid && (!pid || e->entries[i].pid == pid))
			n += e->entries[i].without_slot;
	return n;
}

enum offcpu_spares offcpu_engine_spares(const struct offcpu_engine *e, pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (pid > 0 && e->entries[i].pid == pid)
			return e->entries[i].minimum.spares;
	return OFFCPU_SPARES_NOTHING;
}

uint64_t offcpu_engine_spared_ns(const struct offcpu_engine *e, pid_t pid)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (pid > 0 && e->entries[i].pid == pid)
			return e->entries[i].minimum.spares < OFFCPU_SPARES_RECORDS ||
					       e->entries[i].stopped
				       ? 0
				       : e->entries[i].minimum.now[OFFCPU_WAITS].record_ns;
	return 0;
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

void offcpu_engine_follow_price(struct offcpu_engine *e)
{
	e->follows_price = true;
}

int offcpu_engine_new(struct host_engine *host, uint64_t signals_per_s, bool syscall_exits,
		      struct offcpu_engine **ret, char *why)
{
	return offcpu_engine_new_by(host, offcpu_best_way(host), signals_per_s, syscall_exits, ret,
				    why);
}

int offcpu_engine_new_by(struct host_engine *host, enum offcpu_way way, uint64_t signals_per_s,
			 bool syscall_exits, struct offcpu_engine **ret, char *why)
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
	e->way = way;
	e->programs.syscall_exits = syscall_exits && way != OFFCPU_BY_TASK_WORK;
	r = offcpu_load(host, e->way, &e->programs, why);
	if (r < 0)
		return r;
	e->threads_max = e->programs.n_threads;
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
