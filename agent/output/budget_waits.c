/*
 * See budget.h. Recorded waits cost time of application threads and of the agent's thread. If that
 * is more than all other costs together and the total is more than allowed, the threshold rises.
 */
#include "agent/output/budget_priv.h"

#include <stdio.h>
#include <string.h>
#include "agent/base/events.h"
#include "agent/output/budget.h"
#include "agent/output/writer.h"

#define LOCK_NS_MAX (10 * NS_PER_S)
/* ns a second that waits may always use; otherwise waits of an application that does little else
 * would not be recorded */
#define WAITS_FLOOR_NS	(10 * NS_PER_MS)
#define MEASURE_SECONDS 4 /* a single second is noise: it may include a pass over all threads */
#define MUCH_TOO_HIGH	4 /* above this multiple of what is allowed the threshold rises at once */
#define LENGTHS		34 /* powers of two of ns; the last one exceeds LOCK_NS_MAX */

static struct {
	struct clocks past[MEASURE_SECONDS]; /* a ring */
	struct clocks checked; /* at the last budget_check_waits() */
	uint32_t measurements; /* since the start or the last change */
	uint32_t lengths[LENGTHS]; /* histogram of the lengths of waits since then */
	bool noted; /* the reader knows a threshold other than START's */
} waits;

void budget_wait(uint64_t duration_ns)
{
	int i = duration_ns ? 63 - __builtin_clzll(duration_ns) : 0;

	waits.lengths[i < LENGTHS ? i : LENGTHS - 1]++;
}

static void budget_waits_remember(const struct clocks *now)
{
	waits.past[waits.measurements++ % MEASURE_SECONDS] = *now;
}

static void budget_waits_begin_again(const struct clocks *now)
{
	waits.measurements = 0;
	waits.checked = *now;
	memset(waits.lengths, 0, sizeof(waits.lengths));
	budget_waits_remember(now);
}

static uint64_t budget_waits_less(uint64_t now, uint64_t wanted)
{
	return now * 2 / 3 > wanted ? now * 2 / 3 : wanted;
}

static void budget_waits_report(uint64_t wanted)
{
	static char note[128];

	note[0] = '\0';
	if (events.lock_min_ns != wanted)
		snprintf(
			note, sizeof(note),
			"waits below %llu ms are only counted: recording shorter ones would take more CPU time than max_cpu allows",
			(unsigned long long)(events.lock_min_ns / NS_PER_MS));
	if (note[0] || waits.noted)
		waits.noted = writer_fault(WIRE_NOTE, 0, "budget", note) == WRITER_OK
				      ? note[0] != '\0'
				      : waits.noted;
}

void budget_waits_begin(const struct clocks *now)
{
	budget_waits_report(events.lock_min_ns);
	budget_waits_begin_again(now);
}

static bool budget_waits_set(const struct wire_start *start, const struct clocks *now,
			     uint64_t lock_min_ns)
{
	if (lock_min_ns == events.lock_min_ns)
		return false;
	__atomic_store_n(&events.lock_min_ns, lock_min_ns, __ATOMIC_RELAXED);
	budget_waits_report(events_lock_min_ns(start));
	budget_waits_begin_again(now);
	return true;
}

/* The time used in the past seconds, and the time that was allowed. */
struct use {
	uint64_t ours, of_waits, allowed, allowed_waits;
};

static void budget_waits_measure(const struct wire_start *start, const struct clocks *then,
				 const struct clocks *now, struct use *u)
{
	uint64_t n_waits = now->waits - then->waits;
	uint64_t n = now->samples - then->samples + n_waits;
	uint64_t writer_ns = now->writer_ns - then->writer_ns;

	u->of_waits = now->waits_ns - then->waits_ns;
	u->ours = now->handler_ns - then->handler_ns + writer_ns + u->of_waits;
	if (n)
		u->of_waits += writer_ns * n_waits / n;
	u->allowed = budget_allowed(start, then, now);
	u->allowed_waits = (now->at_ns - then->at_ns) / (NS_PER_S / WAITS_FLOOR_NS);
}

/* The threshold that keeps only the longest waits since the last change, as many as are allowed. */
static uint64_t budget_waits_longest(const struct use *u)
{
	uint64_t all = 0, n = 0, may;
	int i = LENGTHS;

	for (int k = 0; k < LENGTHS; k++)
		all += waits.lengths[k];
	may = all * u->allowed / u->ours;
	while (i > 0 && n + waits.lengths[i - 1] <= may)
		n += waits.lengths[--i];
	return all ? 1ull << i : 0;
}

static uint64_t budget_raise_threshold(uint64_t now, const struct use *u)
{
	uint64_t times = u->ours / u->allowed, next = budget_waits_longest(u);

	if (!next)
		next = now * (times > 8 ? 8 : times);
	if (next < now * 2)
		next = now * 2;
	return next < LOCK_NS_MAX ? next : LOCK_NS_MAX;
}

bool budget_check_waits(const struct wire_start *start)
{
	uint64_t cost_ns = agent.counters.of[WIRE_EVENT_LOCK].cost_ns - waits.checked.waits_ns;
	uint64_t elapsed_ns = mono_ns() - waits.checked.at_ns;
	struct clocks now;
	struct use u;

	if (start->flags & WIRE_START_NO_BUDGET)
		return false;
	/* with thousands of threads reading the process's clock is not cheap */
	if (cost_ns < MUCH_TOO_HIGH * elapsed_ns / (NS_PER_S / WAITS_FLOOR_NS)) {
		waits.checked.waits_ns += cost_ns;
		waits.checked.at_ns += elapsed_ns;
		return false;
	}
	now = budget_clocks();
	budget_waits_measure(start, &waits.past[(waits.measurements - 1) % MEASURE_SECONDS], &now,
			     &u);
	waits.checked.waits_ns = now.waits_ns;
	waits.checked.at_ns = now.at_ns;
	if (u.of_waits < MUCH_TOO_HIGH * u.allowed || u.of_waits < MUCH_TOO_HIGH * u.allowed_waits)
		return false;
	return budget_waits_set(start, &now, budget_raise_threshold(events.lock_min_ns, &u));
}

bool budget_waits_keep(const struct wire_start *start, const struct clocks *now)
{
	const struct clocks *then = &waits.past[waits.measurements % MEASURE_SECONDS];
	uint64_t lock_min = events.lock_min_ns;
	struct use u;

	if (waits.measurements < MEASURE_SECONDS) {
		budget_waits_remember(now);
		return false;
	}
	budget_waits_measure(start, then, now, &u);
	budget_waits_remember(now);
	if (u.ours > u.allowed && u.of_waits > u.ours / 2) {
		if (u.of_waits > u.allowed_waits)
			lock_min = budget_raise_threshold(lock_min, &u);
	} else if (u.ours < u.allowed / 2) {
		lock_min = budget_waits_less(lock_min, events_lock_min_ns(start));
	}
	return budget_waits_set(start, now, lock_min);
}
