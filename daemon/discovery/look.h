/*
 * Questions about foreign processes, answered outside of the loop by children (kindling-look), each
 * of which handles one process after the other. Whatever they read may block them, and no signal
 * ends that. A child that does not answer is given up and replaced; their number is bounded for
 * each tenant. Questions that wait for a child are bounded too, and tenants take turns: the tenant
 * that has used the least of the children's time lately comes first.
 */
#pragma once

#include <stdbool.h>
#include "daemon/core/loop.h"
#include "daemon/discovery/look_message.h"

#define LOOK_LANES	  4 /* children with a question at the same time, */
#define LOOK_TENANT_LANES (LOOK_LANES / 2) /* and of these for processes of one tenant */
#define LOOK_STUCK_MAX	  4 /* children that were given up and still live, for one tenant, */
#define LOOK_STUCK_MANY	  32 /* (for all tenants: beyond it each may have only one) */
#define LOOK_STUCK_ALL	  256 /* and for all */
#define LOOK_QUEUE_MAX	  2048 /* questions in the queue, */
#define LOOK_TENANT_QUEUE 512 /* of one tenant, */
#define LOOK_TENANT_SCAN  8 /* of these LOOK_JVM, in the queue or in a lane */
#define LOOK_ANSWER_NS	  (2000 * 1000000ull)
#define LOOK_SLOW_NS	  (500 * 1000000ull)
#define LOOK_WAIT_NS	  (30 * 1000000000ull) /* longest time in the queue */
#define LOOK_TURN_NS	  (250 * 1000000ull) /* how often late children are looked for */

struct look;
struct look_ticket;

/* The answer, or the reason why there is none: @a->result. Borrowed; @fds too: the callee sets
 * those that it takes to -1. */
typedef void look_fn(void *userdata, const struct look_answer *a, int fds[LOOK_FDS]);

/* @program is copied. Children are started when they are needed. */
int look_new(struct loop *loop, const char *program, struct look **ret);
struct look *look_free(struct look *l); /* callbacks of open questions are no longer called */
DEFINE_FREEP(struct look, look_free);

/*
 * Asks @q (its number is filled in here) about a process of @tenant, a tenant_number(); 0 = the
 * tenant that the kernel reports for it. @fd is passed along, -1 = none; it is taken in any case.
 *
 * @l: NULL = find the answer here and call @fn before returning (tests, and programs that look at a
 * single process)
 * @ret: for look_cancel(), until @fn is called; set before that
 *
 * Returns 0: @fn was called or will be. Otherwise it will not be called: -EBUSY, so many children
 * are blocked by its tenant that the process is not looked at; -ENOSPC, -ENOMEM; for LOOK_JVM also
 * -EAGAIN, the tenant has enough questions, ask again after an answer; -EALREADY, the same, but
 * they are slow: do not wait for them.
 */
int look_ask(struct look *l, const struct look_question *q, uint64_t tenant, int fd, look_fn *fn,
	     void *userdata, struct look_ticket **ret);
/* NULL is fine. Returns NULL. */
struct look_ticket *look_cancel(struct look_ticket *t);
/* The tenant of a process, by its cgroup and user, which can be read without blocking. Never 0. */
uint64_t look_tenant_of(pid_t pid);

struct look_counts {
	unsigned stuck; /* children that were given up and still live */
	uint64_t given_up; /* since the start; questions that were not answered in time */
	uint64_t refused; /* questions refused because of one of the bounds above */
};
void look_counts(const struct look *l, struct look_counts *ret); /* NULL: all 0 */
