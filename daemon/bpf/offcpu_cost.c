/* See offcpu_cost.h. */
#include "daemon/bpf/offcpu_cost.h"

#include <stddef.h>

/* The part of a limit that signals may fill: what costs the rest of the work changes by the second. */
#define FILLED(limit_ppm) ((limit_ppm) / 5 * 4)

#define REST_TICKS_MAX 60 /* of some targets */

#define PPM(of, ppm) ((of) / 1000000 * (ppm))

void offcpu_cost_rest(struct offcpu_cost *c)
{
	c->debt_ppm = REST_TICKS_MAX * OFFCPU_COST_PPM_MAX;
	c->resting = true;
	c->costly = c->measured = 0;
	c->rests++;
}

/* A host may always switch so often that wakers would cost too much: then each try is in vain, and
 * tries become rare. After a try that lasted as long as the pause before it pauses are short again.
 */
static enum offcpu_step cost_without_wakers(struct offcpu_cost *c)
{
	if (!c->pause || c->kept >= c->pause)
		c->pause = OFFCPU_PAUSE_TICKS;
	else
		c->pause *= 2;
	if (c->pause > OFFCPU_PAUSE_TICKS_MAX)
		c->pause = OFFCPU_PAUSE_TICKS_MAX;
	c->pause_left = c->pause;
	c->no_wakers = true;
	c->costly = c->measured = 0;
	c->debt_ppm = 0; /* of wakers, too: it costs less now */
	return OFFCPU_WITHOUT_WAKERS;
}

static enum offcpu_step cost_with_wakers(struct offcpu_cost *c)
{
	c->no_wakers = false;
	c->costly = c->kept = 0;
	return OFFCPU_WITH_WAKERS;
}

static uint64_t cost_less(uint64_t ppm, uint64_t by_ppm)
{
	return ppm > by_ppm ? ppm - by_ppm : 0;
}

static enum offcpu_step cost_pay_all(struct offcpu_cost *c)
{
	c->debt_ppm = cost_less(c->debt_ppm, OFFCPU_COST_PPM_MAX);
	c->resting = c->debt_ppm > 0;
	return c->resting ? OFFCPU_GOES_ON : OFFCPU_RESUMES;
}

static void cost_add_debt(struct offcpu_cost *c, uint64_t cost_ppm)
{
	c->debt_ppm = cost_less(c->debt_ppm + cost_ppm, OFFCPU_COST_PPM_MAX);
	if (c->debt_ppm > OFFCPU_DEBT_TICKS_MAX * OFFCPU_COST_PPM_MAX)
		c->debt_ppm = OFFCPU_DEBT_TICKS_MAX * OFFCPU_COST_PPM_MAX;
}

enum offcpu_step offcpu_cost_tick(struct offcpu_cost *c, uint64_t cost_ppm)
{
	if (c->resting)
		return cost_pay_all(c);
	cost_add_debt(c, cost_ppm);
	c->costly = cost_ppm > OFFCPU_COST_PPM_NO_WAKERS ? c->costly + 1 : 0;
	c->measured++;
	if (!c->no_wakers) {
		c->kept++;
		return c->costly >= OFFCPU_COST_TICKS ? cost_without_wakers(c) : OFFCPU_GOES_ON;
	}
	if (c->debt_ppm >= OFFCPU_DEBT_TICKS * OFFCPU_COST_PPM_MAX &&
	    c->measured >= OFFCPU_COST_TICKS) {
		c->resting = true;
		c->measured = 0;
		c->rests++;
		return OFFCPU_RESTS;
	}
	if (!c->costly && --c->pause_left == 0)
		return cost_with_wakers(c);
	return OFFCPU_GOES_ON;
}

uint64_t offcpu_cost_spare(struct offcpu_cost *c)
{
	uint64_t debt_ppm = c->debt_ppm;

	c->resting = false;
	c->debt_ppm = 0;
	c->rests--;
	return debt_ppm;
}

uint64_t offcpu_cost_pay(uint64_t debt_ppm, uint64_t left_ppm, uint64_t cost_ppm)
{
	uint64_t pays_ppm = cost_less(OFFCPU_COST_PPM_MAX, cost_ppm);
	uint64_t least_ppm = debt_ppm / REST_TICKS_MAX + 1;

	return cost_less(left_ppm, pays_ppm > least_ppm ? pays_ppm : least_ppm);
}

static void cost_pay_own(struct offcpu_own *o, uint64_t limit_ns)
{
	if (o->owed_ns > OFFCPU_OWN_TICKS_MAX * limit_ns)
		o->owed_ns = OFFCPU_OWN_TICKS_MAX * limit_ns;
	o->owed_ns = cost_less(o->owed_ns, limit_ns);
	o->resting = o->owed_ns > 0;
}

bool offcpu_cost_own(struct offcpu_own *o, uint64_t tick_ns, uint64_t used_ns, uint64_t cost_ns)
{
	uint64_t limit_ns = PPM(tick_ns, OFFCPU_OWN_PPM_CPU);

	if (limit_ns < PPM(used_ns, OFFCPU_OWN_PPM_USED))
		limit_ns = PPM(used_ns, OFFCPU_OWN_PPM_USED);
	if (o->resting) {
		cost_pay_own(o, limit_ns);
		return o->resting;
	}
	o->owed_ns = cost_less(o->owed_ns + cost_ns, limit_ns);
	o->measured++;
	if (o->owed_ns >= OFFCPU_DEBT_TICKS * limit_ns && o->measured >= OFFCPU_COST_TICKS) {
		o->resting = true;
		o->measured = 0;
	}
	return o->resting;
}

static bool cost_has_one_tenant(const struct offcpu_share *shares, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		if (shares[i].tenant != shares[0].tenant)
			return false;
	return true;
}

/* Sums up each tenant's targets; returns the number of tenants that cost anything. */
static unsigned cost_sum_tenants(struct offcpu_share *shares, unsigned n)
{
	unsigned tenants = 0;

	for (unsigned i = 0; i < n; i++) {
		shares[i].tenant_ppm = 0;
		for (unsigned k = 0; k < n; k++)
			if (shares[k].tenant == shares[i].tenant)
				shares[i].tenant_ppm += shares[k].ppm;
		tenants += shares[i].tenant_ppm > 0;
		for (unsigned k = 0; k < i; k++)
			if (shares[k].tenant == shares[i].tenant) {
				tenants -= shares[i].tenant_ppm > 0;
				break;
			}
	}
	return tenants;
}

/* The costliest target of the costliest tenant, if that costs at least @least_ppm. */
static struct offcpu_share *cost_largest(struct offcpu_share *shares, unsigned n, uint64_t least_ppm)
{
	struct offcpu_share *largest = NULL;

	for (struct offcpu_share *s = shares; s < shares + n; s++)
		if (!s->rests && s->ppm && s->tenant_ppm >= least_ppm &&
		    (!largest || s->tenant_ppm > largest->tenant_ppm ||
		     (s->tenant == largest->tenant && s->ppm > largest->ppm)))
			largest = s;
	return largest;
}

bool offcpu_cost_choose(struct offcpu_share *shares, unsigned n, uint64_t cost_ppm)
{
	unsigned tenants = cost_sum_tenants(shares, n);
	struct offcpu_share *s;
	bool some = false;

	if (cost_has_one_tenant(shares, n))
		return false;
	while (cost_ppm > OFFCPU_COST_PPM_MAX &&
	       (s = cost_largest(shares, n, OFFCPU_COST_PPM_MAX / (tenants + 1)))) {
		s->rests = some = true;
		cost_ppm -= s->ppm < cost_ppm ? s->ppm : cost_ppm;
		for (unsigned i = 0; i < n; i++)
			if (shares[i].tenant == s->tenant)
				shares[i].tenant_ppm -= s->ppm;
	}
	return some;
}

uint64_t offcpu_cost_signals(uint64_t rest_ppm, uint64_t price_ns, unsigned cpus, uint64_t most)
{
	uint64_t limit_ppm = FILLED(OFFCPU_COST_PPM_NO_WAKERS), n;
	uint64_t least = most / OFFCPU_SIGNALS_KEPT;

	if (rest_ppm >= limit_ppm)
		limit_ppm = FILLED(OFFCPU_COST_PPM_MAX);
	/* ppm of a second are 1,000 ns each */
	n = rest_ppm < limit_ppm ? (limit_ppm - rest_ppm) * 1000 * cpus : 0;
	n = price_ns ? n / price_ns : most;
	if (least < OFFCPU_SIGNALS_MIN * cpus)
		least = OFFCPU_SIGNALS_MIN * cpus;
	if (n < least)
		n = least;
	return n < most ? n : most;
}
