/*
 * Looks at processes for the discovery, outside of the loop: children (kindling-look) that are
 * asked about one process after the other. Text of /proc/PID comes from the memory of that process,
 * its libjvm from its file systems, and either may keep a reader waiting that no signal ends. A
 * child that does not answer is given up; another takes its place, and as many as one tenant has
 * are bounded.
 */
#pragma once

#include "daemon/core/loop.h"
#include "daemon/discovery/jvm.h"

#define LOOK_LANES     2 /* children that are asked at the same time */
#define LOOK_STUCK_MAX 4 /* children that were given up and live still, of one tenant, */
#define LOOK_STUCK_ALL 32 /* and of all */
#define LOOK_ANSWER_NS (2000 * 1000000ull)
#define LOOK_TURN_NS   (250 * 1000000ull) /* how often somebody asks whether one is late */

/* What goes to the child, and what comes back. */
struct look_question {
	uint64_t number;
	int32_t pid;
};
struct look_answer {
	uint64_t number;
	int32_t result; /* of jvm_probe() */
	struct jvm jvm;
};

/* @result: of jvm_probe(); -ETIMEDOUT: no answer, -EIO: its child has died. @jvm is borrowed. */
typedef void look_fn(void *userdata, pid_t pid, int result, const struct jvm *jvm);

struct look;
/* @program is copied. The children are started when they are needed. */
int look_new(struct loop *loop, const char *program, look_fn *fn, void *userdata,
	     struct look **ret);
struct look *look_free(struct look *l);
DEFINE_FREEP(struct look, look_free);
/* 0: the answer comes to @fn. -EAGAIN: all lanes are in use, @fn is called when one is not;
 * -EBUSY: so many children wait for others of its tenant that it is not looked at. */
int look_ask(struct look *l, pid_t pid);
unsigned look_stuck(const struct look *l);
