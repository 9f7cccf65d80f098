/* See offcpu_minimum.h. */
#include "daemon/bpf/offcpu_minimum.h"

#define BURST_PART  8 /* up to an eighth of a second's signals over the budget are a burst */
#define SHORT_PART  2 /* up to a half is a sample: the others have records, without a stack */
#define QUIET_TICKS 5 /* after so many ticks with few signals the minimum is halved */

static uint64_t doubled(uint64_t ns)
{
	return ns < OFFCPU_MIN_NS_MAX ? 2 * ns : ns;
}

static uint64_t halved(uint64_t ns, uint64_t least_ns)
{
	return ns / 2 > least_ns ? ns / 2 : least_ns;
}

/* It stays for a target that has few times off the CPU, and lacks signals because of others. */
static uint64_t for_signals(struct offcpu_minimum *m, uint64_t ns, uint64_t wanted, uint64_t over,
			    const struct offcpu_allowance *allowed)
{
	bool is_short = over > wanted / SHORT_PART && wanted > allowed->own_signals;

	m->quiet = wanted < allowed->signals / 2 && !is_short ? m->quiet + 1 : 0;
	if (is_short)
		return doubled(ns);
	if (m->quiet < QUIET_TICKS || ns <= m->asked_ns)
		return ns;
	m->quiet = 0;
	return halved(ns, m->asked_ns);
}

static uint64_t for_records(struct offcpu_minimum *m, uint64_t ns, uint64_t records,
			    uint64_t allowed)
{
	m->quiet_records = records < allowed / 2 ? m->quiet_records + 1 : 0;
	if (records > allowed)
		return doubled(ns);
	if (m->quiet_records < QUIET_TICKS || ns <= m->asked_ns)
		return ns;
	m->quiet_records = 0;
	return halved(ns, m->asked_ns);
}

/* More than a few over the budget, which are a burst within a window? */
static bool is_too_much(uint64_t wanted, uint64_t over, uint64_t records,
			const struct offcpu_allowance *allowed)
{
	return (over > wanted / BURST_PART && wanted > allowed->own_signals) ||
	       records > allowed->records;
}

void offcpu_minimum_tick(struct offcpu_minimum *m, uint64_t *min_ns, uint64_t *signal_min_ns,
			 const struct offcpu_signal_counts *now,
			 const struct offcpu_allowance *allowed)
{
	uint64_t over = now->over_budget - m->last.over_budget;
	uint64_t wanted = now->signalled - m->last.signalled + over;
	uint64_t spared = now->spared - m->last.spared;
	uint64_t records = now->intervals - m->last.intervals;

	m->last = *now;
	if (!m->spares) {
		m->spares = is_too_much(wanted, over, records, allowed);
		if (m->spares)
			return;
	}
	*signal_min_ns = for_signals(m, *signal_min_ns, wanted, over, allowed);
	*min_ns = for_records(m, *min_ns, records, allowed->records);
	if (*signal_min_ns < *min_ns)
		*signal_min_ns = *min_ns;
	if (m->quiet >= QUIET_TICKS && *signal_min_ns <= m->asked_ns &&
	    wanted + spared < allowed->signals / 2)
		m->spares = false;
}
