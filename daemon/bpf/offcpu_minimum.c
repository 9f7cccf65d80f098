/* See offcpu_minimum.h. */
#include "daemon/bpf/offcpu_minimum.h"

#define BURST_PART  8 /* up to an eighth of a second's signals over the budget are a burst */
#define QUIET_TICKS 5 /* after so many ticks with few signals the minimum is halved */

/* A few times over the budget are a burst within a window, for which the minimum stays: those keep
 * their records, and a longer minimum would cost all times below it their events. It stays too for
 * a target that has few times off the CPU, and lacks signals because of others. */
uint64_t offcpu_minimum_tick(struct offcpu_minimum *m, uint64_t min_ns,
			     const struct offcpu_signal_counts *now, uint64_t own_per_s,
			     uint64_t signals_per_s)
{
	uint64_t over = now->over_budget - m->last.over_budget;
	uint64_t wanted = now->signalled - m->last.signalled + over;
	uint64_t spared = now->spared - m->last.spared;
	bool too_many = over > wanted / BURST_PART && wanted > own_per_s;

	m->last = *now;
	m->quiet = !too_many && wanted < signals_per_s / 2 ? m->quiet + 1 : 0;
	if (too_many && !m->spares) {
		m->spares = true;
		return min_ns;
	}
	if (too_many)
		return min_ns < OFFCPU_MIN_NS_MAX ? 2 * min_ns : min_ns;
	if (m->quiet < QUIET_TICKS)
		return min_ns;
	if (min_ns <= m->asked_ns) {
		m->spares = m->spares && wanted + spared >= signals_per_s / 2;
		return min_ns;
	}
	m->quiet = 0;
	return min_ns / 2 > m->asked_ns ? min_ns / 2 : m->asked_ns;
}
