/* Inside the target room: state.c (the table of steps), inject.c (the child), session.c (the pipe),
 * target.c (the table of targets), match.c (words that name one). */
#pragma once

#include "daemon/target/target.h"

#define INJECTORS_MAX      4
#define HELLO_DEADLINE_NS  (5 * 1000000000ull)
#define DRAIN_DEADLINE_NS  (5 * 1000000000ull)
#define GONE_KEEP_NS       (120 * 1000000000ull)

struct target_priv {
	struct targets *table;
	struct target *next;
	int pidfd;
	struct loop_source *pidfd_source;
	struct loop_timer *timer; /* of the current state: back-off, deadline, or the end of GONE */
	/* INJECTING */
	pid_t injector;
	int result_fd;
	struct loop_source *result_source;
	/* sessions */
	int events_fd, control_fd;
	struct loop_source *events_source;
	uint64_t session;
	bool bye; /* BYE came */
};

struct targets {
	struct loop *loop;
	const struct config *config;
	struct targets_ops ops;
	void *userdata;
	struct target *first;
	unsigned count, injectors;
	uint64_t refused; /* TARGETS_MAX */
};

/* state.c: the only place where t->state changes. @why may be NULL. */
void target_set_state(struct target *t, enum target_state next, const struct fault *why);
bool target_step_allowed(enum target_state from, enum target_state to);
/* How long to wait before attempt number @attempts + 1; 0 = never again. */
uint64_t target_backoff_ns(unsigned attempts, const struct fault *why);

/* inject.c */
void target_inject(struct target *t); /* FOUND or FAILED -> INJECTING, when a place is free */
void target_inject_abort(struct target *t);
void targets_inject_next(struct targets *table);

/* session.c */
int session_frame(struct target *t, uint8_t *buf, uint64_t interval_ns, bool no_budget);
void session_open(struct target *t, int events_fd, int control_fd); /* takes the fds */
void session_close(struct target *t); /* keeps its books */
bool session_reattach(struct target *t); /* an agent of a former daemon lives in it */
void session_drain(struct target *t); /* read what is left in the pipe */
