/*
 * What the off-CPU engine may cost a host. Above half a percent of all CPUs it no longer records
 * who woke a thread. What it then costs above 1 % is a debt: it rests until the debt is paid, so
 * that it measures a part of the time, and costs 1 % in the long run. Wakers are tried again after
 * a pause, which doubles with each try that is too costly. If some targets cost more than their
 * share, only they rest. A target also has a limit of its own, which does not grow with the host:
 * what measuring adds to its context switches, it pays itself. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OFFCPU_COST_PPM_NO_WAKERS 5000 /* of the time of all CPUs */
#define OFFCPU_COST_PPM_MAX	  10000
#define OFFCPU_COST_TICKS	  3 /* a cost above a limit has to last for so many ticks */
/* A rest begins with a debt that takes so many ticks to pay at least: with fewer the measurement is
 * in pieces so short that few waits fit into them. */
#define OFFCPU_DEBT_TICKS	  6
#define OFFCPU_DEBT_TICKS_MAX	  600 /* more is remitted */
#define OFFCPU_OWN_PPM_CPU	  10000 /* what one target may cost: of one CPU, */
#define OFFCPU_OWN_PPM_USED	  20000 /* or of the CPU time that it uses, whichever is more */
#define OFFCPU_OWN_TICKS_MAX	  60 /* a target's own rest is no longer */
#define OFFCPU_PAUSE_TICKS	  60 /* the first pause without wakers, and the longest */
#define OFFCPU_PAUSE_TICKS_MAX	  3600
#define OFFCPU_SIGNALS_KEPT	  2 /* half of the signals stay, whatever they cost */
#define OFFCPU_SIGNALS_MIN	  50 /* and so many per second and CPU */

enum offcpu_step {
	OFFCPU_GOES_ON,
	OFFCPU_WITHOUT_WAKERS,
	OFFCPU_WITH_WAKERS,
	OFFCPU_RESTS, /* detach all programs */
	OFFCPU_RESUMES
};

struct offcpu_cost {
	bool no_wakers;
	unsigned costly; /* ticks in a row */
	/* The length of the last pause without wakers, or 0; and how much of it is left. Ticks that
	 * are too costly for wakers do not count. */
	unsigned pause, pause_left;
	unsigned kept; /* ticks with wakers since the last pause */
	/* What it cost above OFFCPU_COST_PPM_MAX, added up tick by tick, less what it cost below
	 * it. */
	uint64_t debt_ppm;
	unsigned measured; /* ticks since the last rest, or since wakers were given up */
	bool resting;
	uint64_t rests;
};

/* Call once a second with the engine's cost in that second, which is ignored during a rest: returns
 * what to do now. */
enum offcpu_step offcpu_cost_tick(struct offcpu_cost *c, uint64_t cost_ppm);
/*
 * The number of signals per second, of all targets, for which the limits above leave room: also for
 * wakers, unless the rest of the work leaves no room for these in any case. At most @most; Java
 * stacks are worth more than wakers, so half of it is left in any case. @rest_ppm: the cost of all
 * work but signals, as a part of the time of all CPUs; @price_ns: the cost of one signal, 0 = unknown.
 */
uint64_t offcpu_cost_signals(uint64_t rest_ppm, uint64_t price_ns, unsigned cpus, uint64_t most);
/* Begins a rest of a minute. */
void offcpu_cost_rest(struct offcpu_cost *c);
/* After OFFCPU_RESTS: some targets rest instead of all. Returns the debt, which is theirs now. */
uint64_t offcpu_cost_spare(struct offcpu_cost *c);
/* What is left of their debt after a tick in which the others cost @cost_ppm. Others that use up
 * all that is allowed would never let them go on: a tick pays a minute's part of the whole, at
 * least.
 * @debt_ppm: the whole; @left_ppm: what was left before. */
uint64_t offcpu_cost_pay(uint64_t debt_ppm, uint64_t left_ppm, uint64_t cost_ppm);

/* What a target owes of its own limit. */
struct offcpu_own {
	uint64_t owed_ns;
	unsigned measured; /* ticks since its last rest */
	bool resting;
};

/*
 * Call for each target in each tick: does it rest now, because of its own limit?
 * @tick_ns: how long the tick was.
 * @used_ns: the CPU time that the target used in it.
 * @cost_ns: what the programs took for its context switches. Its signals have a budget of their
 * own, and do not count.
 */
bool offcpu_cost_own(struct offcpu_own *o, uint64_t tick_ns, uint64_t used_ns, uint64_t cost_ns);

/* What one target costs, of the time of all CPUs. */
struct offcpu_share {
	unsigned index; /* the caller's */
	uint64_t tenant;
	uint64_t ppm;
	bool rests; /* out: it is to rest */
	uint64_t tenant_ppm; /* of offcpu_cost_choose(): of its tenant's targets that do not rest */
};

/*
 * Chooses who rests when all cost @cost_ppm, which is too much: of the tenant that costs most the
 * target that costs most, and so on, until the others cost no more than is allowed. No tenant rests
 * that costs less than its share: the allowed cost, divided by the tenants and the rest of the
 * host. false = all have to rest: nobody costs more than that, or there is only one tenant. That
 * one is measured for longer if all rest, because the calls of the programs, which go on otherwise,
 * are its own cost as well.
 */
bool offcpu_cost_choose(struct offcpu_share *shares, unsigned n, uint64_t cost_ppm);
