/* Inside look: look.c (the children), look_queue.c (whose question is next). */
#pragma once

#include "daemon/discovery/look.h"

struct look_tenant {
	struct look_tenant *next;
	uint64_t number;
	unsigned queued, asked, stuck, scans; /* scans: LOOK_JVM of queued and asked */
	uint64_t used_ns; /* of the children's time; what is past counts less and less */
};

struct look_ticket {
	struct look_ticket *next; /* in the queue */
	struct look *owner;
	struct look_tenant *tenant;
	look_fn *fn; /* NULL = nobody waits for the answer */
	void *userdata;
	int fd;
	bool asked;
	unsigned turns; /* of the timer, in the queue: counted, for a daemon that was stopped itself
			 */
	struct look_question q;
};

struct look_queue {
	struct look_ticket *first, **end;
	struct look_tenant *tenants;
	unsigned n;
	unsigned stuck; /* children of all tenants */
};

void queue_init(struct look_queue *q);
/* A ticket at the end of the queue; takes @fd. 0, -EBUSY, -ENOSPC, -ENOMEM. */
int queue_put(struct look_queue *q, const struct look_question *question, uint64_t tenant, int fd,
	      struct look_ticket **ret);
/* Out of the queue, for a lane: the next that may be asked; NULL = none. */
struct look_ticket *queue_next(struct look_queue *q);
/* Out of the queue, unanswered: one of a tenant with too many that are stuck, or that has waited
 * for too long; *ret_result is why. NULL = none. */
struct look_ticket *queue_refused(struct look_queue *q, int *ret_result);
void queue_put_back(struct look_queue *q, struct look_ticket *t); /* as if it were not taken */
void queue_remove(struct look_queue *q, struct look_ticket *t);
/* Not in the queue, nor in a lane any more. */
struct look_ticket *ticket_free(struct look_ticket *t);
struct look_tenant *queue_tenant(struct look_queue *q, uint64_t number); /* NULL = not known */
void queue_on_turn(struct look_queue *q);
void queue_free(struct look_queue *q);
