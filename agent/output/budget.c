/*
 * See budget.h. The interval affects only the costs of samples: the time in the handler, and the
 * time that the agent's thread needs to read and send them. Samples may use what the other costs
 * leave of max_cpu, but at least half of it; the interval is just long enough for that. The cost of
 * a shorter interval follows from the cost of one sample, so the agent returns to it as soon as it
 * fits.
 */
#include "agent/output/budget_priv.h"

#include <stdio.h>
#include <time.h>
#include "agent/engine/cpu_timer.h"
#include "agent/engine/handler_cost.h"
#include "agent/events/unmounted_table.h"
#include "agent/output/writer.h"

#define INTERVAL_NS_MIN (NS_PER_MS / 10)
#define INTERVAL_NS_MAX NS_PER_S
#define MAX_CPU_DEFAULT 10 /* permille of the process's CPU time */
/* The first stacks, names and libraries of a session have a cost that no interval reduces. */
#define STARTING_NS	 (5 * NS_PER_S)
#define MEASUREMENTS	 10 /* kept, usually one a second */
#define MEASUREMENTS_MIN 5 /* after a change */
#define SAMPLES_MIN	 20u /* with fewer samples the cost of one is unknown */
#define STEP_MAX	 4 /* the interval grows at most by this factor at a time */

static struct {
	struct clocks past[MEASUREMENTS]; /* a ring */
	uint32_t measurements; /* since the start or the last change */
	uint64_t begin_ns; /* costs count from STARTING_NS after this time */
	/* cost of one sample when the interval first had to grow; 0 = it did not */
	uint64_t usual_sample_ns;
	char note[224]; /* for the reader, as a NOTE */
	bool noted, note_due;
} interval;

/* Totals at the last look, and the parts of them that are for times off the CPU. */
static struct offcpu_cost {
	uint64_t handler_ns, writer_ns, of_handler_ns, of_writer_ns;
	uint64_t samples, waits, times; /* taken */
	uint64_t unmounted; /* those of the times that no handler took */
} offcpu_cost;

static uint64_t budget_clamp(uint64_t ns)
{
	if (ns < INTERVAL_NS_MIN)
		return INTERVAL_NS_MIN;
	return ns > INTERVAL_NS_MAX ? INTERVAL_NS_MAX : ns;
}

uint64_t budget_interval(const struct wire_start *start)
{
	return budget_clamp(start->interval_ns);
}

static uint64_t budget_permille(const struct wire_start *start)
{
	return start->max_cpu_permille ? start->max_cpu_permille : MAX_CPU_DEFAULT;
}

/* Adds to *@part_ns the part of what *@spent_ns grew by, to @now_ns, that is for @n of @all events.
 */
static void budget_add_offcpu(uint64_t *part_ns, uint64_t *spent_ns, uint64_t now_ns, uint64_t n,
			      uint64_t all)
{
	if (all && now_ns > *spent_ns)
		*part_ns += (uint64_t)((double)(now_ns - *spent_ns) * (double)n / (double)all);
	*spent_ns = now_ns;
}

/* Divides the time of handlers and of the agent's thread by the numbers of events. */
static void budget_account_offcpu(uint64_t handler_ns, uint64_t writer_ns)
{
	uint64_t samples = agent.counters.of[WIRE_EVENT_CPU].taken;
	uint64_t waits = agent.counters.of[WIRE_EVENT_LOCK].taken;
	uint64_t times = agent.counters.of[WIRE_EVENT_OFFCPU].taken;
	uint64_t n = times - offcpu_cost.times, all = n + samples - offcpu_cost.samples,
		 not_handled;
	struct unmounted_counts unmounted;

	unmounted_table_counts(&unmounted);
	not_handled = unmounted.long_waits - offcpu_cost.unmounted;
	not_handled = not_handled < n ? not_handled : n;
	budget_add_offcpu(&offcpu_cost.of_handler_ns, &offcpu_cost.handler_ns, handler_ns,
			  n - not_handled, all - not_handled);
	all += waits - offcpu_cost.waits;
	budget_add_offcpu(&offcpu_cost.of_writer_ns, &offcpu_cost.writer_ns, writer_ns, n, all);
	offcpu_cost.samples = samples;
	offcpu_cost.waits = waits;
	offcpu_cost.times = times;
	offcpu_cost.unmounted = unmounted.long_waits;
}

struct clocks budget_clocks(void)
{
	const struct event_counters *waits = &agent.counters.of[WIRE_EVENT_LOCK];
	uint64_t writer_ns = thread_cpu_ns(0) - agent.housekeeping_ns;

	handler_cost_account();
	budget_account_offcpu(agent.counters.handler_ns, writer_ns);
	return (struct clocks){
		.handler_ns = agent.counters.handler_ns - offcpu_cost.of_handler_ns,
		.writer_ns = writer_ns - offcpu_cost.of_writer_ns,
		.fixed_ns = agent.housekeeping_ns,
		.waits_ns = waits->cost_ns,
		.process_ns = process_cpu_ns(),
		.at_ns = mono_ns(),
		.samples = agent.counters.of[WIRE_EVENT_CPU].taken,
		.waits = waits->taken,
	};
}

uint64_t budget_allowed(const struct wire_start *start, const struct clocks *then,
			const struct clocks *now)
{
	uint64_t allowed = (now->process_ns - then->process_ns) * budget_permille(start) / 1000;
	uint64_t floor_ns = (now->at_ns - then->at_ns) / (NS_PER_S / CPU_FLOOR_NS);

	return allowed > floor_ns ? allowed : floor_ns;
}

/* ---- the note for the reader ------------------------------------------------------------- */

static void budget_report(void)
{
	if (interval.note_due)
		interval.note_due =
			writer_fault(WIRE_NOTE, 0, "interval", interval.note) != WRITER_OK;
	interval.noted = interval.note[0] != '\0';
}

/* @use: the share of the process's CPU time that the interval of START would take; @by_floor: more
 * than max_cpu is allowed. */
static void budget_report_interval(const struct wire_start *start, double use, bool by_floor)
{
	interval.note[0] = '\0';
	if (engine.interval_ns != budget_interval(start))
		snprintf(
			interval.note, sizeof(interval.note),
			"a sample every %.4g ms of CPU time instead of every %.4g ms, which would take "
			"%.2g %% of the application's CPU time: max_cpu is %.2g %%%s",
			(double)engine.interval_ns / NS_PER_MS,
			(double)budget_interval(start) / NS_PER_MS, 100 * use,
			(double)budget_permille(start) / 10,
			by_floor ? ", but 1 ms a second is always allowed" : "");
	interval.note_due = interval.note[0] || interval.noted;
	budget_report();
}

/* ---- the interval -------------------------------------------------------------------------- */

static void budget_remember(const struct clocks *now)
{
	interval.past[interval.measurements++ % MEASUREMENTS] = *now;
}

static void budget_begin_again(const struct clocks *now)
{
	interval.measurements = 0;
	budget_remember(now);
}

void budget_begin(const struct wire_start *start)
{
	struct clocks now;

	offcpu_cost = (struct offcpu_cost){
		.handler_ns = agent.counters.handler_ns,
		.samples = agent.counters.of[WIRE_EVENT_CPU].taken,
		.waits = agent.counters.of[WIRE_EVENT_LOCK].taken,
		.times = agent.counters.of[WIRE_EVENT_OFFCPU].taken,
		.writer_ns = thread_cpu_ns(0) - agent.housekeeping_ns,
	};
	now = budget_clocks();
	interval.begin_ns = now.at_ns;
	interval.usual_sample_ns = 0;
	budget_report_interval(start, 0, false);
	budget_begin_again(&now);
	budget_waits_begin(&now);
}

/* The real interval between two samples of a busy thread, in ns: timers cannot expire more often
 * than the kernel's tick. */
static uint64_t budget_spacing(uint64_t interval_ns)
{
	struct timespec tick = { 0, 0 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return engine.host || interval_ns > (uint64_t)tick.tv_nsec ? interval_ns
								   : (uint64_t)tick.tv_nsec;
}

struct cost {
	uint64_t sample_ns; /* CPU time of one sample */
	uint64_t samples; /* at the current interval */
	uint64_t others_ns; /* costs that the interval does not change */
	uint64_t allowed_ns; /* for all costs together */
	uint64_t process_ns; /* the application's */
};

/* Measures the costs since the oldest measurement. With few samples the cost of one cannot be
 * measured; then the cost before the interval grew is used. false = that is unknown, too. */
static bool budget_measure(const struct wire_start *start, const struct clocks *now,
			   struct cost *ret)
{
	const struct clocks *then = &interval.past[0];
	uint64_t writer_ns, n;

	if (interval.measurements >= MEASUREMENTS)
		then = &interval.past[interval.measurements % MEASUREMENTS];
	ret->samples = now->samples - then->samples;
	if (interval.measurements < MEASUREMENTS_MIN ||
	    (ret->samples < SAMPLES_MIN && !interval.usual_sample_ns))
		return false;
	n = ret->samples + now->waits - then->waits;
	writer_ns = n ? (now->writer_ns - then->writer_ns) * ret->samples / n : 0;
	ret->sample_ns = interval.usual_sample_ns;
	if (ret->samples >= SAMPLES_MIN)
		ret->sample_ns = (now->handler_ns - then->handler_ns + writer_ns) / ret->samples;
	ret->others_ns = now->fixed_ns - then->fixed_ns + now->waits_ns - then->waits_ns +
			 (now->writer_ns - then->writer_ns - writer_ns);
	ret->allowed_ns = budget_allowed(start, then, now);
	ret->process_ns = now->process_ns - then->process_ns;
	return true;
}

/* The shortest interval that stays within what is allowed. */
static uint64_t budget_fitting_interval(const struct cost *c, uint64_t sample_ns)
{
	uint64_t room_ns = c->allowed_ns > c->others_ns ? c->allowed_ns - c->others_ns : 0;

	if (room_ns < c->allowed_ns / 2)
		room_ns = c->allowed_ns / 2;
	if (!room_ns)
		return engine.interval_ns;
	return budget_clamp((uint64_t)((double)budget_spacing(engine.interval_ns) *
				       (double)c->samples * (double)sample_ns / (double)room_ns));
}

static uint64_t budget_choose(const struct wire_start *start, const struct cost *c)
{
	uint64_t asked = budget_interval(start), is = engine.interval_ns;
	uint64_t fits = budget_fitting_interval(c, c->sample_ns), cheap;

	if (fits > is + is / 10) { /* a smaller excess is noise */
		if (!interval.usual_sample_ns)
			interval.usual_sample_ns = c->sample_ns;
		return fits < budget_spacing(is) * STEP_MAX ? fits : budget_spacing(is) * STEP_MAX;
	}
	/* rare samples cost more each, because caches are cold and batches small; when they become
	 * frequent again each may cost as little as before */
	if (interval.usual_sample_ns && interval.usual_sample_ns < c->sample_ns)
		fits = budget_fitting_interval(c, interval.usual_sample_ns);
	cheap = fits > asked ? fits : asked;
	return cheap == asked || cheap < is - is / 4 ? cheap : is;
}

static bool budget_keep_interval(const struct wire_start *start, const struct clocks *now)
{
	struct cost c;
	uint64_t next;
	double use;

	budget_report();
	if (now->at_ns < interval.begin_ns + STARTING_NS) {
		budget_begin_again(now);
		return false;
	}
	if (!budget_measure(start, now, &c)) {
		budget_remember(now);
		return false;
	}
	budget_remember(now);
	next = budget_choose(start, &c);
	if (next == engine.interval_ns)
		return false;
	use = (double)budget_spacing(engine.interval_ns) /
	      (double)budget_spacing(budget_interval(start));
	use = (use * (double)c.sample_ns * (double)c.samples + (double)c.others_ns) /
	      (double)(c.process_ns ? c.process_ns : 1);
	if (next == budget_interval(start))
		interval.usual_sample_ns = 0;
	engine_set_interval(next);
	budget_report_interval(start, use,
			       c.allowed_ns > c.process_ns * budget_permille(start) / 1000);
	budget_begin_again(now);
	return true;
}

bool budget_keep(const struct wire_start *start)
{
	struct clocks now;
	bool changed;

	if (start->flags & WIRE_START_NO_BUDGET)
		return false;
	now = budget_clocks();
	changed = budget_waits_keep(start, &now);
	if (engine.running)
		changed |= budget_keep_interval(start, &now);
	return changed;
}
