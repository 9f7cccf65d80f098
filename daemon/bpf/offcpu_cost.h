/*
 * What the off-CPU engine may cost a host: above half a percent of all CPUs it no longer records who
 * woke a thread, and if it then still costs more than 1 % it rests for a minute. Wakers are tried
 * again after a pause, which doubles with each try that is too costly. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define OFFCPU_COST_PPM_NO_WAKERS 5000 /* of the time of all CPUs */
#define OFFCPU_COST_PPM_MAX	  10000
#define OFFCPU_COST_TICKS	  3 /* a cost above a limit has to last for so many ticks */
#define OFFCPU_REST_TICKS	  60
#define OFFCPU_PAUSE_TICKS_MAX	  3600 /* the longest pause between two tries with wakers */

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
	unsigned resting; /* ticks that are left of a rest; 0 = no rest */
	uint64_t rests;
};

/* Call once a second with the engine's cost in that second, which is ignored during a rest: returns
 * what to do now. */
enum offcpu_step offcpu_cost_tick(struct offcpu_cost *c, uint64_t cost_ppm);
/* Begins a rest. */
void offcpu_cost_rest(struct offcpu_cost *c);
