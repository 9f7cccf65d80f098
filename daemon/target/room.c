/*
 * TARGETS_MAX: the slots of the table. While there are free ones each new target gets one. Then
 * ended targets make room, and after them the tenant that has the most slots, until it has at most
 * one more than the newcomer's tenant. If the chosen target streams it is detached first, and the
 * newcomer gets its slot when discovery reports it again.
 */
#include "daemon/target/target_priv.h"

#include <errno.h>

static struct target *room_oldest_gone(struct targets *table)
{
	struct target *t = table->first;

	while (t && (t->state != TARGET_GONE || t->priv->remembered))
		t = t->priv->next;
	return t;
}

static const struct tenant *room_largest_tenant(const struct targets *table)
{
	const struct tenant *most = table->tenants;

	for (const struct tenant *x = most; x; x = x->next)
		if (x->targets > most->targets)
			most = x;
	return most;
}

/* Is there no agent in the JVM, and none on its way? */
static bool room_is_idle(const struct target *t)
{
	return t->state == TARGET_FOUND || t->state == TARGET_FAILED ||
	       t->state == TARGET_EXCLUDED || t->state == TARGET_DETACHED;
}

static bool room_is_streaming(const struct target *t)
{
	return t->state == TARGET_STREAMING;
}

/* The tenant's newest target for which @is_one holds; the newest gives up its slot first. */
static struct target *room_newest_of(struct targets *table, const struct tenant *tenant,
				     bool (*is_one)(const struct target *t))
{
	struct target *last = NULL;

	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->priv->tenant == tenant && is_one(t))
			last = t;
	return last;
}

static void room_displace(struct target *t)
{
	struct targets *table = t->priv->table;

	TARGET_LOG(INFO, t, "target.displaced", "pid=%d targets=%u", t->jvm.pid,
		   t->priv->tenant->targets);
	if (table->ops.on_displaced)
		table->ops.on_displaced(table->userdata, t);
	target_forget(t);
}

static void room_detach(struct target *t)
{
	struct fault why = { 0 };

	fault_set(
		&why, EDQUOT, FAULT_BUDGET,
		"kindlingd handles %u JVMs at most, and this container or user has the most of them",
		t->priv->table->bound);
	target_keep_out(t, KEEP_ROOM, &why);
}

bool room_make(struct targets *table, const struct tenant *newcomer)
{
	const struct tenant *most;
	struct target *t;

	if (table->count < table->bound)
		return true;
	t = room_oldest_gone(table);
	if (t) {
		target_forget(t);
		return true;
	}
	most = room_largest_tenant(table);
	if (!most || most->targets < newcomer->targets + 2)
		return false;
	t = room_newest_of(table, most, room_is_idle);
	if (t) {
		room_displace(t);
		return true;
	}
	t = room_newest_of(table, most, room_is_streaming);
	if (t)
		room_detach(t);
	return false;
}

void room_review(struct targets *table)
{
	if (table->count >= table->bound)
		return;
	for (struct target *t = table->first; t; t = t->priv->next)
		if (t->state == TARGET_EXCLUDED && t->priv->kept == KEEP_ROOM)
			target_take_in(t);
}
