/*
 * Why something failed: an errno value, the step that failed and a sentence a user can act on.
 * Plain data of 128 bytes without pointers: the injector sends it in one message, and `kindling
 * status` prints its sentence as the reason of a target.
 */
#pragma once

#include <assert.h>
#include <stdint.h>

/* X(ENUM, "name"). Only append: the numbers are sent between programs. */
#define FAULT_STEPS(X) \
	X(NONE, "none") \
	X(INTERNAL, "internal") \
	X(PREFLIGHT, "preflight") /* a check refuses the target before it is touched */ \
	X(IDENTITY, "identity") /* the process has ended, or its pid is another one's now */ \
	X(NAMESPACE, "namespace") \
	X(CREDENTIALS, "credentials") \
	X(PLACEMENT, "placement") \
	X(SIGNAL, "signal") \
	X(SOCKET, "socket") \
	X(ATTACH, "attach") /* the JVM refused or did not answer */ \
	X(LOAD, "load") /* the JVM could not load the library */ \
	X(HELLO, "hello") /* loaded, but the agent did not answer */ \
	X(STREAM, "stream") /* the pipe, or what the agent sent: not the protocol, no answer */ \
	X(AGENT, "agent") /* the agent itself reported a fault */ \
	X(DEADLINE, "deadline") \
	X(OWNER, "owner") /* KINDLING_DISABLE in its environment */ \
	X(RULE, "rule") /* targets.rules, targets.mode */ \
	X(WISH, "wish") /* an operator asked for it: kindling detach */ \
	X(BUDGET, "budget") /* a limit, such as targets.max */ \
	X(CRASH, "crash") /* a similar JVM has crashed */ \
	X(PROFILER, "profiler") /* another profiler, and targets.foreign_profilers is yield */

enum fault_step {
#define X(id, name) FAULT_##id,
	FAULT_STEPS(X)
#undef X
	FAULT_STEP_COUNT
};

/* Bits of fault.flags: whether to try again. */
#define FAULT_RETRY_SOON 1u /* likely to pass within milliseconds (a JVM that is starting) */
#define FAULT_PERMANENT  2u /* does not pass by itself: do not try again */

struct fault {
	int32_t code; /* positive errno value; 0 = no fault */
	uint16_t step; /* enum fault_step */
	uint16_t flags;
	char what[120]; /* NUL-terminated: "open ns/mnt of pid 4711: Permission denied" */
};
static_assert(sizeof(struct fault) == 128, "crosses the injector pipe in one write");

/*
 * Records a fault in @f, which may be NULL; if it contains one already it is not changed. @code is a
 * positive errno value; its strerror() text is appended to the sentence if the format ends in ": ".
 * Returns -@code, for `return fault_set(...)`.
 */
int fault_set(struct fault *f, int code, enum fault_step step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
const char *fault_step_name(unsigned step);
