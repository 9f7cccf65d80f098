/* See offcpu_cost.h. */
#include "daemon/bpf/offcpu_cost.h"

void offcpu_cost_rest(struct offcpu_cost *c)
{
	c->resting = OFFCPU_REST_TICKS;
	c->costly = 0;
	c->rests++;
}

/* A host may always switch so often that wakers would cost too much: then each try is in vain, and
 * tries become rare. After a try that lasted as long as the pause before it pauses are short again.
 */
static enum offcpu_step cost_without_wakers(struct offcpu_cost *c)
{
	if (!c->pause || c->kept >= c->pause)
		c->pause = OFFCPU_REST_TICKS;
	else
		c->pause *= 2;
	if (c->pause > OFFCPU_PAUSE_TICKS_MAX)
		c->pause = OFFCPU_PAUSE_TICKS_MAX;
	c->pause_left = c->pause;
	c->no_wakers = true;
	c->costly = 0;
	return OFFCPU_WITHOUT_WAKERS;
}

static enum offcpu_step cost_with_wakers(struct offcpu_cost *c)
{
	c->no_wakers = false;
	c->costly = c->kept = 0;
	return OFFCPU_WITH_WAKERS;
}

enum offcpu_step offcpu_cost_tick(struct offcpu_cost *c, uint64_t cost_ppm)
{
	uint64_t max_ppm = c->no_wakers ? OFFCPU_COST_PPM_MAX : OFFCPU_COST_PPM_NO_WAKERS;

	if (c->resting)
		return --c->resting ? OFFCPU_GOES_ON : OFFCPU_RESUMES;
	c->costly = cost_ppm > max_ppm ? c->costly + 1 : 0;
	if (c->costly >= OFFCPU_COST_TICKS && !c->no_wakers)
		return cost_without_wakers(c);
	if (c->costly >= OFFCPU_COST_TICKS) {
		offcpu_cost_rest(c);
		return OFFCPU_RESTS;
	}
	if (!c->no_wakers)
		c->kept++;
	else if (cost_ppm <= OFFCPU_COST_PPM_NO_WAKERS && --c->pause_left == 0)
		return cost_with_wakers(c);
	return OFFCPU_GOES_ON;
}
