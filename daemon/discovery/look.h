/*
 * Asks about foreign processes. Children (kindling-look) find the answers, each one for one process
 * after the other, because whatever is read from a process may block the reader, and no signal ends
 * that. A child that does not answer is given up and replaced; the number of these is limited for
 * each tenant. The number of waiting questions is limited as well, and tenants take turns: the one
 * that has used the least of the children's time lately comes first.
 */
#pragma once

#include <stdbool.h>
#include "daemon/core/loop.h"
#include "daemon/discovery/look_message.h"

/* Children that work at the same time, and how many of them for one tenant. */
#define LOOK_LANES	  4
#define LOOK_TENANT_LANES (LOOK_LANES / 2)
/* Children that were given up and have not ended: for one tenant; for all tenants, from where on
 * each may have only one; and for all tenants at most. */
#define LOOK_STUCK_MAX	4
#define LOOK_STUCK_MANY 32
#define LOOK_STUCK_ALL	256
/* Waiting questions: of all tenants; of one; and LOOK_JVM of one, with those being answered. */
#define LOOK_QUEUE_MAX	  2048
#define LOOK_TENANT_QUEUE 512
#define LOOK_TENANT_SCAN  8
#define LOOK_ANSWER_NS	  (2000 * 1000000ull) /* a child that takes longer is given up */
#define LOOK_SLOW_NS	  (500 * 1000000ull) /* a tenant whose questions take longer is slow */
#define LOOK_WAIT_NS	  (30 * 1000000000ull) /* longest time in the queue */
#define LOOK_TURN_NS	  (250 * 1000000ull) /* between two checks for late children */

struct look;
struct look_ticket;

/* Gets the answer, or in @a->result the reason why there is none. @a is borrowed; so are the
 * descriptors in @fds, except those that the function takes by setting them to -1. */
typedef void look_fn(void *userdata, const struct look_answer *a, int fds[LOOK_FDS]);

/* @program is copied. Children are started when they are needed. */
int look_new(struct loop *loop, const char *program, struct look **ret);
struct look *look_free(struct look *l); /* callbacks of open questions are no longer called */
DEFINE_FREEP(struct look, look_free);

/*
 * Asks @q (its number is filled in here) about a process of @tenant, a tenant_number(); 0 =
 * look_tenant_of() finds it. @fd is sent with the question, -1 = none; it is taken in any case.
 *
 * @l: NULL = this process finds the answer, and calls @fn before it returns (tests, and programs
 * that look at a single process)
 * @ret: for look_cancel(), until @fn is called; set before that
 *
 * Returns 0: @fn was called or will be. Otherwise it will not be called. -EBUSY: too many children
 * are blocked by processes of the tenant; -ENOSPC: the queue is full; -ENOMEM. For LOOK_JVM also
 * -EAGAIN: the tenant has enough questions, ask again after an answer; -EALREADY: the same, but its
 * answers are slow, so do not wait for them.
 */
int look_ask(struct look *l, const struct look_question *q, uint64_t tenant, int fd, look_fn *fn,
	     void *userdata, struct look_ticket **ret);
/* The question's function will not be called. NULL is fine. Returns NULL. */
struct look_ticket *look_cancel(struct look_ticket *t);
/* The tenant of a process, by its cgroup and user, which can be read without blocking. Never 0. */
uint64_t look_tenant_of(pid_t pid);

struct look_counts {
	unsigned stuck; /* children that were given up and have not ended */
	uint64_t given_up; /* questions that were not answered in time, since the start */
	uint64_t refused; /* questions that were refused because of one of the limits above */
};
void look_counts(const struct look *l, struct look_counts *ret); /* NULL: all 0 */
