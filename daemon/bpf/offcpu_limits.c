/* What the off-CPU engine may cost: its signals, the minimums of targets, and rests. Each tick
 * measures the second before. See offcpu_engine.h. */
#include "daemon/bpf/offcpu_engine_priv.h"

#include <stdio.h>
#include <sys/stat.h>
#include "daemon/ground/clock.h"
#include "offcpu.skel.h"

#define WINDOW_NS  (1ULL << 27) /* as WINDOW_SHIFT of offcpu_signals.bpf.h */
/* A record without a signal costs the kernel and the daemon a part of what a signal costs. There
 * may be more in one window, because many threads go on at the same time after a pause. */
#define RECORDS_PER_SIGNAL 2
#define RECORDS_IN_BURST   8

/* signals in a second whose mean price is a measure */
#define PRICED_SIGNALS 20

/* estimated cost of calling a program that finds nothing to do: what an empty one adds to a switch,
 * measured by tests/bench/switches.c */
#define CALL_NS 100

/* ---- signals and minimums -------------------------------------------------------------------- */

uint64_t offcpu_per_window(uint64_t per_s)
{
	return per_s * WINDOW_NS / NS_PER_S + 1;
}

/* In one window, of @per_s records in a second. */
static uint64_t offcpu_records_per_window(uint64_t per_s, bool samples)
{
	return offcpu_per_window(per_s / RECORDS_PER_SIGNAL) *
	       (samples ? RECORDS_PER_SIGNAL : RECORDS_IN_BURST);
}

/* Tells the programs what a target may have in the next second. */
static void offcpu_allow_target(struct offcpu_engine *e, size_t i)
{
	const struct offcpu_minimum *minimum = &e->entries[i].minimum;
	struct offcpu_target *m = offcpu_mapped(e, i);
	struct offcpu_quota *waits = &m->parts[OFFCPU_WAITS], *queued = &m->parts[OFFCPU_QUEUED];

	waits->signals_max = m->signals_max = offcpu_per_window(e->signals_now_per_s);
	waits->records_max = m->records_max = offcpu_records_per_window(
		e->signals_per_s * RECORDS_PER_SIGNAL, minimum->now[OFFCPU_WAITS].samples);
	queued->signals_max = offcpu_per_window(minimum->queued.signals);
	queued->records_max = offcpu_records_per_window(minimum->queued.records,
							minimum->now[OFFCPU_QUEUED].samples);
	for (int part = 0; part < OFFCPU_PARTS; part++) {
		m->parts[part].signal_min_ns = minimum->now[part].signal_ns;
		m->parts[part].min_ns = minimum->now[part].record_ns;
	}
	m->spares = minimum->spares;
	m->habit_ns = minimum->habit_ns;
}

static struct offcpu_allowance offcpu_allowance_of(const struct offcpu_engine *e, size_t i)
{
	return (struct offcpu_allowance){
		.own_signals = offcpu_tenants_part(&e->tenants, offcpu_mapped(e, i)->tenant,
						   e->all_signals_now_per_s / 2),
		.signals = e->signals_now_per_s,
		.records = e->signals_per_s * RECORDS_PER_SIGNAL,
	};
}

void offcpu_begin_target(struct offcpu_engine *e, size_t i, uint64_t min_ns)
{
	const struct offcpu_allowance allowed = offcpu_allowance_of(e, i);

	offcpu_minimum_begin(&e->entries[i].minimum, min_ns, &allowed);
	offcpu_allow_target(e, i);
}

static void offcpu_tick_target(struct offcpu_engine *e, size_t i)
{
	const struct offcpu_allowance allowed = offcpu_allowance_of(e, i);
	struct offcpu_entry *entry = &e->entries[i];
	const struct offcpu_target *m = offcpu_mapped(e, i);
	struct offcpu_signal_counts counts = {
		.spared = m->spared,
		.asked = m->asked,
		.unasked = m->unasked,
	};

	for (int part = 0; part < OFFCPU_PARTS; part++)
		counts.parts[part] = (struct offcpu_part_counts){
			.intervals = m->parts[part].intervals,
			.signalled = m->parts[part].signalled,
			.over_budget = m->parts[part].over_budget,
		};
	if (entry->stopped)
		return;
	if (entry->is_new)
		offcpu_threads_prune(&e->programs, entry->pid);
	entry->is_new = false;
	offcpu_minimum_tick(&entry->minimum, &counts, &allowed);
	offcpu_allow_target(e, i);
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

/* ---- cost ----------------------------------------------------------------------------------- */

/* What a target cost, by the timed runs and its signals. Sets how much that is of the time of all
 * CPUs, and whether it is too much for itself. */
static void offcpu_measure_target(struct offcpu_engine *e, size_t i, uint64_t tick_ns)
{
	struct offcpu_entry *entry = &e->entries[i];
	const struct offcpu_target *m = offcpu_mapped(e, i);
	uint64_t timed_ns = m->timed_ns, used_ns = entry->used_ns;
	uint64_t own_ns = (timed_ns - entry->timed_ns) * OFFCPU_COST_EVERY;
	uint64_t signals_ns = (m->signalled - entry->signalled) * e->signal_price_ns;
	double all_ns = (double)tick_ns * (double)e->n_cpus;

	(void)clock_process_cpu_ns(entry->pid, &used_ns);
	entry->cost_ppm = (uint64_t)((double)(own_ns + signals_ns) * 1e6 / all_ns);
	offcpu_cost_own(&entry->own, tick_ns, used_ns - entry->used_ns, own_ns);
	entry->timed_ns = timed_ns;
	entry->signalled = m->signalled;
	entry->used_ns = used_ns;
}

static void offcpu_measure_targets(struct offcpu_engine *e, uint64_t tick_ns)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid)
			offcpu_measure_target(e, i, tick_ns);
}

void offcpu_allow_signals(struct offcpu_engine *e, uint64_t all_per_s)
{
	e->all_signals_now_per_s = all_per_s;
	e->signals_now_per_s = all_per_s < e->signals_per_s ? all_per_s : e->signals_per_s;
	e->programs.bpf->bss->shared_max = offcpu_per_window(all_per_s) / 2;
}

/* Sets how many signals 1 % of a CPU pays for, by what those of the last seconds cost. */
static void offcpu_follow_price(struct offcpu_engine *e, uint64_t signals)
{
	if (!e->follows_price || signals < PRICED_SIGNALS)
		return;
	e->mean_price_ns = e->mean_price_ns ? (7 * e->mean_price_ns + e->signal_price_ns) / 8
					    : e->signal_price_ns;
	e->signals_per_s = offcpu_engine_affordable(e->mean_price_ns);
}

/* What the rest of the work cost decides how many signals there may be. */
static void offcpu_budget_signals(struct offcpu_engine *e, uint64_t signals, uint64_t signals_ns,
				  uint64_t rest_ppm)
{
	uint64_t most;

	if (signals)
		e->signal_price_ns = signals_ns / signals;
	offcpu_follow_price(e, signals);
	most = e->signals_per_s * (uint64_t)e->n_cpus;
	/* few runs are timed: the mean of some seconds */
	e->rest_ppm = (3 * e->rest_ppm + rest_ppm) / 4;
	offcpu_allow_signals(
		e, offcpu_cost_signals(e->rest_ppm, e->signal_price_ns, (unsigned)e->n_cpus, most));
}

/* How many programs run at a switch at most: at the switch itself, at the wake-up before it, and on
 * the way back to user mode. */
static unsigned offcpu_calls(const struct offcpu_engine *e)
{
	return 1 + !e->programs.no_wakers + (e->way != OFFCPU_BY_TASK_WORK);
}

/* Estimates the cost from the timed runs, the signals and the number of switches. */
static void offcpu_measure(struct offcpu_engine *e)
{
	const struct offcpu_bpf__bss *bss = e->programs.bpf->bss;
	uint64_t now = clock_mono_ns(), ctxt = offcpu_read_switches(), timed_ns = bss->timed_ns;
	uint64_t signals = bss->signals, signals_ns = bss->signals_ns, rest_ns, all_ns, ns;

	if (e->tick_ns && now > e->tick_ns && ctxt >= e->ctxt) {
		all_ns = (now - e->tick_ns) * (uint64_t)e->n_cpus;
		rest_ns = (timed_ns - e->timed_ns) * OFFCPU_COST_EVERY +
			  (ctxt - e->ctxt) * offcpu_calls(e) * CALL_NS;
		e->switches_per_s =
			(uint64_t)((double)(ctxt - e->ctxt) * 1e9 / (double)(now - e->tick_ns));
		offcpu_measure_targets(e, now - e->tick_ns);
		ns = rest_ns + signals_ns - e->signals_ns + e->starts_ns;
		e->cost_ppm = (uint64_t)((double)ns * 1e6 / (double)all_ns);
		offcpu_budget_signals(e, signals - e->signals, signals_ns - e->signals_ns,
				      (uint64_t)((double)rest_ns * 1e6 / (double)all_ns));
	}
	e->tick_ns = now;
	e->ctxt = ctxt;
	e->timed_ns = timed_ns;
	e->signals = signals;
	e->signals_ns = signals_ns;
	e->starts_ns = 0;
}

/* ---- rests ---------------------------------------------------------------------------------- */

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

/* Those that cost more than a limit of their own. */
static void offcpu_rest_own(struct offcpu_engine *e)
{
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid && e->entries[i].own.resting && !e->entries[i].stopped)
			offcpu_stop(e, i);
}

static void offcpu_end_rests(struct offcpu_engine *e)
{
	bool some = false;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_entry *entry = &e->entries[i];

		if (!entry->pid || !entry->stopped)
			continue;
		entry->left_ppm = offcpu_cost_pay(entry->debt_ppm, entry->left_ppm, e->cost_ppm);
		if (!entry->left_ppm && !entry->own.resting)
			some |= offcpu_start(e, i) == 0;
	}
	if (some)
		offcpu_started(e);
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
		e->entries[i].left_ppm = 0;
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

		if (!entry->pid)
			continue;
		if (entry->stopped)
			entry->rested_ns = now_ns;
		entry->ticks = entry->ticks << 1 | !entry->stopped;
		entry->n_ticks++;
	}
}

/* ---- room in the table of threads ------------------------------------------------------------ */

/* The number of links of the folder tells it: fs/proc/base.c, proc_task_getattr(). */
static uint32_t offcpu_threads_of(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return stat(path, &st) == 0 && st.st_nlink > 2 ? (uint32_t)st.st_nlink - 2 : 0;
}

/* Counts the threads without a slot, of targets of which one found none since the last tick. */
static void offcpu_count_without_slot(struct offcpu_engine *e)
{
	uint32_t slots[OFFCPU_TARGETS_MAX] = { 0 };
	bool counted = false;

	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++) {
		struct offcpu_entry *entry = &e->entries[i];
		uint64_t crowded = offcpu_mapped(e, i)->crowded;
		uint32_t threads;

		if (!entry->pid || (crowded == entry->crowded && !entry->without_slot))
			continue;
		if (!counted)
			offcpu_threads_count(&e->programs, slots);
		counted = true;
		threads = entry->stopped ? 0 : offcpu_threads_of(entry->pid);
		entry->without_slot = threads > slots[i] ? threads - slots[i] : 0;
		entry->crowded = crowded;
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
	if (!e->cost.resting) {
		offcpu_end_rests(e);
		offcpu_rest_own(e);
	}
	for (size_t i = 0; i < OFFCPU_TARGETS_MAX; i++)
		if (e->entries[i].pid && !e->cost.resting)
			offcpu_tick_target(e, i);
	offcpu_update_shares(e);
	offcpu_limit_cost(e);
	offcpu_note_reduced(e);
	offcpu_note_rests(e);
	offcpu_count_without_slot(e);
}
