/* Times off the CPU in /v1/status: what the engine does, and of each JVM how its times were found
 * and which are missing. */
#include "daemon/serve/status_priv.h"

#include <stdio.h>
#include "daemon/ground/clock.h"
#include "daemon/ground/value.h"

#define UNREACHABLE_MIN 100 /* times off the CPU, from which on a note may tell of them */

/* ---- a JVM ----------------------------------------------------------------------------------- */

/* Of virtual threads without a carrier, where events.offcpu.virtual asks for their waits. */
static void status_put_unmounted(struct text_out *to, const uint64_t *counter)
{
	json_add_u64(to, "short_unmounted", counter[WIRE_COUNTER_SHORT_UNMOUNTED]);
	json_add_u64(to, "short_unmounted_ns", counter[WIRE_COUNTER_SHORT_UNMOUNTED_NS]);
	json_add_u64(to, "unseen_unmounted", counter[WIRE_COUNTER_UNSEEN_UNMOUNTED]);
	json_add_u64(to, "unmounted_min_ns", counter[WIRE_COUNTER_UNMOUNTED_MIN_NS]);
}

/* How the kernel's records and the agent's met. */
static void status_put_joins(struct text_out *to, const struct target *t)
{
	struct offcpu_join_counts c;

	host_offcpu_counts(t, &c);
	json_begin_object(to, "joins");
	json_add_u64(to, "joined", c.joined);
	json_add_u64(to, "no_java_stack", c.no_java_stack);
	json_add_u64(to, "no_kernel", c.no_kernel);
	json_add_u64(to, "unmounted", c.unmounted);
	json_add_u64(to, "locks", c.locks);
	json_add_u64(to, "lock_only", c.lock_only);
	json_add_u64(to, "late", c.late);
	json_add_u64(to, "hurried", c.hurried);
	json_add_u64(to, "by_habit", c.by_habit);
	json_add_u64(to, "habit_right", c.habit_right);
	json_add_u64(to, "habit_wrong", c.habit_wrong);
	json_end_object(to);
}

/* In how many of the last seconds its switches were measured; both 0 = not at all. */
static void status_put_measured(struct text_out *to, struct host *h, const struct target *t)
{
	const struct offcpu_engine *engine = host_offcpu_engine(h);
	unsigned of = 0, s = engine ? offcpu_engine_measured(engine, t->jvm.pid, &of) : 0;

	json_add_u64(to, "measured_s", s);
	json_add_u64(to, "measured_of_s", of);
	json_add_u64(to, "lost", t->offcpu_lost);
	json_add_u64(to, "lost_ns", t->offcpu_lost_ns);
}

void status_put_offcpu_of(struct text_out *to, struct host *h, const struct target *t,
			  const uint64_t *counter)
{
	status_put_unmounted(to, counter);
	status_put_joins(to, t);
	status_put_measured(to, h, t);
}

/* ---- notes of a JVM -------------------------------------------------------------------------- */

static void status_put_spared(struct text_out *to, struct host *h, const struct target *t,
			      uint64_t min_ns)
{
	char what[240], shorter[32];
	enum offcpu_spares spares = offcpu_engine_spares(host_offcpu_engine(h), t->jvm.pid);

	if (spares < OFFCPU_SPARES_RECORDS)
		return;
	min_ns *= spares < OFFCPU_SPARES_LONG_RECORDS ? OFFCPU_LONG_MINIMUMS
						      : OFFCPU_VERY_LONG_MINIMUMS;
	snprintf(
		what, sizeof(what),
		"of threads that usually wait for work or locks most times off the CPU of less than %s are no events now, except waits for locks, because there are too many; all are in the sums of `kindling threads`",
		value_duration_text(min_ns, shorter));
	status_put_note(to, "offcpu", what);
}

/* Before Linux 6.18 not every JVM's threads can get signals for times off the CPU. */
static void status_put_unreachable(struct text_out *to, struct host *h, const struct target *t,
				   const struct offcpu_counts *c)
{
	const char *why = "its C library has no restartable sequences (musl, glibc before 2.35); "
			  "events.offcpu.syscall_exits brings them";
	struct offcpu_state engine;
	struct stream_counts counts;
	char what[240];

	offcpu_engine_state(host_offcpu_engine(h), &engine);
	if (engine.way == OFFCPU_BY_TASK_WORK || c->intervals < UNREACHABLE_MIN ||
	    c->unreachable < (c->intervals - c->unneeded) / 2)
		return;
	target_counts(t, &counts);
	if (engine.way == OFFCPU_BY_OWN_SIGNAL &&
	    !(counts.ledger.counter[WIRE_COUNTER_HOST_SIGNAL] >> 8))
		why = "no second signal is free in it";
	else if (engine.syscall_exits)
		return;
	snprintf(what, sizeof(what),
		 "its times off the CPU have no Java stacks, unless they are lock events, too: %s",
		 why);
	status_put_note(to, "offcpu", what);
}

static void status_put_without_slot(struct text_out *to, const struct offcpu_engine *e,
				    const struct target *t)
{
	uint64_t n = offcpu_engine_without_slot(e, t->jvm.pid);
	char what[160];

	if (!n)
		return;
	snprintf(
		what, sizeof(what),
		"the times off the CPU of %llu of its threads are not measured: the table for the threads of all JVMs has no room for them",
		(unsigned long long)n);
	status_put_note(to, "offcpu", what);
}

/* From which duration on the times of a part have a Java stack, and are events. */
static void status_put_minimums(struct text_out *to, const struct offcpu_minimums *all,
				enum offcpu_part part, uint64_t asked_ns)
{
	const char *which = part == OFFCPU_WAITS ? "times off the CPU" : "times in the run queue";
	const struct offcpu_minimums *now = &all[part];
	char what[240], min[32], asked[32];

	if (now->signal_ns > asked_ns && now->record_ns < now->signal_ns) {
		snprintf(what, sizeof(what),
			 "%s of less than %s have no Java stack now%s: there are too many", which,
			 value_duration_text(now->signal_ns, min),
			 part == OFFCPU_WAITS ? ", unless they are lock events, too" : "");
		status_put_note(to, "offcpu", what);
	}
	if (now->record_ns <= asked_ns && !now->samples)
		return;
	snprintf(
		what, sizeof(what),
		"only %s%s of %s and more are events now, because those of %s and more are too many; all are in the sums of `kindling threads`",
		now->samples ? "some " : "", which, value_duration_text(now->record_ns, min),
		value_duration_text(asked_ns, asked));
	status_put_note(to, "offcpu", what);
}

void status_put_offcpu_notes(struct text_out *to, struct host *h, const struct target *t)
{
	uint64_t asked_ns = host_config(h)->offcpu_min_ns;
	struct offcpu_minimums now[OFFCPU_PARTS];
	struct offcpu_counts c;
	unsigned measured, of;
	char what[200];

	if (!host_offcpu_engine(h) ||
	    !offcpu_engine_target(host_offcpu_engine(h), t->jvm.pid, &c, now))
		return;
	status_put_without_slot(to, host_offcpu_engine(h), t);
	status_put_unreachable(to, h, t, &c);
	measured = offcpu_engine_measured(host_offcpu_engine(h), t->jvm.pid, &of);
	if (measured < of) {
		snprintf(
			what, sizeof(what),
			"its times off the CPU were measured in %u of the last %u s: more would cost too much, because threads switch too often",
			measured, of);
		status_put_note(to, "offcpu", what);
	}
	status_put_spared(to, h, t, now[OFFCPU_WAITS].signal_ns);
	status_put_minimums(to, now, OFFCPU_WAITS, asked_ns);
	status_put_minimums(to, now, OFFCPU_QUEUED, asked_ns);
}

/* ---- the engine ------------------------------------------------------------------------------ */

static void status_put_offcpu_counts(struct text_out *to, struct host *h,
				     const struct offcpu_engine *e)
{
	static const char *const ways[] = {
		[OFFCPU_BY_TASK_WORK] = "task_work",
		[OFFCPU_BY_RSEQ] = "rseq",
		[OFFCPU_BY_OWN_SIGNAL] = "own_signal",
	};
	struct offcpu_counts c;
	struct offcpu_state s;

	offcpu_engine_state(e, &s);
	offcpu_engine_counts(e, &c);
	json_add_string(to, "state", s.resting ? "resting" : s.targets ? "on" : "idle");
	json_add_string(to, "signals_by", ways[s.way]);
	json_add_bool(to, "syscall_exits", s.syscall_exits);
	json_add_bool(to, "wakers", s.wakers);
	json_add_u64(to, "wakers_again_s", s.wakers_again_s);
	if (s.reduced_since_ns)
		json_add_u64(to, "reduced_since_ns",
			     clock_real_ns() - (clock_mono_ns() - s.reduced_since_ns));
	else
		json_add_null(to, "reduced_since_ns");
	json_add_u64(to, "targets", s.targets);
	json_add_u64(to, "resting_targets", s.resting_targets);
	json_add_u64(to, "min_ns", s.minimums[OFFCPU_WAITS].record_ns);
	json_add_u64(to, "signal_min_ns", s.minimums[OFFCPU_WAITS].signal_ns);
	json_add_u64(to, "runqueue_min_ns", s.minimums[OFFCPU_QUEUED].record_ns);
	json_add_u64(to, "runqueue_signal_min_ns", s.minimums[OFFCPU_QUEUED].signal_ns);
	json_add_u64(to, "min_asked_ns", host_config(h)->offcpu_min_ns);
	json_add_u64(to, "signals_per_s", s.signals_per_s);
	json_add_u64(to, "all_signals_per_s", s.all_signals_per_s);
	json_add_u64(to, "signal_price_ns", s.signal_price_ns);
	json_add_u64(to, "switches_per_s", s.switches_per_s);
	json_add_u64(to, "cost_ppm", s.cost_ppm);
	json_add_u64(to, "rests", s.rests);
	json_add_u64(to, "intervals", c.intervals);
	json_add_u64(to, "interval_ns", c.interval_ns);
	json_add_u64(to, "signalled", c.signalled);
	json_add_u64(to, "unsignalled", c.over_budget + c.unreachable + c.unneeded + c.lost);
	json_add_u64(to, "unsignalled_ns",
		     c.over_budget_ns + c.unreachable_ns + c.unneeded_ns + c.lost_ns);
	json_add_u64(to, "over_budget", c.over_budget);
	json_add_u64(to, "unreachable", c.unreachable);
	json_add_u64(to, "unneeded", c.unneeded);
	json_add_u64(to, "spared", c.spared);
	json_add_u64(to, "lost", c.lost);
	json_add_u64(to, "crowded_threads", offcpu_engine_without_slot(e, 0));
	json_add_u64(to, "missed_switches", s.missed);
}

/* "state": on, idle (no JVM to measure), resting (too many context switches) or refused, with
 * "why"; "asked": the settings ask for it more than the defaults do */
void status_put_offcpu(struct text_out *to, struct host *h)
{
	const struct offcpu_engine *e = host_offcpu_engine(h);

	json_begin_object(to, "offcpu");
	if (e) {
		status_put_offcpu_counts(to, h, e);
	} else {
		json_add_string(to, "state", "refused");
		json_add_string_or_null(to, "why", host_offcpu_why(h));
	}
	json_add_bool(to, "asked", config_asks_for_offcpu(host_config(h)));
	json_end_object(to);
}
