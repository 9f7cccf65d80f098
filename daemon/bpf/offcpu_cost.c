/* See offcpu_cost.h. */
#include "daemon/bpf/offcpu_cost.h"

void offcpu_cost_rest(struct offcpu_cost *c)
{
	c->resting = OFFCPU_REST_TICKS;
	c->costly = c->calm = 0;
	c->rests++;
}

static enum offcpu_step cost_set_wakers(struct offcpu_cost *c, bool wakers)
{
	c->no_wakers = !wakers;
	c->costly = c->calm = 0;
	return wakers ? OFFCPU_WITH_WAKERS : OFFCPU_WITHOUT_WAKERS;
}

/* Wakers are recorded again only after a minute with a third of the cost that they were given up for:
 * recording them may double it. */
enum offcpu_step offcpu_cost_tick(struct offcpu_cost *c, uint64_t cost_ppm)
{
	uint64_t max_ppm = c->no_wakers ? OFFCPU_COST_PPM_MAX : OFFCPU_COST_PPM_NO_WAKERS;

	if (c->resting)
		return --c->resting ? OFFCPU_GOES_ON : OFFCPU_RESUMES;
	c->costly = cost_ppm > max_ppm ? c->costly + 1 : 0;
	c->calm = cost_ppm < OFFCPU_COST_PPM_NO_WAKERS / 3 ? c->calm + 1 : 0;
	if (c->costly >= OFFCPU_COST_TICKS && !c->no_wakers)
		return cost_set_wakers(c, false);
	if (c->costly >= OFFCPU_COST_TICKS) {
		offcpu_cost_rest(c);
		return OFFCPU_RESTS;
	}
	if (c->no_wakers && c->calm >= OFFCPU_REST_TICKS)
		return cost_set_wakers(c, true);
	return OFFCPU_GOES_ON;
}
