/* Shared by the two files of the engine: who is measured (offcpu_engine.c), and what that may cost
 * (offcpu_limits.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "daemon/bpf/offcpu_cost.h"
#include "daemon/bpf/offcpu_minimum.h"
#include "daemon/bpf/offcpu_priv.h"
#include "daemon/bpf/offcpu_tenants.h"

/* The daemon's own data of a target; the mapped table has the rest at the same index. */
struct offcpu_entry {
	pid_t pid; /* 0 = free */
	uint64_t tenant;
	struct offcpu_minimum minimum;
	bool is_new; /* since the last tick */
	/* at the last tick; used_ns: its CPU time */
	uint64_t timed_ns, signalled, cost_ppm, used_ns;
	bool stopped; /* it rests, alone or with all others */
	uint64_t debt_ppm, left_ppm; /* of what all cost; see offcpu_cost_pay() */
	struct offcpu_own own;
	uint64_t ticks; /* the last 64, the latest in bit 0: set = it was measured */
	unsigned n_ticks; /* since it is a target */
	uint64_t rested_ns; /* the last tick at which it rested; 0 = none */
	/* at the last tick: how often one of its threads had found no slot, and how many have none
	 */
	uint64_t crowded;
	uint32_t without_slot;
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
	bool follows_price; /* signals_per_s follows mean_price_ns, a signal's of some seconds */
	uint64_t mean_price_ns; /* 0 = not measured yet */
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
	uint64_t starts_ns; /* since the last tick: what offcpu_started() took */
	struct offcpu_cost cost;
	uint64_t reduced_since_ns;
	uint64_t rested_ns; /* the last tick at which all rested; 0 = none */
};

static inline struct offcpu_target *offcpu_mapped(const struct offcpu_engine *e, size_t i)
{
	return &e->programs.targets[i];
}

/* Begins to measure the target at index @i; offcpu_started() has to follow. 0 or -errno. */
int offcpu_start(struct offcpu_engine *e, size_t i);
void offcpu_stop(struct offcpu_engine *e, size_t i);
/* After offcpu_start() of some targets: adds their threads. */
void offcpu_started(struct offcpu_engine *e);
/* Tells the programs the shortest minimum of all targets, because they ignore what is shorter, and
 * what each target and tenant has for itself. */
void offcpu_update_shares(struct offcpu_engine *e);
/* A number of signals per second, as one per window of the programs. */
uint64_t offcpu_per_window(uint64_t per_s);
/* Begins the minimums and numbers of a target anew. */
void offcpu_begin_target(struct offcpu_engine *e, size_t i, uint64_t min_ns);
/* Sets the numbers of signals for the next second. @all_per_s: of all targets. */
void offcpu_allow_signals(struct offcpu_engine *e, uint64_t all_per_s);
