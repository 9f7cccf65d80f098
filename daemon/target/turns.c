/*
 * Chooses the next attempt. An attempt takes a moment, but a process that only looks like a JVM can
 * make it last until its deadline: so no tenant has more than half of the slots, and the tenant
 * whose last attempt is the longest ago comes first. JVMs that the previous daemon had attached to
 * precede all others and do not count for targets.attach_rate, because they are without a profile
 * until they are attached to again.
 */
#include "daemon/target/target_priv.h"

#include <stdlib.h>

static bool turns_may_begin(const struct target *t)
{
	return t->priv->queued && (t->state == TARGET_FOUND || t->state == TARGET_FAILED) &&
	       t->priv->tenant->injectors < TENANT_INJECTORS;
}

bool turns_is_former(const struct target *t)
{
	return secrets_is_former(&t->priv->table->secrets, t->jvm.pid, t->jvm.start_time);
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
