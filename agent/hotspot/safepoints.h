/*
 * The last safepoint, as recorded by the JVM itself. From JDK 17 on the JVM records when it asked
 * the threads to stop, when the last of them had stopped and when they were released (class
 * SafepointTracing, safepoint.cpp); it does so for its log, even if that is off. libjvm does not
 * export these variables, but its symbol table has them (libjvm_hidden()). Earlier JVMs record it
 * in another form (safepoint_timers.h). Only the last safepoint is available; gaps in their numbers
 * show that safepoints were missed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The JVM's variables, in its memory. end_ns = NULL: not known. */
struct safepoints_at {
	const uint64_t *begin_ns, *reached_ns, *end_ns; /* CLOCK_MONOTONIC; end: 0 during a
							 * safepoint */
	const uint64_t *counter; /* odd during a safepoint */
	const int32_t *operation; /* the operation that needed it: VM_Operation::VMOp_Type */
};
extern struct safepoints_at safepoints_at_sig;

/* Times are CLOCK_MONOTONIC, as os::javaTimeNanos() is on Linux. */
struct safepoint {
	uint64_t begin_ns, reached_ns, end_ns;
	uint64_t number; /* number of safepoints so far, including this one */
	/* what it was for: VM_Operation::VMOp_Type, or up to JDK 12 a collector,
	 * SAFEPOINT_OPERATION_UNKNOWN = none */
	int32_t operation;
};
#define SAFEPOINT_OPERATION_UNKNOWN -1

/* Agent's thread: finds the variables; only the first call reads libjvm's file. false = this JVM
 * does not have them. */
bool safepoints_init(void);
/* Handler: the end of the last safepoint; 0 = one is in progress. Each safepoint changes it. */
uint64_t safepoints_end_sig(void);
/* Handler: the number of safepoints that have ended, or nearly so. */
uint64_t safepoints_number_sig(void);
/* Handler, one thread at a time: the last safepoint. false = one is in progress, there was none, or
 * the variables changed during the read. */
bool safepoints_last_sig(struct safepoint *ret);
/* Agent's thread: the JVM's name for what a safepoint was for, such as "G1CollectForAllocation"; ""
 * = unknown. Never freed. */
const char *safepoints_operation(int32_t operation);
/* Agent's thread: was it a garbage collection? */
bool safepoints_collects(int32_t operation);
