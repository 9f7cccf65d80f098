/*
 * Chooses the next attempt. An attempt takes a moment, but a process that only looks like a JVM can
 * make it last until its deadline: so no tenant has more than half of the slots, and the tenant
 * whose last attempt is the longest ago comes first. JVMs that the previous daemon had attached to
 * precede all others and do not count for targets.attach_rate, because they are without a profile
 * until they are attached to again.
 *
 * The CPU time of attempts is their tenant's, because who begins processes that look like JVMs all
 * the time has them attached to all the time. Root of the host may do that.
 */
#include "daemon/target/target_priv.h"

#include <stdlib.h>
#include <string.h>
#include "daemon/ground/clock.h"

/* An attempt uses 10 to 25 ms. */
#define ATTEMPTS_CPU_MAX   ((int64_t)(NS_PER_S / 2)) /* a tenant's full budget */
#define ATTEMPTS_CPU_SHARE 50 /* it refills by this part of the time: 2 % of a CPU */

bool turns_is_former(const struct target *t)
{
	return secrets_is_former(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
}

void tenant_earn_attempts(struct tenant *t, uint64_t now)
{
	if (!t->attempts_mono_ns)
		t->attempts_cpu_ns = ATTEMPTS_CPU_MAX;
	else
		t->attempts_cpu_ns += (int64_t)((now - t->attempts_mono_ns) / ATTEMPTS_CPU_SHARE);
	if (t->attempts_cpu_ns > ATTEMPTS_CPU_MAX)
		t->attempts_cpu_ns = ATTEMPTS_CPU_MAX;
	t->attempts_mono_ns = now;
}

static bool turns_can_pay(const struct target *t)
{
	struct tenant *tenant = t->priv->tenant;

	if (strcmp(tenant->name, TENANT_ROOT) == 0)
		return true;
	tenant_earn_attempts(tenant, clock_mono_ns());
	return tenant->attempts_cpu_ns > 0 || turns_is_former(t);
}

static bool turns_may_begin(const struct target *t)
{
	return t->priv->queued && (t->state == TARGET_FOUND || t->state == TARGET_FAILED) &&
	       t->priv->tenant->injectors < TENANT_INJECTORS && turns_can_pay(t);
}

pid_t *targets_former(const struct targets *table, uint32_t *ret_n)
{
	const struct secrets *s = &table->secrets;
	pid_t *pids = s->n ? calloc(s->n, sizeof(*pids)) : NULL;

	*ret_n = 0;
	for (unsigned i = 0; pids && i < s->n; i++)
		if (s->list[i].former)
			pids[(*ret_n)++] = s->list[i].pid;
	return pids;
}

/* Does @a come before @b? */
static bool turns_comes_before(const struct target *a, const struct target *b)
{
	bool former = turns_is_former(a);

	if (former != turns_is_former(b))
		return former;
	return a->priv->tenant->turn < b->priv->tenant->turn;
}

struct target *turns_next(const struct targets *table)
{
	struct target *next = NULL;

	if (table->injectors >= INJECTORS_MAX)
		return NULL;
	/* the table is in the order of arrival, so the first target of a tenant wins */
	for (struct target *t = table->first; t; t = t->priv->next)
		if (turns_may_begin(t) && (!next || turns_comes_before(t, next)))
			next = t;
	return next;
}

void turns_begin(struct target *t)
{
	struct targets *table = t->priv->table;

	table->injectors++;
	t->priv->tenant->injectors++;
	t->priv->tenant->turn = ++table->turns;
}

void turns_end(struct target *t)
{
	t->priv->table->injectors--;
	t->priv->tenant->injectors--;
}
