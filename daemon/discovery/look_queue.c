/* See look_priv.h: the questions that wait for a child, and their order. */
#include "daemon/discovery/look_priv.h"

#include <errno.h>
#include <stdlib.h>

#define FORGET_NS 1000000ull /* a tenant that has used no more counts as new */
#define DECAY	  8 /* each turn 1/DECAY of the used time is forgotten */

void queue_init(struct look_queue *q)
{
	*q = (struct look_queue){ .n = 0 };
	q->end = &q->first;
}

/* ---- tenants -------------------------------------------------------------------------------- */

struct look_tenant *queue_tenant(struct look_queue *q, uint64_t number)
{
	struct look_tenant *t = q->tenants;

	while (t && t->number != number)
		t = t->next;
	return t;
}

static struct look_tenant *queue_tenant_get(struct look_queue *q, uint64_t number)
{
	struct look_tenant *t = queue_tenant(q, number);

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->number = number;
	t->next = q->tenants;
	q->tenants = t;
	return t;
}

static void queue_forget_idle(struct look_queue *q)
{
	struct look_tenant **at = &q->tenants;

	while (*at) {
		struct look_tenant *t = *at;

		t->used_ns -= t->used_ns / DECAY;
		if (t->queued || t->asked || t->stuck || t->used_ns > FORGET_NS) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		free(t);
	}
}

/* ---- tickets -------------------------------------------------------------------------------- */

static bool look_is_scan(const struct look_ticket *t)
{
	return t->q.kind == LOOK_JVM;
}

/* Does the tenant have too many stuck children? If all have many, each may have only one. */
static bool queue_has_too_many_stuck(const struct look_queue *q, const struct look_tenant *t)
{
	return t->stuck >= (q->stuck < LOOK_STUCK_MANY ? LOOK_STUCK_MAX : 1);
}

int queue_put(struct look_queue *q, const struct look_question *question, uint64_t tenant, int fd,
	      struct look_ticket **ret)
{
	CLEANUP(fd_closep) int taken = fd;
	struct look_tenant *whose = queue_tenant_get(q, tenant);
	struct look_ticket *t;

	if (!whose)
		return -ENOMEM;
	if (queue_has_too_many_stuck(q, whose))
		return -EBUSY;
	if (q->n >= LOOK_QUEUE_MAX || whose->queued >= LOOK_TENANT_QUEUE)
		return -ENOSPC;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->q = *question;
	t->tenant = whose;
	t->fd = TAKE_FD(taken);
	whose->queued++;
	whose->scans += look_is_scan(t);
	*q->end = t;
	q->end = &t->next;
	q->n++;
	*ret = t;
	return 0;
}

static struct look_ticket *look_queue_take(struct look_queue *q, struct look_ticket **at)
{
	struct look_ticket *t = *at;

	*at = t->next;
	if (!*at)
		q->end = at;
	t->next = NULL;
	t->tenant->queued--;
	q->n--;
	return t;
}

void queue_remove(struct look_queue *q, struct look_ticket *t)
{
	struct look_ticket **at = &q->first;

	while (*at != t)
		at = &(*at)->next;
	(void)look_queue_take(q, at);
}

void queue_put_back(struct look_queue *q, struct look_ticket *t)
{
	t->next = q->first;
	q->first = t;
	if (!t->next)
		q->end = &t->next;
	t->tenant->queued++;
	q->n++;
}

struct look_ticket *queue_next(struct look_queue *q)
{
	struct look_ticket **next = NULL;

	for (struct look_ticket **at = &q->first; *at; at = &(*at)->next) {
		const struct look_tenant *t = (*at)->tenant;

		if (t->asked < LOOK_TENANT_LANES &&
		    (!next || t->used_ns < (*next)->tenant->used_ns))
			next = at;
	}
	return next ? look_queue_take(q, next) : NULL;
}

struct look_ticket *queue_refused(struct look_queue *q, int *ret_result)
{
	for (struct look_ticket **at = &q->first; *at; at = &(*at)->next) {
		bool late = (*at)->turns > LOOK_WAIT_NS / LOOK_TURN_NS;

		if (!late && !queue_has_too_many_stuck(q, (*at)->tenant))
			continue;
		*ret_result = late ? -ETIMEDOUT : -EBUSY;
		return look_queue_take(q, at);
	}
	return NULL;
}

struct look_ticket *ticket_free(struct look_ticket *t)
{
	t->tenant->scans -= look_is_scan(t);
	fd_close(t->fd);
	free(t);
	return NULL;
}

void queue_on_turn(struct look_queue *q)
{
	for (struct look_ticket *t = q->first; t; t = t->next)
		t->turns++;
	queue_forget_idle(q);
}

void queue_free(struct look_queue *q)
{
	while (q->first)
		ticket_free(look_queue_take(q, &q->first));
	while (q->tenants) {
		struct look_tenant *t = q->tenants;

		q->tenants = t->next;
		free(t);
	}
}
