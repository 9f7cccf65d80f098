/* See offcpu_minimum.h. */
#include "daemon/bpf/offcpu_minimum.h"

#define BURST_PART  8 /* up to an eighth of a second's signals over the budget are a burst */
#define SHORT_PART  2 /* up to a half is a sample: the others have records, without a stack */
#define FEW_PART    4 /* less than a quarter of the signals: the minimum is too long */
#define SPARED_PART 4 /* with fewer than a quarter of the signals nobody needs to be spared */
#define MORE_PART   8 /* an eighth more spared than in the second before: habits are being learnt */
#define BURSTS	    2 /* in a moment there may be so many times as many waits as usual */
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

/* What one part had in the last second. */
struct part {
	uint64_t over, wanted, records;
};

static struct part part_of(const struct offcpu_part_counts *now,
			   const struct offcpu_part_counts *last)
{
	uint64_t over = now->over_budget - last->over_budget;

	return (struct part){
		.over = over,
		.wanted = now->signalled - last->signalled + over,
		.records = now->intervals - last->intervals,
	};
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What is left of @all when waits have @used, at least an eighth. */
static uint64_t left_of(uint64_t all, uint64_t used)
{
	uint64_t part = all / OFFCPU_QUEUED_PART;

	return used < all - part ? all - used : part;
}

/* What times in the run queue may have if waits want as much as in the last second. */
static struct offcpu_allowance queued_allowance(const struct offcpu_allowance *allowed,
						const struct part *waits)
{
	return (struct offcpu_allowance){
		.own_signals = allowed->own_signals / OFFCPU_QUEUED_PART,
		.signals = left_of(allowed->signals, BURSTS * waits->wanted),
		.records = left_of(allowed->records, waits->records),
	};
}

/* Did times in the run queue have, of @had, what they will not have any more? */
static bool gives_way(uint64_t wanted, uint64_t had, uint64_t will_have)
{
	return will_have < had - had / BURST_PART && wanted > will_have;
}

/* What waits may have: times in the run queue give way to them, down to an eighth. */
static struct offcpu_allowance waits_allowance(const struct offcpu_allowance *allowed,
					       const struct part *queued)
{
	return (struct offcpu_allowance){
		.own_signals = allowed->own_signals - allowed->own_signals / OFFCPU_QUEUED_PART,
		.signals = allowed->signals -
			   least(queued->wanted, allowed->signals / OFFCPU_QUEUED_PART),
		.records = allowed->records -
			   least(queued->records, allowed->records / OFFCPU_QUEUED_PART),
	};
}

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
static enum offcpu_spares spares_for(enum offcpu_spares spares, const struct part *had,
				     const struct offcpu_allowance *allowed)
{
	/* more than a few over the budget, which are a burst within a window */
	if (spares < OFFCPU_SPARES_LONG && had->over > had->wanted / BURST_PART &&
	    had->wanted > allowed->own_signals)
		return OFFCPU_SPARES_LONG;
	if (had->records <= allowed->records)
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

/* The two minimums of one part after a second; they do not grow while it @settles. */
static void part_tick(struct offcpu_minimum *m, enum offcpu_part part, const struct part *had,
		      const struct offcpu_allowance *allowed, bool settles)
{
	struct offcpu_minimums *now = &m->now[part];
	bool too_many = had->records > allowed->records;

	/* a target that has few times off the CPU lacks signals because of others */
	now->signal_ns =
		level_tick(&m->levels[part].signals, now->signal_ns, m->asked_ns,
			   (struct demand){ had->wanted, allowed->signals,
					    !settles && had->over > had->wanted / SHORT_PART &&
						    had->wanted > allowed->own_signals });
	now->record_ns =
		level_tick(&m->levels[part].records, now->record_ns, m->asked_ns,
			   (struct demand){ had->records, allowed->records, too_many && !settles });
	now->samples = too_many && !m->levels[part].records.raised;
	if (now->signal_ns < now->record_ns)
		now->signal_ns = now->record_ns;
}

/* Gives waits for work back what they were spared, if there is enough for them. */
static void spares_tick(struct offcpu_minimum *m, const struct part *had,
			const struct offcpu_allowance *allowed)
{
	uint64_t wanted = had->wanted + m->spared;

	if (m->levels[OFFCPU_WAITS].signals.quiet >= QUIET_TICKS &&
	    m->now[OFFCPU_WAITS].signal_ns <= m->asked_ns && wanted < allowed->signals / 2)
		m->spares = OFFCPU_SPARES_NOTHING;
	/* signals may still be short */
	if (m->spares == OFFCPU_SPARES_RECORDS &&
	    m->levels[OFFCPU_WAITS].records.quiet >= QUIET_TICKS &&
	    m->now[OFFCPU_WAITS].record_ns <= m->asked_ns &&
	    had->records + m->spared < allowed->records / 2)
		m->spares = OFFCPU_SPARES_SIGNALS;
	if (m->spares < OFFCPU_SPARES_RECORDS)
		m->spares = wanted > allowed->signals / SPARED_PART ? OFFCPU_SPARES_SIGNALS
								    : OFFCPU_SPARES_NOTHING;
}

static void waits_tick(struct offcpu_minimum *m, const struct part *had, uint64_t spared,
		       const struct offcpu_allowance *allowed, bool give_way)
{
	enum offcpu_spares spares = spares_for(m->spares, had, allowed);
	bool learns = spared > m->spared + m->spared / MORE_PART;

	m->spared = spared;
	if (spares > m->spares && !give_way) {
		m->spares = spares;
		return;
	}
	part_tick(m, OFFCPU_WAITS, had, allowed, learns || give_way);
	spares_tick(m, had, allowed);
}

void offcpu_minimum_begin(struct offcpu_minimum *m, uint64_t asked_ns,
			  const struct offcpu_allowance *allowed)
{
	*m = (struct offcpu_minimum){ .asked_ns = asked_ns,
				      .last = m->last,
				      .habit_ns = OFFCPU_HABIT_NS };
	for (int i = 0; i < OFFCPU_PARTS; i++)
		m->now[i].record_ns = m->now[i].signal_ns = asked_ns;
	m->queued = queued_allowance(allowed, &(const struct part){ 0 });
}

void offcpu_minimum_tick(struct offcpu_minimum *m, const struct offcpu_signal_counts *now,
			 const struct offcpu_allowance *allowed)
{
	const struct part waits = part_of(&now->parts[OFFCPU_WAITS], &m->last.parts[OFFCPU_WAITS]),
			  queued = part_of(&now->parts[OFFCPU_QUEUED],
					   &m->last.parts[OFFCPU_QUEUED]);
	const struct offcpu_allowance for_waits = waits_allowance(allowed, &queued),
				      had = m->queued;
	uint64_t spared = now->spared - m->last.spared;

	m->habit_ns = habit_after(m->habit_ns, now->asked - m->last.asked,
				  now->unasked - m->last.unasked, allowed->signals);
	m->last = *now;
	m->queued = queued_allowance(allowed, &waits);
	part_tick(m, OFFCPU_QUEUED, &queued, &m->queued, false);
	/* before waits lack something, times in the run queue have less */
	waits_tick(m, &waits, spared, &for_waits,
		   gives_way(queued.wanted, had.signals, m->queued.signals) ||
			   gives_way(queued.records, had.records, m->queued.records));
}
