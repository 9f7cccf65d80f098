/*
 * Why something failed: an errno value, the step that failed and a sentence a user can act on.
 * Plain data of 128 bytes, no pointers: crosses the injector's result pipe in one write and is what
 * `kindling status` prints as a target's reason.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

/* X(ENUM, "name"): append only, the number crosses the pipe */
#define FAULT_STEPS(X) \
	X(NONE, "none") \
	X(INTERNAL, "internal") \
	X(PREFLIGHT, "preflight") /* a check refuses the target before it is touched */ \
	X(IDENTITY, "identity") /* the pid is gone or another process now */ \
	X(NAMESPACE, "namespace") \
	X(CREDENTIALS, "credentials") \
	X(PLACEMENT, "placement") \
	X(SIGNAL, "signal") \
	X(SOCKET, "socket") \
	X(ATTACH, "attach") /* the JVM refused or did not answer */ \
	X(LOAD, "load") /* the JVM could not load the library */ \
	X(HELLO, "hello") /* loaded, but the agent never spoke */ \
	X(STREAM, "stream") /* the agent sent what is not the protocol */ \
	X(AGENT, "agent") /* the agent itself reported a fault */ \
	X(DEADLINE, "deadline") \
	X(OWNER, "owner") /* KINDLING_DISABLE in its environment */ \
	X(RULE, "rule") /* targets.rules, targets.mode */ \
	X(WISH, "wish") /* somebody asked for it: kindling detach */ \
	X(BUDGET, "budget") /* targets.max */ \
	X(CRASH, "crash") /* one like it crashed */ \
	X(PROFILER, "profiler") /* targets.foreign_profilers: yield, and one is there */

enum fault_step {
#define X(id, name) FAULT_##id,
	FAULT_STEPS(X)
#undef X
	FAULT_STEP_COUNT
};

/* enum fault_flag: what may be done about it */
#define FAULT_RETRY_SOON 1u /* passes by itself within milliseconds (JVM too young) */
#define FAULT_PERMANENT  2u /* only the target's owner can change it: do not try again */

struct fault {
	int32_t code; /* positive errno value; 0 = no fault */
	uint16_t step; /* enum fault_step */
	uint16_t flags;
	char what[120]; /* NUL-terminated: "open ns/mnt of pid 4711: Permission denied" */
};
static_assert(sizeof(struct fault) == 128, "crosses the injector pipe in one write");

/*
 * Record a fault; the first one wins, later calls leave it alone. @f may be NULL. @code is a
 * positive errno value; its strerror() text is appended to the sentence when the format ends in
 * ": ". Returns -@code, for `return fault_set(...)`.
 */
int fault_set(struct fault *f, int code, enum fault_step step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
const char *fault_step_name(unsigned step);
