/*
 * targets.max: if there are more JVMs than may be profiled, those that use the most CPU time are.
 * Reviews compare what they have used since the last review, the first review what they have used
 * in their lives. A newcomer must use half as much again as the one that it replaces, so that two
 * JVMs of equal use do not take turns.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>
#include <fcntl.h>
#include "daemon/ground/proc.h"

#define SWAPS_MAX 5 /* JVMs that are replaced in one review */
/* A newcomer must use at least this many clock ticks more than the JVM it replaces. */
#define MORE_TICKS 10

/* Does the target count for targets.max? */
static bool limit_counts(const struct target *t)
{
	switch (t->state) {
	case TARGET_FOUND: /* not before its facts, which decide whether it may be attached to */
		return !(t->priv->facts_for & FACTS_FOR_ATTEMPT);
	case TARGET_INJECTING:
	case TARGET_STREAMING:
		return true;
	case TARGET_FAILED:
		return !(t->fault.flags & FAULT_PERMANENT);
	default:
		return false;
	}
}

static bool limit_is_waiting(const struct target *t)
{
	return t->state == TARGET_EXCLUDED && t->priv->kept == KEEP_MAX;
}

static unsigned limit_taken(const struct targets *table, const struct target *but)
{
	unsigned n = 0;

	for (const struct target *t = table->first; t; t = t->priv->next)
		n += t != but && limit_counts(t);
	return n;
}

bool limit_reached(const struct target *t)
{
	const struct targets *table = t->priv->table;

	return table->config->targets_max && limit_taken(table, t) >= table->config->targets_max;
}

void limit_explain(const struct targets *table, struct fault *ret)
{
	*ret = (struct fault){ 0 };
	fault_set(
		ret, EDQUOT, FAULT_BUDGET,
		"targets.max is reached: the %u JVMs with the most CPU time are profiled, chosen again every 10 s",
		(unsigned)table->config->targets_max);
}

static void limit_measure(struct target *t)
{
	CLEANUP(fd_closep) int proc_dfd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd_closep) int pid_dfd = proc_open(proc_dfd, t->jvm.pid);
	struct proc_stat stat = { 0 };
	char text[1024];

	if (pid_dfd < 0 || proc_read(pid_dfd, "stat", text, sizeof(text)) <= 0 ||
	    !proc_parse_stat(text, &stat) || stat.start_time != t->jvm.start_time)
		return;
	t->priv->used_ticks = stat.cpu_ticks - t->priv->cpu_ticks;
	t->priv->cpu_ticks = stat.cpu_ticks;
}

static struct target *limit_busiest_waiting(struct targets *table)
{
	struct target *best = NULL;

	for (struct target *t = table->first; t; t = t->priv->next)
		if (limit_is_waiting(t) && (!best || t->priv->used_ticks > best->priv->used_ticks))
			best = t;
	return best;
}

/* The target with the least use that may be replaced; never one that an operator asked for. */
static struct target *limit_idlest(struct targets *table)
{
	struct target *best = NULL;

	for (struct target *t = table->first; t; t = t->priv->next)
		if (limit_counts(t) && t->state != TARGET_INJECTING &&
		    (!best || t->priv->used_ticks < best->priv->used_ticks) &&
		    !overrides_find(&table->overrides, t->jvm.pid, t->jvm.start_time))
			best = t;
	return best;
}

static bool limit_used_more(const struct target *waiting, const struct target *has)
{
	uint64_t a = waiting->priv->used_ticks, b = has->priv->used_ticks;

	return a > b + b / 2 + MORE_TICKS;
}

void limit_review(struct targets *table)
{
	struct target *in = limit_busiest_waiting(table), *out;
	struct fault why;

	if (!in)
		return;
	for (struct target *t = table->first; t; t = t->priv->next)
		if (limit_is_waiting(t) || limit_counts(t))
			limit_measure(t);
	while ((in = limit_busiest_waiting(table)) && !limit_reached(in)) {
		target_take_in(in);
		if (in->state == TARGET_EXCLUDED)
			return; /* something else keeps it out */
	}
	for (int i = 0; i < SWAPS_MAX && (in = limit_busiest_waiting(table)); i++) {
		out = limit_idlest(table);
		if (!out || !limit_used_more(in, out))
			return;
		limit_explain(table, &why);
		target_keep_out(out, KEEP_MAX, &why);
		target_take_in(in);
	}
}
