/*
 * Questions about foreign processes, answered outside of the loop: by children (kindling-look) that
 * are asked about one process after the other. What they look at may keep them waiting, and no
 * signal ends that. A child that does not answer is given up; another takes its place, and as many
 * as one tenant has are bounded. Questions that wait for a child are bounded too, and taken from
 * the tenants in turn: first from who had the least of the children's time lately.
 */
#pragma once

#include <stdbool.h>
#include "daemon/core/loop.h"
#include "daemon/discovery/look_message.h"

#define LOOK_LANES	  4 /* children that are asked at the same time, */
#define LOOK_TENANT_LANES (LOOK_LANES / 2) /* and about processes of one tenant */
#define LOOK_STUCK_MAX	  4 /* children that were given up and live still, of one tenant, */
#define LOOK_STUCK_MANY	  32 /* (of all: from then on each has but one) */
#define LOOK_STUCK_ALL	  256 /* and of all */
#define LOOK_QUEUE_MAX	  2048 /* questions that wait, */
#define LOOK_TENANT_QUEUE 512 /* of one tenant, */
#define LOOK_TENANT_SCAN  8 /* of these LOOK_JVM, asked or waiting */
#define LOOK_ANSWER_NS	  (2000 * 1000000ull)
#define LOOK_SLOW_NS	  (500 * 1000000ull)
#define LOOK_WAIT_NS	  (30 * 1000000000ull) /* in the queue */
#define LOOK_TURN_NS	  (250 * 1000000ull) /* how often somebody asks who is late */

struct look;
struct look_ticket;

/* The answer, or why there is none: @a->result. Borrowed; @fds too, what is taken is -1 then. */
typedef void look_fn(void *userdata, const struct look_answer *a, int fds[LOOK_FDS]);

/* @program is copied. The children are started when they are needed. */
int look_new(struct loop *loop, const char *program, struct look **ret);
struct look *look_free(struct look *l); /* who asked is not called any more */
DEFINE_FREEP(struct look, look_free);

/*
 * Ask @q (its number is filled in here) about a process of @tenant, a tenant_number(); 0 = of whose
 * it is by what the kernel knows. @fd goes along, -1 = none; it is taken, whatever becomes of it.
 *
 * @l: NULL = the answer is found out here, and @fn called before this returns: a program that
 *     looks at one process for itself, and tests
 * @ret: for look_cancel(), until @fn is called; set before it is
 *
 * Returns 0: @fn will be called, or was. Else it never is: -EBUSY, so many children wait for others
 * of its tenant that it is not looked at; -ENOSPC, -ENOMEM; of LOOK_JVM also -EAGAIN, there are
 * enough of its tenant's, ask again when one was answered; -EALREADY, the same, but they are slow,
 * do not wait for them.
 */
int look_ask(struct look *l, const struct look_question *q, uint64_t tenant, int fd, look_fn *fn,
	     void *userdata, struct look_ticket **ret);
/* NULL is fine. Returns NULL. */
struct look_ticket *look_cancel(struct look_ticket *t);
/* Whose process it is, by its cgroup and user: what cannot keep us waiting. Never 0. */
uint64_t look_tenant_of(pid_t pid);

struct look_counts {
	unsigned stuck; /* children that were given up and live still */
	uint64_t given_up; /* since the start; questions that were not answered in time */
	uint64_t refused; /* questions not asked, because of one of the bounds above */
};
void look_counts(const struct look *l, struct look_counts *ret); /* NULL: all 0 */
