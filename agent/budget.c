/*
 * See budget.h. What costs: handlers and the agent's thread for CPU samples; application threads
 * and the agent's thread for waits that are told. Of the two the one that costs more is made to
 * come less often. Both come back when little is used.
 */
#include "agent/budget.h"

#include <stdio.h>
#include <string.h>
#include "agent/engine/cpu_timer.h"
#include "agent/events/events.h"
#include "agent/events/unknown_owner.h"
#include "agent/writer.h"

#define INTERVAL_NS_MIN (NS_PER_MS / 10)
#define INTERVAL_NS_MAX NS_PER_S
#define LOCK_NS_MAX	(10 * NS_PER_S)
#define MAX_CPU_DEFAULT 10 /* permille of the process's own CPU time */
#define CPU_FLOOR_NS	NS_PER_MS /* per second: less than this is always allowed */
/* ... and so much for waits, or those of an application that does little else would go untold */
#define WAITS_FLOOR_NS (10 * NS_PER_MS)
#define LOOK_BACK_S    4 /* one second alone is noise: a pass over all threads falls into it */
#define HURRY	       4 /* times what is allowed: waits that cost so much are not waited for */
#define LENGTHS	       34 /* powers of two of ns; the last is longer than LOCK_NS_MAX */

struct clocks {
	uint64_t handler_ns, thread_ns, waits_ns, process_ns, at_ns;
	uint64_t samples, waits; /* taken */
};

static struct {
	struct clocks past[LOOK_BACK_S]; /* a ring of seconds */
	struct clocks hurry; /* at the last budget_hurry() */
	uint32_t seconds; /* seen since the start or the last change */
	uint32_t lengths[LENGTHS]; /* of the waits told since then */
	bool noted; /* the reader knows of another threshold than START's */
} budget;

void budget_wait(uint64_t duration_ns)
{
	int i = duration_ns ? 63 - __builtin_clzll(duration_ns) : 0;

	budget.lengths[i < LENGTHS ? i : LENGTHS - 1]++;
}

static uint64_t clamp(uint64_t ns)
{
	if (ns < INTERVAL_NS_MIN)
		return INTERVAL_NS_MIN;
	return ns > INTERVAL_NS_MAX ? INTERVAL_NS_MAX : ns;
}

uint64_t budget_interval(const struct wire_start *start)
{
	return clamp(start->interval_ns);
}

static struct clocks read_clocks(void)
{
	const struct event_books *waits = &agent.books.of[WIRE_EVENT_LOCK];

	return (struct clocks){
		.handler_ns = agent.books.handler_ns,
		/* what no interval and no threshold makes cheaper is not theirs */
		.thread_ns = thread_cpu_ns(0) - unknown_owner_cpu_ns(),
		.waits_ns = waits->cost_ns,
		.process_ns = process_cpu_ns(),
		.at_ns = mono_ns(),
		.samples = agent.books.of[WIRE_EVENT_CPU].taken,
		.waits = waits->taken,
	};
}

static void remember(const struct clocks *now)
{
	budget.past[budget.seconds++ % LOOK_BACK_S] = *now;
}

static void begin_again(void)
{
	struct clocks now = read_clocks();

	budget.seconds = 0;
	budget.hurry = now;
	memset(budget.lengths, 0, sizeof(budget.lengths));
	remember(&now);
}

static uint64_t less(uint64_t now, uint64_t wanted)
{
	return now * 2 / 3 > wanted ? now * 2 / 3 : wanted;
}

static void tell_threshold(uint64_t wanted)
{
	static char note[128];

	note[0] = '\0';
	if (events.lock_min_ns != wanted)
		snprintf(
			note, sizeof(note),
			"waits below %llu ms are only counted: telling of shorter ones takes more CPU than max_cpu",
			(unsigned long long)(events.lock_min_ns / NS_PER_MS));
	if (note[0] || budget.noted)
		budget.noted = writer_fault(WIRE_NOTE, 0, "budget", note) == WRITER_OK
				       ? note[0] != '\0'
				       : budget.noted;
}

void budget_begin(void)
{
	tell_threshold(events.lock_min_ns);
	begin_again();
}

static bool set(const struct wire_start *start, uint64_t interval_ns, uint64_t lock_min_ns)
{
	if (interval_ns == engine.interval_ns && lock_min_ns == events.lock_min_ns)
		return false;
	if (interval_ns != engine.interval_ns)
		engine_set_interval(interval_ns);
	if (lock_min_ns != events.lock_min_ns) {
		__atomic_store_n(&events.lock_min_ns, lock_min_ns, __ATOMIC_RELAXED);
		tell_threshold(events_lock_min_ns(start));
	}
	begin_again();
	return true;
}

/* What was used in the seconds past, and what might have been. */
struct use {
	uint64_t ours, of_waits, allowed, allowed_waits;
};

static void measure(const struct clocks *then, const struct clocks *now, uint64_t permille,
		    struct use *u)
{
	uint64_t waits = now->waits - then->waits, n = now->samples - then->samples + waits;
	uint64_t thread_ns = now->thread_ns - then->thread_ns;
	uint64_t elapsed_ns = now->at_ns - then->at_ns;
	uint64_t floor_ns = elapsed_ns / (NS_PER_S / CPU_FLOOR_NS);

	u->of_waits = now->waits_ns - then->waits_ns;
	u->ours = now->handler_ns - then->handler_ns + thread_ns + u->of_waits;
	if (n)
		u->of_waits += thread_ns * waits / n;
	u->allowed = (now->process_ns - then->process_ns) * permille / 1000;
	if (u->allowed < floor_ns)
		u->allowed = floor_ns;
	u->allowed_waits = elapsed_ns / (NS_PER_S / WAITS_FLOOR_NS);
}

/* The longest of the waits told since the last change, as many as may be: how long they are at
 * least. */
static uint64_t longest(const struct use *u)
{
	uint64_t all = 0, n = 0, may;
	int i = LENGTHS;

	for (int k = 0; k < LENGTHS; k++)
		all += budget.lengths[k];
	may = all * u->allowed / u->ours;
	while (i > 0 && n + budget.lengths[i - 1] <= may)
		n += budget.lengths[--i];
	return all ? 1ull << i : 0;
}

static uint64_t raise_threshold(uint64_t now, const struct use *u)
{
	uint64_t times = u->ours / u->allowed, next = longest(u);

	if (!next)
		next = now * (times > 8 ? 8 : times);
	if (next < now * 2)
		next = now * 2;
	return next < LOCK_NS_MAX ? next : LOCK_NS_MAX;
}

bool budget_hurry(const struct wire_start *start)
{
	uint64_t permille = start->max_cpu_permille ? start->max_cpu_permille : MAX_CPU_DEFAULT;
	uint64_t cost_ns = agent.books.of[WIRE_EVENT_LOCK].cost_ns - budget.hurry.waits_ns;
	uint64_t elapsed_ns = mono_ns() - budget.hurry.at_ns;
	struct clocks now;
	struct use u;

	if (start->flags & WIRE_START_NO_BUDGET)
		return false;
	/* the process's clock is not cheap with thousands of threads */
	if (cost_ns < HURRY * elapsed_ns / (NS_PER_S / WAITS_FLOOR_NS)) {
		budget.hurry.waits_ns += cost_ns;
		budget.hurry.at_ns += elapsed_ns;
		return false;
	}
	now = read_clocks();
	measure(&budget.past[(budget.seconds - 1) % LOOK_BACK_S], &now, permille, &u);
	budget.hurry.waits_ns = now.waits_ns;
	budget.hurry.at_ns = now.at_ns;
	if (u.of_waits < HURRY * u.allowed || u.of_waits < HURRY * u.allowed_waits)
		return false;
	return set(start, engine.interval_ns, raise_threshold(events.lock_min_ns, &u));
}

bool budget_keep(const struct wire_start *start)
{
	uint64_t permille = start->max_cpu_permille ? start->max_cpu_permille : MAX_CPU_DEFAULT;
	uint64_t interval = engine.interval_ns, lock_min = events.lock_min_ns;
	uint64_t wanted = clamp(start->interval_ns), lock_wanted = events_lock_min_ns(start);
	const struct clocks *then = &budget.past[budget.seconds % LOOK_BACK_S];
	struct clocks now = read_clocks();
	struct use u;

	if (start->flags & WIRE_START_NO_BUDGET)
		return false;
	if (budget.seconds < LOOK_BACK_S) {
		remember(&now);
		return false;
	}
	measure(then, &now, permille, &u);
	remember(&now);
	if (u.ours > u.allowed && u.of_waits > u.ours / 2) {
		if (u.of_waits > u.allowed_waits)
			lock_min = raise_threshold(lock_min, &u);
	} else if (u.ours > u.allowed) {
		interval = clamp(interval + interval / 2);
	} else if (u.ours < u.allowed / 2) {
		interval = less(interval, wanted);
		lock_min = less(lock_min, lock_wanted);
	}
	return set(start, engine.running ? interval : engine.interval_ns, lock_min);
}
