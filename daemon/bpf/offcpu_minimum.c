/* See offcpu_minimum.h. */
#include "daemon/bpf/offcpu_minimum.h"

#define BURST_PART  8 /* up to an eighth of a second's signals over the budget are a burst */
#define SHORT_PART  2 /* up to a half is a sample: the others have records, without a stack */
#define FEW_PART    4 /* less than a quarter of the signals: the minimum is too long */
#define SPARED_PART 4 /* with fewer than a quarter of the signals nobody needs to be spared */
#define MORE_PART   8 /* an eighth more spared than in the second before: habits are being learnt */
#define HOLD_TICKS  60
#define QUIET_TICKS 5 /* after so many ticks with few signals the minimum is halved */

static uint64_t doubled(uint64_t ns)
{
	return ns < OFFCPU_MIN_NS_MAX ? 2 * ns : ns;
}

static uint64_t halved(uint64_t ns, uint64_t least_ns)
{
	return ns / 2 > least_ns ? ns / 2 : least_ns;
}

/* How many times off the CPU above a minimum there were in the last second, and how many there may
 * be. */
struct demand {
	uint64_t n, allowed;
	bool too_many;
};

/*
 * The minimum after @ns, at least @asked_ns. If nearly all times are of one length, doubling it
 * leaves hardly any: that is taken back, and those that fit the budget are a sample of them.
 */
static uint64_t level_tick(struct offcpu_level *l, uint64_t ns, uint64_t asked_ns,
			   struct demand demand)
{
	bool was_raised = l->raised;

	l->raised = false;
	if (l->hold && --l->hold == 0)
		l->too_long_ns = 0;
	l->quiet = demand.n < demand.allowed / 2 && !demand.too_many ? l->quiet + 1 : 0;
	if (demand.too_many) {
		l->raised = !l->too_long_ns || doubled(ns) < l->too_long_ns;
		return l->raised ? doubled(ns) : ns;
	}
	if (ns <= asked_ns)
		return ns;
	if (was_raised && demand.n < demand.allowed / FEW_PART) {
		l->too_long_ns = ns;
		l->hold = HOLD_TICKS;
	} else if (l->quiet < QUIET_TICKS) {
		return ns;
	}
	l->quiet = 0;
	return halved(ns, asked_ns);
}

/* What has to be spared now, before a minimum grows, if @spares was not enough. */
static enum offcpu_spares spares_for(enum offcpu_spares spares, uint64_t wanted, uint64_t over,
				     uint64_t records, const struct offcpu_allowance *allowed)
{
	/* more than a few over the budget, which are a burst within a window */
	if (spares < OFFCPU_SPARES_LONG && over > wanted / BURST_PART &&
	    wanted > allowed->own_signals)
		return OFFCPU_SPARES_LONG;
	if (records <= allowed->records)
		return OFFCPU_SPARES_NOTHING;
	return spares < OFFCPU_SPARES_LONG ? OFFCPU_SPARES_RECORDS : OFFCPU_SPARES_LONG_RECORDS;
}

/* Threads ask in the order in which they run, which may be the same again and again: if not all
 * may, those that did not for longest are let ask, and none is left out. */
static uint64_t habit_after(uint64_t ns, uint64_t asked, uint64_t unasked, uint64_t signals)
{
	if (unasked)
		return ns < OFFCPU_HABIT_NS_MAX ? 2 * ns : ns;
	/* in half that time twice as many would ask: half of those that may */
	return asked < signals / 8 ? halved(ns, OFFCPU_HABIT_NS) : ns;
}

void offcpu_minimum_tick(struct offcpu_minimum *m, uint64_t *min_ns, uint64_t *signal_min_ns,
			 const struct offcpu_signal_counts *now,
			 const struct offcpu_allowance *allowed)
{
	uint64_t over = now->over_budget - m->last.over_budget;
	uint64_t wanted = now->signalled - m->last.signalled + over;
	uint64_t spared = now->spared - m->last.spared;
	uint64_t records = now->intervals - m->last.intervals;
	enum offcpu_spares spares = spares_for(m->spares, wanted, over, records, allowed);
	bool learns = spared > m->spared + m->spared / MORE_PART, too_many;

	m->habit_ns =
		habit_after(m->habit_ns ? m->habit_ns : OFFCPU_HABIT_NS, now->asked - m->last.asked,
			    now->unasked - m->last.unasked, allowed->signals);
	m->last = *now;
	m->spared = spared;
	if (spares > m->spares) {
		m->spares = spares;
		return;
	}
	/* a target that has few times off the CPU lacks signals because of others */
	*signal_min_ns = level_tick(&m->signals, *signal_min_ns, m->asked_ns,
				    (struct demand){ wanted, allowed->signals,
						     !learns && over > wanted / SHORT_PART &&
							     wanted > allowed->own_signals });
	too_many = records > allowed->records;
	*min_ns = level_tick(&m->records, *min_ns, m->asked_ns,
			     (struct demand){ records, allowed->records, too_many && !learns });
	m->samples = too_many && !m->records.raised;
	if (*signal_min_ns < *min_ns)
		*signal_min_ns = *min_ns;
	if (m->signals.quiet >= QUIET_TICKS && *signal_min_ns <= m->asked_ns &&
	    wanted + spared < allowed->signals / 2)
		m->spares = OFFCPU_SPARES_NOTHING;
	if (m->spares < OFFCPU_SPARES_RECORDS)
		m->spares = wanted + spared > allowed->signals / SPARED_PART
				    ? OFFCPU_SPARES_SIGNALS
				    : OFFCPU_SPARES_NOTHING;
}
