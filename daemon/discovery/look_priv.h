/* Shared by look.c (the children) and look_queue.c (the order of questions). */
#pragma once

#include "daemon/discovery/look.h"

struct look_tenant {
	struct look_tenant *next;
	uint64_t number;
	unsigned queued, asked,
		stuck; /* questions that wait; that are being answered; stuck children */
	unsigned scans; /* LOOK_JVM among queued and asked */
	uint64_t used_ns; /* time of children that it used; older use counts less */
};

struct look_ticket {
	struct look_ticket *next; /* in the queue */
	struct look *owner;
	struct look_tenant *tenant;
	look_fn *fn; /* NULL = nobody waits for the answer */
	void *userdata;
	int fd;
	bool asked;
	unsigned turns; /* timer ticks in the queue; a pause of the daemon itself does not count */
	struct look_question q;
};

struct look_queue {
	struct look_ticket *first, **end;
	struct look_tenant *tenants;
	unsigned n;
	unsigned stuck; /* children of all tenants */
};

void queue_init(struct look_queue *q);
/* Appends a ticket to the queue; takes @fd. 0, -EBUSY, -ENOSPC, -ENOMEM. */
int queue_put(struct look_queue *q, const struct look_question *question, uint64_t tenant, int fd,
	      struct look_ticket **ret);
/* Takes the next ticket that may be asked now out of the queue; NULL = none. */
struct look_ticket *queue_next(struct look_queue *q);
/* Takes a ticket that must be refused out of the queue: its tenant has too many stuck children, or
 * it has waited for too long; *ret_result: the -errno. NULL = none. */
struct look_ticket *queue_refused(struct look_queue *q, int *ret_result);
void queue_put_back(struct look_queue *q, struct look_ticket *t); /* undoes taking the ticket */
void queue_remove(struct look_queue *q, struct look_ticket *t);
/* Frees a ticket that is neither in the queue nor in a lane. Returns NULL. */
struct look_ticket *ticket_free(struct look_ticket *t);
struct look_tenant *queue_tenant(struct look_queue *q, uint64_t number); /* NULL = unknown */
void queue_on_turn(struct look_queue *q); /* to be called every LOOK_TURN_NS */
void queue_free(struct look_queue *q);
